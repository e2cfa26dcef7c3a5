"""What the linear scores share: margins of a linearisation, and the probability that all stay positive."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.estimate import Estimate, Status
from brittle.measure import Linearization, Spread, Votes
from brittle.noise import Noise
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability, without_rounding
from brittle.scores.base import finish, initial_status, mark, nonfinite_detail, probit, sampling_interval
from brittle.scores.evidence import (
    FEWEST_UNITS,
    Interval,
    counted,
    doubtful,
    evidence_of,
    judge,
    modelled,
    no_copies,
    vote_detail,
)

REPLICATE_TOLERANCE = 0.03
"""Relative error asked of the orthant probabilities that only measure spread; they share their nodes."""

LINEAR_SHARE = 1e-4
"""Share of the margins' variance that tangents at the noisy copies may miss where a network passes as linear."""


@dataclass(frozen=True)
class Margins:
    """Decision margins `g_i = z_t - z_i` of a linear model at `sigma = 1`.

    Attributes:
        mean: `[..., K]`.
        covariance: `[..., K, K]`; its diagonal holds the squared gradient norms of the margins.
        left_out: margins of the competitors that were not kept, `[..., C]`; infinite elsewhere.
    """

    mean: Tensor
    covariance: Tensor
    left_out: Tensor

    def left_out_ratios(self, sigma: float) -> Tensor:
        """Margins over standard deviations of the competitors that were not kept, `[..., C]`; infinite elsewhere.

        Each is given the largest kept gradient norm.
        """
        norm = self.covariance.diagonal(dim1=-2, dim2=-1).amax(dim=-1).clamp_min(0.0).sqrt()
        return self.left_out / (sigma * norm[..., None]).clamp_min(torch.finfo(torch.float64).tiny)


def margins(linear: Linearization) -> Margins:
    """Margins at the linearisation itself, `[B, …]`."""
    return _margins(linear, linear.logits[:, None], linear.gram[:, None], squeeze=True)


def margins_without_group(linear: Linearization) -> Margins | None:
    """Margins without one group of draws each, `[B, G, …]`."""
    return None if linear.without_group is None else _margins(linear, *linear.without_group, squeeze=False)


def _margins(linear: Linearization, logits: Tensor, gram: Tensor, squeeze: bool) -> Margins:
    own = linear.classes == linear.predicted[:, None]
    order = own.int().argsort(dim=1, stable=True)[:, None].expand(*logits.shape[:2], -1)
    chosen = logits.gather(2, linear.classes[:, None].expand(*logits.shape[:2], -1)).gather(2, order)
    square = gram.gather(2, order[..., None].expand_as(gram)).gather(3, order[..., None, :].expand_as(gram))
    mean = chosen[..., -1:] - chosen[..., :-1]
    to_own = square[..., :-1, -1]
    covariance = square[..., -1:, -1:] - to_own[..., :, None] - to_own[..., None, :] + square[..., :-1, :-1]
    diagonal = square.diagonal(dim1=-2, dim2=-1)
    covariance = without_rounding((covariance + covariance.mT) / 2, diagonal[..., -1:] + diagonal[..., :-1])
    known = linear.classes[:, None].expand(*logits.shape[:2], -1)
    left_out = (chosen[..., -1:] - logits).scatter(2, known, torch.inf)
    found = Margins(mean, covariance, left_out)
    return Margins(*(part[:, 0] for part in (found.mean, found.covariance, found.left_out))) if squeeze else found


def linear_status(linear: Linearization, found: Margins) -> Tensor:
    """How the linearisation of each point went, `[B]`."""
    status = initial_status(linear.tied)
    status = mark(status, ~linear.logits.isfinite().all(dim=1), Status.NONFINITE_LOGITS)
    status = mark(status, ~linear.gram.isfinite().all(dim=(1, 2)), Status.NONFINITE_GRADIENT)
    status = mark(status, found.covariance.diagonal(dim1=1, dim2=2).amax(dim=1) <= 0, Status.ZERO_GRADIENT)
    left_out = torch.full_like(linear.tied, linear.classes.shape[1] < linear.logits.shape[1])
    return mark(status, left_out, Status.CLASSES_KEPT)


