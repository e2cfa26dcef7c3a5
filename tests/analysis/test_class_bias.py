"""Classes that are less robust than others: by hand, and how often chance finds such classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa
import pytest
from helpers.tables import make_table, with_value
from numpy.typing import NDArray
from scipy.stats import kruskal

from brittle.analysis import class_bias
from brittle.analysis.class_bias import mean_differences, permutation_p_value
from brittle.analysis.mean_interval import mean_interval
from brittle.store.schemas import POINTS
from brittle.store.table import Table


def with_labels(table: Table, labels: Sequence[int | None]) -> Table:
    place = table.points.schema.get_field_index("label")
    return replace(table, points=table.points.set_column(place, POINTS.field(place), pa.array(labels, pa.int64())))


def test_class_bias_by_hand() -> None:
    table = with_labels(make_table(points=12, scores=("taylor",), sigmas=(0.1,), classes=2), [0] * 6 + [1] * 6)
    flips = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.8, 0.9, 0.7, 0.8, 0.9, 0.7]
    bias = class_bias(with_value(table, "taylor(sigma=0.1)", flips))
    assert bias is not None
    assert bias.by == "label"
    assert bias.classes["class"].tolist() == [1, 0]
    assert bias.classes["name"].tolist() == ["automobile", "airplane"]
    assert bias.classes["points"].tolist() == [6, 6]
    assert bias.classes["mean"].tolist() == pytest.approx([0.2, 0.8])
    assert bias.classes["median"].tolist() == pytest.approx([0.2, 0.8])
    assert bias.p_value < 0.01
    assert bias.differ
    assert set(bias.least_robust) == {0, 1}


def test_the_least_robust_class_is_named_once_classes_differ() -> None:
    table = make_table(points=90, scores=("taylor",), sigmas=(0.1,), classes=3, images=False)
    table = with_labels(table, [0] * 30 + [1] * 30 + [2] * 30)
    bias = class_bias(with_value(table, "taylor(sigma=0.1)", [0.1, 0.2] * 15 + [0.8, 0.9] * 15 + [0.75, 0.85] * 15))
    assert bias is not None
    assert bias.differ
    assert bias.least_robust == (1, 2)


def test_class_bias_without_labels_goes_by_prediction() -> None:
    table = make_table(labels=False)
    bias = class_bias(table)
    assert bias is not None
    assert bias.by == "predicted"
    assert set(bias.classes["class"]) == set(table.points["predicted"].to_pylist())


Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

MEAN = 0.9
LAWS: tuple[Draw, ...] = (
    lambda rng, size: np.full(size, MEAN),
    lambda rng, size: (rng.random(size) < MEAN).astype(np.float64),
    lambda rng, size: rng.beta(18.0, 2.0, size),
    lambda rng, size: rng.binomial(50, rng.beta(0.9, 0.1, size)) / 50.0,
)
"""Laws with one mean and nothing else in common."""


def test_the_permutation_test_agrees_with_every_order_of_values() -> None:
    """Compare with all 2,520 ways to deal seven values to three groups: at most 4.5 standard errors off, 1e-5 each."""
    values, sizes = [0.2, 0.9, 0.4, 0.7, 0.95, 0.6, 0.99], (2, 3, 2)
    ends = np.cumsum((0, *sizes))
    places = list(pairwise(ends.tolist()))

    def spread(order: Sequence[float]) -> float:
        return sum((stop - start) * np.mean(order[start:stop]) ** 2 for start, stop in places)

    spreads = np.array([spread(order) for order in permutations(values)])
    for order in (values, sorted(values), sorted(values)[::-1]):
        exact = (spreads > spread(order) - 1e-12).mean()
        estimate = permutation_p_value([order[start:stop] for start, stop in places])
        assert abs(estimate - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 2000) + 1 / 2000


@pytest.mark.parametrize("law", LAWS[1:])
def test_groups_of_one_law_seldom_differ(law: Draw) -> None:
    """40 replicates at 10%: more than 12 that differ have probability 2e-4."""
    generator = np.random.default_rng(3)
    problems = [[law(generator, size) for size in (3, 40, 7, 1, 20)] for _ in range(40)]
    assert sum(permutation_p_value(groups) <= 0.1 for groups in problems) <= 12


def test_small_unequal_classes_differ() -> None:
    """Ten classes of 20 points; in three, half the points break: pairs of means do not show it, all together do."""
    groups = [[0.7, 0.99] * 10] * 3 + [[0.97, 0.99] * 10] * 7
    assert mean_differences(groups, 0.99).p_value > 0.01
    assert permutation_p_value(groups) < 0.01


def test_large_classes_are_sampled_and_no_class_is_lost() -> None:
    spread, single = np.linspace(0.5, 1.0, 30_000), [0.0]
    assert permutation_p_value([spread, spread]) > 0.5
    assert permutation_p_value([spread, spread, single]) < 0.01


def test_a_pair_differs_where_its_interval_excludes_zero() -> None:
    """The p-value of two groups is the level at which the interval of the difference reaches 0, found by bisection."""
    rng = np.random.default_rng(0)
    lower, upper = rng.beta(2.0, 3.0, 40), rng.beta(3.0, 2.0, 60)
    upper_level, lower_level = 1.0 - 1e-12, 0.5
    for _ in range(60):
        middle = (upper_level + lower_level) / 2.0
        low, high = (mean_interval(group, middle) for group in (lower, upper))
        differs = (high.mean - low.mean) ** 2 > (low.high - low.mean) ** 2 + (high.mean - high.low) ** 2
        upper_level, lower_level = (upper_level, middle) if differs else (middle, lower_level)
    assert 1.0 - lower_level <= mean_differences([lower, upper], 0.99).p_value <= 1.34 * (1.0 - lower_level)


def test_groups_that_may_be_the_least_robust() -> None:
    low, middle, high = [0.1, 0.2] * 30, [0.5, 0.6] * 30, [0.8, 0.9] * 30
    assert mean_differences([middle, high, low], 0.99).least_robust == (2,)
    assert mean_differences([low, high, low], 0.99).least_robust == (0, 2)
    pair = [0.5, 0.6]
    assert mean_differences([low, pair, high], 0.99).least_robust == (0, 1)


def test_without_two_groups_nothing_differs() -> None:
    assert np.isnan(mean_differences([[0.5] * 9], 0.99).p_value)
    assert np.isnan(permutation_p_value([[0.5] * 9]))
    assert permutation_p_value([[1.0] * 50, [1.0] * 50, [1.0]]) == 1.0
    assert mean_differences([], 0.99).least_robust == ()
    assert mean_differences([[1.0] * 50, [1.0] * 50], 0.99).p_value == 1.0


def test_equal_means_of_unlike_laws_seldom_differ() -> None:
    """150 replicates at 1%: more than 7 that differ would have probability below 1e-3; ranks tell most apart."""
    rng = np.random.default_rng(2)
    problems = [[law(rng, size) for law, size in zip(LAWS, (50, 200, 20, 100), strict=True)] for _ in range(150)]
    assert sum(mean_differences(groups, 0.99).p_value < 0.01 for groups in problems) <= 7
    assert sum(kruskal(*groups).pvalue < 0.01 for groups in problems) > 125
