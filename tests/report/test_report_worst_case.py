"""The worst-case chapter: there when a run has input margins, true to them, and plain about what they do not show."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.pages import assert_inert, page_of, storable
from helpers.tables import HOSTILE, make_table, thumbnail, with_value

from brittle.analysis import direct_robust_accuracy, worst_case_table
from brittle.errors import ParameterError
from brittle.report import render, summarize, worst_cases, write_report
from brittle.report.case import choose_epsilon
from brittle.report.charts import WORST_CASE, draw
from brittle.report.stand_in import GOOD_AUROC
from brittle.report.summary import WorstCase
from brittle.report.worst_case import FRAGILE_SHOWN
from brittle.store.table import POINTS, SCORES, Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")

SCORED = ("logit_margin", "entropy", "input_margin")
LABEL = "input_margin(norm=linf)"
UNIT = [0.0, 1.0]


def worst_case(table: Table, epsilon: float | None = None) -> WorstCase:
    """The chapter of a run with one norm."""
    (case,) = summarize(table, epsilon).worst_case
    return case


def margins(table: Table) -> np.ndarray:
    """The input margins of `table`, NaN where there is none."""
    rows = table.long()
    return rows.loc[rows["score"] == "input_margin", "value"].to_numpy(dtype=np.float64)


def with_status(table: Table, status: str) -> Table:
    """`table` with the status of every input margin replaced."""
    rows = table.long()
    rows.loc[rows["score"] == "input_margin", "status"] = status
    return replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))


class Headings(HTMLParser):
    """The headings of a page from the chapter on."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str]] = []
        self.tag = ""
        self.feed(text[text.index('<section id="worst-case"') :])
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tag = tag if tag in ("h2", "h3", "h4") else ""

    def handle_data(self, data: str) -> None:
        if self.tag:
            self.found.append((self.tag, data))
            self.tag = ""


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(points=240, scores=SCORED, norms=("linf", "l2"), broken=3, not_found=4, masked=6, certified=True)


@pytest.fixture(scope="module")
def text(table: Table) -> str:
    return render(summarize(table))


# The chapter


def test_the_chapter_has_its_sections_once_for_every_norm(text: str) -> None:
    sections = [
        ("h4", "How far is the nearest other decision?"),
        ("h4", "Can a score stand in for it?"),
        ("h4", "Robust accuracy from a subset"),
        ("h4", "The most fragile correct predictions"),
    ]
    assert Headings(text).found == [
        ("h2", "The worst case"),
        ("h3", "Linf: the largest change of any one input value"),
        *sections,
        ("h3", "L2: the Euclidean length of the change"),
        *sections,
        ("h2", "How to repeat it"),
    ]


def test_every_section_is_filled(table: Table) -> None:
    page = page_of(table)
    assert_inert(page)
    assert sum(tag == "svg" for tag, _ in page.elements) == 2 * len(WORST_CASE)
    assert sum(tag == "img" for tag, _ in page.elements) == 2 * 3 * FRAGILE_SHOWN
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for words in (
        "240 points, of which 237 got an input margin",
        "epsilon = 8/255 = 0.031: the size that most benchmarks judge at",
        "Median input margin, Linf",
        "Robust accuracy at Linf 8/255",
        "Certified robust accuracy at L2 0.5",
        "4 points",
        "The margins of 6 points of 237 are masked",
        "3 points without a margin left out",
        "logit_margin orders the points with a tau of",
        "FPR at 95% TPR",
        "By all 237 distances",
        "By 59 distances and every logit_margin",
        "The 12 nearest of",
        "No input with another prediction was found; the distance is infinite, which proves nothing.",
    ):
        assert words in page.text, words


def test_a_run_without_margins_has_no_chapter() -> None:
    made = make_table(points=12, scores=("moments", "logit_margin"), sigmas=(0.1,))
    summary = summarize(made)
    assert summary.worst_case == ()
    assert 'id="worst-case"' not in render(summary)
    assert "input margin" not in render(summary)


