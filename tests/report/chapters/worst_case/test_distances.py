"""How far the nearest other decisions are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from helpers.margin_runs import SCORED, first_case, margins, with_status, worst_case
from helpers.pages import result_of
from helpers.tables import make_table

from brittle.analysis import direct_robust_accuracy, worst_case_table
from brittle.report import palette
from brittle.report.chapters.worst_case import WorstCaseChapter
from brittle.store.schemas import POINTS
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_a_warning_stands_only_where_margins_are_masked() -> None:
    made = make_table(points=20, scores=SCORED)
    assert worst_case(made).distances.warning == ""
    assert worst_case(with_status(made, "masked")).distances.warning.startswith("The margins of 20 points of 20")


def test_refuted_certificates_are_warned_of() -> None:
    made = with_status(make_table(points=20, scores=SCORED), "refuted")
    assert worst_case(made).distances.warning.startswith("The certificates of 20 points are contradicted")


def test_the_curve_is_the_robust_accuracy_at_every_epsilon(table: Table) -> None:
    frame = first_case(table).distances.frame
    distance, correct = margins(table)[:240], np.array(table.points["correct"].to_pylist(), dtype=np.float64)
    assert set(frame["kind"]) == {"all", "correct", "certified"}
    for kind, right in (("all", np.ones(240)), ("correct", correct)):
        curve = frame[frame["kind"] == kind]
        assert (np.diff(curve["share"]) <= 0.0).all()
        assert (curve["low"] <= curve["share"]).all()
        assert (curve["share"] <= curve["high"]).all()
        for row in curve.iloc[[0, 20, 77, 199]].to_dict("records"):
            kept = ~np.isnan(distance) & ~np.isnan(right)
            assert row["share"] == np.mean((distance[kept] > row["epsilon"]) & (right[kept] == 1.0))


def test_the_certified_curve_is_that_of_the_lower_ends(table: Table) -> None:
    shares = first_case(table).distances.frame.pivot(index="epsilon", columns="kind", values="share")
    low = table.long().query("score == 'input_margin'")["low"].to_numpy()[:240]
    correct = np.array(table.points["correct"].to_pylist(), dtype=np.float64)
    for epsilon, share in shares["certified"].iloc[::40].items():
        assert share == np.mean((low[~np.isnan(low)] > epsilon) & (correct[~np.isnan(low)] == 1.0))
    assert (shares["certified"] <= shares["correct"]).all()
    assert (shares["correct"] <= shares["all"]).all()
    assert "certified" not in set(worst_case(make_table(points=20, scores=SCORED)).distances.frame["kind"])


@pytest.mark.parametrize("labels", [True, False])
def test_what_is_certified_bounds_what_the_attacks_left(labels: bool) -> None:
    """The two ends of the bracket are shares of the same points, also where many predictions are wrong."""
    made = make_table(points=200, scores=SCORED, certified=True, labels=labels)
    if labels:
        points = made.points.to_pandas().assign(correct=np.arange(200) % 2 == 0)
        made = replace(made, points=pa.Table.from_pandas(points, schema=POINTS, preserve_index=False))
    case = worst_case(made, 0.01)
    curve = case.distances.frame.pivot(index="epsilon", columns="kind", values="share")
    of = dict(zip(case.distances.frame["kind"], case.distances.frame["of"], strict=True))
    left = "correct" if labels else "all"
    assert (curve["certified"] <= curve[left]).all()
    assert of["certified"] == ("correct prediction, certified" if labels else "any prediction, certified")
    low = made.long().query("score == 'input_margin'")["low"].to_numpy()
    right = np.arange(200) % 2 == 0 if labels else np.ones(200, dtype=bool)
    proven, attacked = np.mean((low > 0.01) & right), np.mean((margins(made) > 0.01) & right)
    number = case.distances.numbers[-1]
    assert number.title == ("Certified robust accuracy at Linf 0.01" if labels else "Certified share at Linf 0.01")
    assert number.value == f"{100 * proven:.0f}%"
    assert f"between this {100 * proven:.0f}% and the {100 * attacked:.0f}% that" in number.note
    assert proven < attacked


def test_the_numbers_are_those_of_the_analysis(table: Table) -> None:
    case = result_of(WorstCaseChapter(), table, epsilon=0.02)[0]
    correct = table.points["correct"].to_pylist()
    direct = direct_robust_accuracy(margins(table)[:240], correct, 0.02)
    assert f"{100 * direct.robust_accuracy:.0f}%" == case.distances.numbers[2].value == case.subset.numbers[0].value
    frame = worst_case_table(table, 0.02, "linf")
    assert [row[1].split("\n")[0] for row in case.stand_in.grid.rows] == [f"{tau:.3f}" for tau in frame["tau"]]
    assert case.stand_in.grid.colours == tuple(map(palette.colour, (8, 14)))
    assert len(case.subset.study.rows) == 2
