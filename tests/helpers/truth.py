"""The truth about a prediction under noise, from the network alone: every noisy copy in a batch of one.

Nothing here is shared with `brittle`: torch runs the network, numpy draws the noise, scipy gives the exact interval. A
copy flips where the class of the clean input does not win alone: another class has a larger score, or as large a one.
Copies with NaN or infinite scores are lost: the interval reaches from all of them kept to all of them flipped. Minus
infinity is a score, of a class that never wins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

Network = Callable[[Tensor], Tensor]
"""Function from one input in a batch of one to its class scores."""

CONFIDENCE = 0.999
"""Confidence of the truth's own interval."""


@dataclass(frozen=True)
class Truth:
    """Counts of the noisy copies of one input.

    Attributes:
        predicted: the class of the clean input; -1 where it has NaN or infinite scores.
        tied: whether another class has as large a score at the clean input.
        copies: number of noisy copies.
        flips: number of copies that lost the predicted class, ties among them.
        lost: number of copies with NaN or infinite scores, no flips.
    """

    predicted: int
    tied: bool
    copies: int
    flips: int
    lost: int

    @property
    def share(self) -> float:
        """Return the share of flips among all copies."""
        return self.flips / self.copies

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the Clopper-Pearson interval of the flip probability, whatever the lost copies would be."""
        lowest, _ = clopper_pearson(self.flips, self.copies, confidence)
        _, highest = clopper_pearson(self.flips + self.lost, self.copies, confidence)
        return lowest, highest


@cache
def clopper_pearson(flips: int, copies: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of a share."""
    interval = stats.binomtest(flips, copies).proportion_ci(confidence, "exact")
    return float(interval.low), float(interval.high)


def logits_of(scores: Tensor) -> Tensor:
    """Return class scores as they are, `[B, C]`."""
    return scores


def one_logit(scores: Tensor) -> Tensor:
    """Return class scores of a network that returns the logit of class 1, `[B, 1]` to `[B, 2]`."""
    return torch.cat((torch.zeros_like(scores), scores), dim=1)


def one_probability(scores: Tensor) -> Tensor:
    """Return class scores of a network that returns the probability of class 1, `[B, 1]` to `[B, 2]`."""
    return torch.cat((1 - scores, scores), dim=1)


def label_sets(threshold: float | tuple[float, ...] = 0.0) -> Callable[[Tensor], Tensor]:
    """Return a function from label numbers, `[B, L]`, that hold above a threshold, to scores of sets, `[B, 2^L]`.

    The score of a set is the sum of `z_j - t_j` over its labels less that over the others: the largest is that of the
    labels that hold, alone unless one is at its threshold. Bit `j` of a class is label `j`.
    """

    def scores(numbers: Tensor) -> Tensor:
        above = numbers.double() - torch.as_tensor(threshold, dtype=torch.float64)
        labels = torch.arange(above.shape[1])
        held = (torch.arange(2 ** above.shape[1])[:, None] >> labels & 1) * 2 - 1
        return above @ held.double().T

    return scores


def one_of_labels(label: int, threshold: float = 0.0) -> Callable[[Tensor], Tensor]:
    """Return the same function for one label alone, `[B, L]` to `[B, 2]`."""
    return lambda numbers: one_logit(numbers[:, label : label + 1].double() - threshold)


def alone(
    build: Callable[[], Network],
    x: Tensor,
    sigma: float,
    copies: int,
    seed: int,
    *,
    fresh: bool = False,
    meaning: Callable[[Tensor], Tensor] = logits_of,
) -> Truth:
    """Send `copies` copies of `x` under normal noise through the network, each alone.

    Args:
        build: makes the network.
        x: one input, `[*shape]`.
        sigma: standard deviation of the noise per coordinate.
        copies: number of copies.
        seed: seed of the noise.
        fresh: as for `of_copies`.
        meaning: likewise.
    """
    noise = np.random.default_rng(seed).standard_normal((copies, *x.shape), dtype=np.float32)
    return of_copies(build, x, x[None] + sigma * torch.from_numpy(noise).to(x), fresh=fresh, meaning=meaning)


def of_copies(
    build: Callable[[], Network],
    x: Tensor,
    noisy: Tensor,
    *,
    fresh: bool = False,
    meaning: Callable[[Tensor], Tensor] = logits_of,
) -> Truth:
    """Send noisy copies of `x` through the network, each alone.

    Args:
        build: makes the network.
        x: one input, `[*shape]`.
        noisy: copies of it, `[copies, *shape]`.
        fresh: make the network anew for every copy, so that it has seen nothing before.
        meaning: turns the output of the network, `[1, ...]`, into class scores.

    Returns:
        the counts of the copies.
    """
    copies, network = len(noisy), _evaluating(build)
    with torch.no_grad():
        clean = meaning(network(x[None].clone())).double()
        outputs = [(_evaluating(build) if fresh else network)(noisy[j : j + 1].clone()).clone() for j in range(copies)]
        scores = meaning(torch.cat(outputs)).double()
    if not bool(_readable(clean)[0]):
        return Truth(-1, False, copies, 0, copies)
    predicted = int(clean.argmax())
    keeps, readable = _wins(scores, predicted), _readable(scores)
    tied = not bool(_wins(clean, predicted)[0])
    return Truth(predicted, tied, copies, int((readable & ~keeps).sum()), int((~readable).sum()))


def _evaluating(build: Callable[[], Network]) -> Network:
    network = build()
    return network.eval() if isinstance(network, nn.Module) else network


def _readable(scores: Tensor) -> Tensor:
    """Return whether each row says which class wins, `[B]`."""
    return ~(scores.isnan() | scores.isposinf()).any(dim=1) & ~scores.isneginf().all(dim=1)


def _wins(scores: Tensor, predicted: int) -> Tensor:
    """Return whether each row has its largest score at the predicted class only, `[B]`."""
    rivals = scores.clone()
    rivals[:, predicted] = -torch.inf
    return scores[:, predicted] > rivals.amax(dim=1)
