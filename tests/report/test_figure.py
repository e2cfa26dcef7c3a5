"""Figures: a phone shows each of them whole; what they draw can be read, and told from the ground."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import altair as alt
import pandas as pd
import pytest
from helpers.change_runs import change_run, other_run
from helpers.colours import DARK, LIGHT, contrast, turned
from helpers.tables import make_table

from brittle.report import CHAPTERS, open_contents
from brittle.report.charts_style import ACCENT, styled
from brittle.report.figure import FITS, NARROW_ONLY, NATURAL, WIDE_ONLY, Figure, draw, panels
from brittle.report.palette import PALETTE

PLAIN = "marks"
"""Class of a drawing that every screen shows in its own size."""

SMALLEST, TOLD_APART = 10.0, 3.0
"""Smallest text in pixels, and the least contrast of what is drawn."""


def bars(frame: pd.DataFrame, width: int = 100) -> alt.Chart:
    return (
        alt.Chart(frame).mark_bar(color=ACCENT).encode(x="value:Q", y="name:N").properties(width=width - 40, height=40)
    )


FRAME = pd.DataFrame({"setting": ["b", "a", "a"], "name": ["x", "y", "z"], "value": [1.0, 2.0, 3.0]})


def drawings(text: str) -> list[ElementTree.Element]:
    """The drawings of a figure."""
    return list(ElementTree.fromstring(f"<all>{text}</all>"))


def width_of(drawing: ElementTree.Element) -> float:
    return float(drawing.attrib["width"])


def test_a_figure_of_several_panels_has_a_drawing_for_each_and_one_of_a_single_panel_two_widths() -> None:
    several = drawings(draw(panels(bars, FRAME), "f"))
    assert [one.get("class") for one in several] == [PLAIN, PLAIN]
    single = drawings(draw(panels(bars, FRAME.tail(2)), "f"))
    assert [one.get("class") for one in single] == [WIDE_ONLY, NARROW_ONLY]
    assert width_of(single[0]) > FITS >= width_of(single[1])
    assert draw(Figure(bars, FRAME.head(0), narrow=True), "f") == ""


def test_a_drawing_that_is_too_wide_for_a_phone_is_scrolled() -> None:
    def wide(frame: pd.DataFrame) -> alt.Chart:
        return bars(frame, 700)

    assert [one.get("class") for one in drawings(draw(Figure(wide, FRAME), "f"))] == [NATURAL]
    assert [one.get("class") for one in drawings(draw(Figure(bars, FRAME), "f"))] == [PLAIN]


@pytest.fixture(scope="module")
def figures() -> dict[str, Figure]:
    """Every figure of the chapters that these runs give, by its number, chapter and name."""
    names = ("monte_carlo", "moments", "softmax", "max_probability", "entropy", "logit_margin", "input_margin")
    runs = [
        (change_run(points=40, scores=names), {"other": other_run(points=40), "more": other_run(2, 40)}),
        (make_table(points=60, scores=("taylor",), sigmas=(0.1,), classes=40), {}),
    ]
    found = {}
    for number, (run, others) in enumerate(runs):
        contents = open_contents(run, against=others)
        for chapter in CHAPTERS:
            result = chapter.summarize(contents)
            for name, figure in chapter.figures(result).items() if result is not None else ():
                found[f"{number} {chapter.name} {name}"] = figure
    return found


@pytest.fixture(scope="module")
def drawn(figures: dict[str, Figure]) -> dict[str, str]:
    texts = {name: draw(figure, "-".join(name.split()[1:])) for name, figure in figures.items()}
    return {name: text for name, text in texts.items() if text}


def test_every_specification_is_one_of_vega_lite(figures: dict[str, Figure]) -> None:
    """Altair holds it against the schema, which `draw` does not."""
    for figure in figures.values():
        if not figure.frame.empty:
            frame = figure.frame
            if figure.by:
                frame = frame.loc[frame[figure.by] == frame[figure.by].iloc[0]].reset_index(drop=True)
            styled(figure.chart(frame)).to_dict()


def test_a_phone_shows_every_drawing_whole(drawn: dict[str, str]) -> None:
    assert len(drawn) > 12
    for name, text in drawn.items():
        kinds = [(one.get("class"), width_of(one)) for one in drawings(text)]
        assert all(width <= FITS for kind, width in kinds if kind != WIDE_ONLY), (name, kinds)
        assert [kind for kind, _ in kinds].count(WIDE_ONLY) == [kind for kind, _ in kinds].count(NARROW_ONLY), name
        assert NATURAL not in [kind for kind, _ in kinds], name


def test_no_text_is_small(drawn: dict[str, str]) -> None:
    for name, text in drawn.items():
        sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)', text)]
        assert min(sizes) >= SMALLEST, name


def test_what_is_drawn_is_told_from_either_ground(drawn: dict[str, str]) -> None:
    """Marks and text by their colours and opacity, as the style of the page turns them; grids are but an aid."""
    for name, text in drawn.items():
        for drawing in drawings(text):
            for node in drawing.iter():
                opacity = float(node.get("opacity") or 1.0)
                for part in ("fill", "stroke"):
                    colour = node.get(part)
                    if colour in (None, "none", "white", "#e3e7ea", "transparent"):
                        continue
                    own = opacity * float(node.get(f"{part}-opacity") or 1.0)
                    if own < 0.25 or (part == "stroke" and own < 0.65):
                        continue  # a band, whose ends are drawn as lines; a whisker of one of many points
                    assert contrast(colour, LIGHT, own) >= TOLD_APART, (name, node.tag, colour, own)
                    assert contrast(turned(colour), DARK, own) >= TOLD_APART, (name, node.tag, colour, own)


def test_the_colours_of_scores_are_told_from_either_ground() -> None:
    for colour in PALETTE:
        assert contrast(colour, LIGHT) >= TOLD_APART, colour
        assert contrast(turned(colour), DARK) >= TOLD_APART, colour


def test_axes_of_numbers_say_which_direction_is_safer(drawn: dict[str, str]) -> None:
    """Of every figure that shows how robust something is."""
    for name, text in drawn.items():
        if not any(part in name for part in ("agreement", "decisions", "means")):
            assert "safer" in text or "better" in text or "changes less" in text, name
