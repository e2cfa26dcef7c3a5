"""The truth by plain counting, with no code of the library: noisy copies through the network as it is."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor, nn

BLOCK = 500
"""Noisy copies of a point that go through the network together."""

HALVINGS = 14
LOWEST, HIGHEST = 1e-3, 10.0
"""Between which a sigma is looked for: shares of the range of a pixel."""

SURE = 0.999
"""Confidence of the intervals of what is counted."""


@torch.no_grad()
def count_flips(network: nn.Module, points: Tensor, sigma: float, draws: int, seed: int) -> Tensor:
    """How many of `draws` independent noisy copies of each point lose its class, `[B]`, int64.

    Each point has a generator of its own, so its count depends on no other point.
    """
    flips = torch.zeros(len(points), dtype=torch.int64)
    for row, point in enumerate(points):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + row)
        predicted = network(point[None]).argmax(1)
        for start in range(0, draws, BLOCK):
            noise = torch.randn(min(BLOCK, draws - start), *point.shape, generator=generator)
            flips[row] += (network(point + sigma * noise).argmax(1) != predicted).sum()
    return flips


def sigma_of(network: nn.Module, points: Tensor, share: float, draws: int, seed: int) -> float:
    """Return the sigma, to three digits, at which `share` of the noisy copies flip, by bisection on its logarithm.

    Every sigma is tried with the same draws, so that the share hardly depends on luck from one to the next.
    """
    low, high = math.log(LOWEST), math.log(HIGHEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        flips = count_flips(network, points, math.exp(middle), draws, seed)
        low, high = (middle, high) if float(flips.double().mean()) < share * draws else (low, middle)
    return float(f"{math.exp((low + high) / 2):.3g}")


def exact_interval(flips: NDArray[np.int64], draws: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Clopper-Pearson intervals of flip probabilities, `[B]` each, at the confidence `SURE`."""
    tail = (1 - SURE) / 2
    low = np.where(flips == 0, 0.0, stats.beta.ppf(tail, np.maximum(flips, 1), draws - flips + 1))
    high = np.where(flips == draws, 1.0, stats.beta.ppf(1 - tail, flips + 1, np.maximum(draws - flips, 1)))
    return low, high


def error_of_counting(flip: NDArray[np.float64], draws: float, reference: int) -> float:
    """Mean absolute difference between a count of `draws` copies and one of `reference`, over points.

    The mean absolute deviation of a binomial share is `2 k (1 - p) P(X = k) / n` with `k = floor(n p) + 1` (De Moivre);
    that of the difference is larger by `sqrt(1 + draws / reference)`, as its variance is. What an estimator is off is
    measured against the same `reference`, so both hold its error.
    """
    count = max(1, round(draws))  # passes may differ between points
    above = np.floor(count * flip) + 1
    deviation = 2 * above * (1 - flip) * stats.binom.pmf(above, count, flip) / count
    return float(deviation.mean() * math.sqrt(1 + count / reference))


def equal_copies(ratio: float, draws: float, reference: int) -> float:
    """Return the number of copies by which counting is as far off as `ratio` times counting `draws` of them.

    Squared errors against a reference go as `1 / n + 1 / reference`. Infinite where the reference cannot tell.
    """
    remaining = ratio**2 * (1 / draws + 1 / reference) - 1 / reference
    return 1 / remaining if remaining > 0 else math.inf
