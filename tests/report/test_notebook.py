"""Tables, estimates and the report in a notebook and on a terminal: inert, short, with the counts of their rows."""

from __future__ import annotations

import html as markup
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from helpers.inputs import EXAMPLES
from helpers.laws import estimate
from helpers.pages import Page, storable
from helpers.problems import inputs, small_classifier
from helpers.shown import grids, parsed, short_text
from helpers.small_runs import labels, run
from helpers.tables import HOSTILE, make_table, with_model, with_scores

import brittle
from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle, how_sure
from brittle.errors import ParameterError, StorageError
from brittle.estimate import Estimate, Status, parameters_json
from brittle.report import ReportPage, write_report
from brittle.report.wording import show
from brittle.scores import Score
from brittle.store.table import Table

SMALL = {"scores": ("moments", "monte_carlo", "logit_margin"), "sigmas": (0.1,), "budgets": (100,), "images": False}

RECIPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no point": {"points": 0},
    "one point": {"points": 1},
    "no labels": {"labels": False},
    "one class": {"classes": 1},
    "some failed": {"broken": 7},
    "all failed": {"broken": 60},
    "no score": {"scores": ()},
    "no noise": {"scores": ("logit_margin", "entropy")},
    "infinite distances": {"scores": ("input_margin",), "not_found": 5, "masked": 3},
    "many columns": {"scores": ("moments", "mmse", "taylor"), "sigmas": (0.05, 0.1, 0.2), "budgets": (10, 20, 40)},
}

every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=[*RECIPES])


def made(recipe: dict[str, Any]) -> Table:
    return make_table(**SMALL | recipe)


def counted(table: Table, label: str, limit: float) -> Counter[tuple[bool | None, str | None]]:
    """How many points of each kind have which state, from the rows of the table alone."""
    entry = next(one for one in table.record.scores if one.label == label)
    found: Counter[tuple[bool | None, str | None]] = Counter()
    right = dict(zip(table.points["point"].to_pylist(), table.points["correct"].to_pylist(), strict=True))
    for row in table.scores.to_pylist():
        if row["score"] == entry.score and f'"sigma":{entry.parameters["sigma"]}' in row["parameters"]:
            low, high = row["low"], row["high"]
            state = None if low is None else "holds" if high <= 1 - limit else "breaks" if low >= 1 - limit else "open"
            found[right[row["point"]], state] += 1
    return found


@every_recipe
def test_a_table_is_inert_and_short_and_says_what_the_overview_says(recipe: dict[str, Any]) -> None:
    table = made(recipe)
    html, said = table._repr_html_(), repr(table)
    overview_of, text = overview(table), parsed(html).text
    assert len(html) < 10_000
    assert how_brittle(overview_of) in text
    assert how_sure(overview_of) in text
    assert short_text(said, 3)
    count, columns = len(table.points), len(table.record.scores)
    plural = "" if count == 1 else "s"
    assert said.startswith(f"Table of {count} point{plural} and {columns} column")
    assert "models:cnn on cifar10-test.npz (test)" in said


@pytest.mark.parametrize("name", ["plain", "no labels", "some failed", "one point"])
def test_counts_are_those_of_the_rows(name: str) -> None:
    """Counted from the rows without a column, the column that speaks for the run being the one that is named."""
    table = made(RECIPES[name])
    column = overview(table).column
    assert column is not None
    truth = counted(table, column.label, 0.9)
    groups, numbers = grids(table._repr_html_())
    kinds = {"right": True, "wrong": False, "no label": None}
    for kind, *cells in groups[1:]:
        assert [int(cell) for cell in cells] == [truth[kinds[kind], state] for state in ("holds", "open", "breaks")]
    assert sum(int(cell) for row in groups[1:] for cell in row[1:]) == sum(
        count for (_, state), count in truth.items() if state is not None
    )
    totals = {state: sum(count for (_, one), count in truth.items() if one == state) for _, state in truth}
    verbs = {"holds": "hold", "breaks": "break"}
    counts = {state: totals.get(state, 0) for state in verbs}
    told = ", ".join(f"{count} {state if count == 1 else verbs[state]}" for state, count in counts.items())
    said = f"{told}, {totals.get('open', 0)} undecided"
    lost = f", {totals[None]} without a number" if None in totals else ""
    assert f"{said}{lost}: kept with probability 0.9 or more, by {column.label}" in repr(table)
    rows = Counter(row["score"] for row in table.scores.to_pylist() if row["value"] is not None)
    for (label, cell), entry in zip(numbers[1:], table.record.scores, strict=True):
        assert (label, cell) == (entry.label, f"{rows[entry.score]} of {len(table.points)}")


