"""When the counts of a point answer a question, and what share of its draws flip without the bias of stopping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from brittle.intervals import decided, sequence_interval

FIRST_LOOK = 4
"""Draws of a point before its counts are looked at."""

GROWTH = 8
"""From one look to the next the draws grow by one part in so many, and by `FIRST_LOOK` at least."""


@dataclass(frozen=True)
class StoppingRule:
    """Draw until the interval of `p_robust` leaves a limit or is narrow enough, whichever comes first.

    Attributes:
        most: draws of a point at most.
        limit: stop once the interval leaves this number; None does not.
        precision: stop once the interval is no wider; None does not.
        confidence: of the interval, `brittle.intervals.sequence_interval`.
    """

    most: int
    limit: float | None
    precision: float | None
    confidence: float

    def looks(self) -> Iterator[int]:
        """The numbers of draws after which counts are looked at."""
        return looks(self.most)

    def answered(self, flips: ArrayLike, flips_without_ties: ArrayLike, draws: ArrayLike) -> NDArray:
        """Whether counts answer the question; of the shape of the counts, bool.

        Args:
            flips: draws that flip, ties among them.
            flips_without_ties: draws that flip, ties not among them.
            draws: how many there are.
        """
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

        Args:
            flips: draws that flip, `[B]`.
            draws: how many there are, `[B]`, each one of `looks()`, or 0 (which gives 0).
        """
        shares = flips / np.maximum(draws, 1)
        table = _unbiased(self)
        for row in np.flatnonzero(draws):
            found = table[int(draws[row])][int(flips[row])]
            shares[row] = found if np.isfinite(found) else shares[row]
        return shares


def looks(most: int) -> Iterator[int]:
    """The numbers of draws after which counts are looked at; the last is `most`."""
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
    for look in rule.looks():
        alive, flip_first = orders = _carried(orders, look, log_factorial)
        with np.errstate(invalid="ignore"):
            found[look] = flip_first / alive
        going = np.flatnonzero(alive)
        stopped = rule.answered(going, going, np.full(len(going), look))
        orders[:, going[stopped]] = 0.0
    return found


def _carried(orders: NDArray, look: int, log_factorial: NDArray) -> NDArray:
    """`alive` and `flip_first` of `_unbiased` after `look` draws, `[2, look + 1]`, from those at the look before.

    They are means over the flips that there were then, which are hypergeometric.
    """
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
