"""What every chapter keeps to; and one from outside the package, which the page shows as its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import altair as alt
import pandas as pd
import pytest
from helpers.change_runs import change_run, other_run
from helpers.pages import Page, assert_inert, page_of, text_of
from helpers.problems import inputs, small_classifier
from helpers.tables import HOSTILE, make_table

import brittle
from brittle.errors import ParameterError
from brittle.report import (
    CHAPTERS,
    Brief,
    Chapter,
    Contents,
    Entry,
    Figure,
    Grid,
    Number,
    chapters,
    open_contents,
    write_report,
)
from brittle.report.chapter import Text
from brittle.report.chapter import text_of as content_of
from brittle.scores import Moments
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")

FOLDER = Path(chapters.__file__).parent


def lengths_chart(frame: pd.DataFrame) -> Any:
    """One bar for every name."""
    return alt.Chart(frame).mark_bar().encode(x="length:Q", y="name:N")


@dataclass(frozen=True, eq=False)
class Lengths:
    """How long the names of the points are."""

    entries: tuple[Entry, ...]
    grid: Grid
    frame: pd.DataFrame
    longest: Number


class LengthsChapter(Chapter[Lengths]):
    """A chapter of somebody else's."""

    name: ClassVar[str] = "name-lengths"
    title: ClassVar[str] = "How long are the names?"
    template: ClassVar[Text] = (
        '{% from "macros.html.jinja" import entries, figure, grid, numbers %}{{ entries(result.entries) }}'
        '{{ numbers([result.longest]) }}{% call figure(figures.lengths, "Lengths") %}Bars.{% endcall %}'
        "{{ grid(result.grid) }}"
    )
    terms: ClassVar[Text] = "<p>The <dfn>length</dfn> of a name is that of its text.</p>"
    style: ClassVar[Text] = "#name-lengths p { color: #123456; }"

    def summarize(self, contents: Contents) -> Lengths | None:
        """The lengths of the first names; None for a run without points."""
        names = contents.points["name"].to_pylist()[:5]
        if not names:
            return None
        grid = Grid(("Name", "Length"), (False, True), tuple((name, f"{len(name)}") for name in names))
        frame = pd.DataFrame({"name": names, "length": [len(name) for name in names]})
        longest = max(names, key=len)
        return Lengths((Entry("Longest", longest),), grid, frame, Number("Longest", f"{len(longest)}", "letters"))

    def figures(self, result: Lengths) -> Mapping[str, Figure]:
        """The lengths."""
        return {"lengths": Figure(lengths_chart, result.frame)}

    def brief(self, result: Lengths) -> Brief:
        """The longest."""
        return Brief((result.longest,), "Names are those of the data.")


