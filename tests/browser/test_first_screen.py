"""What the first screen says, and how it follows the score and the limit that are chosen."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from helpers.browser import Opened, opened
from helpers.gestures import ALONE, chosen, count, ids, listed, press, saved
from helpers.known_groups import BREAK, HOLD, OPEN, counted, made
from helpers.pages import text_of
from helpers.tables import make_table, with_value
from playwright.sync_api import Browser

from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle, how_sure, next_steps
from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize("limit", [0.5, 0.99])
def test_another_limit_judges_every_point_again(page: Opened, table: Table, limit: float) -> None:
    page.page.locator("#limit").fill(str(limit))
    states = next(one for one in table.columns if one.label == chosen(table)).states(limit).dropna()
    text = page.page.locator("#overview .lead").inner_text()
    held = int((states == "holds").sum())
    assert f"{held:,} of {len(states):,} predictions" in text
    assert f"{(states == 'breaks').sum():,} break" in text
    step = page.page.locator("#overview .steps li", has_text="draw more noise")
    open_ones = int((states == "undecided").sum())
    assert step.is_visible() == (open_ones > 0)
    if open_ones:
        assert step.locator("p").inner_text().startswith(f"{open_ones:,} ")
        assert f"--limit {limit}" in step.locator("code").inner_text()
        press(page, "Show them", "#overview .steps li:first-child")
        assert set(listed(page)) == set(ids(states, states == "undecided"))


@pytest.mark.parametrize("typed", ["1.5", "0", "-1", "1"])
def test_a_limit_that_is_none_is_said_and_changes_nothing(page: Opened, typed: str) -> None:
    field, note = page.page.locator("#limit"), page.page.locator("#limit-note")
    lead = page.page.locator("#overview .lead").inner_text()
    field.fill(typed)
    assert note.inner_text() == "between 0 and 1; 0.9 stays"
    assert field.get_attribute("aria-invalid") == "true"
    assert page.page.locator("#overview .lead").inner_text() == lead
    field.blur()
    assert (note.inner_text(), field.input_value(), field.get_attribute("aria-invalid")) == ("", "0.9", "false")


def test_another_score_and_noise_level_is_spoken_of(page: Opened, table: Table) -> None:
    column = next(one for one in table.columns if one.score == "monte_carlo" and one.label != chosen(table))
    page.page.locator("#by").select_option(label=f"flip probability, Monte Carlo, {column.setting}")
    states = column.states(0.9).dropna()
    assert f"{(states == 'holds').sum():,} of {len(states):,} predictions" in page.page.locator(".lead").inner_text()
    order = pd.Series(column.value).dropna().sort_values(ascending=False, kind="stable")
    assert listed(page)[: len(order)] == order.index.tolist()


def test_the_confidence_of_the_network_holds_and_breaks_no_point(page: Opened, table: Table) -> None:
    (own,) = (one for one in table.columns if one.score == "softmax")
    page.page.locator("#by").select_option(label="confidence, by softmax")
    assert page.page.locator(".lead").inner_text() == how_brittle(overview(table, column=own))
    assert page.page.locator("#overview .sure").inner_text() == ""
    counts = page.page.locator("#overview .groups button").all_inner_texts()
    assert counts
    assert all(text.endswith("(0)") for text in counts)
    rows = csv.DictReader(io.StringIO(saved(page, "#save-csv")))
    assert {row["state"] for row in rows} <= {"", "failed"}


ODD: dict[str, Callable[[], Table]] = {
    "one point": lambda: made([HOLD]),
    "one class": lambda: made([HOLD, BREAK, OPEN, OPEN], [True, False, True, False]),
    "no labels": lambda: made([HOLD, BREAK, OPEN], [None, None, None]),
    "all failed": lambda: made([None, None]),
    "every group": lambda: made([HOLD, BREAK, OPEN, None] * 30, [True] * 60 + [False] * 60, [*range(10)] * 12),
    "a model's word": lambda: made([HOLD, BREAK] * 40, evidence="modelled"),
    "chosen points": lambda: picked(made([HOLD, BREAK, OPEN], [True, False, True])),
    "confidence alone": lambda: make_table(points=20, scores=("softmax",)),
    "too few copies": lambda: counted([20] * 4, [0, 1, 9, 20]),
    "copies as needed": lambda: counted([60, 60, 200, 200, 60], [0, 0, 0, 10, 40]),
}


def picked(table: Table) -> Table:
    """The same points, chosen from more."""
    return replace(table, record=replace(table.record, data=replace(table.record.data, chosen_from=1000)))


@pytest.mark.parametrize("name", ODD)
def test_the_first_screen_says_what_the_analysis_says(
    browser: Browser, written: Callable[[str], Path], name: str
) -> None:
    """At its own limit it is the static text; at another one the script's, which shares no code with the analysis."""
    table = ODD[name]()
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        lead = page.page.locator("#overview .lead")
        sure = page.page.locator("#overview .sure")
        assert lead.inner_text() == how_brittle(overview(table))
        if page.page.locator("#limit").count():
            for limit in (0.7, 0.97, 0.999):
                page.page.locator("#limit").fill(str(limit))
                assert lead.inner_text() == how_brittle(overview(table, limit=limit))
                assert (sure.inner_text() if sure.count() else "") == how_sure(overview(table, limit=limit))
                commands = {step.text: step.command for step in next_steps(overview(table, limit=limit))}
                for step in page.page.locator("#overview .steps li:visible").all():
                    written_command = commands.get(step.locator("p").inner_text(), "detector")
                    assert step.locator("code").inner_text() == written_command or "detector" in written_command
                steps = [step.text for step in next_steps(overview(table, limit=limit)) if "detector" not in step.text]
                seen = page.page.locator("#overview .steps li:visible p").all_inner_texts()
                assert [one for one in seen if "detector" not in one] == [one for one in steps if one in seen]
        if name == "every group":
            page.page.locator("#overview .steps li", has_text="without a number").get_by_role("button").click()
            assert count(page) == 30
        assert page.said == []