def linear_detail(linear: Linearization, found: Margins) -> tuple[str | None, ...]:
    """What was seen at each point whose linearisation failed, `[B]`."""
    broken = (~linear.gram.isfinite()).sum(dim=(1, 2)).tolist()
    flat = (found.covariance.diagonal(dim1=1, dim2=2).amax(dim=1) <= 0).tolist()
    size, margins_count = linear.gram[0].numel(), found.mean.shape[-1]
    return tuple(
        said
        or (f"{count} of {size} entries of the Gram matrix are NaN or infinite" if count else None)
        or (f"the gradients of all {margins_count} margins are 0; moments and monte_carlo need none" if none else None)
        for said, count, none in zip(nonfinite_detail(linear.nonfinite, linear.draws), broken, flat, strict=True)
    )


def orthant_flips(linear: Linearization, noise: Noise, confidence: float) -> Estimate:
    """Probability that a margin of the linear model turns negative: `1 - P(g > 0)`, `g ~ N(D z, s^2 D G D^T)`.

    The interval covers the error of the quadrature and the classes left out; for a smoothed linearisation also the
    sampling error and what `what_copies_say` adds. At the point it does not cover what the network does beyond its
    linear model, and the evidence says so.
    """
    sigma = noise.sigma
    found = margins(linear)
    orthant = orthant_probability(found.mean, found.covariance * sigma**2)
    flips = orthant.complement
    interval = Interval(flips, flips)
    if linear.draws is not None:
        rest = margins_without_group(linear)
        without = None if rest is None else _orthant_probits(rest, sigma)
        interval = Interval(*sampling_interval(probit(flips, orthant.value), without, confidence))
    left_out = torch.special.ndtr(-found.left_out_ratios(sigma)).sum(dim=1)
    interval = Interval(
        (interval.low - orthant.error).clamp_min(0.0), (interval.high + orthant.error + left_out).clamp_max(1.0)
    )
    status = mark(linear_status(linear, found), flips.isnan(), Status.INDEFINITE)
    ill_conditioned = orthant.condition > ILL_CONDITIONED_ABOVE
    return _told(linear, found, flips, interval, status, confidence, ill_conditioned, noise, exact=True)


def sigmoid_flips(linear: Linearization, noise: Noise, confidence: float) -> Estimate:
    """One minus the multivariate sigmoid: `S / (1 + S)`, `S = sum_i exp(-g_i / (s ||grad g_i||))`.

    The formula is an approximation even of a linear network, so for a smoothed linearisation the interval reaches out
    to the normal model of the margins everywhere.
    """
    sigma = noise.sigma
    found, rest = margins(linear), margins_without_group(linear)
    odds = _sigmoid_odds(found, sigma)
    flips = torch.sigmoid(odds)
    interval = Interval(flips, flips)
    if linear.draws is not None:
        without = None if rest is None else _sigmoid_odds(rest, sigma)
        probits = None if without is None else probit(torch.sigmoid(without), torch.sigmoid(-without))
        interval = Interval(*sampling_interval(probit(flips, torch.sigmoid(-odds)), probits, confidence))
    left_out = torch.logsumexp(-found.left_out_ratios(sigma), dim=1)
    interval = Interval(interval.low, torch.sigmoid(torch.logaddexp(torch.logit(interval.high), left_out)))
    status, sound = linear_status(linear, found), torch.zeros_like(linear.tied)
    return _told(linear, found, flips, interval, status, confidence, sound, noise, exact=False)


