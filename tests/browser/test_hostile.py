"""Text that would be a script, an address or a style, in every field that a user fills: nothing runs or fetches.

The policy of the page would stop it, so the tests remove the policy: escaping alone protects the page.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from helpers.browser import Opened, opened
from helpers.pages import storable, text_of
from helpers.poisoned import poisoned_run, poisoned_scores
from helpers.tables import HOSTILE, make_table
from playwright.sync_api import Browser

from brittle.data.ids import read_ids
from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("report")

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


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20x")
"""Texts that a spreadsheet would run, in both widths."""

IDS = (
    *map(storable, HOSTILE),
    *FORMULAS,
    "'quoted",
    "a;=1;b",
    'a; "=1"',
    "a;'b",
    "back\\slash",
    "a\\new.png",
    '"a",b',
    " spaced ",
)
"""Ids of points that a saved table must not turn into formulas or other ids."""

FRAGMENTS = (
    "x",
    "%",
    "=&=",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&__proto__=1",
    "%7B%22__proto__%22:%7B%7D%7D",
)
"""Texts behind the `#` of the page's address, where it keeps its state."""

KEPT = ("", "{", "null", "[]", '{"__proto__": 1}', '"><img src=x onerror=alert(1)>')
"""Texts that the browser may return for the page's notes: other pages on the same disk can write there."""


def every_id() -> Table:
    """Return a run with hostile ids of points and hostile names of classes."""
    recipe = {"points": len(IDS), "classes": len(HOSTILE), "class_names": HOSTILE, "scores": ("monte_carlo",)}
    table = make_table(**recipe, sigmas=(0.1,), budgets=(20,), broken=2)
    hostile_ids = dict(zip(table.points["point"].to_pylist(), IDS, strict=True))

    def renamed(rows: pa.Table) -> pa.Table:
        points = pa.array([hostile_ids[point] for point in rows["point"].to_pylist()], pa.string())
        return rows.set_column(rows.column_names.index("point"), rows.schema.field("point"), points)

    parts = {part: renamed(getattr(table, part)) for part in ("points", "scores", "counterexamples")}
    return replace(table, **parts)


def fields() -> str:
    """Return a page with hostile text in every field: names of classes and of points, statuses, the record."""
    recipe = {"scores": ("monte_carlo", "input_margin"), "sigmas": (0.1,), "budgets": (20,)}
    table = make_table(points=60, classes=len(HOSTILE), class_names=HOSTILE, broken=2, **recipe)
    return text_of(poisoned_run(table))


def scores() -> str:
    """Return a page of hostile scores, noise families and statuses, with another run of a hostile name."""
    recipe = {"points": 24, "scores": ("moments", "softmax", "monte_carlo"), "sigmas": (0.1,), "budgets": (10, 20)}
    table = poisoned_scores(make_table(**recipe))
    return text_of(table, against={storable(HOSTILE[0]): table})


def assert_nothing_happened(page: Opened) -> None:
    """Check that nothing ran or was fetched, the console is empty, and no element comes from hostile text."""
    assert page.requests == []
    assert page.messages == []
    assert page.page.locator(STRANGE).count() == 0


def without_policy(text: str) -> str:
    """Remove the policy from the page."""
    bare, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert count == 1
    return bare


@pytest.mark.parametrize("page", [fields, scores])
def test_no_hostile_text_runs_or_fetches(
    browser: Browser, written: Callable[[str], Path], page: Callable[[], str]
) -> None:
    with opened(browser, written(without_policy(page()))) as window:
        window.exercise()
        assert_nothing_happened(window)


def test_no_hostile_address_or_note_runs_or_breaks_anything(
    browser: Browser, report: Path, written: Callable[[str], Path]
) -> None:
    with opened(browser, written(without_policy(report.read_text(encoding="utf-8")))) as page:
        address = page.page.url
        for fragment in FRAGMENTS:
            page.page.goto(f"{address}#{fragment}")
        for fragment in FRAGMENTS[3:5]:
            page.page.goto(f"{address}#{fragment}")
            page.page.reload()
        page.open_point()
        notes = page.page.locator("textarea")
        for note in notes.all():
            note.fill("a note")
            note.blur()
        assert (page.page.evaluate("localStorage.length") > 0) == (notes.count() > 0)
        for text in KEPT if notes.count() else ():
            page.page.evaluate("(text) => Object.keys(localStorage).forEach((key) => localStorage[key] = text)", text)
            page.page.reload()
            page.open_point()
        assert_nothing_happened(page)


def test_a_saved_table_runs_nothing_and_brittle_reads_its_ids(
    browser: Browser, written: Callable[[str], Path], tmp_path: Path
) -> None:
    table = every_id()
    with opened(browser, written(text_of(table))) as page:
        with page.page.expect_download() as waiting:
            page.page.locator("#save-csv").click()
        place = tmp_path / "selection.csv"
        waiting.value.save_as(place)
    rows = list(csv.reader(io.StringIO(place.read_text(encoding="utf-8"), newline="")))
    texts = [part for row in rows for cell in (row[0], *row[2:6]) for part in cell.split(";")]
    assert [
        text for text in texts if not text.isprintable() or text.startswith(tuple(formula[0] for formula in FORMULAS))
    ] == []
    assert sorted(read_ids(place)) == sorted(IDS)


@pytest.mark.parametrize("policy", ["", "default-src 'none'"])
def test_the_trap_springs(browser: Browser, written: Callable[[str], Path], policy: str) -> None:
    """Insert texts as markup: `opened` records their effect without a policy, and none with one."""
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
    texts = "".join(f"<p>{text}</p>" for text in ACTIVE)
    assert set(ACTIVE) <= set(HOSTILE)
    with opened(browser, written(f"<!DOCTYPE html>{head}<title>x</title>{texts}")) as page:
        page.page.wait_for_timeout(200)
        heard = page.requests
        assert page.page.locator(STRANGE).count() >= 4
    assert heard.count("dialog: 1") == (0 if policy else 3)
    assert sum("evil.example" in event for event in heard) == (0 if policy else 3)
