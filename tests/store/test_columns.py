"""Columns of a table, looked up by a score, its label, its name, or its name and a parameter."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.inputs import EXAMPLES
from helpers.problems import inputs, small_classifier
from helpers.tables import CLASS_NAMES, make_table

import brittle
from brittle.analysis.overview import overview
from brittle.errors import DataError, ParameterError
from brittle.estimate import parameters_json
from brittle.measure import Sample, SampleUntil
from brittle.scores import LogitMargin, Moments, MonteCarlo, Score, Shrinkage, Softmax, Taylor
from brittle.store.columns import Column, distinct_names, interval_evidence
from brittle.store.reading import export_run
from brittle.store.schemas import unpack_votes

TABLE = make_table(points=9, broken=2, scores=("moments", "taylor", "logit_margin"), sigmas=(0.1, 0.2), budgets=(10,))


@pytest.mark.parametrize(
    ("key", "label"),
    [
        (Moments(sigma=0.2, draws=10), "moments(draws=10, sigma=0.2)"),
        ("moments(draws=10, sigma=0.2)", "moments(draws=10, sigma=0.2)"),
        (("moments", 0.2), "moments(draws=10, sigma=0.2)"),
        (LogitMargin(), "logit_margin"),
        ("logit_margin", "logit_margin"),
    ],
    ids=str,
)
def test_a_column_is_found_without_spelling_the_defaults(key: Any, label: str) -> None:
    assert TABLE[key].label == label


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("taylor", r"taylor is one of 2 columns: taylor\(sigma=0\.1\), taylor\(sigma=0\.2\)"),
        (("moments", 10), "found moments, 10; "),
        (("moments", 0.3), r"found moments, 0\.3; the nearest: moments\(draws=10, "),
        ("logit_margn", "the nearest: logit_margin, "),
        (Moments(sigma=0.1), r"the nearest: moments\(draws=10, sigma=0\.1\)"),
    ],
    ids=str,
)
def test_an_absent_or_ambiguous_key_names_the_nearest_columns(key: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        TABLE[key]
    assert caught.value.code == "no_such_score"


def test_a_column_holds_the_numbers_of_the_table() -> None:
    column, frame = TABLE["moments", 0.1], TABLE.frame(whole=True)
    for name in ("low", "high", "status", "passes", "p_robust"):
        expected = frame[f"{column.label}.{name}"].to_numpy()
        np.testing.assert_array_equal(getattr(column, name).to_numpy(), expected)
    np.testing.assert_array_equal(np.asarray(column), frame[f"{column.label}.flip_probability"].to_numpy())
    assert column.rows.index.tolist() == TABLE.points["point"].to_pylist()
    assert np.isnan(np.asarray(column)).sum() == 2
    assert len(column) == 9
    with pytest.raises(DataError, match="logit_margin is a logit_margin"):
        _ = TABLE["logit_margin"].p_robust


def is_more_of(candidate: Column, column: Column) -> bool:
    """Return whether `candidate` is the same score with more draws."""
    key, candidate_key = ((entry.score, {**entry.parameters, "draws": None}) for entry in (column, candidate))
    return key == candidate_key and (candidate.most_draws or 0) > (column.most_draws or 0)


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("scores", [EXAMPLES[:1], EXAMPLES[:2], EXAMPLES], ids=len)
def test_a_frame_has_every_column_under_its_name(scores: list[Score]) -> None:
    table = brittle.score(small_classifier(), (inputs(6), torch.arange(6) % 4), scores, skip_doctor=True)
    frame = table.frame(0.8)
    assert frame.columns.is_unique
    assert frame["point"].tolist() == table.points["point"].to_pylist()
    assert not frame.isna().all().any()
    largest = [column for column in table.columns if not any(is_more_of(larger, column) for larger in table.columns)]
    for column in largest:
        alike = [entry for entry in largest if entry.score == column.score]
        names = [name for name in frame if re.fullmatch(rf"p_robust|{column.score}(\[.*\])?(\.p_robust)?", name)]
        value = (column.p_robust if column.is_probability else column.value).to_numpy()
        equal_names = [name for name in names if np.array_equal(frame[name], value, equal_nan=True)]
        assert column.value.isna().all() or equal_names, column.label
        assert ("[" in "".join(names)) == (len(alike) > 1)
        if column.is_probability and column.is_decisive:
            states = [frame[f"{name.removesuffix('p_robust')}state"].tolist() for name in equal_names]
            assert column.states(0.8).tolist() in states


def test_a_frame_names_scores_by_their_differences() -> None:
    frame = make_table(points=9, scores=("moments", "logit_margin"), sigmas=(0.1, 0.2), budgets=(10,)).frame()
    assert {"moments[sigma=0.1].p_robust", "moments[sigma=0.2].state", "logit_margin"} <= {*frame}
    assert "logit_margin.low" not in frame
    assert set(frame["label"]) <= set(CLASS_NAMES)


@pytest.mark.every_other
@pytest.mark.parametrize("scores", [("moments",), ("moments", "monte_carlo"), ("moments", "logit_margin")], ids=str)
@pytest.mark.parametrize("sigmas", [(0.1,), (0.1, 0.2, 0.4)], ids=len)
@pytest.mark.parametrize("limit", [None, 0.5])
def test_the_flip_probability_of_the_first_screen_has_bare_names(
    scores: tuple[str, ...], sigmas: tuple[float, ...], limit: float | None, tmp_path: Path
) -> None:
    """Frames and files have them, whatever else the run holds; `by` names the column where there are several."""
    table = make_table(points=40, scores=scores, sigmas=sigmas, budgets=(20,))
    frame, column = table.frame(limit), overview(table, limit).column
    assert column is not None
    assert frame["p_robust"].tolist() == pytest.approx(column.p_robust.tolist(), nan_ok=True)
    is_ambiguous = sum(entry.is_decisive for entry in table.columns) > 1
    assert ("by" in frame) == is_ambiguous
    if is_ambiguous:
        (by,) = set(frame["by"])
        assert table[by] is column
        for name in ("p_robust", "low", "high", "state", "status"):
            assert frame[name].equals(frame[f"{by}.{name}"])
    table.save(tmp_path / "run")
    table.export(tmp_path / "b.parquet", limit=limit)
    for file in (export_run(tmp_path / "run", tmp_path / "a.parquet", limit=limit), tmp_path / "b.parquet"):
        assert pd.read_parquet(file).columns.tolist() == frame.columns.tolist()


def test_the_top_has_the_names_of_the_frame() -> None:
    for scores, by in ((("moments", "logit_margin"), None), (("moments", "logit_margin"), "logit_margin")):
        table = make_table(points=20, scores=scores, sigmas=(0.1, 0.2), budgets=(20,))
        frame, top = table.frame(), table.top(5, by)
        assert {*top} - {"row"} <= {*frame}
        assert not top.isna().all().any()
        shared = ["point", "label", "predicted", "correct", "logit_margin" if by else "p_robust"]
        assert top[shared].equals(frame.loc[top.index, shared])


@pytest.mark.usefixtures("short_search")
def test_a_column_is_found_by_its_distinct_name() -> None:
    table = brittle.score(small_classifier(), inputs(6), EXAMPLES, skip_doctor=True)
    names = distinct_names(table.columns)
    assert len(set(names)) == len(names)
    assert all(table[name] is column for name, column in zip(names, table.columns, strict=True) if "[" in name)


def test_two_scores_of_one_noise_are_found_by_their_names() -> None:
    table = brittle.score(small_classifier(), inputs(6), ["shrinkage", "monte_carlo"], sigma=0.1)
    assert [table["shrinkage"].score, table["monte_carlo"].score] == ["shrinkage", "monte_carlo"]


def test_a_column_has_the_description_of_its_score() -> None:
    score, column = Moments(sigma=0.1, draws=10), TABLE["moments", 0.1]
    for name in ("title", "reference", "quantity", "explanation", "safer", "colour", "preference", "model"):
        assert getattr(column, name) == getattr(score, name), name


@pytest.mark.parametrize(("score", "equal_score"), [(Moments(1), Moments(1.0)), (Softmax(2), Softmax(2.0))])
def test_equal_scores_are_one_column(score: Score, equal_score: Score) -> None:
    """Equal scores are written alike, so that each finds the other's column, and both at once are refused."""
    assert score == equal_score
    assert score.label == equal_score.label
    assert parameters_json(score.parameters) == parameters_json(equal_score.parameters)
    table = brittle.score(small_classifier(), inputs(3), [score])
    assert table[equal_score].label == score.label
    with pytest.raises(ParameterError, match="is asked for twice"):
        brittle.score(small_classifier(), inputs(3), [score, equal_score])


