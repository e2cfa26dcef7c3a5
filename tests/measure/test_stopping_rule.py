"""The unbiased share of counts that a rule stopped, beside every order of the draws."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from brittle.intervals import sequence_interval
from brittle.measure.stopping import StoppingRule

pytestmark = pytest.mark.xdist_group("stopping rule")  # one process computes the tables

RULES = [
    StoppingRule(14, 0.5, None, 0.9),
    StoppingRule(16, 0.9, None, 0.6),
    StoppingRule(16, 0.25, None, 0.9),
    StoppingRule(16, None, 0.8, 0.9),
    StoppingRule(14, 0.6, 0.75, 0.8),
]
LONG = [StoppingRule(3000, 0.9, None, 0.99), StoppingRule(600, 0.5, None, 0.9), StoppingRule(400, None, 0.2, 0.99)]


def shares(rule: StoppingRule, counts: list[tuple[int, int]]) -> np.ndarray:
    draws, flips = np.array(counts).T
    return rule.unbiased_shares(flips, draws)


@cache
def stops(rule: StoppingRule, flip: float) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """At each look the counts that stop there: draws, flips and how probable each is."""
    going, found, ends = np.array([1.0]), [], set(rule.looks())
    for drawn in range(1, rule.most + 1):
        going = np.append(going * (1 - flip), 0.0) + np.append(0.0, going * flip)
        if drawn in ends:
            flips, draws = np.arange(drawn + 1), np.full(drawn + 1, drawn)
            stopped = (rule.answered(flips, flips, draws) | (drawn == rule.most)) & (going > 0)
            found.append((draws[stopped], flips[stopped], going[stopped]))
            going = np.where(stopped, 0.0, going)
    return [each for each in found if len(each[0])]


def orders(rule: StoppingRule) -> dict[tuple[int, int], list[int]]:
    """For each count with which the rule stops: the orders that end there, and those of them that begin with a flip."""
    counts = {look: np.arange(look + 1) for look in rule.looks()}
    over = {look: rule.answered(flips, flips, np.full(look + 1, look)) for look, flips in counts.items()}
    found: dict[tuple[int, int], list[int]] = {}
    for draws in product((0, 1), repeat=rule.most):
        for look in counts:
            flips = sum(draws[:look])
            if look == rule.most or over[look][flips]:
                seen = found.setdefault((look, flips), [0, 0])
                seen[0] += 1
                seen[1] += draws[0]
                break
    return found


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_it_is_the_share_of_orders_that_begin_with_a_flip(rule: StoppingRule) -> None:
    """The orders are counted one by one; those of one count are equally likely whatever the probability is."""
    found = orders(rule)
    assert len({draws for draws, _ in found}) > 1
    want = [first / every for every, first in found.values()]
    assert np.allclose(shares(rule, list(found)), want, atol=1e-12)
    biased = [abs(flips / draws - each) for (draws, flips), each in zip(found, want, strict=True)]
    assert max(biased) > 0.01


@pytest.mark.parametrize("rule", LONG, ids=str)
@pytest.mark.parametrize("flip", [0.02, 0.3, 0.48])
def test_its_mean_is_the_flip_probability(rule: StoppingRule, flip: float) -> None:
    """The probability of every count is found draw by draw, and the mean is exact."""
    ends = stops(rule, flip)
    probability = np.concatenate([each for _, _, each in ends])
    found = np.concatenate([rule.unbiased_shares(flips, draws) for draws, flips, _ in ends])
    assert probability.sum() == pytest.approx(1.0, abs=1e-9)
    assert probability @ found == pytest.approx(flip, abs=1e-9)


@pytest.mark.parametrize("rule", LONG, ids=str)
@pytest.mark.parametrize("flip", [0.02, 0.3, 0.48])
def test_it_lies_in_the_interval_and_on_the_side_that_was_decided(rule: StoppingRule, flip: float) -> None:
    """Of every count that comes up more often than once in ten million times."""
    for draws, flips, probability in stops(rule, flip):
        known = probability > 1e-7
        found, share = rule.unbiased_shares(flips[known], draws[known]), flips[known] / draws[known]
        low, high = sequence_interval(flips[known], draws[known], rule.confidence)
        assert bool(((low <= found) & (found <= high)).all())
        if rule.limit is not None and draws[0] < rule.most:
            assert bool(((found > 1 - rule.limit) == (share > 1 - rule.limit)).all())


def test_points_without_draws_have_no_share_of_flips() -> None:
    assert RULES[0].unbiased_shares(np.array([0]), np.array([0])).tolist() == [0.0]
