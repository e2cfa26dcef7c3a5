"""Whether the Laplacian tells which predictions flip, as the page says it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.change_runs import change_run, expected_change
from helpers.change_tables import change, with_score
from helpers.pages import assert_inert, page_of

from brittle.analysis import (
    label_flips,
)
from brittle.report.wording import signed, small_percent
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_flips_are_those_of_the_analysis(table: Table) -> None:
    frame, found = label_flips(table), expected_change(table).flips
    for row, cells, others in zip(frame.to_dict("records"), found.by_laplacian.rows, found.by_flips.rows, strict=True):
        assert cells[1:3] == (f"{row['points']}", f"{row['group']}")
        assert [cell.split("\n")[0] for cell in cells[3:5]] == [
            small_percent(row[name]) for name in ("lowest", "highest")
        ]
        assert others[1:3] == (f"{row['flipped']}", f"{row['never_flipped']}")
        assert others[3].split("\n")[0] == signed(row["laplacian_flipped"], 3)
        assert others[4].split("\n")[0] == signed(row["laplacian_never"], 3)
    drawn = found.shares.pivot(index="setting", columns="group", values="value")
    assert drawn["lowest Laplacian"].tolist() == frame["lowest"].tolist()
    assert drawn["highest Laplacian"].tolist() == frame["highest"].tolist()


def test_the_verdict_on_flips_follows_the_test() -> None:
    rng = np.random.default_rng(0)
    table = change_run(scores=("max_probability",), points=200)
    curvature = next(column for column in table.columns if column.score == "laplacian").value.to_numpy()
    for flips, words in (
        (np.where(curvature < np.median(curvature), 0.4, 0.0), "a low Laplacian tells which"),
        (np.where(rng.random(200) < 0.5, 0.4, 0.0), "do not show that a low Laplacian tells"),
        (np.zeros(200), "do not flip there, so no difference can be found"),
    ):
        made = with_score(table, "monte_carlo", flips, {"sigma": 0.2, "draws": 50}, quantity="flip_probability")
        assert words in expected_change(made).flips.conclusion


def test_where_nothing_flips_the_noisiest_level_is_told() -> None:
    made = change_run(scores=("max_probability",), half=0.0)
    made = with_score(made, "probability_change", np.zeros(160), change(0.9))  # decides nothing, so 0.2 is chosen
    for sigma, flips in ((0.2, 0.0), (0.9, 0.3)):
        made = with_score(
            made, "monte_carlo", [flips] * 160, {"sigma": sigma, "draws": 50}, quantity="flip_probability"
        )
    assert "it is sigma 0.2" in expected_change(made).setting
    assert expected_change(made).flips.conclusion.startswith("At sigma 0.9, the 50 confident")
    assert expected_change(made).numbers[2].value == "30% vs 30%"


def test_confident_points_at_one_noise_level_only(table: Table) -> None:
    """Groups at 0.05 alone: elsewhere one point flipped or not, and the rest is unknown."""
    lonely = [0.5] + [math.nan] * 159
    made = with_score(table, "monte_carlo", lonely, {"sigma": 0.9, "draws": 10}, quantity="flip_probability")
    found = expected_change(made).flips
    assert len(found.by_laplacian.rows) == 2
    assert len(found.by_flips.rows) == 3
    assert found.conclusion.startswith("At sigma 0.2, the")
    assert_inert(page_of(made))