def test_a_table_says_which_points_stop() -> None:
    """A column knows this from its parameters alone, whatever the defaults of its score, and so does its label."""
    scores = [score for score in EXAMPLES if any(isinstance(need, Sample) for need in score.needs)]
    scores += [MonteCarlo(0.3, draws=40, limit=0.9), MonteCarlo(0.3, draws=40, precision=0.2)]
    table = brittle.score(small_classifier(), inputs(6), scores)
    for score, column in zip(scores, table.columns, strict=True):
        (need,) = (need for need in score.needs if isinstance(need, Sample | SampleUntil))
        assert column.stops == isinstance(need, SampleUntil)
        assert column.most_draws == need.draws
        assert column.draws == (None if column.stops else need.draws)
        assert column.stops or set(column.passes) == {need.draws + 1}
        assert unpack_votes(column.votes).draws.max() <= need.draws


@pytest.mark.parametrize(
    "key",
    [0, Moments, slice(1, 2), ("moments", 0.1, 3), (1, 2), ("moments", True), (Moments(1), 1)],
)
def test_a_key_of_another_type_is_refused(key: Any) -> None:
    with pytest.raises(ParameterError, match="expected a score such as") as caught:
        TABLE[key]
    assert caught.value.code == "parameter"


def test_the_number_beside_a_name_is_sigma() -> None:
    with pytest.raises(DataError, match="found moments, 10"):
        TABLE["moments", 10]  # its draws
    table = make_table(points=4, scores=("moments",), sigmas=(10.0, 20.0), budgets=(10, 20))
    with pytest.raises(DataError, match="one of 2 columns"):
        table["moments", 20]


def test_an_interval_that_holds_the_count_rests_on_it() -> None:
    """The interval of every score that samples noisy copies rests on the count; other scores have no states."""
    table = brittle.score(small_classifier(), inputs(60), [Shrinkage(0.2, limit=None), Moments(0.2), Taylor(0.2)])
    for name in ("shrinkage", "moments"):
        assert set(table[name].interval_evidence) == {"counted"}
        assert {"modelled", "extrapolated"} <= set(table[name].rows["evidence"])
        assert set(table[name].states(0.9)) <= {"holds", "breaks", "undecided"}
    column = table["taylor"]
    assert column.value.notna().all()
    assert column.low.isna().all()
    assert set(column.interval_evidence) == {"extrapolated"}
    assert not column.is_decisive
    assert set(column.states(0.9)) == {None}


def test_a_narrower_interval_rests_on_its_model() -> None:
    """Intervals narrower than the count's, as a user's own score may give."""
    rows = pd.DataFrame({"low": [0.1, 0.2], "high": [0.4, 0.3], "counted_low": 0.1, "counted_high": 0.4})
    assert interval_evidence(rows.assign(evidence="modelled")).tolist() == ["counted", "modelled"]
