"""A run that decides its points: numbers come from the finished copies, states from the others."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.browser import opened
from helpers.gestures import ALONE, listed, saved
from helpers.pages import text_of
from helpers.problems import inputs, small_classifier
from playwright.sync_api import Browser

import brittle
from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle, how_sure
from brittle.scores import MonteCarlo

pytestmark = pytest.mark.xdist_group("report")

FINISHED, STOPPED = MonteCarlo(0.5, draws=500, limit=None), MonteCarlo(0.5, draws=3000, limit=0.9)


def test_states_and_numbers_come_from_their_own_copies(browser: Browser, written: Callable[[str], Path]) -> None:
    """At another limit the finished copies say both."""
    table = brittle.score(small_classifier(), inputs(40), [FINISHED, STOPPED], skip_doctor=True)
    finished, stopped = table[FINISHED], table[STOPPED]
    assert finished.states(0.9).tolist() != stopped.states(0.9).tolist()
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:

        def states() -> dict[str, str]:
            return {row["point"]: row["state"] for row in csv.DictReader(io.StringIO(saved(page, "#save-csv")))}

        assert listed(page) == finished.value.sort_values(ascending=False, kind="stable").index.tolist()
        assert states() == stopped.states(0.9).to_dict()
        assert page.page.locator("#overview .lead").inner_text() == how_brittle(overview(table))
        assert page.page.locator("#overview .sure").inner_text() == how_sure(overview(table))
        page.page.locator("#rows .row").first.click()
        assert "kept with probability below 0.9, by Monte Carlo" in page.page.locator("#card > p").first.inner_text()
        page.page.locator("#limit").fill("0.8")
        page.page.locator("#overview .lead", has_text="probability 0.8").wait_for()
        assert states() == finished.states(0.8).to_dict()
        assert page.messages == []
