"""Figures: inert, whole on a phone, readable, in colours that differ from the ground and from one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.change_runs import change_run, other_run
from helpers.colours import DARK, LIGHT, contrast, turned
from helpers.forks import forked
from helpers.pages import EVERY_CHANGE, EVERY_SCORE
from helpers.tables import make_table

from brittle.extensions.report import charts
from brittle.extensions.report.charts import PALETTE, styled, symlog
from brittle.extensions.report.figure import NARROW_ONLY, WIDE_ONLY, Figure, draw, inert
from brittle.extensions.report.render import CHAPTERS, open_contents
from brittle.scores.catalogue import CATALOGUE

TEXT_SIZE, CONTRAST = 10.0, 3.0
"""Smallest text in pixels, and smallest contrast of drawings."""


def drawings(text: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<all>{text}</all>"))


def figures_in(value: Any, name: str) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a chapter by their places in it."""
    if isinstance(value, Figure):
        yield name, value
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from figures_in(part, f"{name}-{key}")


@pytest.fixture(scope="module")
def figures() -> dict[str, Figure]:
    """Return every figure of the chapters of these runs."""
    names = ("monte_carlo", "moments", "softmax", "max_probability", "entropy", "logit_margin", "input_margin")
    runs = [
        (change_run(points=40, scores=names), {"other": other_run(points=40), "more": other_run(2, 40)}),
        (make_table(points=60, scores=("taylor",), sigmas=(0.1,), classes=40), {}),
    ]
    return {
        f"{number}-{name}": figure
        for number, (run, other_runs) in enumerate(runs)
        for chapter in CHAPTERS.values()
        for name, figure in figures_in(chapter.summarize(open_contents(run, against=other_runs)), chapter.name)
        if not figure.frame.empty
    }


@pytest.fixture(scope="module")
def drawn(figures: dict[str, Figure]) -> dict[str, str]:
    return {name: draw(figure, name.partition("-")[2]) for name, figure in figures.items()}


def test_every_specification_is_valid_and_has_a_description(figures: dict[str, Figure]) -> None:
    """Altair validates it against the schema, which `draw` does not."""
    for name, figure in figures.items():
        styled(figure.chart(figure.frame)).to_dict()
        assert re.search(r"\d", figure.alt_text), name


def test_a_phone_shows_every_drawing_whole_with_readable_text(drawn: dict[str, str]) -> None:
    assert len(drawn) > 5
    for name, text in drawn.items():
        kinds = [(drawing.get("class"), float(drawing.attrib["width"])) for drawing in drawings(text)]
        assert all(width <= charts.NARROW + 20 for kind, width in kinds if kind != WIDE_ONLY), (name, kinds)
        assert [kind for kind, _ in kinds].count(WIDE_ONLY) == [kind for kind, _ in kinds].count(NARROW_ONLY), name
        assert min(float(size) for size in re.findall(r'font-size="([\d.]+)', text)) >= TEXT_SIZE, name
        assert "safer" in text, name


def test_drawings_have_contrast_on_either_ground(drawn: dict[str, str]) -> None:
    """Check marks and text by their colours and opacity, as the style of the page turns them; grids are but an aid."""
    for name, text in drawn.items():
        for node in (node for drawing in drawings(text) for node in drawing.iter()):
            opacity = float(node.get("opacity") or 1.0)
            for part in ("fill", "stroke"):
                colour = node.get(part)
                if colour in (None, "none", "white", "#e3e7ea", "transparent"):
                    continue
                visibility = opacity * float(node.get(f"{part}-opacity") or 1.0)
                if visibility < 0.25 or (part == "stroke" and visibility < 0.65):
                    continue  # a band, whose ends are drawn as lines; a whisker of one of many points
                assert contrast(colour, LIGHT, visibility) >= CONTRAST, (name, node.tag, colour, visibility)
                assert contrast(turned(colour), DARK, visibility) >= CONTRAST, (name, node.tag, colour, visibility)


def test_the_colours_of_scores_differ_and_have_contrast() -> None:
    colours = [CATALOGUE[name].colour for name in (*EVERY_SCORE, *EVERY_CHANGE)]
    places = [place for place in colours if place is not None]
    assert len(set(places)) == len(places)
    assert len(set(PALETTE)) == len(PALETTE)
    for colour in PALETTE:
        assert contrast(colour, LIGHT) >= CONTRAST, colour
        assert contrast(turned(colour), DARK) >= CONTRAST, colour


def test_a_drawing_with_foreign_parts_loses_them() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><script>x()</script>'
        '<g id="a" style="x" clip-path="url(#a)"><foreignObject><p/></foreignObject>'
        '<a href="http://x"><text>t</text></a><text onclick="x()">kept</text></g></svg>'
    )
    root = ElementTree.fromstring(inert(svg, "figure"))
    assert [node.tag.rpartition("}")[2] for node in root.iter()] == ["svg", "g", "text"]
    assert [dict(node.attrib) for node in root.iter()] == [{}, {"id": "figure-0", "clip-path": "url(#figure-0)"}, {}]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e15])
@pytest.mark.parametrize("offset", [-5.0, 0.0, 5.0])
def test_a_scale_of_any_sign_covers_its_numbers(scale: float, offset: float) -> None:
    values = scale * (np.random.default_rng(0).standard_t(1, 500) + offset)
    symlog_scale, ticks = symlog(values)
    low, high = symlog_scale["domain"]
    assert low <= min(values.min(), 0.0) <= max(values.max(), 0.0) <= high
    assert symlog_scale["constant"] >= np.abs(values).max() * 10.0**-charts.DECADES * (1.0 - 1e-12)
    assert ticks[0] == 0.0
    assert 2 <= len(ticks) <= 5
    assert all(low <= tick <= high for tick in ticks)


FORKED = """
import os, signal
import pandas as pd
from brittle.extensions.report.charts import alt
from brittle.extensions.report.figure import Figure, draw

chart = lambda frame, width: alt.Chart(frame, width=width).mark_point().encode(x="a", y="a")
figure = Figure(chart, pd.DataFrame({"a": [0.1, float("nan"), 3.0]}), "")
whole = draw(figure, "x")
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if [draw(figure, "x") for _ in range(3)] == [whole] * 3 else 1)
print(os.waitpid(child, 0)[1])
"""


def test_a_forked_process_draws_what_its_parent_draws() -> None:
    """Threads of vl-convert exist in the parent alone, where it has drawn; a fork would wait for them for ever."""
    process = forked(FORKED)
    assert (process.returncode, process.stdout) == (0, "0\n"), process.stderr