def test_a_run_of_margins_alone_leaves_the_average_case_out(text: str) -> None:
    assert 'id="distribution"' not in text
    assert "p_robust" not in text
    both = render(summarize(make_table(points=30, scores=("moments", "input_margin"), sigmas=(0.1,))))
    assert both.index('id="fragile"') < both.index('id="worst-case"') < both.index('id="repeat"')


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"labels": False}, ("This run holds no label", "as the data carry no labels", "can flip")),
        ({"images": False}, ("The run holds no images, so the points are named", "test/0")),
        ({"scores": ("input_margin",)}, ("This run holds no score beside the input margin",)),
        ({"points": 1}, ("1 point is too few to set a subset apart",)),
        ({"points": 39}, ("39 points are too few to set a subset apart",)),
        ({"classes": 1}, ("airplane → airplane",)),
        ({"masked": 1}, ("The margins of 1 point of 60 are masked",)),
        ({"not_found": 60}, ("Every margin is larger than", "another one was not found at any distance", "∞")),
        ({"masked": 20, "not_found": 40}, ("60 are masked", "∞")),
    ],
)
def test_what_a_run_lacks_is_said(recipe: dict[str, Any], words: tuple[str, ...]) -> None:
    page = page_of(make_table(**{"points": 60, "scores": SCORED} | recipe))
    assert_inert(page)
    for part in words:
        assert part in page.text, part


@pytest.mark.parametrize("recipe", [{"points": 0}, {"broken": 8}])
def test_a_run_whose_margins_all_failed_has_no_chapter(recipe: dict[str, Any]) -> None:
    made = make_table(**{"points": 8, "scores": SCORED} | recipe)
    assert summarize(made).worst_case == ()
    assert_inert(page_of(made))


def test_a_warning_stands_only_where_margins_are_masked() -> None:
    made = make_table(points=20, scores=SCORED)
    assert worst_case(made).nearest.warning == ""
    assert worst_case(with_status(made, "masked")).nearest.warning.startswith("The margins of 20 points of 20")


@pytest.mark.parametrize("value", [0.0, 0.01, float("inf")])
def test_margins_all_alike_are_drawn(value: float) -> None:
    page = page_of(with_value(make_table(points=50, scores=SCORED), LABEL, [value] * 50))
    assert_inert(page)
    assert "svg" in page.tags


def test_norms_that_are_not_known_and_more_than_two_are_left_out() -> None:
    made = make_table(points=12, scores=SCORED, norms=("<script>", "l2", "linf"))
    assert [case.title[:2] for case in summarize(made).worst_case] == ["L2", "Li"]
    assert summarize(make_table(points=12, scores=SCORED, norms=("l1",))).worst_case == ()


# Truth


def test_the_curve_is_the_robust_accuracy_at_every_epsilon(table: Table) -> None:
    frame = summarize(table).worst_case[0].nearest.frame
    distance, correct = margins(table)[:240], np.array(table.points["correct"].to_pylist(), dtype=np.float64)
    assert set(frame["kind"]) == {"all", "correct", "certified"}
    for kind, right in (("all", np.ones(240)), ("correct", correct)):
        curve = frame[frame["kind"] == kind]
        assert (np.diff(curve["share"]) <= 0.0).all()
        assert (curve["low"] <= curve["share"]).all()
        assert (curve["share"] <= curve["high"]).all()
        for row in curve.iloc[[0, 20, 77, 199]].to_dict("records"):
            kept = ~np.isnan(distance) & ~np.isnan(right)
            assert row["share"] == np.mean((distance[kept] > row["epsilon"]) & (right[kept] == 1.0))


def test_the_certified_curve_is_that_of_the_lower_ends(table: Table) -> None:
    shares = summarize(table).worst_case[0].nearest.frame.pivot(index="epsilon", columns="kind", values="share")
    low = table.long().query("score == 'input_margin'")["low"].to_numpy()[:240]
    correct = np.array(table.points["correct"].to_pylist(), dtype=np.float64)
    for epsilon, share in shares["certified"].iloc[::40].items():
        assert share == np.mean((low[~np.isnan(low)] > epsilon) & (correct[~np.isnan(low)] == 1.0))
    assert (shares["certified"] <= shares["correct"]).all()
    assert (shares["correct"] <= shares["all"]).all()
    assert "certified" not in set(worst_case(make_table(points=20, scores=SCORED)).nearest.frame["kind"])


