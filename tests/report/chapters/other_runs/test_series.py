"""Means over several other runs."""

from __future__ import annotations

import pytest
from helpers.change_runs import beside, other_run

from brittle.analysis import (
    mean_absolute,
    mean_interval,
)
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_a_series_has_one_mean_per_run_in_the_order_given(table: Table) -> None:
    others = {name: other_run(seed) for seed, name in enumerate(("weak", "a", "strong"), 1)}
    found = beside(table, others)
    sizes, flips = found.series
    assert sizes.frame.sort_values("order")["name"].tolist() == ["weak", "a", "strong"]
    for row in sizes.frame.to_dict("records"):
        mean = mean_absolute(others[row["name"]])
        assert (row["value"], row["low"], row["high"]) == (mean.mean, mean.low, mean.high)
        assert row["this"] == mean_absolute(table).mean
    for row in flips.frame.to_dict("records"):
        column = next(c for c in others[row["name"]].columns if c.score == "monte_carlo" and c.setting.sigma == 0.2)
        assert row["value"] == mean_interval(1.0 - column.value, 0.99).mean
    assert [row[0] for row in found.grid.rows] == ["this run", "weak", "a", "strong"]
    assert all(run.differences.empty and not run.spreads for run in found.runs)
    assert beside(table, {"one": table}).series == ()
