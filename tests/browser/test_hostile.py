"""Text that would be a script, an address or a style, in every field that a user fills: nothing runs, nothing is asked.

The policy of the page would stop it, so the same is shown of the page without its policy: escaping is all there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.browser import opened
from helpers.pages import text_of
from helpers.poisoned import poisoned_run, poisoned_scores
from helpers.tables import HOSTILE, make_table
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")

STRANGE = (
    "iframe, object, embed, base, math, foreignObject, form, frame, applet, video, audio, template, "
    "link[rel='stylesheet'], meta[http-equiv='refresh' i], a[href^='javascript' i], "
    "[onerror], [onload], [onfocus], [onmouseover], [srcdoc], [autofocus]"
)
"""Elements and attributes that only a hostile text would bring into the page."""

ACTIVE = (
    '"><img src=x onerror=alert(1)>',
    "<script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<object data=//evil.example></object>",
    "<embed src=//evil.example>",
)
"""Some of the hostile texts: three call `alert`, three ask for an address."""


def every_field() -> Table:
    """Forty classes of hostile names, points of hostile names and statuses, and a record of hostile texts."""
    recipe = {"scores": ("monte_carlo", "input_margin"), "sigmas": (0.1,), "budgets": (20,)}
    return poisoned_run(make_table(points=60, classes=len(HOSTILE), class_names=HOSTILE, broken=2, **recipe))


def every_score() -> Table:
    recipe = {"points": 24, "scores": ("moments", "softmax", "monte_carlo"), "sigmas": (0.1,), "budgets": (10, 20)}
    return poisoned_scores(make_table(**recipe))


@pytest.fixture(scope="module", params=[every_field, every_score], ids=lambda one: one.__name__)
def hostile(request: pytest.FixtureRequest) -> str:
    """A page of hostile text."""
    return text_of(request.param())


def without_policy(text: str) -> str:
    """The page without its policy."""
    found, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert count == 1
    return found


@pytest.mark.parametrize("kept", [True, False], ids=["with-its-policy", "without-its-policy"])
def test_no_hostile_text_runs_or_fetches(
    browser: Browser, written: Callable[[str], Path], hostile: str, kept: bool
) -> None:
    with opened(browser, written(hostile if kept else without_policy(hostile))) as found:
        found.exercise()
        assert found.asked == []
        assert found.said == []
        assert found.page.locator(STRANGE).count() == 0


@pytest.mark.parametrize("policy", ["", "default-src 'none'"])
def test_the_trap_springs(browser: Browser, written: Callable[[str], Path], policy: str) -> None:
    """Some of the texts as markup: without a policy `opened` hears what they do, and with one they do nothing."""
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
    texts = "".join(f"<p>{text}</p>" for text in ACTIVE)
    assert set(ACTIVE) <= set(HOSTILE)
    with opened(browser, written(f"<!DOCTYPE html>{head}<title>x</title>{texts}")) as found:
        found.page.wait_for_timeout(50)
        heard = found.asked
        assert found.page.locator(STRANGE).count() >= 4
    assert heard.count("dialog: 1") == (0 if policy else 3)
    assert sum("evil.example" in one for one in heard) == (0 if policy else 3)
