"""The open point: what its card says, and the notes on it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from helpers.browser import Opened
from helpers.gestures import count, saved
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")


def test_a_card_says_what_the_table_says(page: Opened, table: Table) -> None:
    page.page.locator("#rows .row").nth(2).click()
    name = page.page.locator("#card h3").inner_text()
    point = next(row["point"] for row in table.points.to_pylist() if row["name"] == name)
    rows = {row[0]: row for row in page.page.locator("#card tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText))"
    )}  # fmt: skip
    margin = next(one for one in table.columns if one.score == "logit_margin")
    assert float(rows["Logit margin"][1].replace("−", "-")) == pytest.approx(margin.value.to_dict()[point], rel=5e-3)
    rank = int((margin.value < margin.value.to_dict()[point]).sum()) + 1
    assert rows["Logit margin"][3] == f"{rank} of {margin.value.notna().sum()}"
    assert page.page.locator("#card figure canvas").count() >= 1


def test_notes_are_kept_found_and_saved(browser: Browser, place: Path, page: Opened) -> None:
    page.page.locator("#rows .row").first.click()
    page.page.locator("#tags").fill("odd, =SUM(A1)")
    page.page.locator("#note").fill("look\nagain")
    point = page.page.locator("#rows .row").first.get_attribute("id")
    page.page.reload()
    page.page.locator("#find").fill("odd")
    page.page.locator("#filters li").wait_for()
    assert count(page) == 1
    assert page.page.locator("#rows .row").first.get_attribute("id") == point
    (row,) = csv.DictReader(io.StringIO(saved(page, "#save-csv")))
    assert (row["tags"], row["note"]) == ("odd, =SUM(A1)", "look\nagain")
