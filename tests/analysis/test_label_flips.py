"""Whether points with a large Laplacian keep their label: the groups of the paper, and what is no evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.change_tables import curved_run, flipping_run, with_score
from helpers.tables import make_table, without_score
from scipy.stats import mannwhitneyu, ttest_ind

from brittle.analysis import label_flips, mean_absolute
from brittle.analysis.label_flips import NO_MAX_PROBABILITY
from brittle.analysis.mean_interval import mean_interval
from brittle.errors import ParameterError


def test_the_groups_are_those_of_the_paper() -> None:
    table, known = flipping_run()
    frame = label_flips(table, confident=0.8, group=20)
    assert frame["sigma"].tolist() == [0.01, 0.1]
    row = frame.iloc[1]
    chosen = known[known["sure"] >= 0.8].sort_values("laplacian")  # pyright: ignore[reportCallIssue] a cell, a column or a frame
    lowest, highest = chosen["flips"][:20], chosen["flips"][-20:]
    assert (row["points"], row["group"], row["dropped"], row["draws"]) == (len(chosen), 20, 0, 100)
    assert (row["lowest"], row["lowest_low"], row["lowest_high"]) == pytest.approx(mean_interval(lowest, 0.99))
    assert row["highest"] == pytest.approx(highest.mean())
    assert row["p_flips"] == pytest.approx(mannwhitneyu(lowest, highest, alternative="greater").pvalue)
    assert row["p_flips"] < 1e-6
    ever = known["flips"] > 0
    assert (row["flipped"], row["never_flipped"]) == (ever.sum(), (~ever).sum())
    assert row["laplacian_flipped"] == pytest.approx(known["laplacian"][ever].mean())
    assert row["laplacian_never"] == pytest.approx(known["laplacian"][~ever].mean())
    welch: Any = ttest_ind(known["laplacian"][ever], known["laplacian"][~ever], equal_var=False)
    assert row["p_laplacian"] == pytest.approx(
        welch.pvalue,
        rel=1e-6,
    )
    assert row["reason"] is None


def test_the_other_sign_is_no_evidence() -> None:
    """One-sided: where the highest Laplacians flip, the p-value is near 1."""
    table, known = flipping_run()
    turned = with_score(table, "laplacian", -known["laplacian"].to_numpy(), {"method": "exact"})
    row, before = label_flips(turned).iloc[1], label_flips(table).iloc[1]
    assert row["p_flips"] > 0.99
    assert (row["lowest"], row["highest"]) == pytest.approx((before["highest"], before["lowest"]))
    assert row["laplacian_flipped"] == pytest.approx(-before["laplacian_flipped"])


def test_where_nothing_flips_there_is_no_evidence() -> None:
    row = label_flips(flipping_run()[0]).iloc[0]
    assert (row["lowest"], row["highest"], row["p_flips"], row["flipped"]) == (0.0, 0.0, 1.0, 0)
    assert row["lowest_high"] > 0.0
    assert math.isnan(row["laplacian_flipped"])
    assert math.isnan(row["p_laplacian"])


def test_without_confidences_there_are_no_groups_and_a_reason() -> None:
    table, known = flipping_run()
    row = label_flips(without_score(table, "max_probability")).iloc[1]
    assert (row["reason"], row["points"], row["group"], row["dropped"]) == (NO_MAX_PROBABILITY, 0, 0, 200)
    assert row["flipped"] == (known["flips"] > 0).sum()


def test_mean_absolute_is_the_mean_of_the_absolute_values() -> None:
    table, curvature = curved_run()
    found = mean_absolute(table)
    assert found.mean == pytest.approx(np.abs(curvature).mean())
    assert 0.0 <= found.low < found.mean < found.high
    assert mean_absolute(table, table.columns[0]) == found
    with pytest.raises(ParameterError, match="no laplacian"):
        mean_absolute(make_table(points=2))
