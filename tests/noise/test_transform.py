"""Noise that is not added: single copies, right counts, and refused functions."""

from __future__ import annotations

import math
import random
from functools import partial
from itertools import count

import numpy as np
import pytest
import torch
from helpers.measured import COUNT, clean_of

import brittle
from brittle.errors import ParameterError
from brittle.intervals import clopper_pearson
from brittle.measure import Sample
from brittle.noise import Stream, Transform
from brittle.scores import MonteCarlo, NoiseScore, Shrinkage
from brittle.scores.catalogue import CATALOGUE

SURE = 1 - 1e-6
"""Confidence of the intervals in comparisons with the truth."""

WEIGHTS = torch.tensor([0.5, 1.0, 2.0])
"""Weights of the coordinates in the margin of the linear network."""

RATE = 4.0


def exponential(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return x + torch.empty_like(x).exponential_(RATE, generator=generator)


def falling_classifier() -> brittle.Classifier:
    """Return a classifier with the margin `2 - w x` of class 0 over class 1."""
    network = torch.nn.Linear(3, 2)
    with torch.no_grad():
        network.weight.copy_(torch.stack((-WEIGHTS, torch.zeros(3))))
        network.bias.copy_(torch.tensor([2.0, 0.0]))
    return brittle.Classifier(network, bounds=(0, 1))


def points(number: int = 6) -> torch.Tensor:
    return torch.linspace(0.0, 0.5, number)[:, None] * torch.ones(3)


def flips_by_exponentials(margin: float) -> float:
    """Return `P(w e > m)` for independent exponential numbers of one rate and distinct weights (hypoexponential)."""
    weights = (WEIGHTS / RATE).tolist()
    return sum(
        math.exp(-margin / w) * math.prod(w / (w - other_w) for other_w in weights if other_w != w) for w in weights
    )


@pytest.mark.parametrize(
    "score",
    [
        partial(MonteCarlo, draws=400),
        partial(MonteCarlo, draws=500, precision=0.3),
        partial(Shrinkage, draws=200, limit=None),
    ],
    ids=["monte_carlo", "precision", "all_draws"],
)
def test_noise_without_symmetry_covers_the_known_truth(score) -> None:
    """Intervals of 6 points at 1 - 1e-6 cover it: fails falsely once in 16,000 runs of all cases; the seed is fixed."""
    x = points()
    estimate = score(noise=Transform(exponential))(falling_classifier(), x, confidence=SURE)
    expected = torch.tensor([flips_by_exponentials(2.0 - float(WEIGHTS @ row)) for row in x], dtype=torch.float64)
    assert ((estimate.low <= expected) & (expected <= estimate.high)).all()
    assert float((estimate.value - expected).abs().max()) < 0.15


def test_copies_are_single_and_have_the_exact_binomial_interval() -> None:
    noise = Transform(exponential)
    clean = clean_of(falling_classifier(), points(COUNT))
    sampled = Sample(noise, 40)(falling_classifier(), clean)
    assert (sampled.votes.members, {*sampled.votes.units.tolist()}) == (1, {40})
    flips = sampled.votes.flips[:, 1].numpy()
    score = MonteCarlo(noise=noise, draws=40, limit=None)
    estimate = score.estimate({Sample(noise, 40, votes_only=True): sampled}, 0.99)
    low, high = clopper_pearson(flips, 40, 0.99)
    assert np.allclose(estimate.low, low)
    assert np.allclose(estimate.high, high)
    assert np.allclose(estimate.value, flips / 40)


def test_a_copy_depends_on_the_point_and_its_number_alone() -> None:
    noise, like = Transform(exponential), torch.zeros(3, 3)

    def stream(rows: torch.Tensor, *ids: str, seed: int = 0) -> Stream:
        return Stream(noise, rows, ids, seed, "test")

    together = stream(like, "a", "b", "c").copies(5)[:, :, 0]
    assert torch.equal(stream(like[:1], "b").copies(5)[0, :, 0], together[1])
    assert not torch.equal(stream(like[:1], "b", seed=1).copies(5)[0, :, 0], together[1])
    assert together.flatten(0, 1).unique(dim=0).shape[0] == 15
    later = stream(like, "a", "b", "c")
    later.copies(2)
    assert torch.equal(later.copies(1)[:, :, 0], together[:, 2:3])
    later.keep([2])
    assert torch.equal(later.copies(2)[:, :, 0], together[2:, 3:])


def shared(x: torch.Tensor, generator: torch.Generator) -> np.ndarray:
    return x.numpy() + np.float32(np.random.rand() + random.random() + float(torch.rand(1)))  # noqa: NPY002


def test_shared_generators_are_restored() -> None:
    numbers = []
    for copies in (4, 0):
        torch.manual_seed(5)
        np.random.seed(5)  # noqa: NPY002
        random.seed(5)
        if copies:
            Stream(Transform(shared), torch.zeros(1, 3), ("a",), 0, "test").copies(copies)
        numbers.append((float(torch.rand(1)), np.random.rand(), random.random()))  # noqa: NPY002
    assert numbers[0] == numbers[1]


NUMBERS = count()
REFUSED = {
    "two results": lambda x, g: x + next(NUMBERS),
    "shape [3]; found shape [1]": lambda x, g: x[:1],
    "found type NoneType": lambda x, g: None,
    "1 NaN or infinite": lambda x, g: torch.where(torch.arange(3) == 0, torch.nan, x),
    "ValueError: no": lambda x, g: (_ for _ in ()).throw(ValueError("no")),
}


@pytest.mark.parametrize(("message", "fn"), REFUSED.items(), ids=list(REFUSED))
def test_a_function_that_cannot_be_noise_is_refused(message: str, fn) -> None:
    with pytest.raises(ParameterError) as caught:
        MonteCarlo(noise=Transform(fn, name="mine"), draws=4, limit=None)(falling_classifier(), points())
    assert message in str(caught.value)
    assert "mine()" in str(caught.value)


def test_scores_with_a_covariance_or_pairs_refuse_it_by_name() -> None:
    served = {"monte_carlo", "shrinkage", "probability_change"}
    for kind in [kind for kind in CATALOGUE.values() if issubclass(kind, NoiseScore)]:
        if kind.name in served:
            kind(noise=Transform(exponential))
            continue
        with pytest.raises(ParameterError, match=r"noise exponential\(\) is not added"):
            kind(noise=Transform(exponential))


@pytest.mark.parametrize("wrong", [3, "two words"], ids=str)
def test_a_transform_has_a_name_of_one_word_and_plain_parameters(wrong) -> None:
    with pytest.raises(ParameterError, match="name of one word"):
        Transform(exponential, name=wrong)
    with pytest.raises(ParameterError, match="a number or a text"):
        Transform(exponential, parameters={"a": [1]})  # type: ignore[dict-item]
