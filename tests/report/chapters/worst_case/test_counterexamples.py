"""The most fragile correct predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from helpers.margin_runs import LABEL, first_case, margins
from helpers.pages import page_of
from helpers.tables import thumbnail, with_value

from brittle.report.chapters.worst_case.counterexamples import FRAGILE_SHOWN
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_the_gallery_shows_the_nearest_correct_points_first(table: Table) -> None:
    wrong = np.array([correct is False for correct in table.points["correct"].to_pylist()])
    distance = margins(table)[:240] * np.where(wrong, 1e-6, 1.0)
    made = with_value(table, LABEL, distance.tolist())
    case = first_case(made)
    points = made.points.to_pandas().assign(distance=distance)
    nearest = points[points["correct"].eq(True)].nsmallest(FRAGILE_SHOWN, "distance")
    assert not set(nearest["point"]) & set(points.nsmallest(FRAGILE_SHOWN, "distance")["point"])
    assert [one.name for one in case.counterexamples.points] == nearest["name"].tolist()
    assert all(one.predicted != one.found and all(one.images) for one in case.counterexamples.points)
    assert len({image for one in case.counterexamples.points for image in one.images}) == 3 * FRAGILE_SHOWN


def test_counterexamples_of_another_score_are_not_shown(table: Table) -> None:
    rows = table.counterexamples.to_pylist()
    others = [row | {"parameters": '{"norm":"linf","clip":false}'} for row in rows]
    foreign = replace(table, counterexamples=pa.Table.from_pylist(others, schema=table.counterexamples.schema))
    case = first_case(foreign)
    assert case.counterexamples.points == ()
    assert "holds no counter-example" in page_of(foreign).text


def test_a_large_image_is_left_out(table: Table) -> None:
    rows = table.counterexamples.to_pylist()
    large = thumbnail(0, np.random.default_rng(0)) + bytes(1 << 18)
    heavy = [row | {"difference": large} for row in rows]
    made = replace(table, counterexamples=pa.Table.from_pylist(heavy, schema=table.counterexamples.schema))
    assert {one.images[2] for one in first_case(made).counterexamples.points} == {""}
