"""The change of the predicted probability under noise, by sampling: mean, variance, mean absolute change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from scipy import special
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Direction, Estimate, Parameters, Status
from brittle.intervals import student
from brittle.measure import Measurement, ProbabilityMoments, Sampled
from brittle.scores.base import finish, initial_status, mark, nonfinite_detail
from brittle.scores.evidence import FEWEST_UNITS, deviation_factors
from brittle.scores.monte_carlo import SampledScore
from brittle.scores.options import option
from brittle.scores.serving import Serves

STATISTICS = ("mean", "variance", "absolute")
"""What is said of the change `dp`: `E[dp]`, `Var[dp]`, `E|dp|`."""

PROBABILITY_CHANGE = "probability_change"
"""The quantity of a score that is a moment of the change of the predicted probability."""

FEWEST_DRAWS = 4
"""Two antithetic pairs: fewer have no spread."""

NODES, WIDEST = 361, 9.0
"""Points of the quadrature over a standard normal variable, and how far out they go."""


@dataclass(frozen=True)
class ChangeScore(SampledScore):
    """A score of the change of the predicted probability over antithetic pairs of noisy copies."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < FEWEST_DRAWS:
            raise ParameterError(
                "draws", f"{self.name} needs an even number of draws, at least {FEWEST_DRAWS}; found {self.draws}"
            )


@dataclass(frozen=True)
class ProbabilityChange(ChangeScore):
    """`E[dp]`, `Var[dp]` or `E|dp|` of `dp = p_c(x + e) - p_c(x)`, `p_c` the probability of the predicted class.

    The draws are antithetic pairs `(e, -e)`, shared with `MonteCarlo` and `Moments`; the gradient's part of the mean
    cancels exactly within each pair. Of noise that is not added (`brittle.noise.Transform`) they are single copies. The
    change is taken from `1 - p_c`, so that it is right where `p_c` is near 1. The flip rate under the same noise is
    `MonteCarlo`.

    Validity: unbiased for every model and noise, with or without gradients. The interval holds a Student interval over
    the pairs (for the variance of its linearisation; on the logarithmic scale for variance and absolute change), and
    what a normal model of the soft margin `z_t - log sum_{j != t} exp z_j` says, because the first alone is too narrow
    where rare noise decides (`change_interval`).

    Source: Yang, Liu, Bilgic, The analysis of the expected change in the classification probability of the predicted
    label (TMLR 2023), equation 1; the variance, which the paper leaves open, is this library's.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        statistic: `mean`, `variance` or `absolute`.
        noise: the noise family, instead of `sigma`; `Sphere.of_radius(r, n)` for a radius.
        draws: noisy copies per point, even, at least 4.
        clip: clip noisy copies to the bounds.

    Raises:
        ParameterError: an unknown statistic, `sigma` is not a positive finite number, or `draws` is out of range.
    """

    statistic: str = field(default="mean", kw_only=True, metadata=option(every=STATISTICS))

    name: ClassVar[str] = "probability_change"
    title: ClassVar[str] = "Probability change"
    quantity: ClassVar[str] = PROBABILITY_CHANGE
    reference: ClassVar[str] = "Yang et al. (TMLR 2023), equation 1"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = (
        "How noise changes the predicted probability, sampled: its mean, variance and mean size."
    )
    colour: ClassVar[int | None] = 17

    def __post_init__(self) -> None:
        super().__post_init__()
        check_statistic(self.statistic, STATISTICS)

    @property
    def safer(self) -> Direction:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A large mean is a gain in probability; a large variance or absolute change is not safe."""
        return "higher" if self.statistic == "mean" else "lower"

    @property
    def parameters(self) -> Parameters:
        """The noise, the draws, and the statistic."""
        return super().parameters | {"statistic": self.statistic}

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The moment of the sampled changes, with its interval."""
        sampled: Sampled = measured[self.needs[0]]
        value, low, high = change_interval(sampled, self.statistic, confidence)
        return finish(value, low, high, change_status(sampled), sampled.passes, change_detail(sampled))


def check_statistic(statistic: str, known: tuple[str, ...]) -> None:
    """Raise unless `statistic` is one of `known`.

    Raises:
        ParameterError: it is not.
    """
    if statistic not in known:
        raise ParameterError("statistic", f"the statistic must be one of {', '.join(known)}; found {statistic!r}")


