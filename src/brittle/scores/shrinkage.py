"""Average-case robustness by counting, shrunk to a normal model of the margins as far as the copies let it pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from brittle.estimate import Estimate
from brittle.measure import Measurement, Sampled, Spread
from brittle.scores.evidence import flips_of
from brittle.orthant import normal_cdf
from brittle.scores.moments import concluded, flat, normal_model
from brittle.scores.monte_carlo import CountedScore

BANDWIDTH = 0.5
"""Bandwidth of the smoothed share in standard deviations of the nearest margin, at one draw."""

NORMAL_QUARTERS = 1.349
"""Distance between the quartiles of a normal number, in its standard deviations."""

DISBELIEF = 5.0
"""Distance of the copies from a model or a smoothing, relative to that by chance, that counts once against it."""

TOLERANCE = 0.01
"""Error of the integral, as a share of the flip probability. The copies leave more: `n` of them know the mean of a
margin to `1 / sqrt(n)` deviations, which is `0.8 / sqrt(n)` of a normal tail at least, 0.05 for 240; and where more
copies are drawn, the share outweighs the model."""


@dataclass(frozen=True)
class Shrinkage(CountedScore):
    """A smoothed share of the flips and the normal model of the margins, mixed at every point by what its copies show.

    `(p_model + r p_share) / (1 + r)`, from `n` copies. `p_model` is the value of `Moments`. The ratio `r = y + y^2`,
    `y = (F + T) / 5`, stands for the squared bias of the model over the variance of the share: `F` is the mean over
    the competitors of the Jarque-Bera statistic `n skewness^2 / 6 + n kurtosis^2 / 24` of their margins, and `T` the
    binomial deviance `2 n KL(p_share || p_model)`; both less what normal margins give on average, and 0 below that.

    `p_share = (p_smooth + q p_count) / (1 + q)` in its turn. `p_count` is the share of the copies that flip, and
    `p_smooth = mean_j Phi(-g(x + e_j) / h)`, `g` the margin to the nearest competitor, `h = 0.5 s n^(-1/5)`, `s` the
    smaller of the standard deviation of `g` and of the distance between its quartiles over 1.349. The ratio
    `q = max(0, (z^2 - 1) / 5)^2` stands for the squared bias of the smoothing over its variance, `z` the mean over the
    copies of `1[g <= 0] - Phi(-g / h)` in its standard errors: margins that jump over 0, as those of trees do, are
    counted. Where copies tie or hardly vary, and above 2,000 of them, `p_share` is `p_count`. Where no copy changes a
    margin, or the model has no number, the value is `p_count`.

    Validity: exact for linear models and normal noise, and consistent for every model, as the draws grow: where the
    normal model is off, `T` grows with them. The divisor 5 and the squares were found by trials
    (`docs/explanation/estimators.md`). The interval is that of `MonteCarlo`, from the same copies, stretched to the
    value, so that it holds for every model. Where a rule stops the copies of a point early, near the boundary, the
    value is read from antithetic pairs of these copies (`brittle.measure.SampleUntil`).

    Source: this library; the smoothed share after A. Azzalini, A note on the estimation of a distribution function and
    quantiles by a kernel method, Biometrika 68 (1981); the statistic from C. Jarque, A. Bera, A test for normality of
    observations and regression residuals, Int. Stat. Rev. 55 (1987), with the errors of antithetic pairs.

    Attributes are those of `CountedScore`; `draws` are at least 4.
    """

    name: ClassVar[str] = "shrinkage"
    title = "Shrinkage"
    reference = "brittle"
    serves = "all"
    explanation = (
        "Mixes the share of noisy copies that flip with a normal model of their margins, and trusts the model as far "
        "as these copies look normal. No gradients."
    )
    colour = 20
    preference = 0.5
    fewest = 4

    @property
    def needs(self) -> tuple[Measurement]:
        return (self.copies(votes_only=False),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        sampled: Sampled = measured[self.needs[0]]
        assert sampled.margins is not None
        model, share = normal_model(sampled, TOLERANCE), smoothed_share(sampled)
        deviance = differs_by(model.complement, share, _copies(sampled))
        apart = (not_normal_by(sampled.margins.spread) + deviance) / DISBELIEF
        ratio = apart + apart.square()
        value = torch.where(ratio.isfinite(), (model.complement + ratio * share) / (1 + ratio), share)
        by_model = ~(flat(sampled) | model.complement.isnan())
        value = torch.where(by_model, value, flips_of(sampled.votes).double() / sampled.draws)
        return concluded(sampled, model, value, confidence, by_model, self.stops)


def _copies(sampled: Sampled) -> Tensor:
    """Return how many copies the share is from, mirror images included, `[B]`."""
    assert sampled.nearest is not None
    return torch.maximum((~sampled.nearest.isnan()).sum(dim=1), sampled.draws)


def smoothed_share(sampled: Sampled) -> Tensor:
    """Return `mean_j Phi(-g_j / h)` of the nearest margins, `[B]`, drawn to the share of flips where that contradicts
    it: the share of flips itself where copies tie, are not finite, do not vary or are more than were kept."""
    nearest, votes = sampled.nearest, sampled.votes
    share = flips_of(votes).double() / votes.draws
    if nearest is None:
        return share
    is_finite = nearest.isfinite()
    number = is_finite.sum(dim=1)
    count = number.clamp_min(2).to(nearest)  # whole numbers would be divided in the default precision
    usable = (number >= votes.draws) & (votes.nonfinite == 0) & (votes.ties == 0)
    is_flip = nearest <= 0  # a NaN is none, and an infinite margin makes the point unusable
    flips = is_flip.sum(dim=1) / count
    ordered = torch.from_numpy(np.sort(nearest.where(is_finite, torch.inf).cpu().numpy())).to(nearest)
    low, high = (_quantile(ordered, count, level) for level in (0.25, 0.75))
    mean = nearest.where(is_finite, 0.0).sum(dim=1) / count
    shifted = (nearest - mean[:, None]).where(is_finite, 0.0)
    deviation = (shifted.square_().sum(dim=1) / (count - 1)).sqrt()
    bandwidth = BANDWIDTH * torch.minimum(deviation, (high - low) / NORMAL_QUARTERS) * count**-0.2
    smooth = normal_cdf(-nearest / bandwidth[:, None]).where(is_finite, torch.nan)
    against = jumps(is_flip.double() - smooth)
    mixed = torch.where(against.isfinite(), (smooth.nansum(dim=1) / count + against * flips) / (1.0 + against), flips)
    return torch.where(usable & (bandwidth > 0), mixed, torch.where(usable, flips, share))


def jumps(differences: Tensor) -> Tensor:
    """Return the biased share of the shift by smoothing, of `differences` of copies `[B, n]`, in its variances, `[B]`.

    `max(0, (z^2 - 1) / 5)^2`, `z` the mean without NaN in its standard errors, as if independent; 0 if all are equal.
    """
    count = (~differences.isnan()).sum(dim=1).clamp_min(2).to(differences)
    mean = differences.nansum(dim=1) / count
    variance = (differences - mean[:, None]).square_().nansum(dim=1) / (count - 1) / count
    beyond = torch.where(variance > 0, mean.square() / variance - 1.0, 0.0).clamp_min(0.0)
    return (beyond / DISBELIEF).square()


def _quantile(ordered: Tensor, count: Tensor, level: float) -> Tensor:
    """Return the quantile of the first `count` of increasing numbers in each row, `[B]`, between the two nearest."""
    place = (level * (count - 1))[:, None].clamp_max(ordered.shape[1] - 1)
    below, above = (ordered.gather(1, end.long())[:, 0] for end in (place.floor(), place.ceil()))
    return torch.lerp(below, above, place[:, 0] % 1.0)


def not_normal_by(spread: Spread) -> Tensor:
    """Return the mean Jarque-Bera statistic of the varying margins above that of normal ones, or 0, `[B]`."""
    even = spread.even_variance / spread.variance.clamp_min(1e-300)
    alike = 2.0 * even - 1.0  # the correlation of the two members of a pair
    skewness = (spread.skewness.square() - 1.0) * (1.0 + alike**3)
    kurtosis = (spread.kurtosis.square() - 1.0) * (1.0 + alike**4)
    varies = spread.variance > 0
    total = torch.where(varies, skewness + kurtosis, 0.0).sum(dim=1)
    return (total / varies.sum(dim=1).clamp_min(1)).clamp_min(0.0)


def differs_by(model: Tensor, share: Tensor, draws: Tensor) -> Tensor:
    """Return the binomial deviance of the share of `draws` copies under the model, less 1; 0 below it, `[B]`."""
    within = torch.special.xlogy(share, share) + torch.special.xlogy(1.0 - share, 1.0 - share)
    across = torch.special.xlogy(share, model) + torch.special.xlogy(1.0 - share, 1.0 - model)
    return (2.0 * draws * (within - across) - 1.0).clamp_min(0.0)