def test_columns_beyond_the_first_are_counted() -> None:
    table = made(RECIPES["many columns"])
    assert len(grids(table._repr_html_())[1]) == 13
    assert f"and {len(table.columns) - 12} columns more" in table._repr_html_()
    assert f"and {len(table.columns) - 3} more" in repr(table)


def test_a_run_from_python_is_named() -> None:
    table = run(inputs(20), labels())
    assert "on data in memory" in repr(table)
    parsed(table._repr_html_())
    assert "the run had not finished" in repr(replace(table, record=replace(table.record, finished=None)))


def with_noise(table: Table, noise: str) -> Table:
    """`table` with its scores under a noise family of this name."""
    scores = [replace(one, parameters={**one.parameters, "noise": noise}) for one in table.record.scores]
    written = {
        parameters_json(old.parameters): parameters_json(new.parameters)
        for old, new in zip(table.record.scores, scores, strict=True)
    }
    place = table.scores.schema.get_field_index("parameters")
    rows = pa.array([written[one] for one in table.scores["parameters"].to_pylist()])
    return with_scores(replace(table, scores=table.scores.set_column(place, "parameters", rows)), scores)


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 4))
def test_text_from_a_user_is_text(start: int) -> None:
    """Names of the model, the data, the split, the classes, the columns and the noise."""
    texts = [HOSTILE[(start + step) % len(HOSTILE)] for step in range(4)]
    table = with_noise(with_model(made({"classes": 2}), spec=f"x/{texts[0]}"), storable(texts[2]))
    data = replace(table.record.data, path=f"/data/{texts[1]}", split=texts[2], class_names=(texts[3], texts[0]))
    scores = [replace(one, label=texts[number]) for number, one in enumerate(table.record.scores)]
    hostile = with_scores(replace(table, record=replace(table.record, data=data)), scores)
    page = parsed(hostile._repr_html_())
    assert " ".join(show(texts[2], 40).split()) in page.text
    assert f"Under noise of sigma 0.1, {' '.join(show(storable(texts[2])).split())}, " in page.text
    assert short_text(repr(hostile))


@pytest.mark.parametrize(
    "change", [{"points": pa.table({})}, {"scores": pa.table({"value": [1.0]})}, {"record": None}], ids=str
)
def test_a_table_that_does_not_hold_together_is_shown_all_the_same(change: dict[str, Any]) -> None:
    broken = replace(made({}), **change)
    assert repr(broken).startswith("Table that cannot be read: ")
    assert short_text(repr(broken), 1)
    assert parsed(broken._repr_html_()).text.startswith("Table that cannot be read: ")


def estimated(codes: list[int], value: float = 0.25) -> Estimate:
    """An estimate with these statuses."""
    status = torch.tensor(codes, dtype=torch.int64)
    numbers = torch.where(status < Status.NONFINITE_INPUT, value, torch.nan).double()
    return Estimate(numbers, numbers - 0.125, numbers + 0.125, status, torch.ones_like(status))


def statuses(found: Estimate) -> Counter[str]:
    return Counter(Status(code).slug for code in found.status.tolist())


@pytest.mark.parametrize("score", {one.quantity: one for one in EXAMPLES}.values(), ids=lambda one: one.label)
def test_every_score_is_shown(score: Score) -> None:
    x = inputs(4)
    x[1] = torch.nan
    found = estimate(small_classifier(), x, score)
    shown, truth = found._repr_html_(), statuses(found)
    parsed(shown)
    rows, counts = grids(shown)
    assert {name: int(count) for name, count, _ in counts[1:]} == truth
    assert [row[1] == "–" for row in rows[1:]] == found.value.isnan().tolist()
    said = repr(found)
    assert short_text(said)
    assert all(f"{count} {name}" in said for name, count in truth.items())


@pytest.mark.parametrize("count", [0, 1, 11])
def test_the_first_points_are_shown_and_the_others_counted(count: int) -> None:
    found = estimated([0] * count)
    page = parsed(found._repr_html_())
    assert f"Estimate of {count:,} point{'' if count == 1 else 's'}" in page.text
    assert page.text.count("0.125 to 0.375") == min(count, 10)
    assert (f"and {count - 10:,} point" in page.text) == (count > 10)
    said = repr(found)
    assert short_text(said)
    assert said.count("0.25 [0.125, 0.375] ok") == min(count, 3)
    assert (f"and {count - 3:,} more" in said) == (count > 3)


def test_points_without_a_number_have_none() -> None:
    found = estimated([int(Status.DECODE_ERROR)] * 3)
    assert grids(found._repr_html_())[0][1:] == [
        [str(point), "–", "–", Status.DECODE_ERROR.sentence] for point in range(3)
    ]
    assert repr(found).split("\n  ")[1:] == ["no number: decode_error"] * 3


