"""What follows from a gesture: every number on the page is the table's own, counted here by pandas."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.browser import VIEWS, Opened, opened
from helpers.gestures import POINTS, count, drag, ids, listed, press, run, saved
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize("kind", ["right", "wrong"])
@pytest.mark.parametrize("state", ["holds", "undecided", "breaks"])
def test_a_group_selects_its_points(page: Opened, frame: pd.DataFrame, kind: str, state: str) -> None:
    own = frame[(frame["kind"] == kind) & (frame["state"] == state)]
    button = page.page.locator("#overview .groups button", has_text=f"{kind}, {state} (")
    assert button.inner_text().endswith(f"({len(own):,})")
    button.click()
    assert count(page) == len(own)
    assert set(listed(page)) == set(own.index)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert count(page) == POINTS


def test_a_class_selects_its_points_and_a_filter_is_taken_away(page: Opened, frame: pd.DataFrame) -> None:
    press(page, "deer", "#overview .bars")
    assert set(listed(page)) == set(ids(frame, frame["label_name"] == "deer"))
    press(page, "deer", "#filters")
    assert count(page) == POINTS


def test_groups_and_classes_are_selected_together(page: Opened, frame: pd.DataFrame) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    press(page, "cat", "#overview .bars")
    own = frame[(frame["label_name"] == "cat") & (frame["kind"] == "right") & (frame["state"] == "breaks")]
    assert set(listed(page)) == set(own.index)
    page.page.locator("#clear").click()
    assert count(page) == POINTS


def test_a_drag_over_the_histogram_selects_its_bins(page: Opened, frame: pd.DataFrame) -> None:
    """The scale has eleven bins of equal width; the last five begin at 10%."""
    drag(page, page.page.locator("#histogram"), (6.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, frame["flip"] >= 0.1))
    drag(page, page.page.locator("#histogram"), (6.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert count(page) == POINTS
    drag(page, page.page.locator("#histogram"), (0.5 / 11, 0.5), (5.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, frame["flip"] < 0.1))


def test_a_drag_over_the_plot_selects_a_rectangle(page: Opened, frame: pd.DataFrame, table: Table) -> None:
    drag(page, page.page.locator("#scatter"), (-0.05, 6.5 / 11), (1.05, 1.05))
    softmax = next(one for one in table.columns if one.score == "softmax").value
    low = 0.1 + 0.5 * (0.25 - 0.1)
    ends = frame["flip"] >= low - 0.01, frame["flip"] >= low + 0.01  # within a pixel
    found, known = set(listed(page)), softmax.notna()
    assert set(ids(frame, ends[1] & known)) <= found <= set(ids(frame, ends[0] & known))
    assert 0 < len(found) < POINTS


def test_a_click_in_the_plot_opens_the_nearest_point(page: Opened, frame: pd.DataFrame, table: Table) -> None:
    """At the place of a point that stands alone; both axes give every edge of the tail the same room."""
    edges = [0, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1]
    doubt = next(one for one in table.columns if one.score == "softmax").value
    across, up = (np.interp(one, edges, np.linspace(0, 1, len(edges))) for one in (doubt, frame["flip"]))
    spots = np.stack([1 - across, up], axis=1)
    apart = np.linalg.norm(spots[:, None] - spots[None], axis=2) + np.eye(POINTS)
    apart[np.isnan(apart)] = 1.0
    lonely = np.where(np.isnan(spots).any(axis=1), 0.0, apart.min(axis=1))
    point = int(lonely.argmax())
    assert lonely[point] > 0.03
    drag(page, page.page.locator("#scatter"), tuple(spots[point]), tuple(spots[point]))
    assert page.page.locator("#card h3").inner_text() == frame["name"].iloc[point]


def test_words_find_names_classes_and_ids(page: Opened, frame: pd.DataFrame) -> None:
    page.page.locator("#find").fill("DEER")
    page.page.locator("#filters li").wait_for()
    names = dict(enumerate(run(0).record.data.class_names or ()))
    predicted = frame["predicted"].map(lambda one: names.get(int(one), "") if one == one else "")
    assert set(listed(page)) == set(ids(frame, (frame["label_name"] == "deer") | (predicted == "deer")))


def test_a_short_text_is_looked_for_as_a_word(page: Opened, frame: pd.DataFrame) -> None:
    """`9` is in nearly every id and many names: it finds the image `00009` alone. Ids are found by how they begin."""
    for text, wanted in (("9", "test/00009.png"), ("299", "test/00299.png")):
        page.page.locator("#find").fill(text)
        page.page.locator("#filters li", has_text=f"“{text}”").wait_for()
        assert set(listed(page)) == set(ids(frame, frame["name"] == wanted))
    own = frame.index[7]
    page.page.locator("#find").fill(own[:15])
    page.page.locator("#filters li", has_text=own[:15]).wait_for()
    assert set(listed(page)) == {one for one in frame.index if one.startswith(own[:15])}


def test_numbers_filter_as_they_are_typed(page: Opened, frame: pd.DataFrame) -> None:
    page.page.locator("#filter-by").select_option(label="Logit margin")
    middle = float(np.nanmedian(frame["margin"]))
    page.page.locator("#from").fill(str(middle))
    page.page.locator("#filters li").wait_for()
    assert set(listed(page)) == set(ids(frame, frame["margin"] >= middle))
    assert page.page.locator("#from").input_value() == str(middle)


def test_what_is_selected_above_the_points_is_said_there(page: Opened, frame: pd.DataFrame) -> None:
    """And the bars of the classes go on to show every group."""
    bars, said = page.page.locator("#overview .bars"), page.page.locator("#overview .picked")
    before = bars.inner_text()
    assert not said.is_visible()
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    own = int(((frame["kind"] == "right") & (frame["state"] == "breaks")).sum())
    assert said.inner_text().startswith(f"{own} of {POINTS} points are selected.")
    assert bars.inner_text() == before
    page.page.evaluate("scrollTo(0, 0)")
    press(page, "See them", "#overview .picked")
    assert 0 <= page.page.locator("#explore").bounding_box()["y"] < 200  # type: ignore[index]
    press(page, "Show all", "#overview .picked")
    assert count(page) == POINTS
    assert not said.is_visible()


def test_a_tap_on_a_phone_brings_the_card(browser: Browser, place: Path) -> None:
    """From the list and from the plot; its beginning is then in the window."""
    view = VIEWS["phone"]
    with opened(browser, place, view) as page:
        page.page.locator("#rows .row").nth(2).tap()
        card = page.page.locator("#card h3")
        box = card.bounding_box()
        assert box is not None
        assert 0 <= box["y"] < view.height - 40


def test_numbers_filter_by_any_score(page: Opened, frame: pd.DataFrame) -> None:
    fields = page.page.locator("#filter-by")
    fields.select_option(label="Logit margin")
    middle = float(np.nanmedian(frame["margin"]))
    page.page.locator("#from").fill(str(middle))
    page.page.locator("#from").press("Enter")
    values = frame["margin"]
    assert set(listed(page)) == set(ids(frame, values >= middle))
    page.page.locator("#to").fill(str(2 * middle))
    page.page.locator("#to").press("Enter")
    assert set(listed(page)) == set(ids(frame, (values >= middle) & (values <= 2 * middle)))


def test_heads_sort_both_ways_and_points_without_a_number_come_last(page: Opened, frame: pd.DataFrame) -> None:
    numbered = pd.Series(frame["flip"]).dropna()
    falling = numbered.sort_values(ascending=False, kind="stable").index.tolist()
    rest = ids(frame, frame["flip"].isna())
    assert listed(page) == falling + rest
    page.page.locator("#head").get_by_role("button", name="Sort by flip probability").click()
    assert listed(page) == numbered.sort_values(kind="stable").index.tolist() + rest
    page.page.locator("#head").get_by_role("button", name="Sort by point").click()
    assert listed(page) == frame.index.tolist()


def test_the_csv_is_the_selection(page: Opened, frame: pd.DataFrame, table: Table) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    rows = list(csv.DictReader(io.StringIO(saved(page, "#save-csv"))))
    assert [row["point"] for row in rows] == listed(page)
    columns = {column.label: column for column in table.columns}
    for row in rows:
        own = frame.loc[row["point"]]
        assert (row["name"], row["label"], row["state"]) == (own["name"], own["label_name"], own["state"])
        for label, column in columns.items():
            value: float = column.value.to_dict()[row["point"]]
            heading = f"{label}.flip_probability" if column.is_probability else label
            assert row[heading] == "" if np.isnan(value) else float(row[heading]) == value
            assert {heading, f"{label}.low", f"{label}.high", f"{label}.status"} <= set(table.wide().columns)
            assert row[f"{label}.status"] == column.status.to_dict()[row["point"]]


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


def test_the_address_brings_everything_back(browser: Browser, place: Path, page: Opened) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    drag(page, page.page.locator("#histogram"), (7.5 / 11, 0.5), (8.5 / 11, 0.5))
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
        assert again.said == []


@pytest.mark.parametrize(
    "address",
    ["#by=99&point=-1&limit=2", "#range=s0:a:b&class=zz", "#sort=__proto__&across=toString", "#%", "#by=&point=1e999"],
)
def test_an_address_that_says_nothing_is_passed_over(browser: Browser, place: Path, address: str) -> None:
    with opened(browser, place) as page:
        page.page.goto(place.as_uri() + address)
        page.page.reload()
        assert count(page) == POINTS
        assert page.said == []


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


def test_what_a_run_lacks_is_not_offered(page: Opened) -> None:
    for hidden in ("#run", "#changes", "#clear", "#dragged"):
        assert not page.page.locator(hidden).is_visible(), hidden


def test_the_list_shows_every_point_when_it_is_scrolled(page: Opened) -> None:
    seen = set()
    for _ in range(30):
        seen |= set(page.page.locator("#rows .row").evaluate_all("(rows) => rows.map((row) => row.id)"))
        page.page.locator("#rows").evaluate("(box) => { box.scrollTop += box.clientHeight; }")
        page.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert len(seen) == POINTS