@pytest.fixture(scope="module")
def table() -> Table:
    return change_run(points=40, scores=("monte_carlo", "max_probability", "input_margin"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_a_chapter_is_a_folder_with_all_it_needs(chapter: Chapter[Any]) -> None:
    folder = FOLDER / type(chapter).__module__.split(".")[-2]
    assert type(chapter).__module__ == f"brittle.report.chapters.{folder.name}.chapter"
    for text in (chapter.template, chapter.terms, chapter.style):
        assert isinstance(text, str) or Path(str(text)).parent == folder
    assert content_of(chapter.template)
    assert "summarize" not in content_of(chapter.template)


def test_every_folder_is_in_the_list() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/chapter.py")}
    assert folders == {type(chapter).__module__.split(".")[-2] for chapter in CHAPTERS}


def test_results_are_frozen_and_every_figure_is_drawn_by_its_template(table: Table) -> None:
    asked = brittle.score(
        small_classifier(), inputs(8), [Moments(0.5, draws=4)], until="decided", limit=0.9, most_draws=50
    )
    estimated = make_table(points=40, scores=("monte_carlo", "moments"), sigmas=(0.1,), budgets=(10, 50))
    for chapter in CHAPTERS:
        run = {"decisions": asked, "agreement": estimated}.get(chapter.name, table)
        against = {"other": other_run(points=40)} if run is table else {}
        contents = open_contents(run, against=against)
        result = chapter.summarize(contents)
        assert result is not None, chapter.name
        for one in result if isinstance(result, tuple) else (result,):
            assert is_dataclass(one)
            assert type(one).__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue] private
        page = Page(text_of(run, against=against, chapters=(chapter,)))
        drawn = sum(not figure.frame.empty for figure in chapter.figures(result).values())
        drawings = sum(each.get("class") == "drawing" for _, each in page.elements)
        assert drawings == drawn, chapter.name
        assert_inert(page)


def test_a_page_without_chapters_is_a_page(table: Table) -> None:
    page = page_of(table, chapters=())
    assert_inert(page)
    assert "In numbers" in page.text


def test_a_chapter_from_outside_is_shown_as_the_others(table: Table, tmp_path: Path) -> None:
    table = replace(table, points=table.points.set_column(2, "name", [[*HOSTILE[:3], *["b"] * 37]]))
    written = write_report(table, tmp_path / "report.html", chapters=(*CHAPTERS, LengthsChapter()))
    text = written.read_text(encoding="utf-8")
    page, plain = Page(text), page_of(table)
    assert_inert(page)
    assert "#name-lengths p { color: #123456; }" in text
    for words in (LengthsChapter.title, "The length of a name", "Names are those of the data.", HOSTILE[2]):
        assert words in page.text
        assert words not in plain.text or words == HOSTILE[2]
    drawings, before = (sum(tag == "svg" for tag, _ in one.elements) for one in (page, plain))
    assert drawings == before + 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert "name-lengths" in ids


def test_a_chapter_from_outside_may_stand_in_methods(table: Table) -> None:
    class Closed(LengthsChapter):
        in_methods: ClassVar[bool] = True

    class Both(LengthsChapter):
        methods: ClassVar[Text] = "<p>And {{ result.longest.value }} more.</p>"

    for chapter, closed in ((Closed(), True), (Both(), False)):
        text = text_of(table, chapters=(chapter,))
        assert_inert(Page(text))
        methods = text.index('<details id="methods">')
        assert (text.index('<section id="name-lengths"') > methods) == closed
        assert ('href="#name-lengths"' in text) != closed
    assert text.index(" more.</p>") > methods


@pytest.mark.parametrize("name", ["methods", "headline"])
def test_a_place_of_the_page_itself_is_no_name(table: Table, name: str) -> None:
    named = type("Named", (LengthsChapter,), {"name": name})
    with pytest.raises(ParameterError, match=f"the page itself has a place called '{name}'"):
        page_of(table, chapters=(named(),))


def test_a_template_may_be_a_file(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "mine.html.jinja"
    path.write_text("<p>{{ result.longest.value }} letters, from a file: é</p>", encoding="utf-8")

    class Filed(LengthsChapter):
        template: ClassVar[Text] = path

    assert "letters, from a file: é" in page_of(table, chapters=(Filed(),)).text


def test_a_chapter_with_nothing_to_say_is_left_out() -> None:
    page = page_of(make_table(points=0), chapters=(LengthsChapter(),))
    assert LengthsChapter.title not in page.text
    assert "of a name" not in page.text


@pytest.mark.parametrize("name", ["", "Mine", "my chapter", "1st", '"><script>', "a_b"])
def test_a_name_that_is_no_anchor_is_refused(table: Table, name: str) -> None:
    named = type("Named", (LengthsChapter,), {"name": name})
    with pytest.raises(ParameterError, match="expected a chapter's name of small letters, digits and hyphens, found"):
        page_of(table, chapters=(named(),))


def test_two_chapters_of_one_name_are_refused(table: Table) -> None:
    with pytest.raises(ParameterError, match="expected chapters of different names, found two called 'overview'"):
        page_of(table, chapters=(*CHAPTERS, CHAPTERS[0]))


def test_a_score_that_nobody_knows_has_its_sentence_and_colour() -> None:
    """Of a run with a score from outside the catalogue, the page says what its record says."""
    made = make_table(points=40, scores=("moments", "logit_margin"), sigmas=(0.1,), budgets=(10,))
    frame = made.long().assign(score=lambda rows: rows["score"].replace("logit_margin", "mine"))
    said = {"score": "mine", "label": "mine", "title": "Mine", "explanation": "My own sentence.", "colour": None}
    entries = tuple(
        replace(entry, **said, safer="lower") if entry.score == "logit_margin" else entry
        for entry in made.record.scores
    )
    scores = made.scores.from_pandas(frame, schema=made.scores.schema, preserve_index=False)
    page = page_of(replace(made, scores=scores, record=replace(made.record, scores=entries)))
    assert_inert(page)
    assert "My own sentence." in page.text
    assert "taken with the other sign: mine." in page.text
    assert ("circle", {"cx": "5", "cy": "5", "r": "5", "fill": "#9c945a"}) in page.elements
