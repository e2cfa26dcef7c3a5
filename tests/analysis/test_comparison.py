"""Comparison of two runs, point by point: known answers, laws of swapping and shuffling, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.tables import first_points, make_table, with_model, with_value
from helpers.two_runs import POINTS_MADE, renamed, two_runs, values, with_column
from scipy.stats import binomtest

from brittle.analysis import compare, format_comparison
from brittle.analysis.comparison import ALIKE, SMALLEST
from brittle.analysis.mean_interval import median_interval
from brittle.errors import DataError
from brittle.store.table import Table

KEYED = ["pairing", "noise"]
"""Columns that other ids change."""


def by_score(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_index("score", drop=False)


def test_a_row_summarizes_the_arrays() -> None:
    run_a, run_b = two_runs()
    frame = by_score(compare(run_a, run_b))
    row = frame.loc["logit_margin"]
    x, y = values(run_a, "logit_margin"), values(run_b, "logit_margin")
    assert (row["first"], row["first_low"], row["first_high"]) == pytest.approx(median_interval(x, 0.99))
    assert (row["second"], row["second_low"], row["second_high"]) == pytest.approx(median_interval(y, 0.99))
    difference = row["difference"], row["difference_low"], row["difference_high"]
    assert difference == pytest.approx(median_interval(x - y, 0.99))
    assert row["first_larger"] == (x > y).mean()
    assert row["p"] == pytest.approx(binomtest(int((x > y).sum()), POINTS_MADE).pvalue, rel=2e-3)  # the sign test
    assert (row["statistic"], row["points"], row["pairing"]) == ("median", POINTS_MADE, "point")
    assert pd.isna(row["reason"])


def test_the_accuracy_is_the_mean_of_correct_predictions() -> None:
    run_a, run_b = two_runs()
    row = by_score(compare(run_a, run_b)).loc["accuracy"]
    x, y = (np.array(table.points["correct"].to_pylist()) for table in (run_a, run_b))
    only_x, only_y = int((x & ~y).sum()), int((y & ~x).sum())
    assert (row["first"], row["second"]) == pytest.approx((x.mean(), y.mean()))
    assert row["difference"] == pytest.approx(x.mean() - y.mean())
    assert row["first_larger"] == pytest.approx((only_x + (POINTS_MADE - only_x - only_y) / 2) / POINTS_MADE)
    unlabelled = replace(run_b, points=with_column(run_b, "correct", [None] * POINTS_MADE))
    assert "accuracy" not in compare(run_a, unlabelled)["score"].tolist()


def test_a_run_and_itself_do_not_differ() -> None:
    table, _ = two_runs()
    frame = compare(table, table)
    assert set(frame["difference"]) == {0.0}
    assert set(frame["first_larger"]) == {0.5}
    assert frame["first"].tolist() == frame["second"].tolist()
    assert set(frame["reason"]) == {ALIKE}
    assert set(frame["p"]) == {1.0}
    assert ((frame["difference_low"] <= 0.0) & (frame["difference_high"] >= 0.0)).all()
    text = format_comparison(frame)
    assert f"{len(frame)} of {len(frame)} rows hold the same value" in text
    assert "The data cannot tell" in text


def test_swapping_the_runs_flips_every_sign() -> None:
    run_a, run_b = two_runs()
    run_b = with_value(run_b, "input_margin(norm=linf)", [math.inf] * 5 + [1.0] * 55)
    forward, backward = compare(run_a, run_b), compare(run_b, run_a)
    assert (backward["difference"] + forward["difference"]).to_numpy() == pytest.approx(0.0, abs=1e-12)
    assert backward["difference_low"].to_numpy() == pytest.approx(-forward["difference_high"].to_numpy())
    assert backward["first_larger"].to_numpy() == pytest.approx(1.0 - forward["first_larger"].to_numpy())
    assert backward["p"].to_numpy() == pytest.approx(forward["p"].to_numpy())
    for name in ("", "_low", "_high", "_infinite"):
        assert backward[f"first{name}"].tolist() == forward[f"second{name}"].tolist()


def test_infinite_distances_are_compared_by_their_order() -> None:
    run_a, run_b = two_runs()
    x, y = np.arange(60.0), np.arange(60.0)[::-1].copy()
    x[:20], y[10:40] = math.inf, math.inf
    label = "input_margin(norm=linf)"
    row = by_score(compare(with_value(run_a, label, x), with_value(run_b, label, y))).loc[label]  # pyright: ignore[reportArgumentType] an array is a sequence
    assert (row["statistic"], row["first_infinite"], row["second_infinite"]) == ("median", 20, 30)
    assert (row["first"], row["first_low"], row["first_high"]) == median_interval(x, 0.99)
    assert row["second"] == math.inf
    assert row["first_larger"] == ((x > y).sum() + 10 / 2) / 60  # both infinite at 10 points
    differences = np.where((x == y), 0.0, np.subtract(x, y, where=x != y, out=np.zeros(60)))
    assert row["difference"] == np.median(differences)
    smaller_side = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    assert row["p"] == pytest.approx(min(1.0, binomtest(smaller_side, 60, alternative="less").pvalue * 2.0), rel=2e-3)
    assert "up to 30 distances are infinite" in format_comparison(row.to_frame().T)


def test_points_are_paired_by_row_where_no_id_is_shared() -> None:
    run_a, run_b = two_runs()
    frame = compare(run_a, renamed(run_b))
    assert set(frame["pairing"]) == {"row"}
    pd.testing.assert_frame_equal(frame.drop(columns=KEYED), compare(run_a, run_b).drop(columns=KEYED))
    assert "paired by row, as their ids differ" in format_comparison(frame)


def test_noise_is_shared_by_one_seed_over_the_same_ids() -> None:
    run_a, run_b = two_runs()
    label = "monte_carlo(draws=50, sigma=0.1)"
    frame = by_score(compare(run_a, run_b))
    assert frame.loc[label, "noise"] == "shared"
    assert frame.loc[["accuracy", "logit_margin"], "noise"].isna().all()
    assert "in 1 of 6 rows both runs have the same noise" in format_comparison(frame)
    reseeded = replace(run_b, record=replace(run_b.record, seed=run_b.record.seed + 1))
    moved = replace(run_b, record=replace(run_b.record, machine=replace(run_b.record.machine, device="other")))
    for candidate in (reseeded, moved, renamed(run_b)):
        comparison = by_score(compare(run_a, candidate))
        assert comparison.loc[label, "noise"] == "own"
        assert "1 of 6 rows read noise of each run's own" in format_comparison(comparison)


def test_points_without_a_partner_or_a_value_are_counted() -> None:
    run_a, run_b = two_runs()
    margin = values(run_b, "logit_margin").tolist()
    margin[:4] = [None] * 4
    run_b = with_value(run_b, "logit_margin", margin)
    frame = by_score(compare(first_points(run_a, 50), run_b))
    assert set(frame["only_first"]) == {0}
    assert set(frame["only_second"]) == {10}
    assert frame["dropped"].to_dict() == {label: 4 * (label == "logit_margin") for label in frame["score"]}
    assert frame["points"].tolist() == [50 - dropped for dropped in frame["dropped"]]
    text = format_comparison(frame)
    assert text.startswith("50 points in both runs, paired by id; 10 only in the second; intervals at 99%")
    assert "up to 4 points are left out" in text


def test_runs_that_cannot_be_paired_are_refused() -> None:
    run_a, run_b = two_runs()
    with pytest.raises(DataError, match="60 and 50 points"):
        compare(run_a, renamed(first_points(run_b, 50)))
    labels = run_b.points["label"].to_pylist()
    relabelled = replace(run_b, points=with_column(run_b, "label", [9 - labels[0], 9 - labels[1], *labels[2:]]))
    with pytest.raises(DataError, match="2 of 60 paired points have another label"):
        compare(run_a, relabelled)
    with pytest.raises(DataError, match=r"the bounds \[0\.0, 1\.0\], those of the second the bounds \[0\.0, 255\.0\]"):
        compare(run_a, with_model(run_b, bounds=(0.0, 255.0)))
    record = replace(run_b.record, data=replace(run_b.record.data, still="2 of 9: 0123"))
    for run in (with_model(run_b, rules={"age": "whole"}), replace(run_b, record=record)):
        with pytest.raises(DataError) as caught:
            compare(run_a, run)
        assert caught.value.code == "runs_differ"


def test_scores_of_other_parameters_are_not_compared() -> None:
    run_a = make_table(points=20, scores=("taylor",), sigmas=(0.1, 0.2), labels=False)
    run_b = make_table(points=20, scores=("taylor",), sigmas=(0.2, 0.3), labels=False)
    assert compare(run_a, run_b)["score"].tolist() == ["taylor(sigma=0.2)"]
    empty = compare(run_a, make_table(points=20, scores=("logit_margin",), labels=False))
    assert empty.empty
    assert format_comparison(empty) == "The two runs share no score, so there is nothing to compare."


def with_values(table: Table, values: np.ndarray) -> Table:
    """Return `table`, which holds one score, with these values of it."""
    place = table.scores.schema.get_field_index("value")
    column = pa.array(values, pa.float64())
    return replace(table, scores=table.scores.set_column(place, table.scores.schema.field(place), column))


LAWS = {
    "heavy": lambda points, generator: generator.standard_t(1.5, points),
    "ties": lambda points, generator: generator.integers(0, 2, points).astype(np.float64),
    "infinite": lambda points, generator: np.where(generator.random(points) < 0.3, math.inf, generator.random(points)),
    "share": lambda points, generator: (generator.random(points) < 0.03) * generator.random(points),
}
"""Numbers like the scores of two runs: without bounds, mostly equal, infinite."""


def compare_values(x: np.ndarray, y: np.ndarray, score: str) -> pd.Series:
    table = make_table(points=len(x), scores=(score,), sigmas=(0.1,), budgets=(50,), labels=False)
    return compare(with_values(table, x), with_values(table, y)).iloc[0]


@pytest.mark.every_other
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("score", ["logit_margin", "moments"])
def test_the_p_value_agrees_with_the_interval(law: str, score: str) -> None:
    generator = np.random.default_rng(5)
    verdicts = []
    for points in (1, 10, 150):
        for shift in (0.0, 0.1, 2.0):
            x, y = (LAWS[law](points, generator) for _ in range(2))
            x = x + shift
            if score == "moments":
                x, y = (np.clip(np.nan_to_num(sample, posinf=1.0), 0.0, 1.0) for sample in (x, y))
            row = compare_values(x, y, score)
            excludes_zero = row["difference_low"] > 0.0 or row["difference_high"] < 0.0
            assert (row["p"] < 1.0 - row["confidence"]) == excludes_zero
            assert SMALLEST <= row["p"] <= 1.0
            text = format_comparison(row.to_frame().T)
            assert text.count("The data cannot tell") == int(score == "moments" and not excludes_zero)
            verdicts.append(excludes_zero)
    assert len(set(verdicts)) == 2


@pytest.mark.parametrize("better", [1, 2])
def test_one_sentence_names_the_more_robust_run(better: int) -> None:
    generator = np.random.default_rng(0)
    x = generator.random(300) / 2
    runs = [x, x + 0.2][:: 1 if better == 1 else -1]
    table = make_table(points=300, scores=("moments",), sigmas=(0.1,), budgets=(50,), labels=False)
    frame = compare(*(with_values(table, run) for run in runs))
    (sentence,) = [line for line in format_comparison(frame).splitlines() if "more robust" in line]
    assert sentence.startswith(f"{'The first run' if better == 1 else 'The second'} is more robust")
    assert f"mean difference {'' if better == 1 else '-'}0.2 (" in sentence
    row = frame.iloc[0]  # the sentence says of the rows what they say
    assert row["difference"] == pytest.approx(0.2 if better == 1 else -0.2)
    assert row["first"] == pytest.approx(1.0 - runs[0].mean())
    unscored = make_table(points=5, scores=("logit_margin",), labels=False)
    assert "score both by shrinkage" in format_comparison(compare(unscored, unscored))


def test_small_flip_probabilities_are_compared_exactly() -> None:
    row = compare_values(np.full(40, 2e-18), np.full(40, 1e-18), "moments")
    assert (row["first"], row["first_larger"], row["reason"]) == (1.0, 0.0, None)