@pytest.mark.parametrize("labels", [True, False])
def test_what_is_certified_bounds_what_the_attacks_left(labels: bool) -> None:
    """The two ends of the bracket are shares of the same points, also where many predictions are wrong."""
    made = make_table(points=200, scores=SCORED, certified=True, labels=labels)
    if labels:
        points = made.points.to_pandas().assign(correct=np.arange(200) % 2 == 0)
        made = replace(made, points=pa.Table.from_pandas(points, schema=POINTS, preserve_index=False))
    (case,) = summarize(made, 0.01).worst_case
    curve = case.nearest.frame.pivot(index="epsilon", columns="kind", values="share")
    of = dict(zip(case.nearest.frame["kind"], case.nearest.frame["of"], strict=True))
    left = "correct" if labels else "all"
    assert (curve["certified"] <= curve[left]).all()
    assert of["certified"] == ("correct prediction, certified" if labels else "any prediction, certified")
    low = made.long().query("score == 'input_margin'")["low"].to_numpy()
    right = np.arange(200) % 2 == 0 if labels else np.ones(200, dtype=bool)
    proven, attacked = np.mean((low > 0.01) & right), np.mean((margins(made) > 0.01) & right)
    number = case.nearest.numbers[-1]
    assert number.title == ("Certified robust accuracy at Linf 0.01" if labels else "Certified share at Linf 0.01")
    assert number.value == f"{100 * proven:.0f}%"
    assert f"between this {100 * proven:.0f}% and the {100 * attacked:.0f}% that" in number.note
    assert proven < attacked


def test_the_numbers_are_those_of_the_analysis(table: Table) -> None:
    case = summarize(table, epsilon=0.02).worst_case[0]
    correct = table.points["correct"].to_pylist()
    direct = direct_robust_accuracy(margins(table)[:240], correct, 0.02)
    assert f"{100 * direct.robust_accuracy:.0f}%" == case.nearest.numbers[2].value == case.subset.numbers[0].value
    frame = worst_case_table(table, 0.02, "linf")
    assert [row[1].split("\n")[0] for row in case.stand_in.grid.rows] == [f"{tau:.3f}" for tau in frame["tau"]]
    assert case.stand_in.grid.scores == ("logit_margin", "entropy")
    assert len(case.subset.study.rows) == 2


def test_the_gallery_shows_the_nearest_correct_points_first(table: Table) -> None:
    wrong = np.array([correct is False for correct in table.points["correct"].to_pylist()])
    distance = margins(table)[:240] * np.where(wrong, 1e-6, 1.0)
    made = with_value(table, LABEL, distance.tolist())
    case = summarize(made).worst_case[0]
    points = made.points.to_pandas().assign(distance=distance)
    nearest = points[points["correct"].eq(True)].nsmallest(FRAGILE_SHOWN, "distance")
    assert not set(nearest["point"]) & set(points.nsmallest(FRAGILE_SHOWN, "distance")["point"])
    assert [one.name for one in case.counterexamples.points] == nearest["name"].tolist()
    assert all(one.predicted != one.found and all(one.images) for one in case.counterexamples.points)
    assert len({image for one in case.counterexamples.points for image in one.images}) == 3 * FRAGILE_SHOWN


def test_counterexamples_of_another_score_are_not_shown(table: Table) -> None:
    rows = table.counterexamples.to_pylist()
    others = [row | {"parameters": '{"norm":"linf","clip":false}'} for row in rows]
    foreign = replace(table, counterexamples=pa.Table.from_pylist(others, schema=table.counterexamples.schema))
    case = summarize(foreign).worst_case[0]
    assert case.counterexamples.points == ()
    assert "holds no counter-example" in page_of(foreign).text