def _told(
    linear: Linearization,
    found: Margins,
    flips: Tensor,
    interval: Interval,
    status: Tensor,
    confidence: float,
    ill_conditioned: Tensor,
    noise: Noise,
    exact: bool,
) -> Estimate:
    """The estimate with its evidence, and with what the votes of the noisy copies say of it.

    `exact` says whether the formula is that of a linear network under normal noise.
    """
    evidence, by_votes = no_copies(flips), None
    detail = linear_detail(linear, found)
    if linear.draws is not None:
        assert linear.votes is not None
        by_votes = counted(linear.votes, confidence)[1]
        by_model = None if linear.margins is None else modelled(linear.margins, confidence)
        spread = None if linear.margins is None else linear.margins.spread
        interval = what_copies_say(
            flips, interval, linear.votes, by_votes, by_model, spread, linear.bend, exact=exact, normal=noise.is_normal
        )
        evidence = evidence_of(flips, linear.draws)
    status = judge(status, flips, interval, linear.votes, by_votes)
    status = mark(status, ill_conditioned, Status.ILL_CONDITIONED)
    if by_votes is not None and linear.votes is not None:
        detail = vote_detail(status, linear.votes, by_votes, detail)
    ends = None if by_votes is None else (by_votes.low, by_votes.high)
    return finish(flips, interval.low, interval.high, status, linear.passes, detail, evidence, ends)


def what_copies_say(
    value: Tensor,
    interval: Interval,
    votes: Votes,
    by_votes: Interval,
    by_model: Interval | None,
    spread: Spread | None,
    bend: Tensor | None,
    *,
    exact: bool,
    normal: bool,
) -> Interval:
    """The interval of a smoothed linear model, as wide as the noisy copies behind it ask for.

    Where the formula is exact for linear networks, the noise normal and the network linear over it, it stays as it is;
    fewer than `FEWEST_UNITS` units of noise prove nothing of that kind. Elsewhere it reaches out to `by_model`, because
    the linear model leaves out a part of the margins' variance; and to `by_votes` where these margins may not be
    normal, or where the count excludes `value`. A single unit of noise shows no variance, so it reaches out to
    `by_votes` everywhere.

    Args:
        value: the estimate, `[B]`.
        interval: its own interval.
        votes: how the copies voted.
        by_votes: interval by counting.
        by_model: interval of a normal model of the margins of the same copies; None with a single unit of noise.
        spread: mean and variance of these margins, `[B, K]` each; None likewise.
        bend: mean square of what tangents at the copies miss of them, `[B, K]`; None likewise.
        exact: whether the formula is exact for linear networks under normal noise.
        normal: whether the noise is normal.
    """
    everywhere = torch.ones_like(value, dtype=torch.bool)
    if by_model is None or spread is None or bend is None:
        return interval.hull(by_votes, everywhere)
    known = exact and normal and votes.units >= FEWEST_UNITS
    bends = bent(bend, spread) if known else everywhere
    doubt = bends & doubtful(value, spread, votes) if normal else everywhere
    return interval.hull(by_model, bends).hull(by_votes, doubt | by_votes.excludes(value))


def bent(bend: Tensor, spread: Spread) -> Tensor:
    """Whether a network bends over the noise, `[B]`: tangents at the copies miss more of a margin than rounding does.

    Args:
        bend: mean square of what they miss, `[B, K]`.
        spread: mean and variance of the margins, `[B, K]` each.
    """
    return (bend > LINEAR_SHARE * spread.variance).any(dim=1)


def _orthant_probits(found: Margins, sigma: float) -> Tensor:
    """Probits of every problem of `found`, `[B, G]`, to the precision that measures spread."""
    orthant = orthant_probability(
        found.mean.flatten(0, 1), found.covariance.flatten(0, 1) * sigma**2, tolerance=REPLICATE_TOLERANCE
    )
    return probit(orthant.complement, orthant.value).view(found.mean.shape[:2])


def _sigmoid_odds(found: Margins, sigma: float) -> Tensor:
    """Log-odds `log(flip / p_robust)` of the multivariate sigmoid."""
    norms = found.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    ratios = found.mean / (sigma * norms)
    return torch.logsumexp(-ratios.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf), dim=-1).clamp(-1e4, 1e4)
