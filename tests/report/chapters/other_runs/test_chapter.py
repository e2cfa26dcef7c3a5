"""The chapter on other runs: there when others are given, inert, the same for the same tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.change_runs import beside, other_run
from helpers.pages import Page, addresses, assert_inert, text_of

from brittle.report import open_contents, write_report
from brittle.report.chapters.other_runs import OtherRunsChapter
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


@pytest.fixture(scope="module")
def text(table: Table) -> str:
    return text_of(table, against={"other": other_run()})


def test_both_chapters_are_inert_and_name_no_address(text: str) -> None:
    page = Page(text)
    assert_inert(page)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert addresses(text) == []


def test_the_same_tables_give_the_same_bytes(table: Table, text: str, tmp_path: Path) -> None:
    def shuffled(one: Table) -> Table:
        return replace(one, scores=one.scores.take(list(reversed(range(len(one.scores))))))

    written = write_report(shuffled(table), tmp_path / "report.html", against={"other": shuffled(other_run())})
    assert written.read_bytes() == text.encode()


def test_names_that_are_cut_alike_stay_apart(table: Table) -> None:
    found = beside(table, {"x" * 50: table, "x" * 60: table})
    assert len({run.name for run in found.runs}) == 2
    same = beside(table, {"this run": table}).runs[0].spreads[0].frame
    assert len(set(same["run"])) == 2


def test_a_page_without_other_runs_has_no_chapter(table: Table) -> None:
    assert OtherRunsChapter().summarize(open_contents(table)) is None
    assert 'id="other-runs"' not in text_of(table)
