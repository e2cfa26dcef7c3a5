"""The worst-case chapter: there when a run has input margins, true to them, plain about what they do not show."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.margin_runs import LABEL, SCORED
from helpers.pages import assert_inert, page_of, result_of, storable, text_of
from helpers.tables import HOSTILE, make_table, with_value

from brittle.errors import ParameterError
from brittle.report import open_contents, write_report
from brittle.report.chapters.worst_case import WorstCaseChapter
from brittle.report.chapters.worst_case.counterexamples import FRAGILE_SHOWN
from brittle.store.schemas import POINTS
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


class Headings(HTMLParser):
    """The headings of a page from the chapter on."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str]] = []
        self.tag = ""
        self.feed(text[text.index('<section id="worst-case"') :])
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tag = tag if tag in ("h2", "h3", "h4", "h5") else ""

    def handle_data(self, data: str) -> None:
        if self.tag:
            self.found.append((self.tag, data))
            self.tag = ""


@pytest.fixture(scope="module")
def text(table: Table) -> str:
    return text_of(table)


def test_the_chapter_has_its_sections_once_for_every_norm(text: str) -> None:
    sections = [
        ("h4", "How far is the nearest other decision?"),
        ("h4", "The most fragile correct predictions"),
    ]
    closed = [("h5", "Can a score stand in for it?"), ("h5", "Robust accuracy from a subset")]
    found = Headings(text).found
    assert found[:8] == [
        ("h2", "The worst case"),
        ("h3", "Linf: the largest change of any one input value"),
        *sections,
        ("h3", "L2: the Euclidean length of the change"),
        *sections,
        ("h2", "Methods"),
    ]
    assert found[found.index(("h3", "The worst case")) :][:7] == [
        ("h3", "The worst case"),
        ("h4", "Linf: the largest change of any one input value"),
        *closed,
        ("h4", "L2: the Euclidean length of the change"),
        *closed,
    ]
    assert found[-1] == ("h3", "How to repeat it")


def test_every_section_is_filled(table: Table) -> None:
    page = page_of(table)
    assert_inert(page)
    assert sum(each.get("class") == "drawing" for _, each in page.elements) == 2 * 3
    assert sum(tag == "img" for tag, _ in page.elements) == 2 * 3 * FRAGILE_SHOWN
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for words in (
        "240 points, of which 237 got an input margin",
        "epsilon = 8/255 = 0.0314: the size that most benchmarks judge at",
        "Median input margin, Linf",
        "Robust accuracy at Linf 8/255",
        "Certified robust accuracy at L2 0.5",
        "4 points",
        "The margins of 6 points of 237 are masked",
        "3 points without a margin left out",
        "logit_margin orders the points with a tau of",
        "FPR at 95% TPR",
        "By all 237 distances",
        "By 59 distances and every logit_margin",
        "The 12 nearest of",
        "No input with another prediction was found; the distance is infinite, which proves nothing.",
    ):
        assert words in page.text, words


@pytest.mark.usefixtures("nothing_drawn")
def test_a_run_without_margins_has_no_chapter() -> None:
    made = make_table(points=12, scores=("moments", "logit_margin"), sigmas=(0.1,))
    assert WorstCaseChapter().summarize(open_contents(made)) is None
    assert 'id="worst-case"' not in text_of(made)
    assert "input margin" not in text_of(made)


@pytest.mark.usefixtures("nothing_drawn")
def test_a_run_of_margins_alone_leaves_the_average_case_out(text: str) -> None:
    assert 'id="distribution"' not in text
    assert "p_robust" not in text
    both = text_of(make_table(points=30, scores=("moments", "input_margin"), sigmas=(0.1,)))
    assert both.index('id="fragile"') < both.index('id="worst-case"') < both.index('id="repeat"')


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"labels": False}, ("This run holds no label", "as the data carry no labels", "can flip")),
        ({"images": False}, ("The run holds no images, so the points are named", "test/0")),
        ({"scores": ("input_margin",)}, ("This run holds no score beside the input margin",)),
        ({"points": 39}, ("39 points are too few to set a subset apart",)),
        ({"classes": 1}, ("airplane → airplane",)),
        ({"masked": 1}, ("The margins of 1 point of 60 are masked",)),
    ],
)
@pytest.mark.usefixtures("nothing_drawn")
def test_what_a_run_lacks_is_said(recipe: dict[str, Any], words: tuple[str, ...]) -> None:
    page = page_of(make_table(**{"points": 60, "scores": SCORED} | recipe))
    assert_inert(page)
    for part in words:
        assert part in page.text, part


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"points": 1}, ("1 point is too few to set a subset apart",)),
        ({"not_found": 60}, ("Every margin is larger than", "another one was not found at any distance", "∞")),
        ({"masked": 20, "not_found": 40}, ("60 are masked", "∞")),
    ],
)
def test_what_is_odd_to_draw_is_drawn(recipe: dict[str, Any], words: tuple[str, ...]) -> None:
    page = page_of(make_table(**{"points": 60, "scores": SCORED} | recipe))
    assert_inert(page)
    assert all(part in page.text for part in words)


