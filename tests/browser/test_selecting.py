"""What is selected: every number on the page is the table's own, counted here by pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.browser import Opened
from helpers.gestures import POINTS, count, drag, ids, listed, press, run

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


def test_words_find_names_classes_and_ids(page: Opened, frame: pd.DataFrame) -> None:
    page.page.locator("#find").fill("DEER")
    page.page.locator("#filters li").wait_for()
    names = dict(enumerate(run(0).record.data.class_names or ()))
    predicted = frame["predicted"].map(lambda one: names.get(int(one), "") if one == one else "")
    assert set(listed(page)) == set(ids(frame, (frame["label_name"] == "deer") | (predicted == "deer")))


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


def told(page: Opened, place: str, words: str) -> str:
    """What the page says in a place, once it says these words."""
    page.page.locator(place, has_text=words).wait_for()
    return page.page.locator(place).inner_text()


def test_numbers_filter_as_they_are_typed_and_what_is_left_is_said(page: Opened, frame: pd.DataFrame) -> None:
    """Without Enter, after a pause; the field keeps the focus and what was typed."""
    page.page.locator("#filter-by").select_option(label="Logit margin")
    middle = float(np.nanmedian(frame["margin"]))
    page.page.locator("#from").fill(str(middle))
    own = ids(frame, frame["margin"] >= middle)
    assert told(page, "#left", "left") == f"{len(own)} of {POINTS} points left"
    assert page.page.evaluate("document.activeElement.id") == "from"
    assert set(listed(page)) == set(own)
    page.page.locator("#to").fill(str(middle - 1))
    assert "“from” is larger than “to”" in told(page, "#left", "larger")
    page.page.locator("#to").fill("")
    assert told(page, "#left", f"{len(own)} of").startswith(str(len(own)))


def test_whole_words_are_found_before_parts_of_words(page: Opened, frame: pd.DataFrame) -> None:
    """A row and a class are called 9; many names have a 9 in them, and no point is called 11.png."""
    page.page.locator("#find").fill("9")
    assert "whole name, id, row, class" in told(page, "#searched", "Found as a whole")
    own = (frame["row"] == 9) | (frame["label"] == 9) | (frame["predicted"] == 9)
    assert set(listed(page)) == set(ids(frame, own))
    page.page.locator("#find").fill("11.png")
    assert "inside names" in told(page, "#searched", "No whole name")
    assert set(listed(page)) == set(ids(frame, frame["name"].str.endswith("11.png")))
    page.page.locator("#find").fill("")
    page.page.locator("#filters li").wait_for(state="detached")
    assert page.page.locator("#searched").inner_text() == ""


def test_classes_keep_their_order_and_show_how_much_of_each_is_selected(page: Opened, frame: pd.DataFrame) -> None:
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
        own = rated[rated["label_name"] == name]
        some = own[(own["kind"] == "right") & (own["state"] == "undecided")]
        assert text.startswith(f"{len(some)} of {len(own)} (")
        assert float(width) == pytest.approx(100 * len(some) / len(own), abs=0.01)


def test_a_card_closes_where_the_selection_leaves_its_point(page: Opened, frame: pd.DataFrame) -> None:
    """One that is walked to, or that the address opens, stays."""
    page.page.locator("#rows .row").first.click()
    own = str(frame.loc[listed(page)[0], "label_name"])
    other = next(name for name in ("deer", "cat") if name != own)
    press(page, own, "#overview .bars")
    assert page.page.locator("#card h3").is_visible()
    press(page, other, "#overview .bars")
    page.page.locator("#card", has_text="Choose a point").wait_for()


def test_the_limit_stands_in_per_cent_too(page: Opened) -> None:
    """As the numbers of the list and of the filter do."""
    assert page.page.locator("#limit-percent").inner_text() == "= 90%"
    page.page.locator("#limit").fill("0.995")
    page.page.locator("#limit-percent", has_text="= 99.5%").wait_for()
