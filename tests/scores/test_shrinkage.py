"""Shrinkage: its formula, its error beside those of its two parts on problems with exact answers, and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from helpers.laws import estimate
from helpers.problems import Shallow, Wrapped, inputs, shallow_points
from scipy import stats
from torch import Tensor

import brittle
from brittle.estimate import Evidence
from brittle.measure import Sample, Sampled
from brittle.measure.forward import Clean
from brittle.measure.sample_sums import KEPT_DRAWS, SampleSums
from brittle.noise import Gaussian
from brittle.scores import Moments, MonteCarlo, Shrinkage
from brittle.scores.evidence import counted
from brittle.scores.shrinkage import smoothed_share


@dataclass(frozen=True)
class Problem:
    """A margin over standard normal noise around `at`, and the probability that it changes sign."""

    name: str
    margin: Callable[[Tensor], Tensor]
    at: tuple[float, ...]
    flip: float


def _below(x: float) -> float:
    return float(stats.norm.cdf(x))


def _sample(logits: Tensor) -> tuple[Clean, Sampled]:
    """Return the sums of logits `[B, units, members, C]` whose first class is predicted without noise."""
    points, classes = len(logits), logits.shape[3]
    clean_logits = torch.cat((torch.ones(points, 1), torch.zeros(points, classes - 1)), dim=1)
    clean = Clean(torch.zeros(points, 1), tuple(map(str, range(points))), 0, clean_logits, rows=64)
    sums = SampleSums.start(clean, logits.shape[2])
    for part in logits.split(max(7, logits.shape[1] // 9), dim=1):
        sums.add(part)
    return clean, sums.read()


PROBLEMS = [
    Problem("linear", lambda x: x[..., 0] + 1.0, (0.0,), _below(-1)),
    Problem("shell", lambda x: 4.0 - x[..., 0].square(), (0.5,), _below(-1.5) + _below(-2.5)),
    Problem("exclusive or", lambda x: x[..., 0] * x[..., 1], (1.5, 1.5), 2 * _below(1.5) * _below(-1.5)),
    Problem("absolute value", lambda x: 1.2 - x[..., 0].abs(), (0.1,), _below(-1.1) + _below(-1.3)),
    Problem("a step", lambda x: torch.where(x[..., 0] > 1.2, -3.0, 1.0) + 0.05 * x[..., 0], (0.0,), _below(-1.2)),
]  # fmt: skip


def _estimates(problem: Problem, draws: int, replicates: int) -> dict[str, Tensor]:
    """Return the estimates by counting, by the normal model and by their mixture, from the same draws, `[replicates]`
    each."""
    generator, size = torch.Generator().manual_seed(1), len(problem.at)
    half = torch.randn(replicates, draws // 2, size, generator=generator, dtype=torch.float64)
    margin = problem.margin(torch.tensor(problem.at) + torch.stack((half, -half), dim=2))
    sampled = _sample(torch.stack((margin, torch.zeros_like(margin)), dim=3))[1]
    scores = [MonteCarlo(1.0, draws, limit=None), Moments(1.0, draws), Shrinkage(1.0, draws, limit=None)]
    return {score.name: score.estimate({score.needs[0]: sampled}, 0.99).value for score in scores}


@pytest.mark.every_other
@pytest.mark.parametrize(("draws", "factor"), [(20, 1.35), (80, 1.05)])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_errors_are_near_those_of_the_better_part(problem: Problem, draws: int, factor: float) -> None:
    """Compare root mean square errors over shared draws, so that the error of their ratio is about 1%."""
    values_by_score = _estimates(problem, draws, 2000)
    errors = {name: float((value - problem.flip).square().mean().sqrt()) for name, value in values_by_score.items()}
    assert errors["shrinkage"] <= factor * min(errors["monte_carlo"], errors["moments"])


TREE = Problem("four leaves", lambda x: 0.1 - 3.0 * (x[..., 0] > 1.2) + 2.0 * (x[..., 1] > 0), (0.0, 0.0), _below(-1.2))
"""Nearly half of the copies have a margin just above 0, and none just below."""


@pytest.mark.parametrize(("draws", "factor"), [(80, 1.2), (200, 1.05)])
def test_margins_that_jump_over_0_are_counted(draws: int, factor: float) -> None:
    """Root mean square errors of 2,000 replicates with the same draws; smoothed, it has 5 and 7 times counting's."""
    values_by_score = _estimates(TREE, draws, 2000)
    errors = {name: float((value - TREE.flip).square().mean().sqrt()) for name, value in values_by_score.items()}
    assert errors["shrinkage"] <= factor * errors["monte_carlo"]


@pytest.mark.parametrize("problem", [*PROBLEMS, TREE], ids=lambda problem: problem.name)
def test_estimates_converge_to_the_flip_probability(problem: Problem) -> None:
    """A count of pairs is at most `1 / sqrt(draws)` off by one standard error; 5 of them happen once in 1e6."""
    draws = 20_000
    values = _estimates(problem, draws, 4)["shrinkage"]
    assert float((values - problem.flip).abs().max()) <= 5 * math.sqrt(problem.flip * (1 - problem.flip) * 2 / draws)