def change_interval(sampled: Sampled, statistic: str, confidence: float) -> tuple[Tensor, Tensor, Tensor]:
    """A moment of `dp` over the noise with its interval, `[B]` each.

    The interval holds both what the spread of the units says and what a normal model of the soft margin says. Alone,
    the first is too narrow where rare noise decides, and the second where the soft margin is not normal.

    Args:
        sampled: what the noisy copies showed, of at least two units.
        statistic: one of `STATISTICS`.
        confidence: of the interval.
    """
    change = sampled.change
    assert change is not None
    value, error = _moment(change, statistic)
    half = _quantile(change.units, confidence) * error
    low, high = (value - half, value + half) if statistic == "mean" else positive_interval(value, half)
    by_model = modelled_changes(change, confidence)[STATISTICS.index(statistic)]
    return value, torch.minimum(low, by_model.amin(dim=0)), torch.maximum(high, by_model.amax(dim=0))


def _quantile(units: int, confidence: float) -> float:
    """Student's quantile over the units, with half the tail where there are few: their averages are lopsided there."""
    return student(units, confidence if units >= FEWEST_UNITS else (1.0 + confidence) / 2.0)


def modelled_changes(change: ProbabilityMoments, confidence: float) -> Tensor:
    """`E[dp]`, `Var[dp]`, `E|dp|` of a normal soft margin at the ends of its mean and deviation, `[3, 4, B]`.

    `dp = p_t(x + e) - p_t(x) = 1 - p_t(x) - sigmoid(-m - s u)`, `u` standard normal, by quadrature over `NODES` points.
    The ends of `m` and `s` are those of a normal sample with the degrees of freedom of `change.soft`. Beyond the noise
    that the draws reach, where fewer than one of them is expected (with few units everywhere), `s` is at least the
    deviation of the nearest margin:
    there one competitor decides alone.
    """
    soft = change.soft
    shrunk, stretched = deviation_factors(soft.degrees, confidence)
    shift = _quantile(change.units, confidence) * soft.mean_error
    deviation = soft.variance.sqrt()
    reach = float(special.ndtri(1.0 / change.draws)) if change.units >= FEWEST_UNITS else math.inf
    ends = [
        (soft.mean + sign * shift, deviation / scale, beyond / scale)
        for sign in (-1, 1)
        for scale, beyond in ((shrunk, torch.maximum(deviation, change.steepest)), (stretched, deviation))
    ]
    return torch.stack([_moments_of_normal(change.doubt, *end, reach) for end in ends], dim=1)


def _moments_of_normal(doubt: Tensor, mean: Tensor, deviation: Tensor, beyond: Tensor, reach: float) -> Tensor:
    """Mean, variance and mean absolute value of `doubt - sigmoid(-(mean + deviation u))`, `[3, B]`.

    `beyond` takes the place of `deviation` where the standard normal `u` is below `reach`.
    """
    nodes = torch.linspace(-WIDEST, WIDEST, NODES, dtype=torch.float64, device=mean.device)
    weights = torch.exp(-nodes.square() / 2)
    weights = weights / weights.sum()
    slope = torch.where(nodes < reach, beyond[:, None], deviation[:, None])
    change = doubt[:, None] - torch.sigmoid(-(mean[:, None] + slope * nodes))
    first = change @ weights
    return torch.stack((first, (change - first[:, None]).square() @ weights, change.abs() @ weights))


def _moment(moments: ProbabilityMoments, statistic: str) -> tuple[Tensor, Tensor]:
    """A moment of `dp` and its standard error over the units, `[B]` each."""
    mean, square, absolute = moments.mean.unbind(dim=1)
    spread = moments.covariance
    if statistic == "variance":
        value = (square - mean.square() + spread[:, 0, 0] / moments.units).clamp_min(0.0)
        between = spread[:, 1, 1] - 4.0 * mean * spread[:, 0, 1] + 4.0 * mean.square() * spread[:, 0, 0]
    elif statistic == "absolute":
        value, between = absolute, spread[:, 2, 2]
    else:
        value, between = mean, spread[:, 0, 0]
    return value, (between.clamp_min(0.0) / moments.units).sqrt()


def positive_interval(value: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    """The interval of a positive number whose logarithm has the half-width `half / value`."""
    ratio = torch.where(value > 0, half / value, 0.0).exp()
    return value / ratio, value * ratio


def change_status(sampled: Sampled) -> Tensor:
    """How sampling went at each point, `[B]`."""
    return mark(initial_status(sampled.tied), sampled.votes.nonfinite > 0, Status.NONFINITE_LOGITS)


def change_detail(sampled: Sampled) -> tuple[str | None, ...]:
    """What was found where it failed, `[B]`."""
    return nonfinite_detail(sampled.votes.nonfinite, sampled.draws)
