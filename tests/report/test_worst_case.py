"""The worst-case chapter: there when a run has input margins, true to them, plain about what they do not show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.margin_runs import LABEL, SCORED, first_case, margins, with_status
from helpers.pages import assert_inert, page_of, text_of, values_of
from helpers.tables import HOSTILE, make_table, thumbnail, with_value

from brittle.analysis import worst_case_table
from brittle.analysis.detection import GOOD_AUROC
from brittle.errors import ParameterError
from brittle.report import open_contents, write_report
from brittle.report.chapters.worst_case import CHAPTER, FRAGILE_SHOWN, choose_epsilon, detection_chart, measured
from brittle.report.figure import Figure, draw
from brittle.store.schemas import POINTS
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")

UNIT = (0.0, 1.0)


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(points=240, scores=SCORED, norms=("linf", "l2"), broken=3, not_found=4, masked=6, certified=True)


@pytest.mark.parametrize(
    ("middle", "norm", "bounds", "text", "reason"),
    [
        (0.03, "linf", UNIT, "8/255", "most benchmarks"),
        (0.001234, "linf", UNIT, "0.0012", "parts hardly any"),
        (77.7, "l2", UNIT, "78", "parts hardly any"),
        (0.03, "linf", (-1.0, 1.0), "0.03", "do not range from 0 to 1"),
        (float("inf"), "linf", UNIT, "8/255", "no distance is known"),
    ],
)
def test_the_perturbation_size_is_chosen_and_explained(
    middle: float, norm: str, bounds: tuple[float, float], text: str, reason: str
) -> None:
    spread = middle * np.linspace(0.5, 1.5, 101)
    chosen = choose_epsilon(pd.Series([*spread, float("inf"), float("nan")]), norm, bounds)
    assert chosen.text == text
    assert reason in chosen.reason
    assert chosen.value == (8 / 255 if text == "8/255" else float(text))


def test_every_section_is_filled_for_every_norm(table: Table) -> None:
    page = page_of(table)
    assert_inert(page)
    assert sum(each.get("class") == "drawing" for _, each in page.elements) == 2 * 2
    assert sum(tag == "img" for tag, _ in page.elements) == 2 * 3 * FRAGILE_SHOWN
    for words in (
        "240 points, of which 237 got an input margin",
        "epsilon = 8/255 = 0.0314: the size that most benchmarks judge at",
        "Certified robust accuracy at L2 0.5",
        "The margins of 6 points of 237 are masked",
        "3 points without a margin left out",
        "By all 237 distances",
        "By 59 distances and every logit_margin",
        "The 12 nearest of",
    ):
        assert words in page.text, words
    assert "p_robust" not in page.text
    assert "Noise level" not in page.text


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"labels": False}, ("This run holds no label", "as the data carry no labels", "can flip")),
        ({"images": False}, ("The run holds no images, so the points are named", "test/0")),
        ({"scores": ("input_margin",)}, ("This run holds no score beside the input margin",)),
        ({"points": 39}, ("too few to set a subset apart",)),
    ],
)
@pytest.mark.usefixtures("nothing_drawn")
def test_what_a_run_lacks_is_said(recipe: dict[str, Any], words: tuple[str, ...]) -> None:
    page = page_of(make_table(**{"points": 60, "scores": SCORED} | recipe))
    assert_inert(page)
    assert [part for part in words if part not in page.text] == []


@pytest.mark.parametrize("value", [0.0, 0.01, float("inf")])
def test_margins_all_alike_are_drawn(value: float) -> None:
    page = page_of(with_value(make_table(points=50, scores=SCORED), LABEL, [value] * 50), chapters=(CHAPTER,))
    assert_inert(page)
    assert "svg" in page.tags


@pytest.mark.parametrize(
    "recipe",
    [{"points": 0}, {"points": 8, "broken": 8}, {"points": 12, "scores": ("moments",), "sigmas": (0.1,)}],
    ids=str,
)
def test_a_run_without_margins_has_no_chapter(recipe: dict[str, Any]) -> None:
    assert CHAPTER.summarize(open_contents(make_table(**{"scores": SCORED} | recipe))) is None


def test_norms_that_are_not_known_are_left_out() -> None:
    """Names that only a run of another version could have."""
    made = make_table(points=12, scores=SCORED, norms=("linf", "l2"))
    rows = made.long()
    rows["parameters"] = rows["parameters"].str.replace("linf", "<script>")
    entries = tuple(
        replace(one, parameters={"norm": "<script>"}) if one.parameters == {"norm": "linf"} else one
        for one in made.record.scores
    )
    scores = pa.Table.from_pandas(rows, schema=made.scores.schema, preserve_index=False)
    other = replace(made, scores=scores, record=replace(made.record, scores=entries))
    assert [case["title"][:2] for case in values_of(CHAPTER, other)["cases"]] == ["L2"]


@pytest.mark.usefixtures("nothing_drawn")
def test_the_size_asked_for_may_be_a_fraction(table: Table, tmp_path: Path) -> None:
    number, typed = (text_of(table, size) for size in (2 / 255, "2/255"))
    assert "Robust accuracy at Linf 2/255" in typed
    assert "epsilon = 2/255 = 0.00784: the size that was asked for" in typed
    assert typed.replace("2/255 = 0.00784", "0.00784").replace("2/255", "0.00784") == number
    for asked in ("8/0", "some", -1.0):
        with pytest.raises(ParameterError, match="epsilon"):
            write_report(table, tmp_path / "report.html", epsilon=asked)


def test_a_warning_stands_where_margins_are_masked_or_certificates_refuted() -> None:
    made = make_table(points=20, scores=SCORED)
    assert first_case(made)["warning"] == ""
    assert first_case(with_status(made, "masked"))["warning"].startswith("The margins of 20 points of 20")
    assert first_case(with_status(made, "refuted"))["warning"].startswith("The certificates of 20 points")


def test_the_curves_are_the_robust_accuracy_at_every_epsilon(table: Table) -> None:
    frame = first_case(table)["figure"].frame
    distance, correct = margins(table)[:240], np.array(table.points["correct"].to_pylist(), dtype=np.float64)
    low = table.long().query("score == 'input_margin'")["low"].to_numpy()[:240]
    assert set(frame["kind"]) == {"all", "correct", "certified"}
    kept = ~np.isnan(distance)
    for kind, reach, right in (
        ("all", distance, np.ones(240)),
        ("correct", distance, correct),
        ("certified", np.nan_to_num(low), correct),
    ):
        curve = frame[frame["kind"] == kind]
        assert (np.diff(curve["share"]) <= 0.0).all()
        assert (curve["low"] <= curve["share"]).all()
        assert (curve["share"] <= curve["high"]).all()
        known = kept & ~np.isnan(right)
        for row in curve.iloc[[0, 20, 77, 199]].to_dict("records"):
            assert row["share"] == np.mean((reach[known] > row["epsilon"]) & (right[known] == 1.0))
    assert "certified" not in set(first_case(make_table(points=20, scores=SCORED))["figure"].frame["kind"])


@pytest.mark.parametrize("labels", [True, False])
def test_what_is_certified_bounds_what_the_attacks_left(labels: bool) -> None:
    """The two ends of the bracket are shares of the same points, also where many predictions are wrong."""
    made = make_table(points=200, scores=SCORED, certified=True, labels=labels)
    right = np.arange(200) % 2 == 0 if labels else np.ones(200, dtype=bool)
    if labels:
        points = made.points.to_pandas().assign(correct=right)
        made = replace(made, points=pa.Table.from_pandas(points, schema=POINTS, preserve_index=False))
    case = first_case(made, 0.01)
    curve = case["figure"].frame.pivot(index="epsilon", columns="kind", values="share")
    assert (curve["certified"] <= curve["correct" if labels else "all"]).all()
    low = made.long().query("score == 'input_margin'")["low"].to_numpy()
    proven, attacked = np.mean((low > 0.01) & right), np.mean((margins(made) > 0.01) & right)
    number = case["numbers"][-1]
    assert number.title == f"Certified {'robust accuracy' if labels else 'share'} at Linf 0.01"
    assert number.value == f"{100 * proven:.0f}%"
    assert f"between this {100 * proven:.0f}% and the {100 * attacked:.0f}% that" in number.note
    assert proven < attacked


def test_the_verdict_follows_the_score(table: Table) -> None:
    distance = margins(table)[:240]
    finite = np.where(np.isfinite(distance), distance, 9.0)
    for sign, words in ((1.0, "it may stand in"), (-1.0, "it misses too many")):
        made = with_value(table, "logit_margin", (sign * finite).tolist())
        assert words in first_case(made)["stand_in"]["conclusion"]
    few = make_table(points=12, scores=SCORED)
    row = worst_case_table(few, 0.03, "linf").query("score == 'logit_margin'").iloc[0]
    assert row["auroc_low"] < GOOD_AUROC <= row["auroc_high"]
    assert "do not decide" in first_case(few, 0.03)["stand_in"]["conclusion"]


def test_a_rate_that_nothing_is_known_of_is_no_number() -> None:
    """Of three robust points, the false positive rate may be anything."""
    row = {"fpr95": 0.0, "fpr95_low": 0.0, "fpr95_high": 1.0, "auroc": 0.9, "auroc_low": 0.8, "auroc_high": 0.95}
    assert measured(row, "fpr95") == "open\n0.000 to 1.000"
    assert measured(row, "auroc") == "0.900\n0.800 to 0.950"


def test_curves_near_the_best_value_stay_apart_and_names_are_text() -> None:
    """AUROCs of 0.99 and 0.999 are a tenth of the height apart or more, and the axis is labelled with AUROCs."""
    frame = pd.DataFrame({"title": HOSTILE[:2], "place": [1, 2], "epsilon": [0.1, 0.1], "auroc": [0.99, 0.999]})
    frame = pd.concat([frame, frame.assign(epsilon=0.2)]).assign(auroc_low=0.9, auroc_high=1.0, main=False, chosen=0.1)
    drawing = draw(Figure(detection_chart, frame), "detection")
    places = re.finditer(r'aria-hidden|transform="translate\([\d.]+,([\d.]+)\)" d="M', drawing)
    heights = {round(float(one[1]), 1) for one in places if one[1]}
    assert max(heights) - min(heights) > 24.0
    assert ">0.99<" in drawing
    assert "<script" not in drawing


def test_the_gallery_shows_the_nearest_correct_points_first(table: Table) -> None:
    wrong = np.array([correct is False for correct in table.points["correct"].to_pylist()])
    distance = margins(table)[:240] * np.where(wrong, 1e-6, 1.0)
    made = with_value(table, LABEL, distance.tolist())
    shown = first_case(made)["points"]
    points = made.points.to_pandas().assign(distance=distance)
    nearest = points[points["correct"].eq(True)].nsmallest(FRAGILE_SHOWN, "distance")
    assert not set(nearest["point"]) & set(points.nsmallest(FRAGILE_SHOWN, "distance")["point"])
    assert [one["name"] for one in shown] == nearest["name"].tolist()
    assert all(one["predicted"] != one["other"] for one in shown)
    assert len({image for one in shown for image, _ in one["images"]}) == 3 * FRAGILE_SHOWN


def test_counterexamples_of_another_score_and_large_images_are_not_shown(table: Table) -> None:
    rows, schema = table.counterexamples.to_pylist(), table.counterexamples.schema
    others = [row | {"parameters": '{"norm":"linf","clip":false}'} for row in rows]
    foreign = replace(table, counterexamples=pa.Table.from_pylist(others, schema=schema))
    assert first_case(foreign)["points"] == []
    large = thumbnail(0, np.random.default_rng(0)) + bytes(1 << 18)
    heavy = [row | {"difference": large} for row in rows]
    made = replace(table, counterexamples=pa.Table.from_pylist(heavy, schema=schema))
    assert {len(one["images"]) for one in first_case(made)["points"]} == {2}
