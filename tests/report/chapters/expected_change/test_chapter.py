"""The chapter on the expected change: true to the analysis, inert, plain about what is missing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from helpers.change_runs import another, change_run, expected_change, other_run, without
from helpers.change_tables import LAPLACIAN, change, with_score
from helpers.pages import assert_inert, page_of, storable, text_of
from helpers.tables import HOSTILE, make_table

from brittle.analysis import (
    expected_change_points,
    label_flips,
    mean_absolute,
)
from brittle.analysis.mean_interval import ranged_interval
from brittle.report import open_contents
from brittle.report.chapters.expected_change import ExpectedChangeChapter
from brittle.report.chapters.other_runs import OtherRunsChapter
from brittle.report.wording import reach, short, signed, small_percent
from brittle.store.schemas import POINTS
from brittle.store.settings import Setting
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")

BOTH = (ExpectedChangeChapter(), OtherRunsChapter())
"""The chapters that read the scores which a test changes; other tests make pages of all chapters."""


def test_the_chapter_has_its_sections_and_figures(table: Table) -> None:
    page = page_of(table)
    assert_inert(page)
    start = page.text.index("L of the predicted probability says")
    titles = (
        "Does the Laplacian predict the change?",
        "Does the Laplacian tell what flips?",
        "The confident predictions that lose most",
        "How to repeat it",
    )
    places = [page.text.index(title, start) for title in titles]
    assert places == sorted(places)
    bare = page_of(without(without(table, "laplacian"), "probability_change"))
    drawings, before = (sum(each.get("class") == "drawing" for _, each in one.elements) for one in (page, bare))
    assert drawings - before == 3
    assert 'id="expected-change"' not in text_of(make_table(points=12, scores=("moments",)))


@pytest.mark.usefixtures("nothing_drawn")
def test_the_average_case_is_left_out_of_a_run_without_it() -> None:
    page = page_of(change_run(scores=("max_probability",)))
    assert_inert(page)
    assert "How robustness is distributed" not in page.text
    assert "Mean change of the predicted probability" in page.text
    assert "160 points, of which 160 got a Laplacian." in page.text
    bare = page_of(without(change_run(scores=("max_probability",)), "laplacian"))
    assert "160 points, of which 160 got a sampled change." in bare.text


def test_the_large_numbers_are_those_of_the_analysis(table: Table) -> None:
    mean, size, flips = expected_change(table).numbers
    sampled = expected_change_points(table, Setting(0.2, "gaussian"))["sampled_change"]
    interval = ranged_interval(sampled.to_numpy(dtype=np.float64), -1.0, 1.0, 0.99)
    assert mean.value == signed(interval.mean)
    assert mean.note.startswith(reach(interval.low, interval.high))
    assert f"a fall at {small_percent(float(np.mean(sampled.to_numpy() < -1e-4)))} of 160 points" in mean.note
    found = mean_absolute(table)
    assert size.value == short(found.mean, 3)
    assert reach(found.low, found.high, 3) in size.note
    row = label_flips(table).iloc[1]
    assert flips.value == f"{small_percent(row['lowest'])} vs {small_percent(row['highest'])}"
    assert f"{row['group']} predictions each" in flips.note
    assert ExpectedChangeChapter().brief(expected_change(table)).numbers == (mean,)


def test_the_setting_is_the_one_that_sampling_decides_most(table: Table) -> None:
    assert "it is sigma 0.2: there sampling decides for most points" in expected_change(table).setting
    curvature = expected_change_points(table)["laplacian"].to_numpy()
    undecided = with_score(table, "probability_change", 1e-6 * curvature, change(0.9), half=1.0)
    assert "it is sigma 0.2" in expected_change(undecided).setting
    assert "sigma 0.2" in expected_change(undecided).numbers[0].title
    exact = change_run(half=0.0)
    assert "it is sigma 0.2" in expected_change(exact).setting  # all are decided at both levels: the noisiest
    assert expected_change(change_run(sigmas=(0.05,))).setting == (
        "The change was sampled at sigma 0.05, with 100 draws per point."
    )


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (("probability_change",), ("This run holds no sampled change", "Mean |Laplacian|")),
        (("laplacian",), ("This run holds no Laplacian", "Mean change of", "This run lacks a Laplacian or flips")),
        (("monte_carlo",), ("This run lacks a Laplacian or flips",)),
        (("max_probability",), ("so its confident points are not known", "predictions of any confidence")),
        (("max_probability", "probability_change"), ("as no change was sampled. This run has no max_probability",)),
    ],
)
@pytest.mark.usefixtures("nothing_drawn")
def test_scores_that_are_missing(table: Table, gone: tuple[str, ...], words: tuple[str, ...]) -> None:
    for score in gone:
        table = without(table, score)
    page = page_of(table)
    assert_inert(page)
    for part in words:
        assert part in page.text, part


@pytest.mark.parametrize(("points", "half"), [(1, 1.0), (2, 0.0), (5, 0.0)])
def test_few_points(points: int, half: float) -> None:
    made = change_run(points=points, half=half, kinks=0)
    page = page_of(made, against={"other": other_run(3, points), "same": made}, chapters=BOTH)
    assert_inert(page)
    assert "nan" not in page.text.lower().replace("nan or infinite", "")
    assert "Mean change of the predicted probability" in page.text


def test_no_points() -> None:
    made = change_run(points=0)
    assert ExpectedChangeChapter().summarize(open_contents(made)) is None
    assert_inert(page_of(made, against={"other": made}))


def test_points_without_a_number(table: Table) -> None:
    curvature = next(column for column in table.columns if column.score == "laplacian").value.to_numpy().copy()
    curvature[::4] = math.nan
    made = with_score(without(table, "laplacian"), "laplacian", curvature, LAPLACIAN)
    page = page_of(made, chapters=BOTH)
    assert_inert(page)
    assert "Up to 40 points left out for lack of a number." in page.text
    assert len(expected_change(made).prediction.frame) == 2 * 120
    empty = with_score(without(table, "laplacian"), "laplacian", [math.nan] * 160, LAPLACIAN)
    assert "This run holds no Laplacian" in page_of(empty, chapters=BOTH).text


@pytest.mark.parametrize("value", [0.0, 1e-300, -1e300])
def test_laplacians_all_alike_are_drawn(table: Table, value: float) -> None:
    made = with_score(without(table, "laplacian"), "laplacian", [value] * 160, LAPLACIAN)
    page = page_of(made, chapters=BOTH)
    assert_inert(page)
    assert "svg" in page.tags


def test_an_infinite_laplacian_has_no_mean(table: Table) -> None:
    made = with_score(without(table, "laplacian"), "laplacian", [math.inf] + [1.0] * 159, LAPLACIAN)
    assert expected_change(made).numbers[1].value == "∞"
    assert_inert(page_of(made, against={"other": made, "another": table}, chapters=BOTH))


def test_radius_of_noise_on_a_sphere() -> None:
    made = with_score(change_run(sigmas=()), "probability_change", np.linspace(-1e-3, 1e-3, 160),
                      change(0.5 / math.sqrt(3072), noise="sphere"))  # fmt: skip
    assert "sigma 0.00902, sphere (radius 0.5)" in expected_change(made).setting


@pytest.mark.usefixtures("nothing_drawn")
def test_runs_without_images_or_labels_name_the_points() -> None:
    made = change_run(images=False, labels=False)
    page = page_of(made)
    assert_inert(page)
    assert "The run holds no images, so the points are named." in expected_change(made).drops.note
    assert not any(one.wrong for one in expected_change(made).drops.points)


def test_hostile_text_is_shown_as_text() -> None:
    """Names of points, classes, noise families, runs and models in every place of both chapters."""
    made = change_run(points=40, classes=20, class_names=HOSTILE[:20])
    for place in (2, 3):
        parameters = change(0.3, noise=storable(HOSTILE[place]))
        made = with_score(made, "probability_change", np.linspace(-0.1, 0.1, 40), parameters)
    rows = made.points.to_pylist()
    for number, row in enumerate(rows):
        row["name"] = storable(HOSTILE[number % len(HOSTILE)])
        row["image"] = b"<svg onload=alert(1)>" if number % 2 else row["image"]
    entries = tuple(
        replace(entry, label=storable(f"{HOSTILE[number % 5]}{number}"), title=HOSTILE[number % 7])
        for number, entry in enumerate(made.record.scores)
    )
    made = replace(made, points=pa.Table.from_pylist(rows, schema=POINTS), record=replace(made.record, scores=entries))
    other = another(made, spec=HOSTILE[2], sha256=HOSTILE[0])
    for names, chapters in ((HOSTILE[::4], BOTH), (HOSTILE[:2], BOTH[1:])):
        page = page_of(made, against=dict.fromkeys(names, other), chapters=chapters)
        assert_inert(page)
        assert HOSTILE[0] in page.text
