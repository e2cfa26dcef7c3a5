"""The chapters on the expected change and on other runs: true to the analysis, inert, plain about what is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from brittle.report.charts import EXPECTED_CHANGE
from brittle.report.charts_expected_change import KINDS
from brittle.report.expected_change import DROPS_LISTED, DROPS_SHOWN, KINK, OPEN, OTHER, SAME
from brittle.report.summary import ExpectedChange, OtherRuns
from helpers.pages import Page, assert_inert, page_of, storable
from helpers.tables import HOSTILE, make_table
from test_expected_change_analysis import LAPLACIAN, change, with_score

from brittle.analysis import (
    Setting,
    columns,
    compare,
    expected_change_points,
    expected_change_table,
    format_comparison,
    format_expected_change,
    label_flips,
    mean_absolute,
    mean_interval,
)
from brittle.analysis.location import skewed_mean
from brittle.cli import main
from brittle.errors import DataError
from brittle.report import render, summarize, write_report
from brittle.report.charts_symlog import DECADES, TICKS, symlog
from brittle.report.wording import reach, short, signed, small_percent
from brittle.store.schemas import POINTS
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def change_run(
    points: int = 160,
    sigmas: tuple[float, ...] = (0.05, 0.2),
    factor: float = 1.0,
    half: float = 1e-4,
    seed: int = 0,
    scores: tuple[str, ...] = ("monte_carlo", "max_probability"),
    kinks: int = 3,
    **recipe: Any,
) -> Table:
    """A run with a Laplacian, and sampled changes that are `factor` times what it predicts."""
    table = make_table(points=points, scores=scores, sigmas=sigmas, budgets=(50,), seed=seed, **recipe)
    rng = np.random.default_rng([seed, 7])
    curvature = rng.standard_t(3, points) - 0.5
    status = ["kink"] * min(kinks, points) + ["ok"] * max(points - kinks, 0)
    table = with_score(table, "laplacian", curvature, LAPLACIAN, status=status)
    for sigma in sigmas:
        sampled = factor * sigma**2 / 2 * curvature
        table = with_score(table, "probability_change", sampled, change(sigma), half=half)
    return table


def chapter(table: Table) -> ExpectedChange:
    found = summarize(table).expected_change
    assert found is not None
    return found


def beside(table: Table, against: Mapping[str, Table]) -> OtherRuns:
    found = summarize(table, against=against).other_runs
    assert found is not None
    return found


def without(table: Table, score: str) -> Table:
    """`table` without one score."""
    frame = table.long()
    entries = [entry for entry in table.provenance["scores"] if entry["score"] != score]
    kept = pa.Table.from_pandas(frame[frame["score"] != score], schema=table.scores.schema, preserve_index=False)
    return replace(table, scores=kept, provenance=table.provenance | {"scores": entries})


def other_run(seed: int = 1, points: int = 160) -> Table:
    """Another run over the points of `change_run()`, with their labels."""
    names, other = ["label", "correct"], change_run(points, seed=seed)
    labelled = change_run(points).points.select(names).to_pylist()
    rows = [row | label for row, label in zip(other.points.to_pylist(), labelled, strict=True)]
    return replace(other, points=pa.Table.from_pylist(rows, schema=POINTS))


def another(table: Table, **model: Any) -> Table:
    """`table` as another model would have recorded it."""
    return replace(table, provenance=table.provenance | {"model": table.provenance["model"] | model})


@pytest.fixture(scope="module")
def table() -> Table:
    return change_run()


@pytest.fixture(scope="module")
def text(table: Table) -> str:
    return render(summarize(table, against={"other": other_run()}))


# ---------------------------------------------------------------------------------------------------------------------
# The page
# ---------------------------------------------------------------------------------------------------------------------


def test_the_chapter_has_its_sections_and_figures(table: Table) -> None:
    page = page_of(table)
    assert_inert(page)
    start = page.text.index("Expected change The Laplacian L")
    titles = (
        "Does the Laplacian predict the change?",
        "Does the Laplacian tell what flips?",
        "The confident predictions that lose most",
        "How to repeat it",
    )
    places = [page.text.index(title, start) for title in titles]
    assert places == sorted(places)
    bare = page_of(without(without(table, "laplacian"), "probability_change"))
    drawings, before = (sum(tag == "svg" for tag, _ in one.elements) for one in (page, bare))
    assert drawings - before == len(EXPECTED_CHANGE)
    assert 'id="expected-change"' not in render(summarize(make_table(points=12, scores=("moments",))))


def test_both_chapters_are_inert_and_name_no_address(text: str) -> None:
    page = Page(text)
    assert_inert(page)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    bare = re.sub(r"base64,[\w+/=]+", "", text.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    assert re.findall(r"(?i)(?:https?:|ftp:|//[a-z]|@import|javascript:|<script)", bare) == []


def test_the_same_tables_give_the_same_bytes(table: Table, text: str, tmp_path: Path) -> None:
    def shuffled(one: Table) -> Table:
        return replace(one, scores=one.scores.take(list(reversed(range(len(one.scores))))))

    written = write_report(shuffled(table), tmp_path / "report.html", against={"other": shuffled(other_run())})
    assert written.read_bytes() == text.encode()


def test_the_average_case_is_left_out_of_a_run_without_it() -> None:
    page = page_of(change_run(scores=("max_probability",)))
    assert_inert(page)
    assert "How robustness is distributed" not in page.text
    assert "Mean change of the predicted probability" in page.text
    assert "160 points, of which 160 got a Laplacian." in page.text
    bare = page_of(without(change_run(scores=("max_probability",)), "laplacian"))
    assert "160 points, of which 160 got a sampled change." in bare.text


# ---------------------------------------------------------------------------------------------------------------------
# Every number is the analysis's
# ---------------------------------------------------------------------------------------------------------------------


def test_the_large_numbers_are_those_of_the_analysis(table: Table) -> None:
    mean, size, flips = chapter(table).numbers
    sampled = expected_change_points(table, Setting(0.2, "gaussian"))["sampled_change"]
    interval = skewed_mean(sampled, 0.99)
    assert mean.value == signed(interval.mean)
    assert mean.note.startswith(reach(interval.low, interval.high))
    assert f"a fall at {small_percent(float(np.mean(sampled.to_numpy() < -1e-4)))} of 160 points" in mean.note
    found = mean_absolute(table)
    assert size.value == short(found.mean, 3)
    assert reach(found.low, found.high, 3) in size.note
    row = label_flips(table).iloc[1]
    assert flips.value == f"{small_percent(row['lowest'])} vs {small_percent(row['highest'])}"
    assert f"{row['group']} predictions each" in flips.note
    assert summarize(table).headline.numbers[-1] == mean


def test_the_setting_is_the_one_that_sampling_decides_most(table: Table) -> None:
    assert "it is sigma 0.2: there sampling decides for most points" in chapter(table).setting
    curvature = expected_change_points(table)["laplacian"].to_numpy()
    undecided = with_score(table, "probability_change", 1e-6 * curvature, change(0.9), half=1.0)
    assert "it is sigma 0.2" in chapter(undecided).setting
    assert "sigma 0.2" in chapter(undecided).numbers[0].title
    exact = change_run(half=0.0)
    assert "it is sigma 0.2" in chapter(exact).setting  # all are decided at both levels: the noisiest
    assert chapter(change_run(sigmas=(0.05,))).setting == (
        "The change was sampled at sigma 0.05, with 100 draws per point."
    )


def test_the_table_holds_the_frame(table: Table) -> None:
    frame = expected_change_table(table)
    rows = chapter(table).prediction.grid.rows
    assert [row[0] for row in rows] == ["sigma 0.05", "sigma 0.2"]
    for cells, row in zip(rows, frame.to_dict("records"), strict=True):
        assert cells[1] == f"{row['points']:,}"
        assert cells[2].split("\n")[0] == small_percent(row["agreement"])
        assert cells[2].endswith(f"of {row['decided']:,}")
        assert cells[3].split("\n")[0] == f"{row['spearman']:.3f}"
        assert cells[4] == f"{signed(row['slope'], 3)}\n{reach(row['slope_low'], row['slope_high'], 3)}"
        assert cells[5] == f"{signed(row['ratio'], 3)}\n{reach(row['ratio_low'], row['ratio_high'], 3)}"


def test_the_figure_holds_the_points(table: Table) -> None:
    frame = chapter(table).prediction.frame
    for sigma, drawn in frame.groupby("setting"):
        points = expected_change_points(table, Setting(float(str(sigma).split()[1]), "gaussian"))
        assert drawn["predicted"].tolist() == points["predicted_change"].tolist()
        assert drawn["sampled"].tolist() == points["sampled_change"].tolist()
        assert drawn["low"].tolist() == points["sampled_low"].tolist()
        assert (drawn["kind"] == KINK).tolist() == points["kink"].tolist()
    assert set(frame["kind"]) <= set(KINDS)


def test_kinds_of_points() -> None:
    turned = chapter(change_run(factor=-1.0)).prediction.frame
    assert {OTHER, OPEN, KINK} == set(turned["kind"])
    points = expected_change_points(change_run(factor=-1.0), Setting(0.2, "gaussian"))
    marked = (turned["kind"] == OTHER)[turned["setting"] == "sigma 0.2"].tolist()
    assert marked == (points["sign_disagrees"] & ~points["kink"]).tolist()
    assert set(chapter(change_run(half=0.0, kinks=0)).prediction.frame["kind"]) == {SAME}


def test_kinks_are_counted(table: Table) -> None:
    assert "3 points at a kink of the network" in chapter(table).prediction.note
    assert "kink" not in chapter(change_run(kinks=0)).prediction.note


def test_flips_are_those_of_the_analysis(table: Table) -> None:
    frame, found = label_flips(table), chapter(table).flips
    for row, cells, others in zip(frame.to_dict("records"), found.by_laplacian.rows, found.by_flips.rows, strict=True):
        assert cells[1:3] == (f"{row['points']}", f"{row['group']}")
        assert [cell.split("\n")[0] for cell in cells[3:5]] == [
            small_percent(row[name]) for name in ("lowest", "highest")
        ]
        assert others[1:3] == (f"{row['flipped']}", f"{row['never_flipped']}")
        assert others[3].split("\n")[0] == signed(row["laplacian_flipped"], 3)
        assert others[4].split("\n")[0] == signed(row["laplacian_never"], 3)
    drawn = found.shares.pivot(index="setting", columns="group", values="value")
    assert drawn["lowest Laplacian"].tolist() == frame["lowest"].tolist()
    assert drawn["highest Laplacian"].tolist() == frame["highest"].tolist()


def test_the_largest_drops_among_the_confident(table: Table) -> None:
    points = expected_change_points(table, Setting(0.2, "gaussian")).set_index("point")
    sure = next(column for column in columns(table) if column.score == "max_probability").value
    falling = points.loc[(sure >= 0.8) & (points["sampled_change"] < 0.0)].sort_values(by="sampled_change")
    found = chapter(table).drops
    assert len(falling) > DROPS_SHOWN
    assert [one.change for one in found.points] == [signed(v) for v in falling["sampled_change"][:DROPS_SHOWN]]
    assert [row[0] for row in found.grid.rows] == [str(row) for row in falling["row"][:DROPS_LISTED]]
    assert f"The {DROPS_SHOWN} lowest of {len(falling)} predictions" in found.note
    assert all(one.image for one in found.points)
    labels = dict(zip(table.points["name"].to_pylist(), table.points["correct"].to_pylist(), strict=True))
    assert [one.wrong for one in found.points] == [not labels[one.name] for one in found.points]


def test_without_samples_the_lowest_laplacians_are_shown(table: Table) -> None:
    bare = without(table, "probability_change")
    sure = next(column for column in columns(bare) if column.score == "max_probability").value
    curvature = next(column for column in columns(bare) if column.score == "laplacian").value[sure >= 0.8]
    found = chapter(bare).drops
    assert [one.change for one in found.points] == [f"L {signed(v)}" for v in sorted(curvature)[:DROPS_SHOWN]]
    assert "as no change was sampled" in found.note


# ---------------------------------------------------------------------------------------------------------------------
# What it means for this model
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({}, "Here the Laplacian can stand in for sampling."),
        ({"factor": 30.0}, "the typical change is 30 times the predicted. Read the direction from the Laplacian"),
        ({"factor": 0.05}, "the typical change is 20 times smaller than predicted. Read the direction"),
        ({"factor": -1.0}, "not in the predicted direction. Trust the sampled change here, not the Laplacian."),
        ({"points": 6, "kinks": 0}, "These points do not decide whether the Laplacian can be trusted here."),
        ({"half": 9.0}, "sampling decides the sign of the change at no point"),
    ],
)
def test_the_conclusion_follows_the_numbers(recipe: dict[str, Any], words: str) -> None:
    assert words in chapter(change_run(**recipe)).prediction.conclusion


def test_large_changes_that_fall_short_are_told() -> None:
    """Changes that saturate: the typical one is predicted, the largest are not."""
    table = change_run(sigmas=(), points=400)
    curvature = next(column for column in columns(table) if column.score == "laplacian").value.to_numpy()
    large = np.where(np.arange(400) < 30, 1e3 * np.sign(curvature), curvature)
    table = with_score(without(table, "laplacian"), "laplacian", large, LAPLACIAN)
    sampled = np.clip(0.02 * large, -0.3, 0.3)
    found = chapter(with_score(table, "probability_change", sampled, change(0.2))).prediction.conclusion
    assert re.search(r"about as large as predicted \(1\.0 times\), but the largest are 67 times smaller", found)
    assert found.endswith("Read the direction from the Laplacian, the size from sampling.")


def test_every_setting_is_read_in_words(table: Table) -> None:
    found = chapter(table).prediction
    assert [fact.term for fact in found.readings] == ["sigma 0.05", "sigma 0.2"]
    assert found.conclusion == f"At sigma 0.2: {found.readings[1].text}".replace(": The", ": the")
    assert chapter(change_run(sigmas=(0.1,))).prediction.readings == ()


def test_the_verdict_on_flips_follows_the_test() -> None:
    rng = np.random.default_rng(0)
    table = change_run(scores=("max_probability",), points=200)
    curvature = next(column for column in columns(table) if column.score == "laplacian").value.to_numpy()
    for flips, words in (
        (np.where(curvature < np.median(curvature), 0.4, 0.0), "a low Laplacian tells which"),
        (np.where(rng.random(200) < 0.5, 0.4, 0.0), "do not show that a low Laplacian tells"),
        (np.zeros(200), "do not flip there, so nothing can be told"),
    ):
        made = with_score(table, "monte_carlo", flips, {"sigma": 0.2, "draws": 50}, quantity="flip_probability")
        assert words in chapter(made).flips.conclusion


def test_where_nothing_flips_the_noisiest_level_is_told() -> None:
    made = change_run(scores=("max_probability",), half=0.0)
    made = with_score(made, "probability_change", np.zeros(160), change(0.9))  # decides nothing, so 0.2 is chosen
    for sigma, flips in ((0.2, 0.0), (0.9, 0.3)):
        made = with_score(
            made, "monte_carlo", [flips] * 160, {"sigma": sigma, "draws": 50}, quantity="flip_probability"
        )
    assert "it is sigma 0.2" in chapter(made).setting
    assert chapter(made).flips.conclusion.startswith("At sigma 0.9, the 50 confident")
    assert chapter(made).numbers[2].value == "30% vs 30%"


# ---------------------------------------------------------------------------------------------------------------------
# What a run may lack
# ---------------------------------------------------------------------------------------------------------------------


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
def test_scores_that_are_missing(table: Table, gone: tuple[str, ...], words: tuple[str, ...]) -> None:
    for score in gone:
        table = without(table, score)
    page = page_of(table)
    assert_inert(page)
    for part in words:
        assert part in page.text, part


@pytest.mark.parametrize("points", [1, 2, 5])
@pytest.mark.parametrize("half", [0.0, 1.0])
def test_few_points(points: int, half: float) -> None:
    made = change_run(points=points, half=half, kinks=0)
    page = Page(render(summarize(made, against={"other": other_run(3, points), "same": made})))
    assert_inert(page)
    assert "nan" not in page.text.lower().replace("nan or infinite", "")
    assert "Mean change of the predicted probability" in page.text


def test_no_points() -> None:
    made = change_run(points=0)
    assert summarize(made).expected_change is None
    assert_inert(Page(render(summarize(made, against={"other": made}))))


def test_points_without_a_number(table: Table) -> None:
    curvature = next(column for column in columns(table) if column.score == "laplacian").value.to_numpy().copy()
    curvature[::4] = math.nan
    made = with_score(without(table, "laplacian"), "laplacian", curvature, LAPLACIAN)
    page = page_of(made)
    assert_inert(page)
    assert "Up to 40 points left out for lack of a number." in page.text
    assert len(chapter(made).prediction.frame) == 2 * 120
    empty = with_score(without(table, "laplacian"), "laplacian", [math.nan] * 160, LAPLACIAN)
    assert "This run holds no Laplacian" in page_of(empty).text


@pytest.mark.parametrize("value", [0.0, 1e-300, -1e300])
def test_laplacians_all_alike_are_drawn(table: Table, value: float) -> None:
    made = with_score(without(table, "laplacian"), "laplacian", [value] * 160, LAPLACIAN)
    assert_inert(page_of(made))


def test_an_infinite_laplacian_has_no_mean(table: Table) -> None:
    made = with_score(without(table, "laplacian"), "laplacian", [math.inf] + [1.0] * 159, LAPLACIAN)
    assert chapter(made).numbers[1].value == "∞"
    assert_inert(Page(render(summarize(made, against={"other": made, "another": table}))))


def test_noise_that_is_not_alike_in_all_directions(table: Table) -> None:
    made = with_score(without(table, "probability_change"), "probability_change", [0.01] * 160,
                      change(0.1, noise="salt"))  # fmt: skip
    found = chapter(made)
    assert "not alike in all directions" in found.prediction.conclusion
    assert found.prediction.frame.empty
    assert_inert(page_of(made))
    blurred = with_score(table, "probability_change", [0.01] * 160, change(0.1, noise="salt"), half=1.0)
    both = chapter(blurred).prediction
    assert [("not alike" in fact.text) for fact in both.readings] == [False, True, False]
    assert "can stand in for sampling" in both.conclusion


def test_confident_points_at_one_noise_level_only(table: Table) -> None:
    """Groups at 0.05 alone: elsewhere one point flipped or not, and the rest is unknown."""
    lonely = [0.5] + [math.nan] * 159
    made = with_score(table, "monte_carlo", lonely, {"sigma": 0.9, "draws": 9}, quantity="flip_probability")
    found = chapter(made).flips
    assert len(found.by_laplacian.rows) == 2
    assert len(found.by_flips.rows) == 3
    assert found.conclusion.startswith("At sigma 0.2, the")
    assert_inert(page_of(made))


def test_radius_of_noise_on_a_sphere() -> None:
    made = with_score(change_run(sigmas=()), "probability_change", np.linspace(-1e-3, 1e-3, 160),
                      change(0.5 / math.sqrt(3072), noise="sphere"))  # fmt: skip
    assert "sigma 0.00902, sphere (radius 0.5)" in chapter(made).setting


def test_runs_without_images_or_labels_name_the_points() -> None:
    made = change_run(images=False, labels=False)
    page = page_of(made)
    assert_inert(page)
    assert "The run holds no images, so the points are named." in chapter(made).drops.note
    assert not any(one.wrong for one in chapter(made).drops.points)


def test_many_noise_levels_are_thinned_out() -> None:
    found = chapter(change_run(points=40, sigmas=tuple(0.01 * k for k in range(1, 8)), kinks=0))
    assert len(found.prediction.grid.rows) == 7
    assert len(set(found.prediction.frame["setting"])) == 4
    assert "3 further noise levels in the table only" in found.prediction.note


# ---------------------------------------------------------------------------------------------------------------------
# Hostile text
# ---------------------------------------------------------------------------------------------------------------------


def test_hostile_text_is_shown_as_text() -> None:
    """Names of points, classes, noise families, runs and models in every place of both chapters."""
    made = change_run(points=120, classes=20, class_names=HOSTILE[:20])
    for place in (2, 3):
        parameters = change(0.3, noise=storable(HOSTILE[place]))
        made = with_score(made, "probability_change", np.linspace(-0.1, 0.1, 120), parameters)
    rows = made.points.to_pylist()
    for number, row in enumerate(rows):
        row["name"] = storable(HOSTILE[number % len(HOSTILE)])
        row["image"] = b"<svg onload=alert(1)>" if number % 2 else row["image"]
    entries = [
        entry | {"label": storable(f"{HOSTILE[number % 5]}{number}"), "title": HOSTILE[number % 7]}
        for number, entry in enumerate(made.provenance["scores"])
    ]
    made = replace(
        made, points=pa.Table.from_pylist(rows, schema=POINTS), provenance=made.provenance | {"scores": entries}
    )
    other = another(made, spec=HOSTILE[2], sha256=HOSTILE[0])
    for names in (HOSTILE, HOSTILE[:2]):
        page = Page(render(summarize(made, against=dict.fromkeys(names, other))))
        assert_inert(page)
        assert HOSTILE[0] in page.text


# ---------------------------------------------------------------------------------------------------------------------
# Other runs
# ---------------------------------------------------------------------------------------------------------------------


def test_a_run_beside_another_is_the_comparison(table: Table) -> None:
    (run,) = beside(table, {"other": other_run()}).runs
    frame = compare(table, other_run())
    assert len(run.grid.rows) == len(frame)
    for cells, row in zip(run.grid.rows, frame.to_dict("records"), strict=True):
        assert cells[1] == f"{row['points']:,}"
        bounded = row["quantity"] in ("accuracy", "probability", "flip_probability")
        assert cells[2].split("\n")[0] == (f"{row['first']:.3f}" if bounded else signed(row["first"]))
        assert cells[4] == (f"{signed(row['difference'])}\n{reach(row['difference_low'], row['difference_high'])}")
    assert [number.title for number in run.numbers] == [
        "Accuracy, here vs there",
        "Mean |Laplacian|, here vs there",
        "Mean flip probability, sigma 0.2, here vs there",
    ]
    assert run.differences["value"].tolist() == [
        row["difference"] for row in frame.to_dict("records") if row["quantity"] != "laplacian"
    ]


def test_both_runs_are_drawn_by_their_quantiles(table: Table) -> None:
    other = other_run()
    (run,) = beside(table, {"other": other}).runs
    assert [panel.title for panel in run.spreads] == ["|Laplacian|", "flip probability, sigma 0.2"]
    for drawn, one in zip(run.spreads[0].frame.to_dict("records"), (table, other), strict=True):
        values = np.abs(next(column for column in columns(one) if column.score == "laplacian").value)
        assert drawn["q50"] == pytest.approx(np.median(values))
        assert drawn["q05"] == pytest.approx(np.quantile(values, 0.05))


def test_what_differs_is_said(table: Table) -> None:
    def facts(other: Table) -> dict[str, str]:
        return {fact.term: fact.text for fact in beside(table, {"other": other}).runs[0].facts}

    assert facts(table)["Model"].startswith("The same, models:cnn (9f86d081884")
    assert facts(table)["Points"] == "160 points in both, paired by id."
    assert facts(another(table, sha256="abc"))["Model"].startswith("Another one, models:cnn (abc; here 9f86")
    assert "no digest tells" in facts(another(table, sha256=None))["Model"]
    fewer = replace(table, points=table.points.slice(0, 100))
    assert facts(fewer)["Points"] == "100 points in both, paired by id; 60 only here."


def test_a_series_has_one_mean_per_run_in_the_order_given(table: Table) -> None:
    others = {name: other_run(seed) for seed, name in enumerate(("weak", "a", "strong"), 1)}
    found = beside(table, others)
    sizes, flips = found.series
    assert sizes.frame.sort_values("order")["name"].tolist() == ["weak", "a", "strong"]
    for row in sizes.frame.to_dict("records"):
        mean = mean_absolute(others[row["name"]])
        assert (row["value"], row["low"], row["high"]) == (mean.mean, mean.low, mean.high)
        assert row["this"] == mean_absolute(table).mean
    for row in flips.frame.to_dict("records"):
        column = next(c for c in columns(others[row["name"]]) if c.score == "monte_carlo" and c.setting.sigma == 0.2)
        assert row["value"] == mean_interval(column.value, 0.99).mean
    assert [row[0] for row in found.grid.rows] == ["this run", "weak", "a", "strong"]
    assert all(run.differences.empty and not run.spreads for run in found.runs)
    assert beside(table, {"one": table}).series == ()


def test_names_that_are_cut_alike_stay_apart(table: Table) -> None:
    found = beside(table, {"x" * 50: table, "x" * 60: table})
    assert len({run.name for run in found.runs}) == 2
    same = beside(table, {"this run": table}).runs[0].spreads[0].frame
    assert len(set(same["run"])) == 2


def test_fewer_draws_are_left_out_of_the_comparison() -> None:
    made = make_table(points=30, scores=("monte_carlo",), sigmas=(0.1,), budgets=(10, 50, 400))
    (run,) = beside(made, {"other": made}).runs
    assert [row[0] for row in run.grid.rows] == ["accuracy", "monte_carlo\nsigma 0.1, 400 draws"]
    assert "2 rows with fewer draws left out" in run.note


def test_infinite_distances_are_compared_by_medians() -> None:
    made = make_table(points=30, scores=("input_margin",), not_found=3)
    (run,) = beside(made, {"other": made}).runs
    assert run.grid.rows[1][0] == "input_margin *"
    assert "3 distances in a run are infinite" in run.note
    assert_inert(Page(render(summarize(made, against={"other": made}))))


def test_runs_that_share_nothing(table: Table) -> None:
    alone = make_table(points=160, scores=("entropy",), labels=False)
    (run,) = beside(table, {"other": alone}).runs
    assert run.grid.rows == ()
    assert run.facts[-1].text == "The two runs share no score, so there is nothing to compare."
    assert_inert(Page(render(summarize(table, against={"other": alone, "more": alone}))))
    with pytest.raises(DataError, match="labels_differ"):
        summarize(table, against={"other": change_run(seed=1)})


def test_a_page_without_other_runs_has_no_chapter(table: Table) -> None:
    assert summarize(table).other_runs is None
    assert 'id="other-runs"' not in render(summarize(table))


# ---------------------------------------------------------------------------------------------------------------------
# The scale
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e15])
@pytest.mark.parametrize("offset", [-5.0, 0.0, 5.0])
def test_a_scale_holds_its_numbers(scale: float, offset: float) -> None:
    values = scale * (np.random.default_rng(0).standard_t(1, 500) + offset)
    found = symlog(values)
    assert found.domain[0] <= min(values.min(), 0.0)
    assert found.domain[1] >= max(values.max(), 0.0)
    assert found.constant >= np.abs(values).max() * 10.0**-DECADES * (1.0 - 1e-12)
    assert found.ticks[0] == 0.0
    assert 2 <= len(found.ticks) <= 1 + 2 * TICKS
    assert all(found.domain[0] <= tick <= found.domain[1] for tick in found.ticks)


def test_a_scale_of_nothing_is_a_scale() -> None:
    for values in ([], [0.0, 0.0], [math.nan, math.inf]):
        found = symlog(values)
        assert found.domain[0] < found.domain[1]
        assert found.constant > 0.0


# ---------------------------------------------------------------------------------------------------------------------
# The command
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """Run folders `clean`, `a/run` and `b/run`."""
    monkeypatch.chdir(tmp_path)
    table.to_parquet("clean")
    for seed, name in enumerate(("a/run", "b/run"), 1):
        other_run(seed).to_parquet(name)


@pytest.mark.usefixtures("folders")
def test_the_command_prints_what_the_page_shows(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "clean"]) == 0
    said = capsys.readouterr().out
    assert format_expected_change(expected_change_table(table), label_flips(table)) in said
    assert "Against" not in said
    assert 'id="expected-change"' in Path("clean/report.html").read_text(encoding="utf-8")
    assert main(["report", "clean", "--against", "a/run"]) == 0
    comparison = format_comparison(compare(table, other_run()))
    assert f"Against run: {comparison}" in capsys.readouterr().out
    assert main(["report", "clean", "--against", "a/run", "b/run"]) == 0
    said = capsys.readouterr().out
    assert "Against a/run: " in said
    assert "Against b/run: " in said
    assert "All runs at a glance" in Path("clean/report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("folders")
def test_what_the_command_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "clean", "--against", "nowhere"]) == 7
    assert "nowhere" in capsys.readouterr().err
    change_run(seed=1).to_parquet("others")
    assert main(["report", "clean", "--against", "others"]) == DataError.exit_code
    assert "labels_differ" in capsys.readouterr().err
    assert not Path("clean/report.html").exists()


def test_a_run_without_the_scores_prints_nothing_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_table(points=12, scores=("moments",)).to_parquet("plain")
    assert main(["report", "plain"]) == 0
    assert "aplacian" not in capsys.readouterr().out


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--help"]) == 0
    assert "--against" in capsys.readouterr().out