def saturated() -> Table:
    """Flip probabilities that 1 minus them does not tell apart, and per cents that a division does not reach."""
    table = make_table(points=12, scores=("softmax", "monte_carlo"), sigmas=(0.1,), budgets=(50,))
    labels = {column.score: column.label for column in table.columns}
    table = with_value(table, labels["softmax"], [10.0 ** -(one + 9) for one in range(12)])
    return with_value(table, labels["monte_carlo"], [one / 1000 for one in range(1, 13)])


def test_what_rounds_to_one_is_ranked_and_filtered_as_it_is(browser: Browser, written: Callable[[str], Path]) -> None:
    table = saturated()
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        page.page.locator("#filter-by").select_option(label="flip probability, Monte Carlo, sigma 0.1")
        for end in ("0.7", "0.3", "1.1"):
            page.page.locator("#to").fill(end)
            page.page.locator("#to").press("Enter")
            assert count(page) == round(10 * float(end)), end
        page.page.locator("#clear").click()
        page.page.locator("#head").get_by_role("button", name="Sort by confidence").click()
        assert listed(page) == table.points["point"].to_pylist()
        page.page.locator("#rows .row").nth(5).click()
        cells = page.page.locator("#card tbody tr", has_text="confidence").locator("td").all_inner_texts()
        assert (cells[0], cells[2]) == ("over 99.9999%", "6 of 12")
        assert page.said == []


def test_a_class_is_that_of_the_labels_where_there_are_any(browser: Browser, written: Callable[[str], Path]) -> None:
    table = made([HOLD, BREAK, OPEN] * 10, [True, None, False] * 10, [*range(10)] * 3)
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        rows = page.page.locator("#overview .bars tbody tr").evaluate_all(
            "(rows) => rows.map((row) => [row.children[0].innerText, row.children[2].innerText])"
        )
        own = overview(table).classes
        known = {
            row["name"]: f"{row['holds']} · {row['undecided']} · {row['breaks']}" for row in own.to_dict("records")
        }
        assert dict(rows) == known
