"""The most fragile predictions."""

from __future__ import annotations

import base64
import re

from helpers.pages import result_of
from helpers.tables import make_table

from brittle.report.chapters.fragile import FragileChapter
from brittle.report.chapters.fragile.chapter import FACES


def test_a_number_that_was_not_seen_is_a_bound() -> None:
    """Of 8 points that hardly ever flip, the normal model of 50 copies says numbers that no copy showed."""
    table = make_table(points=8, scores=("moments",), budgets=(50,), sigmas=(0.02,))
    rows = result_of(FragileChapter(), table).grid.rows
    column = table.wide()["moments(draws=50, sigma=0.02).evidence"]
    assert (column == "extrapolated").any()
    shown = [row for row in rows if "extrapolated" in row]
    assert len(shown) == (column == "extrapolated").sum()
    assert all(row[6].endswith(", by counting") for row in shown)
    assert any(row[5].startswith("above ") and row[6].startswith("below ") for row in shown)
    assert not any(re.search(r"e-[2-9]\d", cell) for row in shown for cell in (row[5], row[6]))


def test_the_most_fragile_are_shown_as_images_where_there_are_any() -> None:
    table = make_table(points=40, scores=("monte_carlo",), budgets=(50,), sigmas=(0.2,))
    result = result_of(FragileChapter(), table)
    images = dict(zip(table.points["name"].to_pylist(), table.points["image"].to_pylist(), strict=True))
    assert [face.name for face in result.faces] == [row[1] for row in result.grid.rows[:FACES]]
    assert all(base64.b64decode(face.image) == images[face.name] for face in result.faces)
    for face, row in zip(result.faces, result.grid.rows, strict=False):
        assert face.text.endswith(f", flips {face.flips}")
        assert face.text.startswith(
            f"{row[3]}, wrongly predicted as {row[4]}" if row[3] != row[4] else f"predicted as {row[4]}"
        )
    bare = make_table(points=40, scores=("monte_carlo",), budgets=(50,), sigmas=(0.2,), images=False)
    assert result_of(FragileChapter(), bare).faces == ()
