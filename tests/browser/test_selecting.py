"""What is selected: every number on the page is the table's own, counted here by pandas."""

from __future__ import annotations

import pandas as pd
import pytest
from helpers.browser import Opened
from helpers.gestures import POINTS, count, drag, ids, listed

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize(("kind", "state"), [("right", "holds"), ("wrong", "undecided"), ("right", "breaks")])
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


def test_a_drag_over_the_histogram_selects_its_bins(page: Opened, frame: pd.DataFrame) -> None:
    """The scale has eleven bins of equal width; the last five begin at 10%."""
    drag(page, page.page.locator("#histogram"), (6.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, frame["flip"] >= 0.1))
    drag(page, page.page.locator("#histogram"), (6.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert count(page) == POINTS
    drag(page, page.page.locator("#histogram"), (0.5 / 11, 0.5), (5.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, frame["flip"] < 0.1))


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
