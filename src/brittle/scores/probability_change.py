"""The change of the predicted probability under noise, by sampling: mean, variance, mean absolute change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from scipy import special
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status
from brittle.measure import Measurement, ProbabilityMoments, Sampled
from brittle.scores.base import finish, initial_status, mark, nonfinite_detail
from brittle.scores.monte_carlo import SampledScore

STATISTICS = ("mean", "variance", "absolute")
"""What is said of the change `dp`: `E[dp]`, `Var[dp]`, `E|dp|`."""

PROBABILITY_CHANGE = "probability_change"
"""The quantity of a score that is a moment of the change of the predicted probability."""

FEWEST_DRAWS = 4
"""Two antithetic pairs: fewer have no spread."""


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
    cancels exactly within each pair. The change is taken from `1 - p_c`, so that it is right where `p_c` is near 1.
    The flip rate under the same noise is `MonteCarlo`.

    Validity: unbiased for every model and noise, with or without gradients. The interval is a Student interval over
    the pairs, for the variance of its linearisation, on the logarithmic scale for variance and absolute change: it
    holds for many draws, and is too narrow where rare noise decides.

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

    statistic: str = field(default="mean", kw_only=True)

    name: ClassVar[str] = "probability_change"
    title: ClassVar[str] = "Probability change"
    quantity: ClassVar[str] = PROBABILITY_CHANGE
    reference: ClassVar[str] = "Yang et al. (TMLR 2023), equation 1"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_statistic(self.statistic, STATISTICS)

    @property
    def parameters(self) -> dict[str, Any]:
        """The noise, the draws, and the statistic."""
        return super().parameters | {"statistic": self.statistic}

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        sampled: Sampled = measured[self.needs[0]]
        assert sampled.change is not None
        value, error = _moment(sampled.change, self.statistic)
        half = student(sampled.change.pairs, confidence) * error
        low, high = (value - half, value + half) if self.statistic == "mean" else positive_interval(value, half)
        return finish(value, low, high, change_status(sampled), sampled.passes, change_detail(sampled))


def check_statistic(statistic: str, known: tuple[str, ...]) -> None:
    """Raise unless `statistic` is one of `known`.

    Raises:
        ParameterError: it is not.
    """
    if statistic not in known:
        raise ParameterError("statistic", f"the statistic must be one of {', '.join(known)}; found {statistic!r}")


def mean_change(moments: ProbabilityMoments) -> tuple[Tensor, Tensor]:
    """`E[dp]` and its standard error, `[B]` each."""
    return _moment(moments, "mean")


def _moment(moments: ProbabilityMoments, statistic: str) -> tuple[Tensor, Tensor]:
    """A moment of `dp` and its standard error over the pairs, `[B]` each."""
    mean, square, absolute = moments.mean.unbind(dim=1)
    spread = moments.covariance
    if statistic == "variance":
        value = (square - mean.square() + spread[:, 0, 0] / moments.pairs).clamp_min(0.0)
        between = spread[:, 1, 1] - 4.0 * mean * spread[:, 0, 1] + 4.0 * mean.square() * spread[:, 0, 0]
    elif statistic == "absolute":
        value, between = absolute, spread[:, 2, 2]
    else:
        value, between = mean, spread[:, 0, 0]
    return value, (between.clamp_min(0.0) / moments.pairs).sqrt()


def student(pairs: int, confidence: float) -> float:
    """Quantile of the Student interval over `pairs` pairs."""
    return float(special.stdtrit(pairs - 1, (1.0 + confidence) / 2.0))


def positive_interval(value: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    """The interval of a positive number whose logarithm has the half-width `half / value`."""
    ratio = torch.where(value > 0, half / value, 0.0).exp()
    return value / ratio, value * ratio


def change_status(sampled: Sampled) -> Tensor:
    """How sampling went at each point, `[B]`."""
    return mark(initial_status(sampled.tied), sampled.nonfinite > 0, Status.NONFINITE_LOGITS)


def change_detail(sampled: Sampled) -> tuple[str | None, ...]:
    """What was seen where it failed, `[B]`."""
    return nonfinite_detail(sampled.nonfinite, sampled.draws)
