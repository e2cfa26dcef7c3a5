"""Contents of a page: the classes that it shows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from helpers.tables import make_table, with_value

from brittle.extensions.report.contents import extreme_classes
from brittle.extensions.report.render import open_contents
from brittle.store.schemas import POINTS


def test_a_class_of_few_points_is_not_extreme_by_luck() -> None:
    """Forty classes of 50 points, and one of 4 with the largest or the smallest mean and a wide interval."""
    label = "taylor(sigma=0.1)"
    table = make_table(points=2004, classes=41, scores=("taylor",), sigmas=(0.1,), images=False)
    labels = [40] * 4 + [row % 40 for row in range(2000)]
    rows = [row | {"label": code} for row, code in zip(table.points.to_pylist(), labels, strict=True)]
    table = replace(table, points=pa.Table.from_pylist(rows, schema=POINTS))
    for mean in (0.0, 1.0):
        flips = [mean if code == 40 else 0.2 + 0.6 * code / 39 for code in labels]
        bias = open_contents(with_value(table, label, flips)).bias
        assert bias is not None
        ends = bias.classes["class"].tolist()
        assert 40 in (ends[0], ends[-1])
        classes = extreme_classes(bias, 12)
        assert classes == [39, 38, 37, 36, 35, 34, 5, 4, 3, 2, 1, 0]
        assert extreme_classes(bias, 41) == ends
