"""This run beside others over the same points."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.change_runs import beside, change_run, other_run
from helpers.pages import assert_inert, page_of
from helpers.tables import make_table, with_model

from brittle.analysis import compare
from brittle.errors import DataError
from brittle.extensions.report.chapters.other_runs import CHAPTER
from brittle.extensions.report.render import open_contents
from brittle.extensions.report.wording import reach, signed
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


@pytest.fixture(scope="module")
def table() -> Table:
    return change_run()


def test_a_run_beside_another_is_the_comparison(table: Table) -> None:
    (run,) = beside(table, {"other": other_run()})["runs"]
    frame = compare(table, other_run())
    for cells, row in zip(run["grid"].rows, frame.to_dict("records"), strict=True):
        assert cells[1] == f"{row['points']:,}"
        bounded = row["quantity"] in ("accuracy", "probability", "p_robust")
        assert cells[2].split("\n")[0] == (f"{row['first']:.3f}" if bounded else signed(row["first"]))
        assert cells[4] == f"{signed(row['difference'])}\n{reach(row['difference_low'], row['difference_high'])}"
    compared = [row["difference"] for row in frame.to_dict("records") if row["quantity"] != "laplacian"]
    assert run["differences"].frame["value"].tolist() == compared


def test_differences_are_named(table: Table) -> None:
    def facts(run: Table) -> dict[str, str]:
        return {fact.term: fact.text for fact in beside(table, {"other": run})["runs"][0]["entries"]}

    assert facts(table)["Model"].startswith("The same, models:cnn (00000000000")
    assert facts(table)["Points"] == "160 points in both, paired by id."
    model = facts(with_model(table, state_sha256="abc"))["Model"]
    assert model.startswith("Another one, models:cnn (abc; here 0000")
    assert "no digest tells" in facts(with_model(table, state_sha256=None, sha256=None))["Model"]
    shortened = replace(table, points=table.points.slice(0, 100))
    assert facts(shortened)["Points"] == "100 points in both, paired by id; 60 only here."


def test_runs_that_share_nothing(table: Table) -> None:
    unrelated = make_table(points=160, scores=("entropy",), labels=False)
    (run,) = beside(table, {"other": unrelated})["runs"]
    assert list(run["grid"].rows) == []
    assert "share no score" in run["entries"][-1].text
    assert_inert(page_of(table, against={"other": unrelated, "more": unrelated}, chapters=(CHAPTER,)))
    with pytest.raises(DataError, match="runs_differ"):
        beside(table, {"other": change_run(seed=1)})
    assert CHAPTER.summarize(open_contents(table)) is None


def test_each_of_many_runs_has_a_table(table: Table) -> None:
    runs = beside(table, {"x" * 50: table, "x" * 60: table, "weak": other_run(1)})["runs"]
    assert len({run["name"] for run in runs}) == 3
    assert all(run["differences"].frame.empty and run["grid"].rows for run in runs)
