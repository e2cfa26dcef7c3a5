"""The change of the predicted probability under noise, by sampling: mean, variance, mean absolute change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.estimate import Direction, Estimate, Status
from brittle.intervals import bounded_mean
from brittle.measure import Measurement, Sample, Sampled
from brittle.scores.base import copies_detail, finish, initial_status, mark
from brittle.scores.evidence import VACUOUS_FROM
from brittle.scores.monte_carlo import SampledScore
from brittle.scores.options import option

STATISTICS = ("mean", "variance", "absolute")  # statistics of the change `dp`: `E[dp]`, `Var[dp]`, `E|dp|`
PROBABILITY_CHANGE = "probability_change"  # quantity of the moments of the change of the predicted probability
LARGEST_VARIANCE = 0.25  # largest variance of a number in an interval of length 1


@dataclass(frozen=True)
class ProbabilityChange(SampledScore):
    """`E[dp]`, `Var[dp]` or `E|dp|` of `dp = p_c(x + e) - p_c(x)`, `p_c` the probability of the predicted class.

    The draws are antithetic pairs `(e, -e)`, shared with `MonteCarlo` and `Moments`; the part of the gradient in the
    mean cancels exactly within each pair. Noise that is not symmetric (`brittle.noise.Noise`) is drawn in single
    copies. The change is computed from `1 - p_c`, so that it keeps its digits where `p_c` is near 1. The flip rate
    under the same noise is `MonteCarlo`. The probability is the softmax of the logits, or `predict_proba` of an
    estimator, which then runs twice at each copy.

    Validity: unbiased for every model and noise, with or without gradients. The interval holds for every model at any
    number of draws, as the change is bounded (`change_interval`). It therefore allows for noise outside all draws:
    after `n` pairs about `6 / n` of the probability. With few draws it is `vacuous`.

    Source: Yang, Liu, Bilgic, The analysis of the expected change in the classification probability of the predicted
    label (TMLR 2023), equation 1; the variance, which the paper leaves open, is this library's.

    Attributes:
        statistic: `mean`, `variance` or `absolute`.
        noise: the noise family, instead of `sigma`; `Sphere.of_radius(r, n)` for a radius.
        draws: noisy copies per point, even, at least 4.
        clip: clip noisy copies to the bounds.
    """

    statistic: str = field(default="mean", kw_only=True, metadata=option(choices=STATISTICS, variants=STATISTICS))

    name: ClassVar[str] = "probability_change"
    title = "Probability change"
    quantity = PROBABILITY_CHANGE
    reference = "Yang et al. (TMLR 2023), equation 1"
    serves = "probability"
    explanation = "How noise changes the predicted probability, sampled: its mean, variance and mean size."
    colour = 17
    fewest = 4

    @property
    def needs(self) -> tuple[Measurement]:
        return (Sample(self.noise, self.draws, self.clip, probability=True),)

    @property
    def safer(self) -> Direction:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A large mean is a gain in probability; a large variance or absolute change is not safe."""
        return "higher" if self.statistic == "mean" else "lower"

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        sampled: Sampled = measured[self.needs[0]]
        value, low, high, vacuous = change_interval(sampled, self.statistic, confidence)
        broken = (sampled.votes.nonfinite > 0) | value.isnan()
        status = mark(initial_status(sampled.tied, broken), vacuous, Status.VACUOUS)
        detail = copies_detail(sampled.votes.nonfinite, sampled.draws)
        return finish(value, low, high, status, sampled.passes, detail)


def change_interval(sampled: Sampled, statistic: str, confidence: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return a moment of `dp` over the noise, its interval, and where the interval is vacuous, `[B]` each.

    Each moment is the mean of independent numbers with known bounds (`bounded_mean`). With `d = 1 - p_c`, `E[dp]` is
    `d(x) - E[d(x + e)]`; `|dp|` is at most the larger of `d(x)` and `1 - d(x)`; and `Var[dp]` is half the mean of
    `(d(x + e) - d(x + e'))^2`, `e` and `e'` from two units, so that it averages half as many numbers.
    """
    change = sampled.change
    assert change is not None
    mean, square, absolute = change.mean.unbind(dim=1)
    doubt, doubts = change.doubt, change.doubts
    if statistic == "mean":
        low, high = bounded_mean(doubts.mean(dim=2), confidence)
        return mean, doubt - high, doubt - low, high - low >= VACUOUS_FROM
    if statistic == "absolute":
        largest = torch.maximum(doubt, 1.0 - doubt)
        sizes = (doubt[:, None, None] - doubts).abs().mean(dim=2) / largest[:, None]
        low, high = bounded_mean(sizes, confidence)
        return absolute, low * largest, high * largest, high - low >= VACUOUS_FROM
    value = (square - mean.square() + change.between / sampled.votes.units).clamp_min(0.0)
    half = doubts.shape[1] // 2
    first_half, second_half = doubts[:, :half, :, None], doubts[:, half : 2 * half, None]
    low, high = (end / 2.0 for end in bounded_mean((first_half - second_half).square().mean(dim=(2, 3)), confidence))
    return value, low, high.clamp_max(LARGEST_VARIANCE), high - low >= VACUOUS_FROM * LARGEST_VARIANCE
