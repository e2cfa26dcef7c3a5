"""Shrinkage: its formula, its error beside that of both of its parts on problems with known answers, its interval."""

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
class Known:
    """A margin over standard normal noise around `at`, and the probability that it changes sign."""

    name: str
    margin: Callable[[Tensor], Tensor]
    at: tuple[float, ...]
    flip: float


def _below(x: float) -> float:
    return float(stats.norm.cdf(x))


def _sampled(logits: Tensor) -> tuple[Clean, Sampled]:
    """What is read of logits `[B, units, members, C]` whose first class is predicted without noise."""
    points, classes = len(logits), logits.shape[3]
    clean_logits = torch.cat((torch.ones(points, 1), torch.zeros(points, classes - 1)), dim=1)
    clean = Clean(torch.zeros(points, 1), tuple(map(str, range(points))), 0, clean_logits, rows=64)
    sums = SampleSums.start(clean, logits.shape[2])
    for part in logits.split(max(7, logits.shape[1] // 9), dim=1):
        sums.add(part)
    return clean, sums.read()


KNOWN = [
    Known("linear", lambda x: x[..., 0] + 1.0, (0.0,), _below(-1)),
    Known("shell", lambda x: 4.0 - x[..., 0].square(), (0.5,), _below(-1.5) + _below(-2.5)),
    Known("exclusive or", lambda x: x[..., 0] * x[..., 1], (1.5, 1.5), 2 * _below(1.5) * _below(-1.5)),
    Known("absolute value", lambda x: 1.2 - x[..., 0].abs(), (0.1,), _below(-1.1) + _below(-1.3)),
    Known("a step", lambda x: torch.where(x[..., 0] > 1.2, -3.0, 1.0) + 0.05 * x[..., 0], (0.0,), _below(-1.2)),
]  # fmt: skip


def _estimates(known: Known, draws: int, replicates: int) -> dict[str, Tensor]:
    """What counting, the normal model and their mixture say of the same draws, `[replicates]` each."""
    generator, size = torch.Generator().manual_seed(1), len(known.at)
    half = torch.randn(replicates, draws // 2, size, generator=generator, dtype=torch.float64)
    margin = known.margin(torch.tensor(known.at) + torch.stack((half, -half), dim=2))
    sampled = _sampled(torch.stack((margin, torch.zeros_like(margin)), dim=3))[1]
    scores = [MonteCarlo(1.0, draws, limit=None), Moments(1.0, draws), Shrinkage(1.0, draws, limit=None)]
    return {score.name: score.estimate({score.needs[0]: sampled}, 0.99).value for score in scores}


@pytest.mark.parametrize(("draws", "most"), [(20, 1.35), (80, 1.05)])
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_hardly_ever_behind_the_better_of_its_parts(known: Known, draws: int, most: float) -> None:
    """Root mean square errors; they share their draws, so that their ratio is known to about 1%."""
    found = _estimates(known, draws, 2000)
    errors = {name: float((value - known.flip).square().mean().sqrt()) for name, value in found.items()}
    assert errors["shrinkage"] <= most * min(errors["monte_carlo"], errors["moments"])


TREE = Known("four leaves", lambda x: 0.1 - 3.0 * (x[..., 0] > 1.2) + 2.0 * (x[..., 1] > 0), (0.0, 0.0), _below(-1.2))
"""Nearly half of the copies have a margin just above 0, and none just below."""


@pytest.mark.parametrize(("draws", "most"), [(80, 1.2), (200, 1.05)])
def test_margins_that_jump_over_0_are_counted(draws: int, most: float) -> None:
    """Root mean square errors of 2,000 replicates with the same draws; smoothed, it has 5 and 7 times counting's."""
    found = _estimates(TREE, draws, 2000)
    errors = {name: float((value - TREE.flip).square().mean().sqrt()) for name, value in found.items()}
    assert errors["shrinkage"] <= most * errors["monte_carlo"]


@pytest.mark.parametrize("known", [*KNOWN, TREE], ids=lambda known: known.name)
def test_it_is_right_as_the_draws_grow(known: Known) -> None:
    """A count of pairs is at most `1 / sqrt(draws)` off by one standard error; 5 of them happen once in 1e6."""
    draws = 20_000
    found = _estimates(known, draws, 4)["shrinkage"]
    assert float((found - known.flip).abs().max()) <= 5 * math.sqrt(known.flip * (1 - known.flip) * 2 / draws)


def _logits(points: int, pairs: int) -> Tensor:
    """Logits of three classes that bend over the noise, the more the later the point."""
    generator = torch.Generator().manual_seed(5)
    half = torch.randn(points, pairs, 3, generator=generator, dtype=torch.float64)
    noise = torch.stack((half, -half), dim=2)
    bend = torch.linspace(0, 1, points, dtype=torch.float64)[:, None, None, None]
    return noise + bend * noise.square() + torch.tensor([2.5, 0.0, -0.5], dtype=torch.float64)


def test_the_formula() -> None:
    """Against the formula in NumPy, from the logits and the value of `Moments`."""
    points, pairs = 6, 30
    logits = _logits(points, pairs)
    _, sampled = _sampled(logits)
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
        moved = (nearest <= 0) - smooth
        against = (max(0.0, draws * moved.mean() ** 2 / moved.var(ddof=1) - 1) / 5) ** 2
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
        apart = (max(0.0, float(np.mean(statistics))) + max(0.0, 2 * draws * divergence - 1)) / 5
        ratio = apart + apart**2
        assert float(values[row]) == pytest.approx((model + ratio * share) / (1 + ratio), rel=1e-6)


def test_the_nearest_margins_are_kept_up_to_a_number() -> None:
    logits = _logits(2, KEPT_DRAWS // 2 + 10)
    kept = _sampled(logits[:, : KEPT_DRAWS // 2])[1].nearest
    assert kept is not None
    nearest = (logits[..., :1] - logits[..., 1:]).amin(3)[:, : KEPT_DRAWS // 2]
    assert torch.equal(kept, nearest.flatten(1))
    sampled = _sampled(logits)[1]
    assert sampled.nearest is not None
    assert bool(sampled.nearest.isnan().all())
    assert torch.equal(smoothed_share(sampled), counted(sampled.votes, 0.99)[0])


@pytest.mark.parametrize("limit", [0.9, None])
@pytest.mark.parametrize(("margin", "flips", "depth"), [(1.75, 0.065, 0.5), (2.0, 0.06, 0.01)])
def test_flips_that_a_normal_model_passes_over_are_held(
    margin: float, flips: float, depth: float, limit: float | None
) -> None:
    """A normal model passes its tests and says too little; the family `step` of `checks.coverage` counts more of them.

    Of 100 replicates at most 1 may miss in the mean; 8 do less than once in 1e5.
    """
    network = Shallow(margin, flips, depth, 0.1)
    found = estimate(brittle.Classifier(network), shallow_points(100), Shrinkage(0.1, draws=200, limit=limit))
    assert int(((found.low > network.flip) | (found.high < network.flip)).sum()) < 8


ODD: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "steps": lambda x, z: (z > 0.2).double(),
    "rare steps": lambda x, z: (
        (x.flatten(1)[:, :1] > 1.6).double() * torch.eye(z.shape[1])[1] + torch.eye(z.shape[1])[0] / 2
    ),
    "huge": lambda x, z: z.double() * 1e300,
}
"""Networks of which many noisy copies of a point have the same logits."""


@pytest.mark.parametrize("name", ODD)
def test_there_is_a_number_wherever_counting_gives_one(name: str) -> None:
    """Where the model is silent the copies are counted: the value and the interval of counting as many."""
    classifier, x = brittle.Classifier(Wrapped(ODD[name])), inputs(40)
    found = estimate(classifier, x, Shrinkage(0.3, draws=40, limit=None))
    by_counting = estimate(classifier, x, MonteCarlo(0.3, draws=40, limit=None))
    assert torch.equal(found.value.isnan(), by_counting.value.isnan())
    assert found.evidence is not None
    only_counted = (found.evidence == int(Evidence.COUNTED)) & ~found.value.isnan()
    assert bool(only_counted.any()) or name == "steps"
    for one in ("value", "low", "high"):
        assert torch.equal(getattr(found, one)[only_counted], getattr(by_counting, one)[only_counted])
