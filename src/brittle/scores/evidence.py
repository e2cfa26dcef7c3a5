"""What the noisy copies of a point say of its flip probability: by counting them, and by a normal model of the margins.

The interval by counting holds for every network. The interval by the normal model is narrower, and holds as far as the
margins are normal; whether they are is tested on the same copies, at no further pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy import special
from torch import Tensor

from brittle.estimate import Evidence, Status
from brittle.intervals import clopper_pearson, paired_proportion, student
from brittle.measure.noisy_margins import NoisyMargins, Spread, Votes
from brittle.orthant import orthant_probability
from brittle.scores.base import mark

ENDS_TOLERANCE = 0.03
"""Relative error asked of the orthant probabilities at the ends of an interval."""

NORMAL_WITHIN = 2.5
"""Standard errors within which the skewness and the kurtosis of a margin must lie to pass as normal."""

MATTERS = 0.1
"""Share of the largest tail from which on a competitor's margin is tested."""

AGREE_WITHIN = 2.0
"""Standard errors within which the share of copies that flip must agree with the model."""

FEWEST_UNITS = 25
"""Units of noise from which on a test of normality sees what would make an interval wrong."""

VACUOUS_FROM = 0.9
"""Width of an interval of a probability from which on it says nothing."""


@dataclass(frozen=True)
class Interval:
    """Ends of an interval of the flip probability, `[B]` each."""

    low: Tensor
    high: Tensor

    def hull(self, other: Interval, where: Tensor) -> Interval:
        """The smallest interval that holds both, for the points of `where`."""
        low, high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        return Interval(torch.where(where, low, self.low), torch.where(where, high, self.high))

    def excludes(self, value: Tensor) -> Tensor:
        """Whether `value` lies outside, `[B]`."""
        return (value < self.low) | (value > self.high)


def counted(votes: Votes, confidence: float) -> tuple[Tensor, Interval]:
    """The share of noisy copies that flip, `[B]`, and its exact interval, for any network.

    Over antithetic pairs as `paired_proportion`, over single draws as `clopper_pearson`. A tie is a flip in the share
    and at the upper end, and none at the lower end.
    """
    ends = []
    for counts in (votes.flips_without_ties, votes.flips):
        once, both = counts[:, 1].cpu().numpy(), counts[:, -1].cpu().numpy()
        if votes.members == 2:
            ends.append(paired_proportion(once, both, votes.units, confidence))
        else:
            ends.append(clopper_pearson(once, votes.units, confidence))
    weights = torch.arange(votes.members + 1, device=votes.flips.device)
    share = (votes.flips * weights).sum(dim=1).double() / votes.draws
    return share, Interval(torch.from_numpy(ends[0][0]).to(share), torch.from_numpy(ends[1][1]).to(share))


def margin_ends(spread: Spread, units: int, confidence: float) -> tuple[Tensor, Tensor]:
    """The margins `m` for which `m / s` is as small and as large as the noise of mean and variance allows, `[B, M]`.

    `s` is the standard deviation as measured. The ratio `m / s` is that of a normal sample: its variance has a
    chi-squared distribution with `degrees` degrees of freedom, its mean is that of `units` independent even parts; the
    two errors are joined by the square root of the sum of their squares. Exact for two classes and a linear network,
    where the mean has no error.

    Source: G. Zou, A. Donner, Construction of confidence limits about effect measures, Stat. Med. 27 (2008), sec. 2
    (the method of variance estimates recovery).
    """
    shrunk, stretched = deviation_factors(spread.degrees, confidence)
    shift = student(units, confidence) * spread.mean_error
    mean, positive = spread.mean, spread.mean > 0
    towards_flips = mean * (1 - torch.where(positive, shrunk, stretched))
    away = mean * (torch.where(positive, stretched, shrunk) - 1)
    flat = spread.variance <= 0  # nothing varies: a mask, which may be as large as numbers get
    low, high = (torch.hypot(part, shift).masked_fill(flat, 0.0) for part in (towards_flips, away))
    return mean - low, mean + high


def deviation_factors(degrees: Tensor, confidence: float) -> tuple[Tensor, Tensor]:
    """How much smaller and larger a normal sample's standard deviation may be than the true one, as factors of it.

    `sqrt(q / degrees)`, `q` the lower and upper quantile of the chi-squared distribution at `confidence`.
    """
    tail, known = (1.0 - confidence) / 2.0, degrees.nan_to_num(nan=1.0).cpu().numpy()
    low, high = (torch.from_numpy(special.chdtri(known, upper) / known).to(degrees) for upper in (1 - tail, tail))
    return low.sqrt(), high.sqrt()


