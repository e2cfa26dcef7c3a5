"""The page on paper: all of it, and no heading alone at the foot of a sheet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pypdfium2
import pytest
from helpers.browser import VIEWS, opened
from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

LEFT_OUT = """[...document.body.querySelectorAll("*")]
    .filter((one) => one.matches("svg text") || one.offsetWidth <= 1 && one.offsetHeight <= 1)
    .map((one) => one.textContent)"""
"""Texts for screen readers alone, and those of drawings, which are read in pieces where they are turned."""


@dataclass(frozen=True)
class Printed:
    """A page and what came of it on paper.

    Attributes:
        phrases: of the page with all its parts unfolded, bare: paragraphs and cells of tables.
        headings: of the page, bare.
        sheets: texts of the sheets, printed as the page opens.
    """

    phrases: set[str]
    headings: set[str]
    sheets: list[str]


@pytest.fixture(scope="package")
def printed(browser: Browser, report: Path) -> Printed:
    with opened(browser, report, VIEWS["print"]) as found:
        headings = found.page.locator("h1, h2, h3, h4").all_text_contents()
        content = found.page.pdf(format="A4", print_background=True)
        found.unfold()
        text = found.page.evaluate("document.body.innerText")
        left_out = found.page.evaluate(LEFT_OUT)
    document = pypdfium2.PdfDocument(content)
    sheets = [document[number].get_textpage().get_text_range() for number in range(len(document))]
    document.close()
    phrases = set(map(bare, re.split(r"[\n\t]", text))) - set(map(bare, left_out))
    return Printed(phrases, set(map(bare, headings)), sheets)


def bare(text: str) -> str:
    """Letters and digits of `text`: how lines are broken, and which hyphen stands there, is not compared."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def test_what_is_seen_is_printed(printed: Printed) -> None:
    assert len(printed.phrases) > 100
    assert len(printed.sheets) > 1
    text = bare("".join(printed.sheets))
    assert sorted(phrase for phrase in printed.phrases if phrase not in text) == []


def test_no_heading_stands_alone_at_the_foot_of_a_sheet(printed: Printed) -> None:
    lines = [[bare(line) for line in sheet.splitlines() if line.strip()] for sheet in printed.sheets]
    assert [own[-1] for own in lines[:-1] if own[-1] in printed.headings] == []


def test_no_sheet_is_empty(printed: Printed) -> None:
    assert [number for number, sheet in enumerate(printed.sheets) if not sheet.strip()] == []
