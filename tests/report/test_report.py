"""The report: inert, self-contained, the same for the same table, and honest about what a run does not hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
import pytest
from helpers.pages import DRAWING, Page, assert_inert, page_of, storable
from helpers.tables import HOSTILE, make_table, with_value

from brittle.analysis import Setting, extremes
from brittle.errors import StorageError
from brittle.estimate import parameters_json
from brittle.report import charts, render, summarize, wording, write_report
from brittle.report.subject import MAX_PANELS, spread
from brittle.report.svg import inert
from brittle.store.schemas import POINTS, SCORES
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")

EVERY_SCORE = (
    "softmax", "taylor", "taylor_mvs", "mmse", "mmse_mvs", "mmse_margin", "moments", "monte_carlo", "logit_margin",
    "first_order_margin", "feature_margin", "input_margin", "max_probability", "probability_margin", "entropy",
)  # fmt: skip
EVERY_CHANGE = ("laplacian", "smoothed_laplacian", "probability_change", "first_order_change", "change_bound")


# The whole page


@pytest.fixture(scope="module")
def full() -> Table:
    return make_table(points=120, scores=EVERY_SCORE, budgets=(10, 400), broken=3)


@pytest.fixture(scope="module")
def text(full: Table) -> str:
    return render(summarize(full))


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_is_well_formed_and_inert(page: Page) -> None:
    assert_inert(page)
    assert sum(tag == "svg" for tag, _ in page.elements) == 7
    assert [a.get("content") for tag, a in page.elements if tag == "meta" and "http-equiv" in a] == [
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    ]


def test_the_page_names_no_address(text: str) -> None:
    text = re.sub(r"base64,[\w+/=]+", "", text.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    assert re.findall(r"(?i)(?:https?:|ftp:|//[a-z]|@import|@font-face|javascript:|<script)", text) == []


def test_the_page_tells_its_story(page: Page) -> None:
    for words in (
        "How easily do the predictions of models:cnn break?",
        "The weights are float16; sums were taken in float32.",
        "sigma = 0.05, 0.1, 0.25 in pixel units, with inputs from 0 to 1; that is 5%, 10%, 25% of this range",
        "120 points, of which 117 got a robustness",
        "1,234,567 passes through the network",
        "Mean p_robust, sigma 0.1",
        "Least robust class",
        "this page reads monte_carlo(draws=400, sigma=0.1)",
        "The input holds NaN or infinite values.",
        "test/00000.png (row 0): 1 NaN of 3072",
        "Kruskal–Wallis",
        "its own expected error",
        "moments *",
        "Kendall's tau",
        "brittle score --model models:cnn",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "99% confidence",
    ):
        assert words in page.text, words


def test_every_class_shows_its_images(page: Page, full: Table) -> None:
    known = set(full.points["name"].to_pylist())
    images = [attributes for tag, attributes in page.elements if tag == "img" and attributes["alt"] in known]
    assert len(images) == len(extremes(full)) > 80


def test_identifiers_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_table_gives_the_same_bytes(
    full: Table, text: str, tmp_path: Path, figures_drawn_once: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "draw", figures_drawn_once)  # every figure is drawn again
    shuffled = replace(full, scores=full.scores.take(list(reversed(range(len(full.scores))))))
    written = write_report(shuffled, tmp_path / "report.html")
    assert written == tmp_path / "report.html"
    assert written.read_bytes() == text.encode()


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"unwritable.*none.*report\.html"):
        write_report(make_table(points=3, scores=("softmax",)), tmp_path / "none" / "report.html")


# Hostile text


def test_there_are_forty_hostile_strings() -> None:
    assert len(set(HOSTILE)) >= 40


def poisoned(value: Any, number: list[int]) -> Any:
    """`value` with every text in it replaced by a hostile one, in turn."""
    if isinstance(value, str):
        number[0] += 1
        return HOSTILE[number[0] % len(HOSTILE)]
    if isinstance(value, dict):
        return {key: poisoned(inner, number) for key, inner in value.items()}
    return [poisoned(inner, number) for inner in value] if isinstance(value, list) else value


def poisoned_points(points: pa.Table, start: int) -> pa.Table:
    """Points with a hostile name and detail each; hostile image bytes for some."""
    rows = points.to_pylist()
    for number, row in enumerate(rows):
        row["name"] = storable(HOSTILE[(start + number) % len(HOSTILE)])
        row["detail"] = storable(HOSTILE[(start + 2 * number) % len(HOSTILE)])
        if number % 7 == 0:
            row["image"] = b"<svg onload=alert(1)>"
        if number % 11 == 0:
            row["status"] = "tie"
    return pa.Table.from_pylist(rows, schema=POINTS)


@pytest.mark.parametrize("start", [0, 20])
def test_hostile_text_in_every_field_is_shown_as_text(start: int) -> None:
    """Names, details, class names and every text of the provenance; the scores keep theirs, so that all is drawn."""
    recipe = {"points": 120, "scores": EVERY_SCORE, "sigmas": (0.05, 0.1), "budgets": (10, 20)}
    table = make_table(classes=20, broken=2, class_names=HOSTILE[start : start + 20], **recipe)
    provenance = poisoned(table.provenance, [start])
    provenance["data"]["class_names"] = list(HOSTILE[start : start + 20])
    for own, entry in zip(table.provenance["scores"], provenance["scores"], strict=True):
        entry |= {"score": own["score"], "parameters": own["parameters"], "quantity": own["quantity"]}
    page = page_of(Table(poisoned_points(table.points, start), table.scores, provenance))
    assert_inert(page)
    assert sum(tag == "svg" for tag, _ in page.elements) == 7
    for name in HOSTILE[start : start + 20]:
        assert " ".join(wording.shown(name, 28).split()) in page.text


def test_hostile_scores_statuses_and_noises_are_shown_as_text() -> None:
    """Names of scores, of noise families and of statuses reach legends, heads of panels and tables."""
    table = make_table(points=30, scores=("moments", "softmax", "monte_carlo"), sigmas=(0.1,), budgets=(10, 20))
    rows, entries = table.long(), []
    for number, entry in enumerate(table.provenance["scores"]):
        hostile = storable(HOSTILE[number])
        parameters = entry["parameters"] | {"noise": storable(HOSTILE[number + 3]), HOSTILE[0]: HOSTILE[number]}
        own = (rows["score"] == entry["score"]) & (rows["parameters"] == parameters_json(entry["parameters"]))
        score = entry["score"] if entry["score"] == "monte_carlo" else hostile
        rows.loc[own, "score"] = score
        rows.loc[own, "parameters"] = parameters_json(parameters)
        entries.append(entry | {"score": score, "parameters": parameters, "label": hostile, "title": hostile})
    rows.loc[::5, "status"] = "<script>"
    scores = pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False)
    page = page_of(Table(table.points, scores, table.provenance | {"scores": entries}))
    assert_inert(page)
    assert "svg" in page.tags
    assert "Status <script>, which this version does not know." in page.text


def test_provenance_of_another_shape_is_read() -> None:
    table = make_table(points=12, scores=("moments", "monte_carlo"), sigmas=(0.1,))
    odd = {"model": "a text", "data": None, "warnings": "no list", "versions": [], "seconds": "long", "passes": None}
    assert_inert(page_of(replace(table, provenance=table.provenance | odd)))
    assert_inert(page_of(replace(table, provenance={"scores": table.provenance["scores"]})))
    assert_inert(page_of(replace(table, provenance={})))


def test_names_in_a_figure_cannot_become_markup() -> None:
    frame = pd.DataFrame({"setting": "s", "name": list(HOSTILE[:31]), "order": range(31), "overall": 0.5})
    frame = frame.assign(name=[wording.shown(name, 60) for name in frame["name"]], mean=0.5, low=0.4, high=0.6)
    root = ElementTree.fromstring(charts.draw("classes", frame))
    assert {node.tag.rpartition("}")[2].lower() for node in root.iter()} <= DRAWING
    drawn = {node.text for node in root.iter() if node.text}
    assert "</script>" in drawn
    assert "<svg/onload=alert(1)>" in drawn


def test_a_drawing_with_foreign_parts_loses_them() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><script>x()</script>'
        '<g id="a" style="x" clip-path="url(#a)"><foreignObject><p/></foreignObject>'
        '<a href="http://x"><text>t</text></a><text onclick="x()">kept</text></g></svg>'
    )
    root = ElementTree.fromstring(inert(svg, "figure"))
    assert [node.tag.rpartition("}")[2] for node in root.iter()] == ["svg", "g", "text"]
    assert [dict(node.attrib) for node in root.iter()] == [{}, {"id": "figure-0", "clip-path": "url(#figure-0)"}, {}]


# What a run may lack


@pytest.mark.parametrize(
    "recipe",
    [
        (
            {"labels": False, "images": False},
            "no point carries a label",
            "Points by predicted class",
            "holds no images",
        ),
        ({"scores": ("moments", "softmax")}, "This run holds no Monte Carlo"),
        ({"scores": ("softmax",)}, "None: no score of this run depends on noise"),
        ({"scores": ("logit_margin",)}, "No point of this run has a robustness"),
        ({"scores": ()}, "No point of this run has a robustness"),
        ({"scores": ("moments", "monte_carlo")}, "This run holds no softmax or margin"),
        ({"sigmas": (0.1,)}, "of the points flip with a probability above 1%"),
        ({"classes": 1}, "All belong to one class"),
        ({"classes": 2}, "Kruskal–Wallis"),
        ({"points": 1}, "1 point, of which 1 got a robustness"),
        ({"points": 0}, "The run holds no points"),
        ({"points": 6, "broken": 6}, "6 points, of which 0 got a robustness"),
        ({"budgets": (10,)}, "Its estimator is the first in this list"),
        (
            {"classes": 40, "points": 600, "scores": ("moments",), "sigmas": (0.1,)},
            "10 classes in the middle not drawn",
            "28 classes between them left out",
        ),
        (
            {"sigmas": (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3), "scores": ("taylor",)},
            "3 further noise levels of the run not drawn here",
        ),
    ],
)
def test_what_a_run_lacks_is_said(recipe: tuple[Any, ...]) -> None:
    page = page_of(make_table(**recipe[0]))
    assert_inert(page)
    assert all(words in page.text for words in recipe[1:])


def test_a_run_that_stopped_early_says_so() -> None:
    table = make_table(points=5, scores=("softmax",))
    page = page_of(replace(table, provenance=table.provenance | {"finished": None, "command": None}))
    assert "The run had not finished" in page.text
    assert "Not recorded" in page.text


def test_all_points_alike_are_drawn() -> None:
    table = make_table(points=10, scores=("monte_carlo", "moments", "softmax"), sigmas=(0.1,), budgets=(200,))
    for entry in table.provenance["scores"]:
        table = with_value(table, entry["label"], [0.0] * 10)
    page = page_of(table)
    assert_inert(page)
    assert "flip &lt;" in render(summarize(table))


def test_infinite_margins_are_left_out_of_the_drawing() -> None:
    table = make_table(points=10, scores=("moments", "first_order_margin"), sigmas=(0.1,))
    summary = summarize(
        with_value(table, "first_order_margin", [float("inf")] * 3 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    )
    assert len(summary.margins.frame) == 7
    assert_inert(Page(render(summary)))


def test_classes_of_one_name_stay_apart() -> None:
    summary = summarize(make_table(points=40, classes=3, class_names=("cat", "cat", "dog")))
    assert set(summary.classes.frame["name"]) == {"cat (0)", "cat (1)", "dog"}


# Words


@pytest.mark.parametrize(
    ("number", "text"),
    [(3.2e-7, "3.2e-7"), (0.0, "0"), (0.127, "0.13"), (0.5, "0.50"), (0.00123, "0.0012"), (1.0, "1.0"), (99.4, "99")],
)
def test_short_numbers(number: float, text: str) -> None:
    assert wording.short(number) == text


@pytest.mark.parametrize(
    ("bound", "text"), [(0.0053, "0.006"), (0.0123, "0.013"), (9.3e-7, "1e-6"), (0.9999, "1"), (1.0, "1")]
)
def test_upper_bounds_are_rounded_up(bound: float, text: str) -> None:
    assert wording.at_most(bound) == text


@pytest.mark.parametrize(
    ("flip", "text"), [(0.127, "0.873"), (3.2e-7, "1 − 3.2e-7"), (0.0, "1.000"), (1.0, "0.000"), (6e-4, "0.999")]
)
def test_robustness_near_one_is_told_by_its_complement(flip: float, text: str) -> None:
    assert wording.p_robust(flip) == text


def test_text_is_shown_escaped_and_cut() -> None:
    assert wording.shown("a\nb\x00\u202e\udc80") == "a\\nb\\x00\\u202e\\udc80"
    assert wording.shown("x" * 100, 10) == "x" * 9 + "…"
    assert wording.shown(None) == wording.shown(float("nan")) == wording.MISSING
    assert wording.shown(62006) == "62,006"
    assert wording.shown(True) == "True"
    assert json.loads(f'"{wording.shown("é")}"') == "é"


def test_at_most_so_many_panels_with_the_ends_and_the_chosen() -> None:
    available = [Setting(float(sigma), "gaussian") for sigma in range(1, 12)]
    for chosen in available:
        kept = spread(available, chosen)
        assert len(kept) == MAX_PANELS
        assert {available[0], available[-1], chosen} <= set(kept)
        assert list(kept) == sorted(kept)
    assert spread(available[:2], None) == tuple(available[:2])


def test_every_score_has_its_colour_and_sentence() -> None:
    known = set(wording.EXPLANATIONS) - {"feature_distance", "pseudo_margin"}
    assert set(charts.COLOURS) == {*EVERY_SCORE, *EVERY_CHANGE} == known
    assert len(set(charts.COLOURS.values())) == len(charts.COLOURS)


def test_a_number_that_was_not_seen_is_a_bound() -> None:
    """Of 8 points that hardly ever flip, the normal model of 50 copies says numbers that no copy showed."""
    table = make_table(points=8, scores=("moments",), budgets=(50,), sigmas=(0.02,))
    rows = summarize(table).fragile.grid.rows
    column = table.wide()["moments(draws=50, sigma=0.02).evidence"]
    assert (column == "extrapolated").any()
    shown = [row for row in rows if "extrapolated" in row]
    assert len(shown) == (column == "extrapolated").sum()
    assert all(row[6].endswith(", by the normal model") for row in shown)
    assert any(row[5].startswith("above ") and row[6].startswith("below ") for row in shown)
    assert not any(re.search(r"e-[2-9]\d", cell) for row in shown for cell in (row[5], row[6]))
