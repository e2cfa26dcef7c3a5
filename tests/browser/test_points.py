"""The points on the page, selected, listed, saved and opened, compared with the table by pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.browser import Opened, opened
from helpers.gestures import ALONE, POINTS, count, drag, ids, listed, saved
from helpers.pages import text_of
from playwright.sync_api import Browser

import brittle
from brittle.noise import PerFeature
from brittle.scores import InputMargin, MonteCarlo
from brittle.store.table import Table

pytest.importorskip("sklearn")

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

pytestmark = [pytest.mark.xdist_group("report"), pytest.mark.usefixtures("short_search")]

# What is selected.


@pytest.mark.parametrize(("kind", "state"), [("right", "holds"), ("wrong", "undecided"), ("right", "breaks")])
def test_a_group_selects_its_points(page: Opened, frame: pd.DataFrame, kind: str, state: str) -> None:
    group = frame[(frame["kind"] == kind) & (frame["state"] == state)]
    button = page.page.locator("#overview .groups button", has_text=f"{kind}, {state} (")
    assert button.inner_text().endswith(f"({len(group):,})")
    button.click()
    assert count(page) == len(group)
    assert set(listed(page)) == set(group.index)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert count(page) == POINTS


def test_a_drag_over_the_histogram_selects_its_bins(page: Opened, frame: pd.DataFrame) -> None:
    """The scale has eleven bins of equal width; the first five end at 0.9."""
    p_robust = 1 - frame["flip"]
    drag(page, page.page.locator("#histogram"), (5.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, p_robust >= 0.9))
    drag(page, page.page.locator("#histogram"), (5.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert count(page) == POINTS
    drag(page, page.page.locator("#histogram"), (0.5 / 11, 0.5), (4.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, p_robust < 0.9))


def test_classes_keep_their_order_and_show_their_selected_share(page: Opened, frame: pd.DataFrame) -> None:
    def bars() -> list[list[str]]:
        return page.page.locator("#overview .bars tbody tr").evaluate_all(
            """(rows) => rows.map((row) => [row.children[0].innerText, row.children[2].innerText,
               [...row.querySelectorAll("rect")].reduce((sum, one) => sum + Number(one.getAttribute("width")), 0)])"""
        )

    before = [name for name, *_ in bars()]
    page.page.locator("#overview .groups button", has_text="right, undecided (").click()
    rated = frame[frame["flip"].notna()]
    assert [name for name, *_ in bars()] == before
    for name, text, width in bars():
        of_class = rated[rated["label_name"] == name]
        selected = of_class[(of_class["kind"] == "right") & (of_class["state"] == "undecided")]
        assert text.startswith(f"{len(selected)} of {len(of_class)} (")
        assert float(width) == pytest.approx(100 * len(selected) / len(of_class), abs=0.01)


# The list: its order, what is saved of it, and the address that brings it back.


def test_heads_sort_both_ways_with_numberless_points_last(page: Opened, frame: pd.DataFrame) -> None:
    numbered = pd.Series(frame["flip"]).dropna()
    falling = numbered.sort_values(ascending=False, kind="stable").index.tolist()
    numberless = ids(frame, frame["flip"].isna())
    assert listed(page) == falling + numberless
    page.page.locator("#head").get_by_role("button", name="Sort by p_robust").click()
    assert listed(page) == numbered.sort_values(kind="stable").index.tolist() + numberless
    page.page.locator("#head").get_by_role("button", name="Sort by point").click()
    assert listed(page) == frame.index.tolist()


def test_the_csv_is_the_selection(page: Opened, frame: pd.DataFrame, table: Table) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    rows = list(csv.DictReader(io.StringIO(saved(page, "#save-csv"))))
    assert [row["point"] for row in rows] == listed(page)
    columns = {column.label: column for column in table.columns}
    for row in rows:
        expected = frame.loc[row["point"]]
        assert (row["name"], row["label"], row["state"]) == (
            expected["name"],
            expected["label_name"],
            expected["state"],
        )
        for label, column in columns.items():
            value, *ends = ((column.rows[name].to_dict()[row["point"]]) for name in ("value", "low", "high"))
            heading = label
            if column.is_probability:
                heading, value, ends = f"{label}.p_robust", 1 - value, [1 - end for end in reversed(ends)]
            cells = [row[name] for name in (heading, f"{label}.low", f"{label}.high")]
            assert cells == [
                "" if np.isnan(number) else cell for number, cell in zip([value, *ends], cells, strict=True)
            ]
            assert [float(cell or "nan") for cell in cells] == pytest.approx([value, *ends], rel=1e-15, nan_ok=True)
            assert {heading, f"{label}.low", f"{label}.high", f"{label}.status"} <= set(table.frame(whole=True).columns)
            assert row[f"{label}.status"] == column.status.to_dict()[row["point"]]


def test_the_address_brings_everything_back(browser: Browser, place: Path, page: Opened) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    drag(page, page.page.locator("#histogram"), (2.5 / 11, 0.5), (3.5 / 11, 0.5))
    page.page.locator("#limit").fill("0.8")
    page.page.locator("#head").get_by_role("button", name="Sort by label").click()
    page.page.locator("#rows .row").first.click()
    before = listed(page), page.page.locator("#card h3").inner_text()
    with opened(browser, place) as again:
        again.page.goto(place.as_uri() + page.page.evaluate("location.hash"))
        assert (listed(again), again.page.locator("#card h3").inner_text()) == before
        again.page.reload()
        assert (listed(again), again.page.locator("#card h3").inner_text()) == before
        assert again.page.locator("#limit").input_value() == "0.8"
        assert again.messages == []


# The open point, and the notes on it.


def test_a_picture_of_the_first_screen_opens_its_point(page: Opened) -> None:
    picture = page.page.locator("#overview .pairs li").first
    picture.get_by_role("button").click()
    assert page.page.locator("#card h3").inner_text() == picture.get_attribute("title")


def test_a_card_says_what_the_table_says(page: Opened, table: Table) -> None:
    page.page.locator("#rows .row").nth(2).click()
    name = page.page.locator("#card h3").inner_text()
    point = next(row["point"] for row in table.points.to_pylist() if row["name"] == name)
    rows = {row[0]: row for row in page.page.locator("#card tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText))"
    )}  # fmt: skip
    margin = next(column for column in table.columns if column.score == "logit_margin")
    assert float(rows["Logit margin"][1].replace("−", "-")) == pytest.approx(margin.value.to_dict()[point], rel=5e-3)
    rank = int((margin.value < margin.value.to_dict()[point]).sum()) + 1
    assert rows["Logit margin"][3] == f"{rank} of {margin.value.notna().sum()}"
    assert page.page.locator("#card figure canvas").count() >= 1


def test_notes_are_kept_found_and_saved(browser: Browser, place: Path, page: Opened) -> None:
    page.page.locator("#rows .row").first.click()
    page.page.locator("#tags").fill("odd, =SUM(A1)")
    page.page.locator("#note").fill("look\nagain")
    point = page.page.locator("#rows .row").first.get_attribute("id")
    for _ in range(20):  # a browser writes what a page kept a moment later
        page.page.reload()
        if page.page.evaluate("localStorage.length"):
            break
    page.page.locator("#find").fill("odd")
    page.page.locator("#filters li").wait_for()
    assert count(page) == 1
    assert page.page.locator("#rows .row").first.get_attribute("id") == point
    (row,) = csv.DictReader(io.StringIO(saved(page, "#save-csv")))
    assert (row["tags"], row["note"]) == ("odd, =SUM(A1)", "look\nagain")


# Keys alone.


def test_keys_alone_go_from_the_top_to_a_card_and_back(page: Opened) -> None:
    for _ in range(80):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("document.activeElement.id") == "rows":
            break
    assert page.page.evaluate("document.activeElement.id") == "rows"
    names = [page.page.locator("#rows .row .name").nth(place).inner_text() for place in range(3)]
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    assert page.page.locator("#card h3").inner_text() == names[1]
    page.page.keyboard.press("End")
    page.page.keyboard.press("ArrowDown")
    assert page.page.locator("#card .walk").inner_text().split(" of ")[0].split()[-1] == str(POINTS)
    page.page.keyboard.press("Home")
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "card"
    assert page.page.locator("#card h3").inner_text() == names[0]
    page.page.keyboard.press("Escape")
    assert page.page.evaluate("document.activeElement.id") == "rows"


def test_a_card_names_the_categories_of_a_table(browser: Browser, written: Callable[[str], Path]) -> None:
    """Compare them as text, for the point and for the nearest other input."""
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame({"size": drawn.normal(size=30), "colour": ["red", "blue", "<b>"] * 10})
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, frame["size"] > 0)
    noise = PerFeature.of(frame, 0.3)
    scores = [MonteCarlo(noise=noise, draws=50, limit=None), InputMargin(effort="fast", bounded=False)]
    table = brittle.score(model, frame.head(6), scores)
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        page.open_point()
        expected = frame.loc[int(listed(page)[0])]
        rows = page.page.get_by_role("region", name="Features of this point").locator("tbody tr").all_inner_texts()
        (colour,) = (row.split("\t") for row in rows if row.startswith("colour"))
        assert colour == ["colour", expected["colour"], expected["colour"], "0"]