def test_the_verdict_follows_the_score(table: Table) -> None:
    distance = margins(table)[:240]
    finite = np.where(np.isfinite(distance), distance, 9.0)
    for sign, words in ((1.0, "it may stand in"), (-1.0, "it misses too many")):
        made = with_value(table, "logit_margin", (sign * finite).tolist())
        assert words in summarize(made).worst_case[0].stand_in.conclusion
    few = make_table(points=12, scores=SCORED)
    row = worst_case_table(few, 0.03, "linf").query("score == 'logit_margin'").iloc[0]
    assert row["auroc_low"] < GOOD_AUROC <= row["auroc_high"]
    assert "do not decide" in worst_case(few, 0.03).stand_in.conclusion


def test_a_score_that_is_smaller_where_safer_is_turned() -> None:
    scatter = worst_case(make_table(points=60, scores=("entropy", "input_margin"))).stand_in.scatter
    assert set(scatter["title"]) == {"minus entropy"}
    assert scatter["value"].max() <= 0.0
    assert scatter["margin"].corr(scatter["value"], method="kendall") > 0.3  # pyright: ignore[reportArgumentType, reportCallIssue] a cell, a column or a frame


def test_infinite_margins_are_left_out_of_the_scatter(table: Table) -> None:
    case = summarize(table).worst_case[0]
    assert len(case.stand_in.scatter) == 240 - 3 - 4
    assert case.stand_in.scatter["side"].eq("within epsilon").sum() == (margins(table)[:240] <= 8 / 255).sum()


def test_a_score_that_is_clearly_better_and_affordable_is_named() -> None:
    made = make_table(points=400, scores=("logit_margin", "first_order_margin", "moments", "input_margin"))
    distance, rng = margins(made), np.random.default_rng(0)
    poor = distance * rng.lognormal(0.0, 0.5, 400)
    made = with_value(made, "logit_margin", poor.tolist())
    better = with_value(made, "first_order_margin", (distance * rng.lognormal(0.0, 0.1, 400)).tolist())
    said = worst_case(better, 0.03).stand_in.conclusion
    assert said.startswith("logit_margin orders the points")
    assert "first_order_margin does clearly better, with an AUROC of 0.99" in said
    assert said.endswith("for 11 passes a point instead of 1.")
    same = with_value(made, "first_order_margin", (poor * rng.lognormal(0.0, 0.1, 400)).tolist())
    assert "clearly better" not in worst_case(same, 0.03).stand_in.conclusion
    dear = better.long()
    dear.loc[dear["score"] == "first_order_margin", "passes"] = 200
    dear = replace(better, scores=pa.Table.from_pandas(dear, schema=SCORES, preserve_index=False))
    assert "clearly better" not in worst_case(dear, 0.03).stand_in.conclusion, "a third of the attacks' price"


def test_the_note_says_which_scores_are_drawn() -> None:
    scores = (
        "logit_margin",
        "entropy",
        "max_probability",
        "probability_margin",
        "feature_margin",
        "first_order_margin",
    )
    note = worst_case(make_table(points=60, scores=(*scores, "taylor", "input_margin"))).stand_in.note
    assert "Drawn is that score, and of the others the 5 with the largest tau, each by its best parameters" in note
    assert "3 further scores in the table only" in note
    assert "Drawn is" not in worst_case(make_table(points=60, scores=SCORED)).stand_in.note


def test_a_run_of_margins_alone_does_not_speak_of_noise(text: str) -> None:
    assert "Noise level" not in text
    noisy = render(summarize(make_table(points=30, scores=("moments", "input_margin"), sigmas=(0.1,))))
    assert "Noise level" in noisy


# The perturbation size