def _logits(points: int, pairs: int) -> Tensor:
    """Logits of three classes that bend over the noise, the more the later the point."""
    generator = torch.Generator().manual_seed(5)
    half = torch.randn(points, pairs, 3, generator=generator, dtype=torch.float64)
    noise = torch.stack((half, -half), dim=2)
    bend = torch.linspace(0, 1, points, dtype=torch.float64)[:, None, None, None]
    return noise + bend * noise.square() + torch.tensor([2.5, 0.0, -0.5], dtype=torch.float64)


def test_values_are_those_of_the_formula() -> None:
    """The value is that of the formula in NumPy, from the logits and the value of `Moments`."""
    points, pairs = 6, 30
    logits = _logits(points, pairs)
    _, sampled = _sample(logits)
    draws = 2 * pairs
    score, moments = Shrinkage(1.0, draws=draws, limit=None), Moments(1.0, draws=draws)
    values = score.estimate({Sample(Gaussian(1.0), draws): sampled}, 0.99).value
    models = moments.estimate({Sample(Gaussian(1.0), draws): sampled}, 0.99).value
    for row in range(points):
        margins = (logits[row, :, :, :1] - logits[row, :, :, 1:]).numpy()
        nearest, model = margins.min(axis=2).ravel(), float(models[row])
        quarters = np.subtract(*np.quantile(nearest, [0.75, 0.25])) / 1.349
        bandwidth = 0.5 * min(nearest.std(ddof=1), quarters) * draws**-0.2
        smooth = stats.norm.cdf(-nearest / bandwidth)
        shift = (nearest <= 0) - smooth
        against = (max(0.0, draws * shift.mean() ** 2 / shift.var(ddof=1) - 1) / 5) ** 2
        share = (smooth.mean() + against * (nearest <= 0).mean()) / (1 + against)
        statistics = []
        for competitor in range(2):
            even = margins[:, :, competitor].mean(axis=1)
            odd = (margins[:, 0, competitor] - margins[:, 1, competitor]) / 2
            variance = even.var(ddof=1) + (odd**2).mean()
            alike = 2 * even.var(ddof=1) / variance - 1
            offset = margins[:, :, competitor] - margins[:, :, competitor].mean()
            skewness, kurtosis = (offset**3).mean() / variance**1.5, (offset**4).mean() / variance**2 - 3
            statistics.append(draws * skewness**2 / 6 - (1 + alike**3) + draws * kurtosis**2 / 24 - (1 + alike**4))
        divergence = share * math.log(share / model) + (1 - share) * math.log((1 - share) / (1 - model))
        distance = (max(0.0, float(np.mean(statistics))) + max(0.0, 2 * draws * divergence - 1)) / 5
        ratio = distance + distance**2
        assert float(values[row]) == pytest.approx((model + ratio * share) / (1 + ratio), rel=1e-6)


def test_the_nearest_margins_are_kept_up_to_a_number() -> None:
    logits = _logits(2, KEPT_DRAWS // 2 + 10)
    margins = _sample(logits[:, : KEPT_DRAWS // 2])[1].nearest
    assert margins is not None
    nearest = (logits[..., :1] - logits[..., 1:]).amin(3)[:, : KEPT_DRAWS // 2]
    assert torch.equal(margins, nearest.flatten(1))
    sampled = _sample(logits)[1]
    assert sampled.nearest is not None
    assert bool(sampled.nearest.isnan().all())
    assert torch.equal(smoothed_share(sampled), counted(sampled.votes, 0.99)[0])


@pytest.mark.parametrize("limit", [0.9, None])
@pytest.mark.parametrize(("margin", "flips", "depth"), [(1.75, 0.065, 0.5), (2.0, 0.06, 0.01)])
def test_intervals_hold_flips_that_a_normal_model_misses(
    margin: float, flips: float, depth: float, limit: float | None
) -> None:
    """A normal model passes its tests and says too little; the family `step` of `checks.coverage` counts more of them.

    Of 100 replicates at most 1 may miss in the mean; 8 do less than once in 1e5.
    """
    network = Shallow(margin, flips, depth, 0.1)
    estimates = estimate(brittle.Classifier(network), shallow_points(100), Shrinkage(0.1, draws=200, limit=limit))
    assert int(((estimates.low > network.flip) | (estimates.high < network.flip)).sum()) < 8


ODD: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "steps": lambda x, z: (z > 0.2).double(),
    "rare steps": lambda x, z: (
        (x.flatten(1)[:, :1] > 1.6).double() * torch.eye(z.shape[1])[1] + torch.eye(z.shape[1])[0] / 2
    ),
    "huge": lambda x, z: z.double() * 1e300,
}
"""Networks with equal logits in many noisy copies of a point."""


@pytest.mark.parametrize("name", ODD)
def test_every_count_has_a_value(name: str) -> None:
    """Where the model has no answer, value and interval are those of counting."""
    classifier, x = brittle.Classifier(Wrapped(ODD[name])), inputs(40)
    estimates = estimate(classifier, x, Shrinkage(0.3, draws=40, limit=None))
    counts = estimate(classifier, x, MonteCarlo(0.3, draws=40, limit=None))
    assert torch.equal(estimates.value.isnan(), counts.value.isnan())
    assert estimates.evidence is not None
    is_counted = (estimates.evidence == int(Evidence.COUNTED)) & ~estimates.value.isnan()
    assert bool(is_counted.any()) or name == "steps"
    for field in ("value", "low", "high"):
        assert torch.equal(getattr(estimates, field)[is_counted], getattr(counts, field)[is_counted])
