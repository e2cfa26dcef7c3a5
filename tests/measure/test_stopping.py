"""Draws until a question is answered: as many as it needs, of the point alone, and each counted once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from helpers.problems import Wrapped, inputs, small_classifier, small_network
from torch import Tensor

import brittle
from brittle.errors import ParameterError
from brittle.intervals import decided, sequence_interval
from brittle.measure import Clean, SampleUntil
from brittle.measure.forward import look
from brittle.measure.stopping import FIRST_LOOK, GROWTH, looks
from brittle.noise import Gaussian, Stream

COUNT, MOST, SIGMA = 10, 240, 0.5
RULES = [{"limit": 0.5}, {"limit": 0.9}, {"precision": 0.2}, {"limit": 0.9, "precision": 0.1}, {}]


def clean_of(classifier: brittle.Classifier, x: Tensor) -> Clean:
    return look(classifier, x, [f"point {number}" for number in range(len(x))], seed=0)


def one_by_one(classifier: brittle.Classifier, clean: Clean, x: Tensor, point: int, need: SampleUntil) -> list[int]:
    """Draws and flips of one point whose copies go through the network alone, looked at by the rule alone."""
    flips, stream = 0, Stream(need.noise, x[point : point + 1], (clean.ids[point],), clean.seed, "until")
    own, drawn = int(clean.predicted[point]), 0
    for end in looks(need.draws):
        while drawn < end:
            with torch.no_grad():
                flips += int(classifier(x[point : point + 1] + stream.draw(1)[0]).argmax()) != own
            drawn += 1
        if need.limit is not None and bool(decided(flips, flips, drawn, need.limit, 0.99)):
            break
        low, high = sequence_interval(flips, drawn, 0.99)
        if need.precision is not None and float(high - low) <= need.precision:
            break
    return [drawn, flips]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_counts_are_those_of_every_point_alone(rule: dict[str, float]) -> None:
    classifier, x = small_classifier(), inputs(COUNT)
    clean, need = clean_of(classifier, x), SampleUntil(Gaussian(SIGMA), MOST, **rule)  # type: ignore[arg-type]
    before = classifier.passes
    found = need(classifier, clean)
    assert classifier.passes - before == int(found.draws.sum())
    assert found.passes.tolist() == [draws + 1 for draws in found.draws.tolist()]
    assert torch.stack((found.draws, found.flips), 1).tolist() == [
        one_by_one(classifier, clean, x, point, need) for point in range(COUNT)
    ]
    assert len(set(found.draws.tolist())) > 2 or not rule


def test_points_that_differ_in_draws_do_not_change_each_other() -> None:
    classifier, x, need = small_classifier(), inputs(COUNT), SampleUntil(Gaussian(SIGMA), MOST, limit=0.9)
    together = need(classifier, clean_of(classifier, x))
    half = clean_of(classifier, x).only(torch.arange(0, COUNT, 2))
    alone = need(classifier, half)
    assert torch.equal(alone.draws, together.draws[::2])
    assert torch.equal(alone.flips, together.flips[::2])


@pytest.mark.parametrize("rule", [{"limit": 0.9}, {"precision": 0.4}], ids=str)
def test_more_draws_go_on_from_fewer(rule: dict[str, float]) -> None:
    """From counts of any number of draws, at a look or between two, come the counts of all draws; ties among them."""
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where((x[:, 0, 0, 0] > 1.3)[:, None], 0.0, z)))
    clean = clean_of(classifier, inputs(COUNT))
    whole = SampleUntil(Gaussian(SIGMA), MOST, **rule)  # type: ignore[arg-type]
    expected = whole(classifier, clean)
    assert int(expected.ties[expected.draws == MOST].sum()) > 0
    assert len(set(expected.draws.tolist())) > 2
    for first in sorted({7, 58, *expected.draws.tolist()} - {MOST}):
        few = replace(whole, draws=first)(classifier, clean)
        still = (few.draws == first).nonzero().flatten()
        before = classifier.passes
        flips = (few.flips[still], few.flips_without_ties[still])
        found = whole.go_on(classifier, clean.only(still), first, *flips)
        assert classifier.passes - before == int(expected.draws[still].sum()) - first * len(still)
        for name in ("draws", "flips", "flips_without_ties", "ties", "nonfinite", "passes"):
            assert torch.equal(getattr(found, name), getattr(expected, name)[still]), (name, first)
        done = (few.draws < first).nonzero().flatten()
        assert torch.equal(few.flips[done], expected.flips[done])


def test_a_point_without_logits_costs_nothing() -> None:
    def broken(x: Tensor, logits: Tensor) -> Tensor:
        return torch.where((x[:, :1, 0, 0] == 0.25), torch.nan, logits)

    x = inputs(4)
    x[2, 0, 0, 0] = 0.25
    classifier = brittle.Classifier(Wrapped(broken))
    found = SampleUntil(Gaussian(SIGMA), 40)(classifier, clean_of(classifier, x))
    assert found.draws.tolist() == [40, 40, 0, 40]


def test_ties_count_on_both_sides() -> None:
    """Every copy ties: nothing is decided, and each is counted as a tie."""
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where((x > 1).flatten(1).any(1)[:, None], 0.0, z)))
    found = SampleUntil(Gaussian(SIGMA), 60, limit=0.5)(classifier, clean_of(classifier, inputs(3).round()))
    assert found.ties.tolist() == found.flips.tolist() == [60] * 3
    assert found.flips_without_ties.tolist() == [0] * 3


def test_the_looks_grow_with_the_draws() -> None:
    found = list(looks(1000))
    assert found[0] == FIRST_LOOK
    assert found[-1] == 1000
    assert all(later - sooner <= max(FIRST_LOOK, sooner // GROWTH) for sooner, later in pairwise(found))
    assert list(looks(2)) == [2]


@pytest.mark.parametrize("draws", [0, 1, 2.5, True])
def test_draws_out_of_range(draws: int) -> None:
    with pytest.raises(ParameterError, match="draws must be"):
        SampleUntil(Gaussian(SIGMA), draws)


def test_a_copy_that_is_not_finite_is_a_flip() -> None:
    network = small_network()

    def broken(x: Tensor) -> Tensor:
        return torch.where((x < 0).flatten(1).any(1)[:, None], torch.inf, network(x))

    classifier = brittle.Classifier(broken)
    found = SampleUntil(Gaussian(SIGMA), 20)(classifier, clean_of(classifier, inputs(3)))
    assert found.nonfinite.tolist() == found.flips.tolist() == found.flips_without_ties.tolist() == [20] * 3
