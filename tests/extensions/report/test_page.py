"""Page of a report: inert, self-contained, the same for the same table, and open about what a run lacks."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from helpers.change_runs import change_run, other_run
from helpers.pages import EVERY_SCORE, Page, addresses, assert_inert, page_of, storable, text_of
from helpers.poisoned import poisoned_run, poisoned_scores
from helpers.tables import HOSTILE, make_table

from brittle.extensions.report import figure, wording
from brittle.extensions.report.chapters import other_runs
from brittle.extensions.worst_case import chapter as worst_case
from brittle.store.table import Table

T = TypeVar("T")

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


@pytest.fixture(scope="module")
def full() -> Table:
    return make_table(points=120, scores=EVERY_SCORE, budgets=(10, 400), broken=3)


@pytest.fixture(scope="module")
def text(full: Table) -> str:
    return text_of(full)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_is_well_formed_and_inert(page: Page, text: str) -> None:
    assert_inert(page)
    assert addresses(text) == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert sum(attributes.get("class") == "drawing" for _, attributes in page.elements) == 3
    (code,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digests = [hashlib.sha256(part.encode()).digest() for part in (style, code)]
    allowed = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    assert [a.get("content") for tag, a in page.elements if tag == "meta" and "http-equiv" in a] == [
        f"default-src 'none'; img-src data:; style-src {allowed[0]}; script-src {allowed[1]}; "
        "base-uri 'none'; form-action 'none'"
    ]
    for tag, attributes in page.elements:  # tables take the focus; drawings and images carry their result as text
        assert "style" not in attributes
        if attributes.get("class") == "wide":
            assert attributes["tabindex"] == "0"
        assert attributes.get("class") != "drawing" or re.search(r"\d", str(attributes["aria-label"]))
        assert tag != "img" or attributes["alt"]


def test_the_same_table_gives_the_same_bytes(
    full: Table, text: str, tmp_path: Path, figures_drawn_once: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure, "draw", figures_drawn_once)  # every figure is drawn again
    shuffled = replace(full, scores=full.scores.take(list(reversed(range(len(full.scores))))))
    path = tmp_path / "report.html"
    shuffled.report(path)
    assert path == tmp_path / "report.html"
    assert path.read_bytes() == text.encode()


def test_hostile_text_in_every_field_is_shown_as_text() -> None:
    """Names, details, class names and every text of the record; the scores keep theirs, so that all is drawn."""
    recipe = {"points": 120, "scores": EVERY_SCORE, "sigmas": (0.05, 0.1), "budgets": (10, 20)}
    table = make_table(classes=20, broken=2, class_names=HOSTILE[20:40], **recipe)
    page = page_of(poisoned_run(table, 20))
    assert_inert(page)
    assert sum(attributes.get("class") == "drawing" for _, attributes in page.elements) == 3
    for name in HOSTILE[20:40]:
        forms = {" ".join(wording.show(text, 28).split()) for text in (name, storable(name))}  # of a record, of a frame
        assert any(form in page.text for form in forms), name


def test_hostile_scores_statuses_and_noises_are_shown_as_text() -> None:
    """Names of scores, of noise families and of statuses reach legends, heads of panels and tables."""
    recipe = {"points": 30, "scores": ("moments", "softmax", "monte_carlo"), "sigmas": (0.1,), "budgets": (10, 20)}
    page = page_of(poisoned_scores(make_table(**recipe)))
    assert_inert(page)
    assert "svg" in page.tags
    assert "Status <script>, which this version does not know." in page.text


@pytest.mark.parametrize(
    "recipe",
    [
        ({"labels": False, "images": False, "sigmas": (0.1,)}, "No point has a label"),
        ({"scores": ("softmax",)}, "no measurement under noise"),
        ({"scores": ()}, "No point has a p_robust, so how many"),
        ({"classes": 2, "sigmas": (0.1,)}, "every pair compared"),
        ({"points": 0}, "The run holds no points"),
    ],
)
@pytest.mark.usefixtures("nothing_drawn")
def test_missing_parts_of_a_run_are_named(recipe: tuple[Any, ...]) -> None:
    page = page_of(make_table(**recipe[0]))
    assert_inert(page)
    assert all(words in page.text for words in recipe[1:])


@pytest.mark.parametrize(
    "recipe",
    [
        ({"classes": 1, "sigmas": (0.1,)}, "All belong to one class"),
        ({"points": 1, "sigmas": (0.05, 0.1)}, "1 point."),
        ({"points": 6, "broken": 6}, "6 points."),
        (
            {"classes": 40, "points": 600, "scores": ("moments",), "sigmas": (0.1,)},
            "10 classes in the middle not drawn",
        ),
    ],
)
def test_extreme_runs_are_drawn(recipe: tuple[Any, ...]) -> None:
    """Draw one class, one point, no number at all, and more classes than there is room for."""
    page = page_of(make_table(**recipe[0]))
    assert_inert(page)
    assert all(words in page.text for words in recipe[1:])


@pytest.fixture(scope="module")
def runs() -> tuple[Table, Table]:
    """Make runs with every chapter, over the same points."""
    return change_run(points=40, scores=("monte_carlo", "max_probability", "logit_margin", "input_margin")), other_run(
        points=40
    )


@pytest.mark.parametrize("chapter", [other_runs, worst_case], ids=lambda module: module.CHAPTER.name)
def test_hostile_points_classes_and_runs_are_shown_as_text(runs: tuple[Table, Table], chapter: Any) -> None:
    table, second = (poisoned_run(run) for run in runs)
    page = page_of(table, against={HOSTILE[2]: second}, chapters=(chapter.CHAPTER,))
    assert_inert(page)
    assert any(wording.show(text, 28) in page.text for text in HOSTILE[:20])
