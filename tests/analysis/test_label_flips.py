"""Whether points with a large Laplacian keep their label: the groups of the paper, and what is no evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.change_tables import flipping_run, shuffled, with_score
from helpers.tables import without_score
from scipy.stats import mannwhitneyu, ttest_ind

from brittle.analysis import format_expected_change, label_flips
from brittle.analysis.label_flips import NO_MAX_PROBABILITY, TOO_FEW_CONFIDENT
from brittle.analysis.mean_interval import mean_interval


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


def test_a_group_is_at_most_half() -> None:
    table, known = flipping_run()
    row = label_flips(table, confident=0.99).iloc[1]
    assert row["points"] == (known["sure"] >= 0.99).sum()
    assert row["group"] == row["points"] // 2 < 50
    none = label_flips(table, confident=1.0).iloc[1]
    assert (none["points"], none["group"], none["reason"]) == (0, 0, TOO_FEW_CONFIDENT)
    assert math.isnan(none["lowest"])
    assert math.isnan(none["p_flips"])
    assert none["flipped"] == row["flipped"]


def test_without_confidences_there_are_no_groups_and_a_reason() -> None:
    table, known = flipping_run()
    row = label_flips(without_score(table, "max_probability")).iloc[1]
    assert (row["reason"], row["points"], row["group"], row["dropped"]) == (NO_MAX_PROBABILITY, 0, 0, 200)
    assert row["flipped"] == (known["flips"] > 0).sum()
    frame = label_flips(without_score(table, "max_probability"))
    assert NO_MAX_PROBABILITY in format_expected_change(pd.DataFrame(), frame)


def test_equal_laplacians_are_told_apart_by_id_alone() -> None:
    table, _ = flipping_run()
    flat = with_score(table, "laplacian", np.zeros(200), {"method": "exact"})
    pd.testing.assert_frame_equal(label_flips(flat), label_flips(shuffled(flat, seed=3)))
    assert math.isnan(label_flips(flat)["p_laplacian"][1])  # pyright: ignore[reportArgumentType] a cell, a column or a frame
