"""The chapter on the record of the run."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from helpers.pages import values_of
from helpers.tables import make_table

from brittle.analysis import mean_interval
from brittle.extensions.report.chapters import scored
from brittle.extensions.report.wording import fixed, interval, percent
from brittle.store.schemas import SCORES

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_means_are_of_the_representative_column_of_each_noise() -> None:
    table = make_table(points=40, scores=("taylor", "monte_carlo"), sigmas=(0.1, 0.2), budgets=(20, 200))
    texts = {entry.term: entry.text for entry in values_of(scored.CHAPTER, table)["entries"]}
    for sigma in (0.1, 0.2):
        column = table[f"monte_carlo(draws=200, sigma={sigma})"]
        mean, share = mean_interval(column.p_robust, 0.99), (column.value > 0.01).mean()
        sentence = f"{fixed(mean.mean)}; {interval(mean.low, mean.high)}. It is below 0.99 at {percent(share)}"
        assert texts[f"Mean p_robust, sigma {sigma}"].startswith(sentence)


def test_missing_numbers_and_remarks_are_listed_apart() -> None:
    """A status that came with a number at one point and without one at another stands in both tables."""
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["status"] = ["ok", "ill_conditioned", "ill_conditioned", "tie"]
    rows.loc[2, "value"] = None
    remarked = replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))
    values = values_of(scored.CHAPTER, remarked)
    assert [(row[1], row[3]) for row in values["lost"].rows] == [("ill_conditioned", "1")]
    assert sorted((row[1], row[3]) for row in values["remarks"].rows) == [("ill_conditioned", "1"), ("tie", "1")]
    assert "row 2" in values["lost"].rows[0][4]
