"""The confident predictions that lose most."""

from __future__ import annotations

import pytest
from helpers.change_runs import expected_change, without

from brittle.analysis import (
    expected_change_points,
)
from brittle.report.chapters.expected_change.drops import DROPS_LISTED, DROPS_SHOWN
from brittle.report.wording import signed
from brittle.store.settings import Setting
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_the_largest_drops_among_the_confident(table: Table) -> None:
    points = expected_change_points(table, Setting(0.2, "gaussian")).set_index("point")
    sure = next(column for column in table.columns if column.score == "max_probability").value
    falling = points.loc[(sure >= 0.8) & (points["sampled_change"] < 0.0)].sort_values(by="sampled_change")
    found = expected_change(table).drops
    assert len(falling) > DROPS_SHOWN
    assert [one.change for one in found.points] == [signed(v) for v in falling["sampled_change"][:DROPS_SHOWN]]
    assert [row[0] for row in found.grid.rows] == [str(row) for row in falling["row"][:DROPS_LISTED]]
    assert f"The {DROPS_SHOWN} lowest of {len(falling)} predictions" in found.note
    assert all(one.image for one in found.points)
    labels = dict(zip(table.points["name"].to_pylist(), table.points["correct"].to_pylist(), strict=True))
    assert [one.wrong for one in found.points] == [not labels[one.name] for one in found.points]


def test_without_samples_the_lowest_laplacians_are_shown(table: Table) -> None:
    bare = without(table, "probability_change")
    sure = next(column for column in bare.columns if column.score == "max_probability").value
    curvature = next(column for column in bare.columns if column.score == "laplacian").value[sure >= 0.8]
    found = expected_change(bare).drops
    assert [one.change for one in found.points] == [f"L {signed(v)}" for v in sorted(curvature)[:DROPS_SHOWN]]
    assert "as no change was sampled" in found.note
