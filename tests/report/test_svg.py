"""Drawings hold shapes and text and nothing else."""

from __future__ import annotations

from xml.etree import ElementTree

import pandas as pd
from helpers.pages import DRAWING
from helpers.tables import HOSTILE

from brittle.report import wording
from brittle.report.chapters.classes.charts import classes_chart
from brittle.report.figure import Figure, draw
from brittle.report.svg import inert


def test_names_in_a_figure_cannot_become_markup() -> None:
    frame = pd.DataFrame({"setting": "s", "name": list(HOSTILE[:31]), "order": range(31), "overall": 0.5})
    frame = frame.assign(name=[wording.show(name, 60) for name in frame["name"]], mean=0.5, low=0.4, high=0.6)
    root = ElementTree.fromstring(draw(Figure(classes_chart, frame), "classes"))
    assert {node.tag.rpartition("}")[2].lower() for node in root.iter()} <= DRAWING
    drawn = {node.text for node in root.iter() if node.text}
    assert "</script>" in drawn
    assert "<svg/onload=alert(1)>" in drawn


def test_a_drawing_with_foreign_parts_loses_them() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><script>x()</script>'
        '<g id="a" style="x" clip-path="url(#a)"><foreignObject><p/></foreignObject>'
        '<a href="http://x"><text>t</text></a><text onclick="x()">kept</text></g></svg>'
    )
    root = ElementTree.fromstring(inert(svg, "figure"))
    assert [node.tag.rpartition("}")[2] for node in root.iter()] == ["svg", "g", "text"]
    assert [dict(node.attrib) for node in root.iter()] == [{}, {"id": "figure-0", "clip-path": "url(#figure-0)"}, {}]
