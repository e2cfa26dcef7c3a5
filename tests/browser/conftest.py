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
"""Where axe looks at the page, and by which of its rules; the other views show it nothing new."""

EXERCISED = "light"
"""Where everything is used before a point is opened."""


@dataclass(frozen=True)
class Seen:
    """A page in one view: with all its parts unfolded, then with a point open, and what it did meanwhile."""

    first: Measures
    used: Measures
    said: list[str]
    asked: list[str]
    violations: list[str]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright) as found:
        yield found


@pytest.fixture(scope="package")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes a page to a file."""

    def write(text: str) -> Path:
        place = tmp_path_factory.mktemp("page") / "report.html"
        place.write_text(text, encoding="utf-8")
        return place

    return write


@pytest.fixture(scope="package")
def report(written: Callable[[str], Path], figures_drawn_once: object) -> Path:
    """A page with nearly every chapter: points with images, wrong ones, some without a number, beside another run."""
    return written(text_of(whole_run(0), against={"another run": whole_run(1)}))


@pytest.fixture(scope="package")
def look(browser: Browser, report: Path) -> Callable[[str], Seen]:
    """What is seen of the page in a view, looked at once."""

    @cache
    def seen(name: str) -> Seen:
        with opened(browser, report, VIEWS[name]) as found:
            found.unfold()
            first = found.measured()
            violations = found.violations(**JUDGED[name]) if name in JUDGED else []
            found.exercise() if name == EXERCISED else found.open_point()
            return Seen(first, found.measured(), found.said, found.asked, violations)

    return seen


def whole_run(seed: int) -> Table:
    """A made-up run with every view of robustness; another `seed` bends the same points otherwise."""
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
    with opened(browser, place) as found:
        yield found


@pytest.fixture
def page(window: Opened, place: Path) -> Iterator[Opened]:
    """The page as one opens it, in a window of several tests: nothing is chosen, and the browser keeps no note."""
    window.open_anew(place)
    yield window
    assert window.said == []
    assert window.asked == []


@pytest.fixture(scope="package")
def frame(table: Table) -> pd.DataFrame:
    """Every point with what the page should say of it."""
    points = table.points.to_pandas().set_index("point")
    column = next(one for one in table.columns if one.label == chosen(table))
    kind = points["correct"].map({True: "right", False: "wrong"}).fillna("no label")
    names = table.record.data.class_names or ()
    return points.assign(
        kind=kind,
        state=column.states(0.9).fillna("failed"),
        flip=column.value,
        label_name=[names[int(one)] if one == one and one is not None else "" for one in points["label"]],
        margin=next(one for one in table.columns if one.score == "logit_margin").value,
    )
