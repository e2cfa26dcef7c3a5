"""Test whether the model is more robust for some classes than for others."""

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

TAILS = np.geomspace(0.5, 1e-15, 121)  # of the intervals that are compared: a p-value is a third too large at most
PERMUTATIONS = 1999  # times that the values are dealt to the classes anew; the smallest p-value is 1 in 2,000
MOST_POINTS = 10_000  # points that the permutation test reads, about; of more, every so many of each class


@dataclass(frozen=True, eq=False)
class ClassBias:
    """Robustness by class.

    Attributes:
        column: the column the robustness was read from.
        by: whether a point belongs to its true class (`label`) or, without labels, to the class `predicted`.
        classes: one row per class, the least robust first: `class`, `name`, `points`, `mean`, `low`, `high` (interval
            of the mean of p_robust), `median`.
        p_value: of the test that p_robust does not depend on the class (`permutation_p_value`); NaN below two classes.
        least_robust: numbers of the classes that may have the smallest mean: no other one is surely smaller, at the
            level
            `1 - confidence` for all of them together (`mean_differences`).
        confidence: of the intervals, each for its class alone, and of both tests.
    """

    column: Column
    by: Literal["label", "predicted"]
    classes: pd.DataFrame
    p_value: float
    least_robust: tuple[int, ...]
    confidence: float

    @property
    def differ(self) -> bool:
        """True where p_robust surely depends on the class; only then may a least robust class be named."""
        return self.p_value < 1.0 - self.confidence


def class_bias(table: Table, column: Column | None = None) -> ClassBias | None:
    """Robustness by class, with intervals and a test of the differences; None where no point has both.

    Validity: the points are drawn independently. Intervals and tests cover the random error of each point, not a bias
    of the estimator, which may differ from class to class.

    References:
        Fairness through robustness: investigating robustness disparity in deep learning, Vedant Nanda et al., 2021.

    Args:
        table: a run.
        column: the probability column to read; by default the one that speaks for the run.
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
    values = [groups[number].to_numpy() for number in numbers]
    least_robust = tuple(numbers[place] for place in mean_differences(values, confidence).least_robust)
    return ClassBias(column, by, frame, permutation_p_value(values), least_robust, confidence)


def permutation_p_value(groups: Sequence[ArrayLike]) -> float:
    r"""Compute the p-value of the test that a value does not depend on the group that it belongs to.

    The statistic is the spread of the means, `sum_i n_i (m_i - m)^2`. Were the values dealt to the groups at random,
    each order would be as likely as the one observed, so with `b` of `B` random orders that spread as far

    $$p = \frac{1 + b}{1 + B}$$

    is at most `a` with probability at most `a`, for any number of groups and values.

    Validity: values drawn independently. That it is small says that the laws of groups differ, most likely in their
    means; which do, `mean_differences` says, with less power. Of more than `MOST_POINTS` every so many are read.

    References:
        Permutation p-values should never be zero, Belinda Phipson and Gordon K. Smyth, 2010,
        https://arxiv.org/abs/1603.05766

    Args:
        groups: at least one finite number each; NaN with fewer than two groups.

    Example:
        >>> permutation_p_value([[0.8, 0.9] * 10, [0.7, 0.8] * 10, [0.9, 1.0] * 10])
        0.0005
    """
    if len(groups) < 2:
        return float("nan")
    step = max(1, sum(map(np.size, groups)) // MOST_POINTS)
    parts = [np.asarray(group, dtype=np.float64)[::step] for group in groups]
    sizes, values = np.array([part.size for part in parts]), np.concatenate(parts)
    values = values - values.mean()
    starts, generator = np.cumsum(sizes) - sizes, np.random.default_rng(0)

    def spread(ordered: NDArray[np.float64]) -> float:
        return float((np.add.reduceat(ordered, starts) ** 2 / sizes).sum())

    # Orders whose means are the same but for rounding count as spread as far.
    observed = spread(values) - 1e-9 * float(values @ values)
    as_far = sum(spread(values[generator.permutation(values.size)]) >= observed for _ in range(PERMUTATIONS))
    return (1 + as_far) / (1 + PERMUTATIONS)


class Differences(NamedTuple):
    """Differences between the means of several groups."""

    p_value: float  # that means differ at all, corrected for the number of pairs; NaN with fewer than two groups
    least_robust: tuple[int, ...]  # places of groups that may have the smallest mean; all where nothing differs


def mean_differences(groups: Sequence[ArrayLike], confidence: float) -> Differences:
    r"""Return tests that the means of the populations of all groups are equal, pair by pair, whatever else differs.

    Two means differ at the level `a` where the interval of their difference at confidence `1 - a` excludes 0,

    $$(m_j - m_i)^2 > (u_i - m_i)^2 + (m_j - l_j)^2 \qquad (m_i < m_j),$$

    with `l` and `u` the ends of `mean_interval`; the p-value is the smallest such level, corrected by Holm's method, so
    that some pair of equal means is taken for different with probability at most `a`. A group may have the smallest
    mean if no other one is surely smaller.

    Validity: numbers in [0, 1], drawn independently; groups of any size, spread and skewness.

    References:
        A simple sequentially rejective multiple test procedure, Sture Holm, 1979.
        Construction of confidence limits about effect measures, Guang Yong Zou and Allan Donner, 2008.
        Multiple comparisons: theory and methods, Jason Hsu, 1996, chapter 4.

    Args:
        groups: at least one number in [0, 1] each, without NaN.
        confidence: 1 less the level at which groups are told apart.

    Example:
        >>> mean_differences([[0.1] * 20, [0.9] * 20, [0.1, 0.9] * 10], 0.99).least_robust
        (0,)
    """
    check_confidence(confidence)
    places = tuple(range(len(groups)))
    if len(groups) < 2:
        return Differences(float("nan"), places)
    above = _above([np.asarray(group, dtype=np.float64) for group in groups])
    pairs = len(groups) * (len(groups) - 1) // 2
    ordered = np.sort(above, axis=None)[:pairs]
    is_retained = ordered * (pairs - np.arange(pairs)) > 1.0 - confidence
    rejected = int(np.argmax(is_retained)) if is_retained.any() else pairs  # by Holm
    shown = above <= (ordered[rejected - 1] if rejected else -1.0)
    return Differences(min(1.0, pairs * float(above.min())), tuple(place for place in places if not shown[place].any()))


def _above(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the p-value that group `j` has a larger mean than group `i`, `[j, i]`, uncorrected; 1 where it has not."""
    means = np.array([group.mean() for group in groups])
    ends = np.array([mean_ends(group, TAILS) for group in groups])  # [groups, 2, tails]
    apart = np.maximum(means[:, None] - means, 0.0) ** 2
    p_values = np.ones_like(apart)
    for tail, below, over in zip(TAILS, (means[:, None] - ends[:, 0]).T, (ends[:, 1] - means[:, None]).T, strict=True):
        clear = apart > below[:, None] ** 2 + over**2
        if not clear.any():
            break
        p_values[clear] = 2.0 * tail
    return p_values
