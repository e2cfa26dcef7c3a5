"""One browser for all tests of this folder, and the pages that it opens, each rendered once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.browser import VIEWS, Measures, Opened, launched, opened
from helpers.change_runs import LAPLACIAN, change
from helpers.gestures import ALONE, chosen, run
from helpers.pages import text_of
from helpers.tables import make_table, with_score
from playwright.sync_api import Browser, sync_playwright

from brittle.store.table import Table

POINTS = 40
COLOURS = ("color-contrast",)
JUDGED: Mapping[str, Mapping[str, Sequence[str]]] = {"light": {}, "dark": {"only": COLOURS}, "phone": {"but": COLOURS}}
"""Views that axe checks, and its rules for each; the other views add nothing."""

EXERCISED = "light"
"""View in which everything is used before a point is opened."""


@dataclass(frozen=True)
class Seen:
    """A page in one view: with all its parts unfolded, then with a point open, and its record."""

    at_start: Measures
    used: Measures
    messages: list[str]
    requests: list[str]
    violations: list[str]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright) as running:
        yield running


@pytest.fixture(scope="package")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes a page to a file."""

    def write(text: str) -> Path:
        place = tmp_path_factory.mktemp("page") / "report.html"
        place.write_text(text, encoding="utf-8")
        return place

    return write


@pytest.fixture(scope="package")
def report(written: Callable[[str], Path], figures_drawn_once: object) -> Path:
    """Write a page with nearly every chapter: points with images, wrong ones, some without a number, another run."""
    return written(text_of(whole_run(0), against={"another run": whole_run(1)}))


@pytest.fixture(scope="package")
def look(browser: Browser, report: Path) -> Callable[[str], Seen]:
    """Return a function that looks at the page in a view, once per view."""

    @cache
    def seen(name: str) -> Seen:
        with opened(browser, report, VIEWS[name]) as page:
            page.unfold()
            at_start = page.measured()
            violations = page.violations(**JUDGED[name]) if name in JUDGED else []
            page.exercise() if name == EXERCISED else page.open_point()
            return Seen(at_start, page.measured(), page.messages, page.requests, violations)

    return seen


def whole_run(seed: int) -> Table:
    """Return a made-up run with every view of robustness; another `seed` bends the same points otherwise."""
    scores = ("monte_carlo", "shrinkage", "softmax", "logit_margin", "input_margin", "first_order_margin")
    table = make_table(points=POINTS, scores=scores, sigmas=(0.1,), budgets=(50,), broken=2, not_found=2, masked=2)
    curvature = np.random.default_rng(seed).standard_t(3, POINTS)
    table = with_score(table, "laplacian", curvature, LAPLACIAN)
    return with_score(table, "probability_change", 0.1**2 / 2 * curvature, change(0.1))


@pytest.fixture(scope="package")
def table() -> Table:
    return run(0)


@pytest.fixture(scope="package")
def place(table: Table, written: Callable[[str], Path]) -> Path:
    return written(text_of(table, chapters=ALONE))


@pytest.fixture(scope="package")
def window(browser: Browser, place: Path) -> Iterator[Opened]:
    with opened(browser, place) as page:
        yield page


@pytest.fixture
def page(window: Opened, place: Path) -> Iterator[Opened]:
    """Open the page anew in a window that tests share: nothing is chosen, and the browser keeps no note."""
    window.open_anew(place)
    yield window
    assert window.messages == []
    assert window.requests == []


@pytest.fixture(scope="package")
def frame(table: Table) -> pd.DataFrame:
    """Return the points with the texts that the page should show."""
    points = table.points.to_pandas().set_index("point")
    column = next(column for column in table.columns if column.label == chosen(table))
    kind = points["correct"].map({True: "right", False: "wrong"}).fillna("no label")
    names = table.record.data.class_names or ()
    return points.assign(
        kind=kind,
        state=column.states(0.9).fillna("failed"),
        flip=column.value,
        label_name=[names[int(label)] if label == label and label is not None else "" for label in points["label"]],
        margin=next(column for column in table.columns if column.score == "logit_margin").value,
    )
