"""Is the model more robust for some classes than for others?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from brittle.analysis.columns import class_name, class_of
from brittle.analysis.mean_interval import mean_ends, mean_interval
from brittle.intervals import check_confidence
from brittle.store.columns import Column
from brittle.store.representative import typical
from brittle.store.table import Table

TAILS = np.geomspace(0.5, 1e-15, 121)
"""Shares of misses at which intervals are compared: a p-value is at most a third larger than it need be."""


@dataclass(frozen=True, eq=False)
class ClassBias:
    """Robustness by class.

    Attributes:
        column: the column the robustness was read from.
        by: whether a point belongs to its true class (`label`) or, without labels, to the class `predicted`.
        classes: one row per class, the least robust first: `class`, `name`, `points`, `mean`, `low`, `high` (interval
            of the mean of p_robust), `median`.
        p_value: of the test that p_robust has one mean in all classes, corrected for their number
            (`mean_differences`); NaN with fewer than two classes.
        least: numbers of the classes that may be the least robust: no other one is surely less so, at the level
            `1 - confidence` for all of them together. Every class, where the test finds no difference.
        confidence: of the intervals, each for its class alone, and of the test.
    """

    column: Column
    by: Literal["label", "predicted"]
    classes: pd.DataFrame
    p_value: float
    least: tuple[int, ...]
    confidence: float

    @property
    def differ(self) -> bool:
        """Whether the classes surely differ; only then is there a least and a most robust one to name."""
        return self.p_value < 1.0 - self.confidence


def class_bias(table: Table, column: Column | None = None) -> ClassBias | None:
    """Robustness by class, with intervals and a test of the differences.

    Validity: the points of a class are drawn independently. Interval and test are for means of numbers in [0, 1] and
    cover the random error of each, not a bias of the estimator, which may differ from class to class.

    References:
        Fairness through robustness: investigating robustness disparity in deep learning, Vedant Nanda et al., 2021.

    Args:
        table: a run.
        column: the probability column to read; by default the one that speaks for the run.

    Returns:
        The result, or None where no point has a robustness and a class.
    """
    column = column or typical(table.columns)
    if column is None:
        return None
    confidence = table.record.confidence
    by, classes = class_of(table)
    groups = {int(cast(float, number)): group for number, group in column.p_robust.dropna().groupby(classes)}
    if not groups:
        return None
    rows = [
        {"class": number, "name": class_name(table, number), "points": len(group)}
        | mean_interval(group, confidence)._asdict()
        | {"median": group.median()}
        for number, group in groups.items()
    ]
    frame = pd.DataFrame(rows).sort_values(["mean", "class"], ignore_index=True)
    numbers = [int(number) for number in frame["class"]]
    found = mean_differences([groups[number].to_numpy() for number in numbers], confidence)
    least = tuple(numbers[place] for place in found.least)
    return ClassBias(column, by, frame, found.p_value, least, confidence)


class Differences(NamedTuple):
    """Which means of several groups differ.

    Attributes:
        p_value: that means differ at all, corrected for the number of pairs; NaN with fewer than two groups.
        least: places of the groups that may have the smallest mean; all of them where nothing differs.
    """

    p_value: float
    least: tuple[int, ...]


def mean_differences(groups: Sequence[ArrayLike], confidence: float) -> Differences:
    r"""Tests that the means of the populations of all groups are equal, pair by pair, whatever else differs.

    Two means differ at the level `a` where the interval of their difference at confidence `1 - a` excludes 0,

    $$(m_j - m_i)^2 > (u_i - m_i)^2 + (m_j - l_j)^2 \qquad (m_i < m_j),$$

    with `l` and `u` the ends of `mean_interval`. The p-value of the pair is the smallest such level. The p-values of
    the pairs are corrected by Holm's method, so that some pair of equal means is taken for different with probability
    at most `a`, however many pairs there are. A group may have the smallest mean if no other one is surely smaller.

    Validity: numbers in [0, 1], drawn independently. The groups may differ in size and spread, be skewed or hold a
    single value, for which an analysis of variance or a test of ranks would find too many differences.

    References:
        A simple sequentially rejective multiple test procedure, Sture Holm, 1979.
        Construction of confidence limits about effect measures, Guang Yong Zou and Allan Donner, 2008.
        Multiple comparisons: theory and methods, Jason Hsu, 1996, chapter 4.

    Args:
        groups: at least one number in [0, 1] each, without NaN.
        confidence: 1 less the level at which groups are told apart.

    Raises:
        ParameterError: the confidence is not between 0 and 1.

    Example:
        >>> mean_differences([[0.1] * 20, [0.9] * 20, [0.1, 0.9] * 10], 0.99).least
        (0,)
    """
    check_confidence(confidence)
    every = tuple(range(len(groups)))
    if len(groups) < 2:
        return Differences(float("nan"), every)
    above = _above([np.asarray(group, dtype=np.float64) for group in groups])
    pairs = len(groups) * (len(groups) - 1) // 2
    shown = _holm(above, 1.0 - confidence, pairs)
    return Differences(min(1.0, pairs * float(above.min())), tuple(place for place in every if not shown[place].any()))


def _above(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The p-value that group `j` has a larger mean than group `i`, `[j, i]`, uncorrected; 1 where it has not."""
    means = np.array([group.mean() for group in groups])
    ends = np.array([mean_ends(group, TAILS) for group in groups])  # [groups, 2, tails]
    apart = np.maximum(means[:, None] - means, 0.0) ** 2
    found = np.ones_like(apart)
    for tail, below, over in zip(TAILS, (means[:, None] - ends[:, 0]).T, (ends[:, 1] - means[:, None]).T, strict=True):
        clear = apart > below[:, None] ** 2 + over**2
        if not clear.any():
            break
        found[clear] = 2.0 * tail
    return found


def _holm(p_values: NDArray[np.float64], level: float, pairs: int) -> NDArray[np.bool_]:
    """Which p-values are rejected at `level`, of `pairs` tests."""
    ordered = np.sort(p_values, axis=None)[:pairs]
    kept = ordered * (pairs - np.arange(pairs)) > level
    rejected = int(np.argmax(kept)) if kept.any() else pairs
    return p_values <= (ordered[rejected - 1] if rejected else -1.0)