def test_many_statuses_are_summed_up_in_a_terminal_and_listed_in_a_notebook() -> None:
    found = estimated([int(one) for one in Status])
    assert f"{len(Status) - 3} others" in repr(found)
    counts = grids(found._repr_html_())[1][1:]
    assert [(name, markup.unescape(said)) for name, _, said in counts] == [(one.slug, one.sentence) for one in Status]


def test_infinite_distances_and_statuses_of_another_version() -> None:
    found = estimated([0, 999], torch.inf)
    assert "Status 999, which this version does not know." in parsed(found._repr_html_()).text
    assert grids(found._repr_html_())[0][1][1] == "∞"
    assert "1 status 999" in repr(found)


@pytest.mark.parametrize("text", HOSTILE[::4])
def test_what_was_found_is_text(text: str) -> None:
    found = replace(estimated([0]), detail=(text,))
    page = parsed(found._repr_html_())
    assert " ".join(f"Found: {show(text)}"[:100].split()) in page.text


@pytest.mark.parametrize("field", ["value", "low", "status"])
@pytest.mark.parametrize("wrong", [None, torch.zeros(()), "<script>"], ids=str)
def test_an_estimate_that_is_none_is_shown_all_the_same(field: str, wrong: object) -> None:
    broken = replace(estimated([0, 0]), **{field: wrong})
    assert repr(broken).startswith("Estimate whose fields are no tensors")
    assert short_text(repr(broken), 1)
    assert parsed(broken._repr_html_()).text.startswith("Estimate that cannot be read: ")


@pytest.fixture
def page(nothing_drawn: None) -> Table:
    run = make_table(points=12, scores=("monte_carlo", "logit_margin"), sigmas=(0.1,), budgets=(100,), images=False)
    return with_model(run, spec=f"models:{HOSTILE[0]}")


def frame(page: ReportPage) -> dict[str, str | None]:
    """The attributes of the frame, which is all there is."""
    parsed = Page(page._repr_html_())
    ((tag, attributes),) = parsed.elements
    assert (tag, parsed.text, parsed.open, parsed.unbalanced) == ("iframe", "", [], [])
    return attributes


def test_the_frame_holds_the_page_that_is_written_and_gives_it_no_rights(page: Table, tmp_path: Path) -> None:
    shown = brittle.show(page, height=300)
    written = write_report(page, tmp_path / "report.html").read_text(encoding="utf-8")
    attributes = frame(shown)
    assert shown.html == written
    assert (attributes["srcdoc"] or "").replace('href="about:srcdoc#', 'href="#') == written
    assert attributes["height"] == "300"
    assert set((attributes["sandbox"] or "").split()) == {"allow-scripts", "allow-downloads"}
    assert set(attributes) == {"title", "width", "height", "style", "sandbox", "srcdoc"}
    assert "Content-Security-Policy" in written


def test_links_within_the_page_stay_in_the_frame() -> None:
    """In a frame of its own an address that is a fragment alone is one of the notebook."""
    html = '<a class="x" href="#here">a</a> <a href="data:,">b</a> <use href="#shape"/> href="#text'
    shown = frame(ReportPage(html))["srcdoc"] or ""
    assert re.findall(r'href="([^"]*)', shown) == ["about:srcdoc#here", "data:,", "#shape", "#text"]
    code = f"<style>{html}</style><script>{html}</script>"
    assert frame(ReportPage(code))["srcdoc"] == code
    assert repr(ReportPage(html)).startswith("Report, 0.0 MB")


def test_a_page_is_saved_as_a_report_is_and_a_run_folder_is_shown_as_its_table(page: Table, tmp_path: Path) -> None:
    shown = brittle.show(page)
    assert '.save("report.html")' in repr(shown)
    assert shown.save(tmp_path / "report.html").read_text(encoding="utf-8") == shown.html
    with pytest.raises(StorageError, match="unwritable"):
        shown.save(tmp_path / "none" / "report.html")
    page.save(tmp_path / "run")
    assert brittle.show(tmp_path / "run", against={"b": page}) == brittle.show(page, against={"b": tmp_path / "run"})


def test_what_cannot_be_shown_is_said(page: Table, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="found list"):
        brittle.show([page])  # pyright: ignore[reportArgumentType] that is the mistake
    for height in (0, -1, 2.5, True, "300"):
        with pytest.raises(ParameterError, match="height"):
            brittle.show(page, height=height)  # pyright: ignore[reportArgumentType] that is the mistake
    with pytest.raises(ParameterError, match="epsilon"):
        brittle.show(page, epsilon=-1.0)
    with pytest.raises(StorageError, match="no_run"):
        brittle.show(tmp_path)
