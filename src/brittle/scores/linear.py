"""What the linear scores share: margins of a linearisation, and the probability that all stay positive."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.estimate import Estimate, Status
from brittle.measure import Linearization
from brittle.noise import Noise
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability, without_rounding
from brittle.scores.base import initial_status, mark, nonfinite_detail, probit, sampling_interval
from brittle.scores.by_copies import Draft, NoisyCopies, conclude
from brittle.scores.evidence import Interval, modelled

REPLICATE_TOLERANCE = 0.03
"""Relative error asked of the orthant probabilities that only measure spread; they share their nodes."""


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
    """What was found at each point whose linearisation failed, `[B]`."""
    broken = (~linear.gram.isfinite()).sum(dim=(1, 2)).tolist()
    flat = (found.covariance.diagonal(dim1=1, dim2=2).amax(dim=1) <= 0).tolist()
    size, margins_count = linear.gram[0].numel(), found.mean.shape[-1]
    return tuple(
        text
        or (f"{count} of {size} entries of the Gram matrix are NaN or infinite" if count else None)
        or (
            f"the gradients of all {margins_count} margins are 0; shrinkage and monte_carlo need none" if none else None
        )
        for text, count, none in zip(nonfinite_detail(linear.nonfinite, linear.draws), broken, flat, strict=True)
    )


def orthant_flips(linear: Linearization, noise: Noise, confidence: float) -> Estimate:
    """Probability that a margin of the linear model turns negative: `1 - P(g > 0)`, `g ~ N(D z, s^2 D G D^T)`.

    The interval covers the error of the quadrature and the classes left out; for a smoothed linearisation also the
    sampling error and what the copies say of it (`brittle.scores.by_copies.widen_by_copies`). At the point it does not
    cover what the network does beyond its linear model, and the evidence says so.
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
    ill_conditioned = (orthant.condition > ILL_CONDITIONED_ABOVE, Status.ILL_CONDITIONED)
    detail = linear_detail(linear, found)
    draft = Draft(flips, interval, status, detail, ill_conditioned, linear.passes, exact=True)
    return conclude(draft, _copies(linear, noise, confidence), confidence)


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
    status, detail = linear_status(linear, found), linear_detail(linear, found)
    nothing = (torch.zeros_like(linear.tied), Status.ILL_CONDITIONED)
    draft = Draft(flips, interval, status, detail, nothing, linear.passes, exact=False)
    return conclude(draft, _copies(linear, noise, confidence), confidence)


def _copies(linear: Linearization, noise: Noise, confidence: float) -> NoisyCopies | None:
    """The noisy copies that were linearised at; None at the point."""
    if linear.votes is None:
        return None
    margins = linear.margins
    by_model = None if margins is None else modelled(margins, confidence)
    spread = None if margins is None else margins.spread
    return NoisyCopies(linear.votes, by_model, spread, linear.bend, normal=noise.is_normal)


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
