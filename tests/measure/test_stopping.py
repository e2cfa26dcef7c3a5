"""Draws until a question is answered: as many as it needs, of the point alone, and each counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.problems import Wrapped, inputs, small_classifier, small_network
from torch import Tensor

import brittle
from brittle.intervals import decided, sequence_interval
from brittle.measure import Clean, SampleUntil
from brittle.measure.forward import look
from brittle.measure.stopping import StoppingRule, looks
from brittle.noise import Gaussian, Stream

COUNT, MOST, SIGMA = 8, 160, 0.5
RULES = [{"limit": 0.5}, {"precision": 0.25}, {"limit": 0.9, "precision": 0.2}, {}]


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


@pytest.mark.parametrize("rule", [{"limit": 0.9}, {"precision": 0.4}], ids=str)
def test_fewer_draws_are_the_first_of_more(rule: dict[str, float]) -> None:
    """Points that have their answer within fewer draws have the same counts where more are allowed; ties among them."""
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where((x[:, 0, 0, 0] > 1.3)[:, None], 0.0, z)))
    clean = clean_of(classifier, inputs(COUNT))
    whole = SampleUntil(Gaussian(SIGMA), MOST, **rule)  # type: ignore[arg-type]
    expected = whole(classifier, clean)
    assert int(expected.ties[expected.draws == MOST].sum()) > 0
    assert len(set(expected.draws.tolist())) > 2
    for first in (7, 58):
        few = replace(whole, draws=first)(classifier, clean)
        assert torch.equal(few.draws, expected.draws.clamp_max(first))
        done = (few.draws < first).nonzero().flatten()
        for name in ("flips", "flips_without_ties", "ties", "nonfinite", "passes"):
            assert torch.equal(getattr(few, name)[done], getattr(expected, name)[done]), (name, first)


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


def test_a_copy_that_is_not_finite_is_a_flip() -> None:
    network = small_network()

    def broken(x: Tensor) -> Tensor:
        return torch.where((x < 0).flatten(1).any(1)[:, None], torch.inf, network(x))

    classifier = brittle.Classifier(broken)
    found = SampleUntil(Gaussian(SIGMA), 20)(classifier, clean_of(classifier, inputs(3)))
    assert found.nonfinite.tolist() == found.flips.tolist() == found.flips_without_ties.tolist() == [20] * 3


SHORT = [
    StoppingRule(14, 0.5, None, 0.9),
    StoppingRule(16, 0.25, None, 0.9),
    StoppingRule(16, None, 0.8, 0.9),
    StoppingRule(14, 0.6, 0.75, 0.8),
]
LONG = [StoppingRule(2000, 0.9, None, 0.99), StoppingRule(200, None, 0.25, 0.9)]


def stops(rule: StoppingRule, flip: float) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """At each look the counts that stop there: draws, flips and how probable each is."""
    going, found, ends = np.array([1.0]), [], set(looks(rule.most))
    for drawn in range(1, rule.most + 1):
        going = np.append(going * (1 - flip), 0.0) + np.append(0.0, going * flip)
        if drawn in ends:
            flips, draws = np.arange(drawn + 1), np.full(drawn + 1, drawn)
            stopped = (rule.answered(flips, flips, draws) | (drawn == rule.most)) & (going > 0)
            found.append((draws[stopped], flips[stopped], going[stopped]))
            going = np.where(stopped, 0.0, going)
    return [each for each in found if len(each[0])]


@pytest.mark.parametrize(
    ("rule", "flips"),
    [*((rule, np.linspace(0.02, 0.98, 17)) for rule in SHORT), *((rule, (0.02, 0.48)) for rule in LONG)],
    ids=map(str, (*SHORT, *LONG)),
)
def test_its_mean_is_the_flip_probability(rule: StoppingRule, flips: Sequence[float]) -> None:
    """The probability of every count is found draw by draw, and the mean is exact; the plain share is biased."""
    bias = []
    for flip in flips:
        ends = stops(rule, flip)
        draws, seen, probability = (np.concatenate(parts) for parts in zip(*ends, strict=True))
        assert probability.sum() == pytest.approx(1.0, abs=1e-9)
        assert probability @ rule.unbiased_shares(seen, draws) == pytest.approx(flip, abs=1e-9)
        bias.append(abs(probability @ (seen / draws) - flip))
    assert max(bias) > 1e-4
