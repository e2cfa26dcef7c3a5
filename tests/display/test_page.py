"""The report in a notebook: the page that is written, in a frame that has no rights."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.pages import Page
from helpers.tables import HOSTILE, make_table, with_model

import brittle
from brittle.display.page import ReportPage
from brittle.errors import ParameterError, StorageError
from brittle.report import CHAPTERS, write_report
from brittle.store.table import Table

QUICK = tuple(chapter for chapter in CHAPTERS if chapter.name in ("overview", "scored", "repeat"))
"""Chapters without figures."""


@pytest.fixture(scope="module")
def table() -> Table:
    made = make_table(points=12, scores=("monte_carlo", "logit_margin"), sigmas=(0.1,), budgets=(100,), images=False)
    return with_model(made, spec=f"models:{HOSTILE[0]}")


def frame(page: ReportPage) -> dict[str, str | None]:
    """The attributes of the frame, which is all there is."""
    parsed = Page(page._repr_html_())
    ((tag, attributes),) = parsed.elements
    assert (tag, parsed.text, parsed.open, parsed.unbalanced) == ("iframe", "", [], [])
    return attributes


def test_the_frame_holds_the_page_that_is_written_and_gives_it_no_rights(table: Table, tmp_path: Path) -> None:
    page = brittle.show(table, height=300, chapters=QUICK)
    written = write_report(table, tmp_path / "report.html", chapters=QUICK).read_text(encoding="utf-8")
    attributes = frame(page)
    assert page.html == written
    assert (attributes["srcdoc"] or "").replace('href="about:srcdoc#', 'href="#') == written
    assert attributes["height"] == "300"
    assert set((attributes["sandbox"] or "").split()) == {"allow-scripts", "allow-downloads"}
    assert set(attributes) == {"title", "width", "height", "style", "sandbox", "srcdoc"}
    assert "Content-Security-Policy" in written


def test_links_within_the_page_stay_in_the_frame() -> None:
    """In a frame of its own an address that is a fragment alone is one of the notebook."""
    html = '<a class="x" href="#here">a</a> <a href="data:,">b</a> <use href="#shape"/> href="#text'
    shown = frame(ReportPage(html))["srcdoc"] or ""
    assert re.findall(r'href="([^"]*)', shown) == ["about:srcdoc#here", "data:,", "#shape", "#text"]
    code = f"<style>{html}</style><script>{html}</script>"
    assert frame(ReportPage(code))["srcdoc"] == code
    assert repr(ReportPage(html)).startswith("Report, 0.0 MB")


def test_a_page_is_saved_as_a_report_is(table: Table, tmp_path: Path) -> None:
    page = brittle.show(table, chapters=QUICK)
    assert '.save("report.html")' in repr(page)
    assert page.save(tmp_path / "report.html") == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(StorageError, match="unwritable"):
        page.save(tmp_path / "none" / "report.html")
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(StorageError, match="unreadable"):
        page.save(tmp_path / "link")


def test_a_run_folder_is_shown_as_its_table(table: Table, tmp_path: Path) -> None:
    table.save(tmp_path / "run")
    assert brittle.show(tmp_path / "run", chapters=QUICK) == brittle.show(str(tmp_path / "run"), chapters=QUICK)
    assert "12 points" in brittle.show(tmp_path / "run", chapters=QUICK).html
    other_runs = [chapter for chapter in CHAPTERS if chapter.name == "other_runs"]
    pages = {brittle.show(table, against={"b": one}, chapters=other_runs).html for one in (table, tmp_path / "run")}
    assert len(pages) == 1


def test_what_cannot_be_shown_is_said(table: Table, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"expected a table or the folder of a run; found list"):
        brittle.show([table])  # pyright: ignore[reportArgumentType] that is the mistake
    for height in (0, -1, 2.5, True, "300"):
        with pytest.raises(ParameterError, match="height must be a whole number of pixels"):
            brittle.show(table, height=height)  # pyright: ignore[reportArgumentType] that is the mistake
    with pytest.raises(ParameterError, match="epsilon"):
        brittle.show(table, epsilon=-1.0)
    with pytest.raises(StorageError, match="no_run"):
        brittle.show(tmp_path)
