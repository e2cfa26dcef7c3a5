"""Published flip probabilities of rare events are right; without agreement of both methods the value is a bound.

Truths are closed forms or one-dimensional integrals (`helpers.rare_truth`, `helpers.rare_hostile`). An interval at 99%
misses at most 1 in 100; of the 6 numbers of a test more than 2 misses happen by chance once in 50,000. The longer check
over all problems is `tests/checks/rare_coverage.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from helpers.rare_hostile import hostile
from helpers.rare_truth import OfMargins, Problem, problem
from scipy import stats
from torch import Tensor

import brittle
from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.extensions.rare_events.rare_event import ByLevels, RareSampled
from brittle.noise import DiagonalGaussian, FactorGaussian, Uniform
from brittle.scores import RareEvent

SEEDS, MOST_MISSES = 6, 2


def estimate(network: torch.nn.Module, size: int, score: RareEvent, count: int = SEEDS) -> Estimate:
    return score(brittle.Classifier(network, bounds=(-1, 1)), torch.zeros(count, size))


def has_number(flips: Estimate) -> Tensor:
    """Return where a rare probability is published."""
    return flips.status == int(Status.COARSE)


def misses_truth(flips: Estimate, truth: Problem) -> Tensor:
    return (flips.low > truth.probability) | (flips.high < truth.probability)


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("name", "size", "probability", "numbers"),
    [
        ("several classes", 10, 1e-6, 4),
        ("two opposite half-spaces", 2, 1e-9, 4),
        ("bent away", 10, 1e-4, 3),
    ],
)
def test_numbers_and_bounds_hold(name: str, size: int, probability: float, numbers: int) -> None:
    """At least `numbers` runs give a number."""
    case = problem(name, size, probability)
    flips = estimate(case.network, size, RareEvent(1.0))
    fine = has_number(flips)
    assert int(misses_truth(flips, case).sum()) <= MOST_MISSES
    assert int(fine.sum()) >= numbers
    assert bool((flips.low[~fine] == 0).all())
    assert set(flips.evidence[fine].tolist()) == {int(Evidence.SAMPLED)}  # pyright: ignore[reportOptionalSubscript]
    assert bool((flips.high[fine] < 0.05).all())


@pytest.mark.parametrize(
    ("name", "size", "probability"),
    [
        ("a cliff beside a slope", 2, 2.3e-4),
        ("outside a ball as a cliff", 100, 1e-3),
        ("short noise as a cliff", 100, 1e-3),
    ],
)
def test_a_cliff_that_no_margin_leads_to_is_not_missed(name: str, size: int, probability: float) -> None:
    """Subset simulation follows the slope beside it, and gives a hundredth of the truth."""
    case = hostile(name, size, probability)
    flips = estimate(case.network, size, RareEvent(1.0))
    assert int(misses_truth(flips, case).sum()) <= MOST_MISSES
    assert set(flips.status.tolist()) <= {int(Status.UNFORESEEN), int(Status.COARSE), int(Status.DISAGREE)}


def test_a_cliff_that_hardly_any_ray_meets_is_not_seen() -> None:
    """The limit that the documentation states: a ball of 0.2 sigma, 4 sigma away, and a number that is wrong.

    The truth is 1e-5, and the slope beside it 1e-7. If a better method finds the ball, this test is to be reversed.
    """
    case = hostile("a tiny ball as a cliff", 2, 1e-5)
    flips = estimate(case.network, 2, RareEvent(1.0))
    assert int((has_number(flips) & misses_truth(flips, case)).sum()) >= 2
    assert flips.counted is not None
    assert bool((flips.counted[1] > case.probability).all())


def test_frequent_flips_are_counted() -> None:
    flips = estimate(problem("a half-space", 6, 0.3).network, 6, RareEvent(1.0))
    assert set(flips.evidence.tolist()) == {int(Evidence.COUNTED)}  # pyright: ignore[reportOptionalMemberAccess]
    assert flips.passes.tolist() == [201] * SEEDS
    assert int(((flips.low > 0.3) | (flips.high < 0.3)).sum()) <= MOST_MISSES


def test_no_flip_at_all_is_a_bound() -> None:
    flips = estimate(OfMargins(lambda u: 1.0 + 0.0 * u[:, :1]), 3, RareEvent(1.0), 2)
    assert flips.status.tolist() == [int(Status.NO_FLIP)] * 2
    assert flips.value.tolist() == flips.low.tolist() == [0.0, 0.0]
    assert torch.allclose(flips.high, torch.full_like(flips.high, 1 - 0.005 ** (1 / 200)))


def test_normal_noise_of_any_covariance_is_right() -> None:
    """A linear margin under a covariance: `P = Phi(-b / sqrt(g K g))`."""
    factor = torch.tensor([[1.0, 0.0], [0.5, 0.2], [0.0, 0.0]])
    scale = torch.tensor([1.0, 0.5, 0.0])
    direction = torch.tensor([1.0, 1.0, 1.0])
    for noise, variance in (
        (FactorGaussian(1.0, factor), float((factor.T @ direction).square().sum())),
        (DiagonalGaussian(1.0, scale), 1.25),
    ):
        b = 5.0 * variance**0.5
        flips = estimate(OfMargins(lambda u, b=b: b - u @ direction[:, None]), 3, RareEvent(noise=noise), 3)
        assert int(has_number(flips).sum()) >= 2
        truth = float(torch.special.ndtr(torch.tensor(-5.0, dtype=torch.float64)))
        assert bool(((flips.low < truth) & (truth < flips.high)).all())


def test_other_noise_is_refused() -> None:
    with pytest.raises(ParameterError, match="rare_event") as caught:
        RareEvent(noise=Uniform(0.1))
    assert caught.value.code == "parameter"


# Both methods together: each piece of evidence against them alone forbids a number.


VALUE = 1e-5


def levels(log: float = math.log(VALUE), variance: float = 0.2) -> ByLevels:
    logs, variances = torch.tensor([[log], [variance]], dtype=torch.float64)
    return ByLevels(logs, variances, torch.tensor([8]))


AGREED = RareSampled(
    drawn=200,
    flips=torch.tensor([0]),
    ties=torch.tensor([0]),
    subset=levels(),
    stretched=levels(),
    shrunk=torch.tensor([0]),
    shrunk_drawn=150,
    nonfinite=torch.tensor([0]),
    tied=torch.tensor([False]),
    passes=torch.tensor([5000]),
)


def judge(sampled: RareSampled) -> tuple[Estimate, Status]:
    score = RareEvent(0.1)
    estimate = score.estimate({score.needs[0]: sampled}, 0.99)
    return estimate, Status(int(estimate.status))


def test_methods_that_agree_give_a_number() -> None:
    estimate, status = judge(AGREED)
    assert status is Status.COARSE
    assert VALUE < float(estimate.value) < 1.5 * VALUE  # the logarithms are low by half their variance
    assert float(estimate.low) < VALUE / 2
    assert float(estimate.high) > 2 * VALUE


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"shrunk": torch.tensor([4])}, Status.UNFORESEEN),
        ({"stretched": levels(math.log(1000 * VALUE))}, Status.UNFORESEEN),
        ({"stretched": levels(math.log(VALUE / 1000))}, Status.DISAGREE),
        ({"stretched": levels(math.nan, math.nan)}, Status.DISAGREE),
        ({"subset": levels(-math.inf, 0.0)}, Status.UNFORESEEN),
        ({"flips": torch.tensor([4])}, Status.DISAGREE),
        # None of 200 plain copies flips: at most 0.03, even if both methods agree on more.
        (dict.fromkeys(("subset", "stretched"), levels(math.log(0.1))), Status.DISAGREE),
    ],
)
def test_any_contradiction_forbids_a_number(change: dict[str, object], status: Status) -> None:
    changed = replace(AGREED, **change)
    estimate, verdict = judge(changed)
    assert verdict is status
    assert float(estimate.low) == 0.0
    assert float(estimate.high) >= float(stats.beta.ppf(0.995, int(changed.flips) + 1, 200 - int(changed.flips))) - 1e-9