@pytest.mark.parametrize("recipe", [{"points": 0}, {"broken": 8}])
def test_a_run_whose_margins_all_failed_has_no_chapter(recipe: dict[str, Any]) -> None:
    made = make_table(**{"points": 8, "scores": SCORED} | recipe)
    assert WorstCaseChapter().summarize(open_contents(made)) is None
    assert_inert(page_of(made))


@pytest.mark.parametrize("value", [0.0, 0.01, float("inf")])
def test_margins_all_alike_are_drawn(value: float) -> None:
    page = page_of(with_value(make_table(points=50, scores=SCORED), LABEL, [value] * 50))
    assert_inert(page)
    assert "svg" in page.tags


def in_norm(table: Table, old: str, new: str) -> Table:
    """`table` with the norm of input margins renamed, as only a run of another version could name it."""
    rows = table.long()
    rows["parameters"] = rows["parameters"].str.replace(old, new)
    entries = tuple(
        replace(entry, parameters={"norm": new}, label=f"input_margin(norm={new})")
        if entry.parameters == {"norm": old}
        else entry
        for entry in table.record.scores
    )
    scores = pa.Table.from_pandas(rows, schema=table.scores.schema, preserve_index=False)
    return replace(table, scores=scores, record=replace(table.record, scores=entries))


def test_norms_that_are_not_known_are_left_out() -> None:
    made = make_table(points=12, scores=SCORED, norms=("linf", "l2"))
    for norm in ("l3", "<script>"):
        assert [case.title[:2] for case in result_of(WorstCaseChapter(), in_norm(made, "linf", norm))] == ["L2"]
    other = in_norm(make_table(points=12, scores=SCORED), "linf", "l3")
    assert WorstCaseChapter().summarize(open_contents(other)) is None


@pytest.mark.usefixtures("nothing_drawn")
def test_a_run_of_margins_alone_does_not_speak_of_noise(text: str) -> None:
    assert "Noise level" not in text
    noisy = text_of(make_table(points=30, scores=("moments", "input_margin"), sigmas=(0.1,)))
    assert "Noise level" in noisy


@pytest.mark.usefixtures("nothing_drawn")
def test_the_size_asked_for_reaches_the_page(table: Table, tmp_path: Path) -> None:
    written = write_report(table, tmp_path / "report.html", epsilon=0.0123)
    assert "Robust accuracy at Linf 0.0123" in written.read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match="epsilon"):
        write_report(table, tmp_path / "report.html", epsilon=-1.0)


def test_the_size_may_be_a_fraction(table: Table, tmp_path: Path) -> None:
    number, typed = (text_of(table, size) for size in (2 / 255, "2/255"))
    assert "Robust accuracy at Linf 2/255" in typed
    assert "epsilon = 2/255 = 0.00784: the size that was asked for" in typed
    assert typed.replace("2/255 = 0.00784", "0.00784").replace("2/255", "0.00784") == number
    for asked in ("8/0", "some"):
        with pytest.raises(ParameterError, match="epsilon must be a positive number or a fraction as 8/255"):
            write_report(table, tmp_path / "report.html", epsilon=asked)
        with pytest.raises(ParameterError, match="epsilon must be a positive number"):
            open_contents(table, asked)


def test_hostile_text_is_shown_as_text() -> None:
    """Names of points and classes, image bytes, and labels of scores, in every place of the chapter."""
    made = make_table(points=60, scores=SCORED, classes=20, class_names=HOSTILE[:20])
    rows = made.points.to_pylist()
    for number, row in enumerate(rows):
        row["name"] = storable(HOSTILE[number % len(HOSTILE)])
        row["image"] = b"<svg onload=alert(1)>" if number % 2 else row["image"]
    found = [
        row | {"image": b"\x89PNG\r\n\x1a\n" + HOSTILE[0].encode(), "difference": None}
        for row in made.counterexamples.to_pylist()
    ]
    entries = tuple(replace(entry, label=HOSTILE[number]) for number, entry in enumerate(made.record.scores))
    page = page_of(
        Table(
            pa.Table.from_pylist(rows, schema=POINTS),
            made.scores,
            replace(made.record, scores=entries),
            pa.Table.from_pylist(found, schema=made.counterexamples.schema),
        )
    )
    assert_inert(page)
    assert sum(each.get("class") == "drawing" for _, each in page.elements) == 3
    assert HOSTILE[0] in page.text
