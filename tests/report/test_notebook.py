"""A table in a notebook and in a terminal: inert, short, with the counts of its rows, whatever the run holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from helpers.inputs import SIGMA
from helpers.pages import storable
from helpers.problems import inputs
from helpers.shown import grids, parsed, short_text
from helpers.small_runs import labels, run
from helpers.tables import HOSTILE, make_table, with_model, with_scores

from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle, how_sure
from brittle.estimate import parameters_json
from brittle.report.wording import show
from brittle.scores import MonteCarlo
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
def test_html_is_inert_and_says_what_the_overview_says(recipe: dict[str, Any]) -> None:
    table = made(recipe)
    html = table._repr_html_()
    found, text = overview(table), parsed(html).text
    assert len(html) < 10_000
    assert f"{len(table.points)} point" in text
    assert how_brittle(found) in text
    assert how_sure(found) in text
    assert "brittle.show(table)" in text


@every_recipe
def test_the_terminal_gets_a_few_lines(recipe: dict[str, Any]) -> None:
    table = made(recipe)
    said = repr(table)
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


def test_the_limit_is_the_one_that_points_were_drawn_for() -> None:
    scores = [MonteCarlo(SIGMA), MonteCarlo(SIGMA, draws=50)]
    table = run(inputs(20), labels(), scores=scores, until="decided", limit=0.7, most_draws=200)
    assert "kept with probability 0.7 or more" in repr(table)
    assert "kept with probability 0.7 or more" in table._repr_html_()


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


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 2))
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
    "change",
    [
        {"points": pa.table({})},
        {"scores": pa.table({"value": [1.0]})},
        {"record": None},
        {"points": None},
    ],
    ids=["no column of points", "other scores", "no record", "no points"],
)
def test_a_table_that_does_not_hold_together_is_shown_all_the_same(change: dict[str, Any]) -> None:
    broken = replace(made({}), **change)
    assert repr(broken).startswith("Table that cannot be read: ")
    assert short_text(repr(broken), 1)
    assert parsed(broken._repr_html_()).text.startswith("Table that cannot be read: ")
