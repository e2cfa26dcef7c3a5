"""The chapters on robustness under noise: fragile points, and the record."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from helpers.pages import values_of
from helpers.tables import make_table

from brittle.analysis import mean_interval
from brittle.report.chapters import fragile, scored
from brittle.report.wording import fixed, interval, percent
from brittle.store.schemas import SCORES

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_a_number_that_was_not_seen_is_a_bound() -> None:
    """Of 8 points that hardly ever flip, the normal model of 50 copies says numbers that no copy showed."""
    table = make_table(points=8, scores=("moments",), budgets=(50,), sigmas=(0.02,))
    rows = values_of(fragile.CHAPTER, table)["grid"].rows
    evidence = table.wide()["moments(draws=50, sigma=0.02).evidence"]
    shown = [row for row in rows if "extrapolated" in row]
    assert len(shown) == (evidence == "extrapolated").sum() > 0
    assert all(row[6].endswith(", by counting") for row in shown)
    assert any(row[5].startswith("above ") and row[6].startswith("below ") for row in shown)
    assert not any(re.search(r"e-[2-9]\d", cell) for row in shown for cell in (row[5], row[6]))


def test_the_most_fragile_are_shown_as_images_where_there_are_any() -> None:
    table = make_table(points=40, scores=("monte_carlo",), budgets=(50,), sigmas=(0.2,))
    values = values_of(fragile.CHAPTER, table)
    images = dict(zip(table.points["name"].to_pylist(), table.points["image"].to_pylist(), strict=True))
    assert [face["name"] for face in values["faces"]] == [row[1] for row in values["grid"].rows[: fragile.FACES]]
    for face, row in zip(values["faces"], values["grid"].rows, strict=False):
        assert base64.b64decode(face["image"]) == images[face["name"]]
        assert face["text"].endswith(f", flips {face['flips']}")
        assert (face["label"], face["predicted"]) == (row[3] if row[3] != row[4] else "", row[4])
    bare = make_table(points=40, scores=("monte_carlo",), budgets=(50,), sigmas=(0.2,), images=False)
    assert values_of(fragile.CHAPTER, bare)["faces"] == []


def test_the_most_robust_show_what_is_sure_of_them() -> None:
    """A bound instead of a tiny value, and none where the interval says nothing."""
    table = make_table(points=8, classes=1, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["value"] = [0.5, 0.4, 0.3, 0.2, 0.01, 1e-9, 0.03, 1e-20]
    rows["high"] = [0.6, 0.5, 0.4, 0.3, 0.0115, 1e-5, 0.04, 0.999999]
    made = replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))
    ((_, least), (_, most)) = values_of(fragile.CHAPTER, made)["galleries"][0]["sides"]
    assert [one["flips"] for one in least] == ["flips 50%", "flips 40%", "flips 30%", "flips 20%"]
    assert [one["flips"] for one in most] == ["flips under 0.1%", "flips under 1.2%", "flips under 4%", "undecided"]


def test_means_are_those_of_the_column_that_speaks_for_each_noise() -> None:
    table = make_table(points=40, scores=("taylor", "monte_carlo"), sigmas=(0.1, 0.2), budgets=(20, 200))
    said = {entry.term: entry.text for entry in values_of(scored.CHAPTER, table)["entries"]}
    for sigma in (0.1, 0.2):
        column = table[f"monte_carlo(draws=200, sigma={sigma})"]
        mean, share = mean_interval(column.p_robust, 0.99), (column.value > 0.01).mean()
        shown = f"{fixed(mean.mean)}; {interval(mean.low, mean.high)}. {percent(share)} of the points"
        assert said[f"Mean p_robust, sigma {sigma}"].startswith(shown)


def test_points_without_a_number_are_listed_apart_from_those_with_a_remark() -> None:
    """A status that came with a number at one point and without one at another stands in both tables."""
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["status"] = ["ok", "ill_conditioned", "ill_conditioned", "tie"]
    rows.loc[2, "value"] = None
    made = replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))
    values = values_of(scored.CHAPTER, made)
    assert [(row[1], row[3]) for row in values["lost"].rows] == [("ill_conditioned", "1")]
    assert sorted((row[1], row[3]) for row in values["remarks"].rows) == [("ill_conditioned", "1"), ("tie", "1")]
    assert "row 2" in values["lost"].rows[0][4]
