"""The change of the predicted probability under noise: by sampling, from its tangent, and a bound."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Direction, Estimate, Status
from brittle.extensions.expected_change.curvature import COLUMNS, Columns, HessianColumns, derivatives
from brittle.intervals import bounded_mean, student
from brittle.measure import Linearization, Linearize, Measurement, Sample, Sampled
from brittle.measure.base import check_enough
from brittle.noise import Gaussian, Noise, Sphere
from brittle.scores.base import NoiseScore, clean_status, copies_detail, finish, initial_status, mark
from brittle.scores.evidence import VACUOUS_FROM
from brittle.scores.linear import margins
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


SIZES = STATISTICS[1:]  # the mean has no first order


@dataclass(frozen=True)
class FirstOrderChange(NoiseScore):
    """`Var[dp] = s^2 ||grad p_c||^2` or `E|dp| = s ||grad p_c|| sqrt(2 / pi)`, `p_c` the predicted probability.

    The norm is in the metric of the noise's covariance `s^2 K`. On the sphere of radius `r = s sqrt(n)` the absolute
    change is `r ||grad p_c|| Gamma(n/2) / (sqrt(pi) Gamma((n+1)/2))`. The gradient is `p_c sum_k p_k grad g_k` with the
    margins `g_k = z_c - z_k`, so its norm comes from the Gram matrix and costs no extra pass.

    Validity: the variance is exact to second order in `s` for every noise; the absolute change to first order for
    normal and sphere noise, and for other families if the noise along the gradient is nearly normal, as it is in
    high dimensions. It has no interval: it samples nothing, and the curvature of the network is unknown.

    Source: the moments of the linear term of Yang, Liu, Bilgic, The analysis of the expected change in the
    classification probability of the predicted label (TMLR 2023), equation 4.

    Attributes:
        statistic: `variance` or `absolute`.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
    """

    classes: int | None = None
    statistic: str = field(default="variance", kw_only=True, metadata=option(choices=SIZES, variants=SIZES))

    name: ClassVar[str] = "first_order_change"
    title = "First-order change"
    quantity = PROBABILITY_CHANGE
    cost = "1 + C"
    reference = "Yang et al. (TMLR 2023), equation 4"
    serves = "probability"
    explanation = "Variance and mean size of that change if the probability were its tangent."
    colour = 18

    @property
    def needs(self) -> tuple[Linearize]:
        return (Linearize(self.noise.shape, classes=self.classes),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        linear: Linearization = measured[self.needs[0]]
        normal_margins = margins(linear)
        gradient = derivatives(linear, normal_margins)
        norm = gradient.probability * gradient.slope
        size = self.noise.sigma if self.statistic == "variance" else absolute_moment(self.noise, linear.dimension)
        value = (size * norm).square() if self.statistic == "variance" else size * norm
        unknown = torch.full_like(value, torch.nan)
        return finish(value, unknown, unknown, normal_margins.status, linear.passes, normal_margins.detail)


def absolute_moment(noise: Noise, dimension: int) -> float:
    """Return `E|u^T e|` for noise `e` along a unit vector `u` in `dimension` coordinates, normal unless on a sphere."""
    if not isinstance(noise, Sphere):
        return noise.sigma * math.sqrt(2.0 / math.pi)
    gamma = math.exp(math.lgamma(dimension / 2.0) - math.lgamma((dimension + 1.0) / 2.0))
    return noise.sigma * math.sqrt(dimension / math.pi) * gamma


@dataclass(frozen=True)
class ChangeBound(NoiseScore):
    """An upper bound on `E|dp|` of the second-order model `dp = e^T grad p_c + e^T H e / 2`.

    `a sum_i |dp_c / dx_i| + s^2 / pi sum_{i != j} |H_ij| + s^2 / 2 sum_i |H_ii|`, by the triangle inequality, with
    `E|e_i| = a`, `E|e_i e_j| = 2 s^2 / pi` and `E e_i^2 = s^2`. For normal noise `a = s sqrt(2 / pi)`; on the sphere of
    radius `r = s sqrt(n)` it is `r Gamma(n/2) / (sqrt(pi) Gamma((n+1)/2))`, and the other two factors are
    `r^2 / (n pi)` and `r^2 / (2 n)`. The paper prints `r^2 / (n pi^2)` and the Laplacian itself, without absolute
    values, in the last term; that formula is no bound.

    Validity: bounds the second-order model, not the network at a distance. For inputs of more than `columns`
    coordinates the sums over the Hessian are estimated from `columns` columns, with a Student interval that is right if
    many coordinates carry the curvature and too low if few do, which random columns miss; take all columns to be sure.
    In single precision gradients vanish where `1 - p_c` is below about 1e-38, and the status is then `zero_gradient`.
    The bound is far from tight if the gradient spreads over many coordinates; `FirstOrderChange` and
    `ProbabilityChange` estimate the size of the change.

    Source: Yang, Liu, Bilgic, The analysis of the expected change in the classification probability of the predicted
    label (TMLR 2023), equation 7, corrected.

    Attributes:
        noise: `Gaussian` or `Sphere`, instead of `sigma`.
        columns: columns of the Hessian, one backward pass each.

    Raises:
        ParameterError: another noise family, `sigma` is not a positive finite number, or fewer than 2 columns.
    """

    columns: int = COLUMNS

    name: ClassVar[str] = "change_bound"
    title = "Bound on the mean absolute change"
    quantity = PROBABILITY_CHANGE
    cost = "3 + columns"
    reference = "Yang et al. (TMLR 2023), equation 7, corrected"
    serves = "probability"
    explanation = "An upper bound on the mean size of that change, for the second-order model of the probability."
    colour = 19

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise, Gaussian | Sphere):
            raise ParameterError(
                f"{self.name} supports gaussian and sphere noise; found {self.noise.name}: leave the score out"
            )
        check_enough("columns", self.columns)

    @property
    def needs(self) -> tuple[HessianColumns]:
        return (HessianColumns(self.columns),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        columns: Columns = measured[self.needs[0]]
        sigma, size, count = self.noise.sigma, columns.dimension, columns.diagonal.shape[1]
        # The term of each column: s^2 / pi sum_{j != i} |H_ij| + s^2 / 2 |H_ii|.
        terms = sigma**2 * (columns.beside / math.pi + columns.diagonal / 2.0)
        value = absolute_moment(self.noise, size) * columns.slope + size * terms.mean(dim=1)
        error = size * terms.std(dim=1) * math.sqrt((1.0 - count / size) / count) if count < size else 0.0 * value
        half = student(count, confidence) * error
        finite = columns.slope.isfinite() & terms.isfinite().all(dim=1)
        status = mark(clean_status(columns.clean), ~finite, Status.NONFINITE_GRADIENT)
        status = mark(status, (columns.slope == 0) & (terms == 0).all(dim=1), Status.ZERO_GRADIENT)
        detail = (None if count == size else f"estimated from {count} of {size} columns of the Hessian",) * len(value)
        return finish(value, (value - half).clamp_min(0.0), value + half, status, columns.passes, detail)
