"""Independent noisy copies of each point, no more than a question asks for, and their share without bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from torch import Tensor

from brittle.intervals import decided, sequence_interval
from brittle.measure.base import Measurement, NetworkTraits, Passes, check_draws
from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import Votes
from brittle.model.classifier import Classifier
from brittle.noise import Noise

FIRST_LOOK = 4
"""Draws of a point before its counts are looked at."""

GROWTH = 8
"""From one look to the next the draws grow by one part in so many, and by `FIRST_LOOK` at least."""


@dataclass(frozen=True)
class StoppedVotes:
    """How the noisy copies of each point voted, where points have different numbers of copies; each `[B]`, int64.

    Ties and copies without finite logits are among the flips; of `flips_without_ties` ties are none. `classes`,
    `[B, C, 1]`, are the copies that voted for each class.
    """

    draws: Tensor
    flips: Tensor
    flips_without_ties: Tensor
    ties: Tensor
    nonfinite: Tensor
    classes: Tensor
    tied: Tensor
    passes: Tensor


@dataclass(frozen=True)
class SampleUntil(Measurement):
    """Independent noisy copies of each point, until its counts answer the question.

    The counts are looked at after numbers of draws that are the same for all points, whatever `draws` is, so that a
    point's draws depend on the point alone and those of fewer `draws` are the first of those of more. No point of a
    batch waits for another: those that go on share the passes. Of two rules the one that is met first stops. `draws`
    are a point's at most; `limit` and `precision` are as in `StoppingRule`. With `clip` copies are clipped to the
    classifier's bounds.
    """

    noise: Noise
    draws: int
    limit: float | None = None
    precision: float | None = None
    clip: bool = False

    differentiates = False

    def __post_init__(self) -> None:
        check_draws(self.draws, antithetic=False)

    @property
    def noise_source(self) -> tuple[str, Noise]:
        """What is asked of the copies does not change the draws."""
        return ("until", self.noise)

    def cost(self, network: NetworkTraits) -> Passes:
        """A forward pass a copy: with a limit a tenth of the most in the mean, as digits and simulated points took."""
        return Passes(self.draws if self.limit is None else -(-self.draws // 10))

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[StoppedVotes]:
        return [_count(need, classifier, clean) for need in needs]


def _count(need: SampleUntil, classifier: Classifier, clean: Clean) -> StoppedVotes:
    """Draw until every point has its answer, or as many draws as it may have; one without finite logits has none."""
    rule = StoppingRule(need.draws, need.limit, need.precision, clean.confidence)
    stream, drawn = clean.stream(need.noise, "until"), 0
    # Draws, flips, flips without ties, ties and copies that are not finite, of all points.
    counts = torch.zeros(5, len(clean.inputs), dtype=torch.int64, device=clean.inputs.device)
    classes = counts.new_zeros(*clean.logits.shape, 1)
    active = torch.arange(len(clean.inputs), device=counts.device)
    going = clean.finite if clean.wanted is None else clean.finite & clean.wanted
    for look in looks(need.draws):
        if not bool(going.all()):
            stream.keep(going.nonzero().flatten().tolist())
            active = active[going]
        while len(active) and drawn < look:
            copies = min(look - drawn, max(1, clean.rows // len(active)))
            noisy = stream.copies(copies).flatten(0, 2)
            noisy = classifier.bounds.clip(noisy) if need.clip else noisy
            with torch.no_grad():
                logits = clean.logits_of(classifier, noisy, active.repeat_interleave(copies))
            votes = Votes.of(logits.double().view(len(active), copies, 1, -1), clean.predicted[active])
            found = (votes.flips.sum(1), votes.flips[:, 1], votes.flips_without_ties[:, 1], votes.ties, votes.nonfinite)
            counts[:, active] += torch.stack(found)
            classes[active] += votes.classes
            drawn += copies
        draws, flips, without_ties = (each[active].cpu().numpy() for each in counts[:3])
        going = torch.from_numpy(~rule.answered(flips, without_ties, draws)).to(active.device)
    draws, flips, without_ties, ties, nonfinite = counts
    return StoppedVotes(draws, flips, without_ties, ties, nonfinite, classes, clean.tied, draws + clean.passes)


@dataclass(frozen=True)
class StoppingRule:
    """Draw until the interval of `p_robust` leaves a limit or is narrow enough, whichever comes first. A limit or
    precision of None stops nothing; the interval is `brittle.intervals.sequence_interval`."""

    most: int
    limit: float | None
    precision: float | None
    confidence: float

    def answered(self, flips: ArrayLike, flips_without_ties: ArrayLike, draws: ArrayLike) -> NDArray:
        """Whether counts answer the question; of the shape of the counts, bool."""
        done = np.zeros(np.shape(flips), dtype=bool)
        if self.limit is not None:
            done |= decided(flips, flips_without_ties, draws, self.limit, self.confidence)
        if self.precision is not None:
            counts, of = np.unique(np.stack((flips, flips_without_ties, draws)), axis=1, return_inverse=True)
            low = sequence_interval(counts[1], counts[2], self.confidence)[0]
            high = sequence_interval(counts[0], counts[2], self.confidence)[1]
            done |= (high - low <= self.precision)[of]
        return done

    def unbiased_shares(self, flips: NDArray, draws: NDArray) -> NDArray:
        """The flip probability without bias, from counts that this rule stopped; `[B]`, float64.

        The share `flips / draws` of a count that stopped early lies on the average further from the limit than the
        truth does. Of all orders in which `flips` flips among `draws` draws do not stop before the end, this is the
        share of those that begin with a flip: the mean of the first draw, which has no bias, given all that the counts
        say. So its mean is the flip probability, whatever that is.

        Counts without ties only. Where no order is left (within rounding: counts that less than one stopped point in
        10^300 ends with) it is the share.

        Source: Girshick, Mosteller, Savage, Unbiased estimates for certain binomial sampling problems with applications
        (Annals of Mathematical Statistics 1946), theorem 4.
        The draws are each one of `looks(most)`, or 0, which gives 0.
        """
        shares = flips / np.maximum(draws, 1)
        table = _unbiased(self)
        for row in np.flatnonzero(draws):
            found = table[int(draws[row])][int(flips[row])]
            shares[row] = found if np.isfinite(found) else shares[row]
        return shares


def looks(most: int) -> Iterator[int]:
    """The numbers of draws after which counts are looked at; the last is `most`, and no other depends on it."""
    look = 0
    while look < most:
        look = min(most, look + max(FIRST_LOOK, look // GROWTH))
        yield look


@cache
def _unbiased(rule: StoppingRule) -> dict[int, NDArray]:
    """For each look the unbiased share of every number of flips, `[draws + 1]`; NaN where none gets there.

    Of all orders of the draws that give so many flips, `alive` is the share that did not stop before, `flip_first` the
    share that also began with a flip.
    """
    found: dict[int, NDArray] = {}
    log_factorial = gammaln(np.arange(rule.most + 2) + 1.0)
    orders = np.stack((np.ones(1), np.zeros(1)))
    for look in looks(rule.most):
        alive, flip_first = orders = _carried(orders, look, log_factorial)
        with np.errstate(invalid="ignore"):
            found[look] = flip_first / alive
        going = np.flatnonzero(alive)
        stopped = rule.answered(going, going, np.full(len(going), look))
        orders[:, going[stopped]] = 0.0
    return found


def _carried(orders: NDArray, look: int, log_factorial: NDArray) -> NDArray:
    """`alive` and `flip_first` of `_unbiased` after `look` draws, `[2, look + 1]`, from those at the look before. They
    are means over the flips that there were then, which are hypergeometric."""
    draws = orders.shape[1] - 1
    if not draws:
        return np.stack((np.ones(look + 1), np.arange(look + 1) / look))

    def log_choose(total: int) -> NDArray:
        return log_factorial[total] - log_factorial[: total + 1] - log_factorial[total::-1]

    then, since, now = log_choose(draws), log_choose(look - draws), log_choose(look)
    carried = np.zeros((2, look + 1))
    for flips in np.flatnonzero(orders[0]):
        reached = slice(flips, flips + look - draws + 1)
        carried[:, reached] += np.exp(then[flips] + since - now[reached]) * orders[:, flips, None]
    return carried