@pytest.mark.parametrize(
    ("middle", "norm", "bounds", "asked", "text", "reason"),
    [
        (0.03, "linf", UNIT, None, "8/255", "most benchmarks"),
        (0.6, "l2", UNIT, None, "0.5", "most benchmarks"),
        (0.001234, "linf", UNIT, None, "0.0012", "parts hardly any"),
        (77.7, "l2", UNIT, None, "78", "parts hardly any"),
        (0.03, "linf", [0.0, 255.0], None, "0.03", "do not range from 0 to 1"),
        (0.03, "linf", None, None, "0.03", "do not range from 0 to 1"),
        (0.03, "linf", UNIT, 0.0125, "0.0125", "asked for"),
        (float("inf"), "linf", UNIT, None, "8/255", "no distance is known"),
    ],
)
def test_the_perturbation_size_is_chosen_and_explained(
    middle: float, norm: str, bounds: Any, asked: float | None, text: str, reason: str
) -> None:
    spread = middle * np.linspace(0.5, 1.5, 101)
    chosen = choose_epsilon(pd.Series([*spread, float("inf"), float("nan")]), norm, bounds, asked)
    assert chosen.text == text
    assert reason in chosen.reason
    value = {"8/255": 8 / 255}.get(text)
    assert chosen.value == (float(text) if value is None else value)


def test_the_size_asked_for_reaches_the_page(table: Table, tmp_path: Path) -> None:
    written = write_report(table, tmp_path / "report.html", epsilon=0.0123)
    assert "Robust accuracy at Linf 0.0123" in written.read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match="epsilon"):
        write_report(table, tmp_path / "report.html", epsilon=-1.0)


def test_the_size_may_be_a_fraction(table: Table, tmp_path: Path) -> None:
    pages = [write_report(table, tmp_path / "report.html", size).read_bytes() for size in (8 / 255, "8/255")]
    assert pages[0] == pages[1]
    for asked in ("8/0", "some"):
        with pytest.raises(ParameterError, match="epsilon must be a positive number or a fraction as 8/255"):
            write_report(table, tmp_path / "report.html", epsilon=asked)
        with pytest.raises(ParameterError, match="epsilon must be a positive number"):
            worst_cases(table, asked)


# Hostile text


def test_hostile_text_is_shown_as_text() -> None:
    """Names of points and classes, image bytes, and labels of scores, in every place of the chapter."""
    made = make_table(points=60, scores=SCORED, classes=20, class_names=HOSTILE[:20])
    rows = made.points.to_pylist()
    for number, row in enumerate(rows):
        row["name"] = storable(HOSTILE[number % len(HOSTILE)])
        row["image"] = b"<svg onload=alert(1)>" if number % 2 else row["image"]
    found = [
        row | {"image": b"\x89PNG\r\n\x1a\n" + HOSTILE[0].encode(), "difference": None}
        for row in made.counterexamples.to_pylist()
    ]
    entries = [entry | {"label": HOSTILE[number]} for number, entry in enumerate(made.provenance["scores"])]
    page = page_of(
        Table(
            pa.Table.from_pylist(rows, schema=POINTS),
            made.scores,
            made.provenance | {"scores": entries},
            pa.Table.from_pylist(found, schema=made.counterexamples.schema),
        )
    )
    assert_inert(page)
    assert sum(tag == "svg" for tag, _ in page.elements) == len(WORST_CASE)
    assert HOSTILE[0] in page.text


def test_names_of_scores_cannot_become_markup() -> None:
    frame = pd.DataFrame({"title": HOSTILE[:6], "score": "x", "epsilon": 0.1, "auroc": 0.7, "chosen": 0.1})
    frame = frame.assign(auroc_low=0.6, auroc_high=0.8, main=True)
    drawing = draw("detection", frame)
    assert "<script" not in drawing
    assert "&lt;script&gt;" in drawing


def test_a_large_image_is_left_out(table: Table) -> None:
    rows = table.counterexamples.to_pylist()
    large = thumbnail(0, np.random.default_rng(0)) + bytes(1 << 18)
    heavy = [row | {"difference": large} for row in rows]
    made = replace(table, counterexamples=pa.Table.from_pylist(heavy, schema=table.counterexamples.schema))
    assert {one.images[2] for one in summarize(made).worst_case[0].counterexamples.points} == {""}
