"""Scores that stop once a question is answered: what they take the place of, and how often they are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.problems import inputs, small_classifier
from scipy import stats
from torch import Tensor

import brittle
from brittle.errors import ParameterError
from brittle.estimate import MOST_DRAWS
from brittle.noise import Uniform
from brittle.scores import LogitMargin, Moments, MonteCarlo, ProbabilityChange, Shrinkage, Softmax, Taylor
from brittle.scores.choose import drawn_until

POINTS = 25


def margin(x: Tensor) -> Tensor:
    """Two classes; under noise of sigma 1 a point at `m` flips with probability `Phi(-m)`."""
    return torch.stack((x[:, 0], torch.zeros_like(x[:, 0])), dim=1)


@pytest.mark.parametrize(("limit", "beyond"), [(0.5, 0.15), (0.9, 0.07)])
def test_few_points_are_called_wrong(limit: float, beyond: float) -> None:
    """Points near the limit on either side: each is called wrong with at most 0.5%, in spite of many looks.

    More than 4 of 50 are a chance of 7e-6 at most.
    """
    truths = np.repeat([limit - beyond, limit + beyond], POINTS)
    x = torch.from_numpy(stats.norm.ppf(truths))[:, None]
    x = torch.where(x > 0, x, 1e-9)  # the first class is predicted everywhere
    truths = stats.norm.cdf(x[:, 0].numpy())
    found = MonteCarlo(1.0, draws=1000, limit=limit)(brittle.Classifier(margin, (-9, 9)), x, seed=1)
    holds, breaks = (found.high <= 1 - limit).numpy(), (found.low >= 1 - limit).numpy()
    assert int((holds & (truths < limit)).sum() + (breaks & (truths > limit)).sum()) <= 4
    assert int((holds & (truths > limit)).sum()) > POINTS // 2
    assert float(found.passes.double().mean()) < 1001


def test_the_mean_over_points_is_right_though_each_stopped() -> None:
    """Uniform flip probabilities; 4.5 standard errors, so a false failure has a chance of 7e-6.

    The mean of the shares is 0.045 too high: five and a half standard errors.
    """
    truths = torch.linspace(0.0005, 0.4995, 800, dtype=torch.float64)
    x = -torch.special.ndtri(truths)[:, None]
    found = MonteCarlo(1.0, draws=100, limit=0.9)(brittle.Classifier(margin, (-9, 9)), x, seed=1)
    wrong = found.value - truths
    assert abs(float(wrong.mean())) < 4.5 * float(wrong.std()) / len(truths) ** 0.5


def test_an_interval_is_as_narrow_as_was_asked() -> None:
    found = MonteCarlo(0.5, draws=6000, precision=0.2)(small_classifier(), inputs(3))
    assert bool((found.high - found.low <= 0.2).all())
    assert int(found.passes.max()) < 6000


def test_the_rule_takes_the_place_of_monte_carlo_at_its_noise() -> None:
    other = Uniform(0.3)
    scores = [LogitMargin(), MonteCarlo(0.1, draws=100, limit=None), Moments(0.1), Moments(noise=other)]
    found = drawn_until(scores, "decided", 0.9)
    stopped = [MonteCarlo(noise=noise, draws=MOST_DRAWS, limit=0.9) for noise in (Moments(0.1).noise, other)]
    assert found == (scores[0], stopped[0], *scores[2:], stopped[1])
    assert drawn_until(scores) == tuple(scores)
    assert drawn_until(scores, "decided") == found
    narrow = drawn_until([Moments(0.1)], precision=0.02, most_draws=500)
    assert narrow == (Moments(0.1), MonteCarlo(0.1, draws=500, precision=0.02))


def test_copies_are_clipped_where_those_of_the_scores_are() -> None:
    other = Uniform(0.3)
    scores = [
        MonteCarlo(0.1, draws=100, clip=True, limit=None),
        Shrinkage(0.1, clip=True, limit=None),
        Taylor(0.1),
        Moments(noise=other),
    ]
    found = drawn_until(scores, "decided", 0.9)
    rule = {"draws": MOST_DRAWS, "limit": 0.9}
    assert found[0] == MonteCarlo(0.1, clip=True, **rule)  # type: ignore[arg-type]
    assert found[1:] == (*scores[1:], MonteCarlo(noise=other, **rule))  # type: ignore[arg-type]
    both = drawn_until([MonteCarlo(0.1, limit=None), MonteCarlo(0.1, clip=True, limit=None)], precision=0.1)
    assert both == tuple(MonteCarlo(0.1, draws=MOST_DRAWS, clip=clip, precision=0.1) for clip in (False, True))


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"limit": 0.9}, "decided"),
        ({"until": "settled", "limit": 0.9}, "settled"),
        ({"until": "decided", "limit": float("nan")}, "nan"),
        ({"until": "decided", "limit": 0.9, "most_draws": 3}, "3"),
    ],
)
def test_what_is_no_rule(options: dict[str, Any], fact: str) -> None:
    with pytest.raises(ParameterError, match=fact):
        brittle.score(small_classifier(), inputs(2), [Moments(0.1)], **options)


@pytest.mark.parametrize("scores", [[Softmax()], [ProbabilityChange(0.1)]], ids=["no noise", "no flip probability"])
def test_a_rule_needs_a_noise(scores: list[Any]) -> None:
    with pytest.raises(ParameterError, match="add one, such as moments"):
        drawn_until(scores, "decided", 0.9)
