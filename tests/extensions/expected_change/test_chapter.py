"""Chapter on the expected change: true to the analysis, plain about what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.change_runs import change_run, change_values
from helpers.pages import assert_inert, page_of
from helpers.tables import with_score, without_score

from brittle.analysis import expected_change_points, expected_change_table, mean_absolute
from brittle.analysis.mean_interval import ranged_interval
from brittle.extensions.expected_change.chapter import KINK
from brittle.extensions.report.wording import reach, short, signed, small_percent
from brittle.store.settings import Setting
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


@pytest.fixture(scope="module")
def table() -> Table:
    return change_run()


def column_of(table: Table, score: str) -> np.ndarray:
    return next(column for column in table.columns if column.score == score).value.to_numpy()


def test_the_large_numbers_match_the_analysis(table: Table) -> None:
    mean, size = change_values(table)["numbers"]
    sampled = expected_change_points(table, Setting(0.2, "gaussian"))["sampled_change"].to_numpy(dtype=np.float64)
    interval = ranged_interval(sampled, -1.0, 1.0, 0.99)
    assert mean.value == signed(interval.mean)
    assert mean.note.startswith(reach(interval.low, interval.high))
    assert f"a fall at {small_percent(float(np.mean(sampled < -1e-4)))} of 160 points" in mean.note
    laplacian = mean_absolute(table)
    assert size.value == short(laplacian.mean, 3)
    assert reach(laplacian.low, laplacian.high, 3) in size.note


@pytest.mark.parametrize(
    ("missing_scores", "words"),
    [
        (("probability_change",), ("This run holds no sampled change", "Mean |Laplacian|")),
        (("laplacian",), ("This run holds no Laplacian", "Mean change of", "This run lacks a Laplacian or a p_robust")),
        (("monte_carlo",), ("This run lacks a Laplacian or a p_robust", "160 points.")),
        (("max_probability",), ("so its confident points are not known",)),
    ],
)
@pytest.mark.usefixtures("nothing_drawn")
def test_scores_that_are_missing(table: Table, missing_scores: tuple[str, ...], words: tuple[str, ...]) -> None:
    page = page_of(without_score(table, *missing_scores))
    assert_inert(page)
    assert [part for part in words if part not in page.text] == []


def test_the_table_and_the_figure_hold_the_frames(table: Table) -> None:
    prediction = change_values(table)["prediction"]
    assert [row[0] for row in prediction["grid"].rows] == ["sigma 0.05", "sigma 0.2"]
    for cells, row in zip(prediction["grid"].rows, expected_change_table(table).to_dict("records"), strict=True):
        assert cells[1] == f"{row['points']:,}"
        assert cells[2].split("\n")[0] == small_percent(row["agreement"])
        assert cells[3].split("\n")[0] == f"{row['spearman']:.3f}"
        assert cells[4] == f"{signed(row['slope'], 3)}\n{reach(row['slope_low'], row['slope_high'], 3)}"
        assert cells[5] == f"{signed(row['ratio'], 3)}\n{reach(row['ratio_low'], row['ratio_high'], 3)}"
    frame, points = prediction["figure"].frame, expected_change_points(table, Setting(0.2, "gaussian"))
    assert frame["predicted"].tolist() == points["predicted_change"].tolist()
    assert frame["sampled"].tolist() == points["sampled_change"].tolist()
    assert (frame["kind"] == KINK).tolist() == points["kink"].tolist()
    assert prediction["kinks"] == 3


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({}, "Here the Laplacian can stand in for sampling."),
        ({"factor": 30.0}, "the typical change is 30 times the predicted. Read the direction from the Laplacian"),
        ({"factor": -1.0}, "Trust the sampled change here, not the Laplacian."),
        ({"points": 6, "kinks": 0}, "These points do not decide whether the Laplacian can be trusted here."),
        ({"half": 9.0}, "sampling decides the sign of the change at no point"),
    ],
)
def test_the_conclusion_follows_the_numbers(recipe: dict[str, Any], words: str) -> None:
    assert words in change_values(change_run(**recipe))["prediction"]["conclusion"]


def test_the_verdict_on_flips_follows_the_test() -> None:
    rng = np.random.default_rng(0)
    table = change_run(scores=("max_probability",), points=200)
    curvature = column_of(table, "laplacian")
    for flips, words in (
        (np.where(curvature < np.median(curvature), 0.4, 0.0), "a low Laplacian tells which"),
        (np.where(rng.random(200) < 0.5, 0.4, 0.0), "do not show that a low Laplacian tells"),
        (np.zeros(200), "keep it there, so no difference can be found"),
    ):
        run = with_score(table, "monte_carlo", flips, {"sigma": 0.2, "draws": 50}, quantity="flip_probability")
        assert words in change_values(run)["flips"]["conclusion"]
