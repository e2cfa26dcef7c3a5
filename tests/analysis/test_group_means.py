"""Means of classes from a table: what is read, what is left out, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.tables import make_table, with_value

from brittle.analysis import format_group_means, group_means, mean_interval, powered_mean, sample_points
from brittle.errors import DataError, ParameterError
from brittle.store.table import Table

COUNTS, CHEAP = "monte_carlo(draws=400, sigma=0.1)", "taylor(sigma=0.1)"


def counted_in_part(count: int = 60, **recipe: int) -> Table:
    """A run whose Monte Carlo has numbers at a sample of its points alone."""
    table = make_table(
        points=200, classes=3, scores=("monte_carlo", "taylor"), sigmas=(0.1,), budgets=(400,), images=False, **recipe
    )
    chosen = set(sample_points(table, count)["point"])
    return with_value(table, COUNTS, [v if p in chosen else None for p, v in table[COUNTS].value.items()])


def test_a_row_is_what_the_arrays_say() -> None:
    table = counted_in_part()
    found = group_means(table)
    assert (found.estimates.label, found.counts.label, found.by) == (CHEAP, COUNTS, "label")
    labels = np.array(table.points["label"].to_pylist())
    for row in found.groups.to_dict("records"):
        mine = labels == row["class"]
        f, y = (table[label].p_robust.to_numpy()[mine] for label in (CHEAP, COUNTS))
        expected = powered_mean(f, y, 0.99)
        assert (row["mean"], row["mean_low"], row["mean_high"], row["weight"]) == pytest.approx(expected)
        assert (row["alone"], row["alone_low"], row["alone_high"]) == pytest.approx(mean_interval(y, 0.99))
        assert (row["points"], row["counted"]) == (mine.sum(), (~np.isnan(y)).sum())
        assert row["estimated"] == pytest.approx(f.mean())
    assert found.groups["points"].sum() == 200


def test_one_group_of_all_points() -> None:
    found = group_means(counted_in_part(), by=None)
    (row,) = found.groups.to_dict("records")
    assert (row["name"], row["points"], row["counted"]) == ("all points", 200, 60)
    truth = 1.0 - make_table(
        points=200, classes=3, scores=("monte_carlo", "taylor"), sigmas=(0.1,), budgets=(400,), images=False
    )[COUNTS].value.mean()  # fmt: skip
    assert row["mean_low"] < truth < row["mean_high"]
    assert "mean p_robust: taylor" in format_group_means(found)


def test_counts_of_another_run_are_found_by_their_ids() -> None:
    table = counted_in_part()
    apart = replace(table, points=table.points.take(np.arange(200)[::-1]))
    assert group_means(table, counts=apart[COUNTS]).groups.equals(group_means(table).groups)
    part = table.points.filter(table[COUNTS].value.notna().to_numpy())
    assert group_means(table, counts=replace(table, points=part)[COUNTS]).groups["failed"].sum() == 0
    assert group_means(table).groups["failed"].sum() == 140


def test_points_without_an_estimate_or_a_class_are_left_out() -> None:
    table = counted_in_part(broken=15)
    found = group_means(table)
    assert found.left_out == 15
    assert found.groups["points"].sum() == 185
    assert "15 points are left out" in format_group_means(found)


def test_what_cannot_be_corrected_is_refused() -> None:
    table = counted_in_part()
    with pytest.raises(ParameterError, match=r"200 numbers of taylor\(sigma=0\.1\) were not counted"):
        group_means(table, counts=table[CHEAP])
    with pytest.raises(ParameterError, match="groups are by label, by predicted or None; found 'class'"):
        group_means(table, by="class")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no point of the run has both an estimate and a count"):
        group_means(table, counts=with_value(table, COUNTS, [None] * 200)[COUNTS])
    with pytest.raises(DataError, match="no point of the run has a class by label; group by predicted"):
        group_means(make_table(points=20, labels=False, images=False))
    with pytest.raises(DataError, match="the run holds no monte_carlo"):
        group_means(make_table(points=20, scores=("taylor",), images=False))
    with pytest.raises(DataError, match=r"no estimate of p_robust at sigma 0\.1 beside monte_carlo"):
        group_means(make_table(points=20, scores=("monte_carlo",), sigmas=(0.1,), images=False))