def modelled(margins: NoisyMargins, confidence: float) -> Interval:
    """The interval of the flip probability of normal margins with the mean and covariance that was measured.

    All margins are moved to their ends together (`margin_ends`), which is right where one competitor decides, and wide
    where several do.
    """
    ends = margin_ends(margins.spread, margins.units, confidence)
    high, low = (_flips(end, margins.covariance) for end in ends)
    return Interval(low.clamp_min(0.0), high.clamp_max(1.0))


def _flips(mean: Tensor, covariance: Tensor) -> Tensor:
    orthant = orthant_probability(mean, covariance, tolerance=ENDS_TOLERANCE)
    return orthant.complement


def modelled_by_one(spread: Spread, units: int, confidence: float) -> Interval:
    """The same where one normal number, `[B]`, decides alone."""
    ends = margin_ends(spread, units, confidence)
    deviation = spread.variance.sqrt().clamp_min(1e-300)
    high, low = (torch.special.ndtr(-end / deviation) for end in ends)
    return Interval(low, high)


def doubtful(value: Tensor, spread: Spread, votes: Votes) -> Tensor:
    """Where the normal model behind `value` may not hold at a point, by the copies that it was fitted to, `[B]`.

    There are fewer than `FEWEST_UNITS` units of noise, in which nothing shows; some copies tie; a margin that matters
    fails a test of normality (`not_normal`); or the share of copies that flip is more than `AGREE_WITHIN` standard
    errors from `value`. The last contradicts nothing yet, but is enough to doubt.
    """
    if votes.units < FEWEST_UNITS:
        return torch.ones_like(value, dtype=torch.bool)
    weights = torch.arange(votes.members + 1, device=value.device)
    counts = votes.flips.double()
    share = (counts * weights).sum(dim=1) / votes.draws
    squares = (counts * weights.square()).sum(dim=1) / (votes.units * votes.members**2)
    between = (squares - share.square()).clamp_min(0.0) / votes.units
    error = torch.maximum(between, value * (1 - value) / votes.draws).sqrt()
    return not_normal(spread) | (votes.ties > 0) | ((share - value).abs() > AGREE_WITHIN * error)


def not_normal(spread: Spread) -> Tensor:
    """Whether a margin that matters fails a test of normality, `[B]`.

    Its sample skewness or excess kurtosis lies more than `NORMAL_WITHIN` standard errors from 0 (D'Agostino, Pearson,
    Tests for departure from normality, Biometrika 60 (1973), with the errors of antithetic pairs). A margin matters
    where it turns negative with at least `MATTERS` of the probability of the one that does so most easily.
    """
    tails = torch.special.ndtr(-spread.mean / spread.variance.sqrt().clamp_min(1e-300))
    matters = tails >= MATTERS * tails.amax(dim=1, keepdim=True)
    found = torch.maximum(spread.skewness.abs(), spread.kurtosis.abs())
    return ((found > NORMAL_WITHIN) & matters).any(dim=1)


def evidence_of(value: Tensor, draws: int) -> Tensor:
    """`MODELLED`, or `EXTRAPOLATED` where fewer than one flip is expected in `draws` copies, `[B]`."""
    return torch.where(value * draws < 1.0, int(Evidence.EXTRAPOLATED), int(Evidence.MODELLED))


def no_copies(value: Tensor) -> Tensor:
    """The evidence of an estimate that looks at no noisy copy: `EXTRAPOLATED`, `[B]`."""
    return torch.full(value.shape, int(Evidence.EXTRAPOLATED), dtype=torch.int64, device=value.device)


def judge(
    status: Tensor, value: Tensor, interval: Interval, votes: Votes | None = None, by_votes: Interval | None = None
) -> Tensor:
    """`status` with what the votes, and the width of the interval, say of an estimate, `[B]`."""
    if votes is not None and by_votes is not None:
        status = mark(status, by_votes.excludes(value), Status.CONTRADICTED)
        status = mark(status, votes.ties > 0, Status.NOISY_TIES)
    return mark(status, interval.high - interval.low >= VACUOUS_FROM, Status.VACUOUS)


def vote_detail(
    status: Tensor, votes: Votes, by_votes: Interval, otherwise: tuple[str | None, ...]
) -> tuple[str | None, ...]:
    """What was counted at each contradicted or tied point, `[B]`; `otherwise` elsewhere."""
    flips = (votes.flips * torch.arange(votes.members + 1, device=votes.flips.device)).sum(dim=1).tolist()

    def describe(code: int, point: int) -> str | None:
        if code == Status.CONTRADICTED:
            ends = f"[{float(by_votes.low[point]):.3g}, {float(by_votes.high[point]):.3g}]"
            return f"{flips[point]} of {votes.draws} noisy copies flipped, which says {ends}"
        if code == Status.NOISY_TIES:
            return f"{int(votes.ties[point])} of {votes.draws} noisy copies tie for the largest logit"
        return otherwise[point]

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
