"""This run beside another one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.change_runs import another, beside, change_run, other_run
from helpers.pages import assert_inert, page_of
from helpers.tables import make_table

from brittle.analysis import (
    compare,
)
from brittle.errors import DataError
from brittle.report.wording import reach, signed
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_a_run_beside_another_is_the_comparison(table: Table) -> None:
    (run,) = beside(table, {"other": other_run()}).runs
    frame = compare(table, other_run())
    assert len(run.grid.rows) == len(frame)
    for cells, row in zip(run.grid.rows, frame.to_dict("records"), strict=True):
        assert cells[1] == f"{row['points']:,}"
        bounded = row["quantity"] in ("accuracy", "probability", "p_robust")
        assert cells[2].split("\n")[0] == (f"{row['first']:.3f}" if bounded else signed(row["first"]))
        ends = row["difference_low"], row["difference_high"]
        assert cells[4] == (f"{signed(row['difference'])}\n{reach(*ends)}")
    assert [number.title for number in run.numbers] == [
        "Accuracy, here vs there",
        "Median |Laplacian|, here vs there",
        "Mean p_robust, sigma 0.2, here vs there",
    ]
    assert run.differences["value"].tolist() == [
        row["difference"] for row in frame.to_dict("records") if row["quantity"] != "laplacian"
    ]


def test_what_differs_is_said(table: Table) -> None:
    def facts(other: Table) -> dict[str, str]:
        return {fact.term: fact.text for fact in beside(table, {"other": other}).runs[0].entries}

    assert facts(table)["Model"].startswith("The same, models:cnn (9f86d081884")
    assert facts(table)["Points"] == "160 points in both, paired by id."
    assert facts(another(table, sha256="abc"))["Model"].startswith("Another one, models:cnn (abc; here 9f86")
    assert "no digest tells" in facts(another(table, sha256=None))["Model"]
    fewer = replace(table, points=table.points.slice(0, 100))
    assert facts(fewer)["Points"] == "100 points in both, paired by id; 60 only here."


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
    assert_inert(page_of(made, against={"other": made}))


def test_runs_that_share_nothing(table: Table) -> None:
    alone = make_table(points=160, scores=("entropy",), labels=False)
    (run,) = beside(table, {"other": alone}).runs
    assert run.grid.rows == ()
    assert run.entries[-1].text == "The two runs share no score, so there is nothing to compare."
    assert_inert(page_of(table, against={"other": alone, "more": alone}))
    with pytest.raises(DataError, match="runs_differ"):
        beside(table, {"other": change_run(seed=1)})
