"""Computations that several studies share: agreement, ranks, groups, means in words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from studies.ranks import auc, kendall, spearman, spearman_and_chance


def test_ranks_with_ties_by_hand() -> None:
    """Pairs of 1, 1, 2, 3 and 1, 2, 2, 3: four in order, none against it, one tied in each; ranks 1.5 1.5 3 4."""
    x, y = np.array([1.0, 1, 2, 3]), np.array([1.0, 2, 2, 3])
    assert kendall(x, y) == pytest.approx(4 / 5)
    assert kendall(x, -y) == pytest.approx(-4 / 5)
    assert spearman(x, y) == pytest.approx(np.corrcoef([1.5, 1.5, 3, 4], [1, 2.5, 2.5, 4])[0, 1])


def test_ranks_leave_out_missing_and_keep_infinite_numbers() -> None:
    x, y = np.array([1.0, np.nan, 2, 3, np.inf]), np.array([2.0, 9, 1, 3, 4])
    pairs = [1.0, 2, 3, 4], [2.0, 1, 3, 4]
    statistic, chance = stats.spearmanr(*pairs)
    assert spearman_and_chance(x, y) == pytest.approx((statistic, chance, 4))
    assert kendall(x, y) == pytest.approx(4 / 6)
    assert np.isnan(spearman([1.0, 1.0], [1.0, 2.0]))
    assert np.isnan(kendall([], []))


def test_auc_is_the_share_of_pairs_in_order() -> None:
    score, weak = np.array([1.0, 2, 2, 3, np.nan]), np.array([True, True, False, False, True])
    assert auc(score, weak, 2) == pytest.approx(3.5 / 4)
    assert auc(-score, weak, 2) == pytest.approx(0.5 / 4)
    assert np.isnan(auc(score, weak, 3))
    assert np.isnan(auc(score, weak & False, 0))
