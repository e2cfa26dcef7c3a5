"""The open point: what its card says, and the notes on it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from helpers.browser import Opened, opened
from helpers.gestures import ALONE, count, saved
from helpers.pages import text_of
from helpers.tables import make_table
from PIL import Image
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


def flat(level: int) -> bytes:
    """A grey image."""
    sink = io.BytesIO()
    Image.new("RGB", (8, 8), (level, level, level)).save(sink, "png")
    return sink.getvalue()


CHANGES = {0: 0, 1: 64, 2: 32, 3: 32, 7: 16, 63: 2, 64: 1, 150: 1}
"""Steps of brightness between two grey images, and by how much these are magnified; 0 where nothing is drawn."""


def test_a_difference_is_magnified_by_what_it_can_bear(browser: Browser, written: Callable[[str], Path]) -> None:
    """The largest power of two, 64 at most, at which the change stays between black and white around mid-grey."""
    recipe = {"scores": ("monte_carlo", "input_margin"), "sigmas": (0.1,), "budgets": (50,)}
    table = make_table(points=len(CHANGES), **recipe)
    ids = table.points["point"].to_pylist()
    apart = dict(zip(ids, CHANGES, strict=True))
    points = with_images(table.points, [50] * len(ids))
    found = with_images(
        table.counterexamples, [50 + apart[point] for point in table.counterexamples["point"].to_pylist()]
    )
    with opened(
        browser, written(text_of(replace(table, points=points, counterexamples=found), chapters=ALONE))
    ) as page:
        for place, (steps, times) in enumerate(CHANGES.items()):
            page.page.locator(f"#row{place}").click()
            drawn = f"drawn {times} times as large as it is" if times > 1 else "drawn as large as it is"
            words = f"{drawn}; grey is no change" if times else "less than one of the 255 steps of brightness"
            page.page.locator("#card figcaption", has_text=words).wait_for()
            change = page.page.locator("#card .pictures canvas").nth(2)
            level = change.evaluate("(canvas) => canvas.getContext('2d').getImageData(4, 4, 1, 1).data[0]")
            assert level == min(255, 128 + times * steps)
        assert page.said == []


def with_images(rows: pa.Table, levels: list[int]) -> pa.Table:
    """The same rows, each with an image of one grey."""
    place = rows.schema.get_field_index("image")
    return rows.set_column(place, rows.schema.field(place), pa.array([flat(level) for level in levels], pa.binary()))


def test_what_attacks_found_is_called_an_upper_bound(page: Opened, table: Table) -> None:
    """An input margin without a certificate: its brackets are no interval of a confidence."""
    margin = next(one for one in table.columns if one.score == "input_margin").value
    page.page.locator("#rows .row").first.click()
    name = page.page.locator("#card h3").inner_text()
    point = next(row["point"] for row in table.points.to_pylist() if row["name"] == name)
    cells = page.page.locator("#card tbody tr", has_text="Input margin").locator("td").all_inner_texts()
    assert cells[1] == f"at most {margin[point]:.3g} (found)"
    flips = page.page.locator("#card tbody tr", has_text="Monte Carlo").first.locator("td").all_inner_texts()
    assert " to " in flips[1]
