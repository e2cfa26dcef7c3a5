"""Independent noisy copies of each point, no more than a question asks for, and the share of flips without bias."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from torch import Tensor
from torch.nn.functional import pad

from brittle.intervals import decided, out_of_reach, sequence_interval
from brittle.measure.base import Measurement, NetworkTraits, Passes, check_draws
from brittle.measure.chunks import MIRRORED, noisy_chunks
from brittle.measure.forward import Clean
from brittle.measure.rows import join, pick
from brittle.measure.sample_sums import Sampled, SampleSums
from brittle.measure.sampling import passes_together
from brittle.model.classifier import Classifier
from brittle.noise import Noise

FIRST_LOOK = 60
"""Draws of a point before its counts are looked at: where none flips they show a flip probability below 0.1."""

GROWTH = 5
"""Growth of the draws from one look to the next: one part in so many."""

MARGINS_UP_TO = 240
"""Number of draws whose margins are kept; more are counted alone, as their share errs hardly more than with margins."""

MIRRORED_UP_TO, NEAR = 120, 2**0.5
"""Draws up to which a point near the boundary gets the mirror images of its first copies, and how near, in deviations
of its nearest margin: of linear margins further away, single copies know the tail better than half as many pairs."""


@dataclass(frozen=True)
class SampleUntil(Measurement):
    """Independent noisy copies of each point, until their counts answer the question.

    The counts are looked at after numbers of draws that are the same for all points, whatever `draws` is, so that a
    point's draws depend on the point alone and those of fewer `draws` are the first of those of more. Points that go on
    share their passes. `draws` are those of a point at most; `limit` and `precision` are as in `StoppingRule`. With
    `clip` copies are clipped to the classifier's bounds.

    The votes of the result are those of the independent copies. A point that stops within `MIRRORED_UP_TO` of them, and
    whose nearest margin has a mean within `NEAR` of its deviations from 0, gets the mirror images of its first copies
    as well, where the noise is symmetric: in such pairs what is odd in the noise cancels, and they take no part in the
    counts. With `votes_only` there are none, and no margins.
    """

    noise: Noise
    draws: int
    limit: float | None = None
    precision: float | None = None
    clip: bool = False
    votes_only: bool = False

    differentiates = False

    def __post_init__(self) -> None:
        check_draws(self.draws, antithetic=False)

    @property
    def stream(self) -> Hashable:
        """Votes alone share the passes of votes with margins."""
        return replace(self, votes_only=False)

    @property
    def noise_source(self) -> tuple[str, Noise]:
        """Key of the noise: the question to the copies does not change the draws."""
        return ("until", self.noise)

    def cost(self, network: NetworkTraits) -> Passes:
        """Return a forward pass a copy: with a limit a fifth of the most in the mean, as trained networks took."""
        return Passes(self.draws if self.limit is None else max(-(-self.draws // 5), min(self.draws, FIRST_LOOK)))

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Sampled]:
        """Return the results of `needs`, from the same copies; mirror images are passes of those that read margins."""
        sampled = _count(min(needs, key=lambda need: need.votes_only), classifier, clean)
        counted = replace(sampled, passes=sampled.draws + clean.passes)
        return [counted if need.votes_only else sampled for need in needs]


def _count(need: SampleUntil, classifier: Classifier, clean: Clean) -> Sampled:
    """Draw until every point has its answer, or its most draws; one without finite logits takes the first look."""
    rule = StoppingRule(need.draws, need.limit, need.precision, clean.confidence)
    stream, drawn, together = clean.stream(need.noise, "until"), 0, clean.rows * passes_together(clean)
    usable = clean.finite if clean.is_usable is None else clean.finite & clean.is_usable
    undecided, sums = torch.arange(len(clean.ids), device=clean.inputs.device), SampleSums.start(clean, 1)
    first_logits: list[Tensor] = []
    for look in looks(need.draws):
        votes_only = need.votes_only or drawn >= MARGINS_UP_TO
        while drawn < look:
            copies = min(look - drawn, max(1, together // len(undecided)))
            logits = _logits(need, classifier, clean, undecided, stream.copies(copies))
            sums.add(logits, rows=undecided, votes_only=votes_only)
            first_logits += [logits] if look <= FIRST_LOOK and not votes_only else []
            drawn += copies
        votes = sums.votes
        flips, without_ties = (part[undecided, 1].cpu().numpy() for part in (votes.flips, votes.flips_without_ties))
        answered = torch.from_numpy(rule.answered(flips, without_ties, look)).to(undecided.device)
        goes_on = ~answered & usable[undecided]
        undecided = undecided[goes_on]
        if not len(undecided):
            break
        stream.keep(goes_on.nonzero().flatten().tolist())
    sampled = sums.read()
    return _mirror(need, classifier, clean, sampled, torch.cat(first_logits, dim=1)) if first_logits else sampled


def _logits(need: SampleUntil, classifier: Classifier, clean: Clean, points: Tensor, copies: Tensor) -> Tensor:
    """Return the logits of copies `[P, units, 1, *shape]` of the `points` at these positions, `[P, units, 1, C]`."""
    count, noisy = copies.shape[1], copies.flatten(0, 2)
    with torch.no_grad():
        noisy = classifier.bounds.clip(noisy) if need.clip else noisy
        logits = clean.logits_of(classifier, noisy, points.repeat_interleave(count))
    return logits.view(len(points), count, 1, -1)


def _mirror(need: SampleUntil, classifier: Classifier, clean: Clean, sampled: Sampled, logits: Tensor) -> Sampled:
    """Return `sampled`; of points near the boundary that stopped early the margins are over pairs of their first
    copies, which have these `logits` `[B, units, 1, C]`, with the mirror images of these."""
    assert sampled.nearest is not None
    mean = sampled.nearest.nanmean(dim=1)
    deviation = (sampled.nearest - mean[:, None]).square().nanmean(dim=1).sqrt()
    is_near = (mean.abs() < NEAR * deviation) & (sampled.draws <= MIRRORED_UP_TO)
    near, far = is_near.nonzero().flatten(), (~is_near).nonzero().flatten()
    if not need.noise.is_symmetric or not len(near):
        return sampled
    nearby, points, units = clean.only(near), torch.arange(len(near), device=near.device), logits.shape[1]
    pairs = SampleSums.start(nearby, 2)
    for chunk in noisy_chunks(nearby, need.noise, "until", [units], MIRRORED, passes=passes_together(nearby)):
        images = _logits(need, classifier, nearby, points, chunk.unfold(chunk.inputs))
        pairs.add(torch.cat((logits[near, chunk.first_unit : chunk.end], images), dim=2))
    singles = pick(sampled, near)
    mirrored = replace(pairs.read(), votes=singles.votes, passes=singles.passes + units)
    return _join([mirrored, pick(sampled, far)], [near, far])


def _join(parts: Sequence[Sampled], rows: Sequence[Tensor]) -> Sampled:
    """Put points together in the order of their `rows`. Nearest margins get one width, NaN behind those of fewer."""
    margins = [part.nearest for part in parts if part.nearest is not None]
    width = max((nearest.shape[1] for nearest in margins), default=0)
    padded = [pad(nearest, (0, width - nearest.shape[1]), value=torch.nan) for nearest in margins]
    joined = join([replace(part, nearest=None) for part in parts])
    return pick(replace(joined, nearest=torch.cat(padded) if padded else None), torch.cat([*rows]).argsort())


@dataclass(frozen=True)
class StoppingRule:
    """Draw until the interval of `p_robust` leaves a limit, or `max_draws` draws will hardly let it, or it is narrow
    enough. A limit or precision of None stops nothing; the interval is `brittle.intervals.sequence_interval`."""

    max_draws: int
    limit: float | None
    precision: float | None
    confidence: float

    def answered(self, flips: ArrayLike, flips_without_ties: ArrayLike, draws: ArrayLike) -> NDArray:
        """Return True for counts that answer the question; of their shape, bool."""
        answered = np.zeros(np.shape(flips), dtype=bool)
        if self.limit is not None:
            answered |= decided(flips, flips_without_ties, draws, self.limit, self.confidence)
            answered |= out_of_reach(flips, draws, self.max_draws, self.limit, self.confidence)
        if self.precision is not None:
            triples = np.stack(np.broadcast_arrays(flips, flips_without_ties, draws))
            counts, positions = np.unique(triples, axis=1, return_inverse=True)
            low = sequence_interval(counts[1], counts[2], self.confidence)[0]
            high = sequence_interval(counts[0], counts[2], self.confidence)[1]
            answered |= (high - low <= self.precision)[positions]
        return answered

    def unbiased_shares(self, flips: NDArray, draws: NDArray) -> NDArray:
        """Return the flip probability without bias, from counts that this rule stopped; `[B]`, float64.

        The share `flips / draws` of a count that stopped early lies on the average further from the limit than the
        truth does. Of all orders in which `flips` flips among `draws` draws do not stop before the end, this is the
        share of those that begin with a flip: the mean of the first draw, which has no bias, given all that the counts
        say. So its mean is the flip probability, whatever that is.

        Counts without ties only; the draws are each one of `looks(max_draws)`, or 0, which gives 0. Where no order is
        left (within rounding: counts that less than one stopped point in 10^300 ends with) it is the share.

        Source: Girshick, Mosteller, Savage, Unbiased estimates for certain binomial sampling problems with applications
        (Annals of Mathematical Statistics 1946), theorem 4.
        """
        shares = flips / np.maximum(draws, 1)
        table = _tabulate_shares(self)
        for row in np.flatnonzero(draws):
            share = table[int(draws[row])][int(flips[row])]
            shares[row] = share if np.isfinite(share) else shares[row]
        return shares


def looks(max_draws: int) -> Iterator[int]:
    """Yield the numbers of draws after which counts are looked at; the last is `max_draws`, no other depends on it."""
    look = 0
    while look < max_draws:
        look = min(max_draws, look + look // GROWTH if look else FIRST_LOOK)
        yield look


@cache
def _tabulate_shares(rule: StoppingRule) -> dict[int, NDArray]:
    """Return for each look the unbiased share of every number of flips, `[draws + 1]`; NaN where none gets there.

    Of all orders of the draws that give so many flips, `alive` is the share that did not stop before, `flip_first` the
    share that also began with a flip.
    """
    shares: dict[int, NDArray] = {}
    log_factorial = gammaln(np.arange(rule.max_draws + 2) + 1.0)
    orders = np.stack((np.ones(1), np.zeros(1)))
    for look in looks(rule.max_draws):
        alive, flip_first = orders = _carry(orders, look, log_factorial)
        with np.errstate(invalid="ignore"):
            shares[look] = flip_first / alive
        flips = np.flatnonzero(alive)
        stopped = rule.answered(flips, flips, np.full(len(flips), look))
        orders[:, flips[stopped]] = 0.0
    return shares


def _carry(orders: NDArray, look: int, log_factorial: NDArray) -> NDArray:
    """Return `alive` and `flip_first` of `_tabulate_shares` after `look` draws, `[2, look + 1]`, from those at the look
    before. They are means over the flips that there were then, which are hypergeometric."""
    draws = orders.shape[1] - 1
    if not draws:
        return np.stack((np.ones(look + 1), np.arange(look + 1) / look))

    def log_choose(total: int) -> NDArray:
        return log_factorial[total] - log_factorial[: total + 1] - log_factorial[total::-1]

    log_before, log_between, log_after = log_choose(draws), log_choose(look - draws), log_choose(look)
    carried = np.zeros((2, look + 1))
    for flips in np.flatnonzero(orders[0]):
        reachable = slice(flips, flips + look - draws + 1)
        carried[:, reachable] += np.exp(log_before[flips] + log_between - log_after[reachable]) * orders[:, flips, None]
    return carried
