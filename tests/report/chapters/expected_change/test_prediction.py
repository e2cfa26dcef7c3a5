"""How well the Laplacian predicts the sampled change, as the page says it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from helpers.change_runs import change_run, expected_change, without
from helpers.change_tables import LAPLACIAN, change, with_score
from helpers.pages import assert_inert, page_of

from brittle.analysis import (
    expected_change_points,
    expected_change_table,
)
from brittle.report.chapters.expected_change.charts import KINDS
from brittle.report.chapters.expected_change.prediction import KINK, OPEN, OTHER, SAME
from brittle.report.wording import reach, signed, small_percent
from brittle.store.settings import Setting
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_the_table_holds_the_frame(table: Table) -> None:
    frame = expected_change_table(table)
    rows = expected_change(table).prediction.grid.rows
    assert [row[0] for row in rows] == ["sigma 0.05", "sigma 0.2"]
    for cells, row in zip(rows, frame.to_dict("records"), strict=True):
        assert cells[1] == f"{row['points']:,}"
        assert cells[2].split("\n")[0] == small_percent(row["agreement"])
        assert cells[2].endswith(f"of {row['decided']:,}")
        assert cells[3].split("\n")[0] == f"{row['spearman']:.3f}"
        assert cells[4] == f"{signed(row['slope'], 3)}\n{reach(row['slope_low'], row['slope_high'], 3)}"
        assert cells[5] == f"{signed(row['ratio'], 3)}\n{reach(row['ratio_low'], row['ratio_high'], 3)}"


def test_the_figure_holds_the_points(table: Table) -> None:
    frame = expected_change(table).prediction.frame
    for sigma, drawn in frame.groupby("setting"):
        points = expected_change_points(table, Setting(float(str(sigma).split()[1]), "gaussian"))
        assert drawn["predicted"].tolist() == points["predicted_change"].tolist()
        assert drawn["sampled"].tolist() == points["sampled_change"].tolist()
        assert drawn["low"].tolist() == points["sampled_low"].tolist()
        assert (drawn["kind"] == KINK).tolist() == points["kink"].tolist()
    assert set(frame["kind"]) <= set(KINDS)


def test_kinds_of_points() -> None:
    turned = expected_change(change_run(factor=-1.0)).prediction.frame
    assert {OTHER, OPEN, KINK} == set(turned["kind"])
    points = expected_change_points(change_run(factor=-1.0), Setting(0.2, "gaussian"))
    marked = (turned["kind"] == OTHER)[turned["setting"] == "sigma 0.2"].tolist()
    assert marked == (points["sign_disagrees"] & ~points["kink"]).tolist()
    assert set(expected_change(change_run(half=0.0, kinks=0)).prediction.frame["kind"]) == {SAME}


def test_kinks_are_counted(table: Table) -> None:
    assert "3 points at a kink of the network" in expected_change(table).prediction.note
    assert "kink" not in expected_change(change_run(kinks=0)).prediction.note


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({}, "Here the Laplacian can stand in for sampling."),
        ({"factor": 30.0}, "the typical change is 30 times the predicted. Read the direction from the Laplacian"),
        ({"factor": 0.05}, "the typical change is 20 times smaller than predicted. Read the direction"),
        ({"factor": -1.0}, "not in the predicted direction. Trust the sampled change here, not the Laplacian."),
        ({"points": 6, "kinks": 0}, "These points do not decide whether the Laplacian can be trusted here."),
        ({"half": 9.0}, "sampling decides the sign of the change at no point"),
    ],
)
def test_the_conclusion_follows_the_numbers(recipe: dict[str, Any], words: str) -> None:
    assert words in expected_change(change_run(**recipe)).prediction.conclusion


def test_large_changes_that_fall_short_are_told() -> None:
    """Changes that saturate: the typical one is predicted, the largest are not."""
    table = change_run(sigmas=(), points=400)
    curvature = next(column for column in table.columns if column.score == "laplacian").value.to_numpy()
    large = np.where(np.arange(400) < 30, 1e3 * np.sign(curvature), curvature)
    table = with_score(without(table, "laplacian"), "laplacian", large, LAPLACIAN)
    sampled = np.clip(0.02 * large, -0.3, 0.3)
    found = expected_change(with_score(table, "probability_change", sampled, change(0.2))).prediction.conclusion
    assert re.search(r"about as large as predicted \(1\.0 times\), but the largest are 67 times smaller", found)
    assert found.endswith("Read the direction from the Laplacian, the size from sampling.")


def test_every_setting_is_read_in_words(table: Table) -> None:
    found = expected_change(table).prediction
    assert [fact.term for fact in found.readings] == ["sigma 0.05", "sigma 0.2"]
    assert found.conclusion == f"At sigma 0.2: {found.readings[1].text}".replace(": The", ": the")
    assert expected_change(change_run(sigmas=(0.1,))).prediction.readings == ()


def test_noise_that_is_not_alike_in_all_directions(table: Table) -> None:
    made = with_score(without(table, "probability_change"), "probability_change", [0.01] * 160,
                      change(0.1, noise="salt"))  # fmt: skip
    found = expected_change(made)
    assert "not alike in all directions" in found.prediction.conclusion
    assert found.prediction.frame.empty
    assert_inert(page_of(made))
    blurred = with_score(table, "probability_change", [0.01] * 160, change(0.1, noise="salt"), half=1.0)
    both = expected_change(blurred).prediction
    assert [("not alike" in fact.text) for fact in both.readings] == [False, True, False]
    assert "can stand in for sampling" in both.conclusion


def test_many_noise_levels_are_thinned_out() -> None:
    found = expected_change(change_run(points=40, sigmas=tuple(0.01 * k for k in range(1, 8)), kinks=0))
    assert len(found.prediction.grid.rows) == 7
    assert len(set(found.prediction.frame["setting"])) == 4
    assert "3 further noise levels in the table only" in found.prediction.note
