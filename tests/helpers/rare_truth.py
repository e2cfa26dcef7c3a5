"""Networks with a known, small probability of flips under standard normal noise at the point 0.

Nothing here is shared with `brittle`: scipy gives the probabilities. Each network returns logits; the class 0 is
predicted at the point 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import integrate, optimize, stats
from torch import Tensor, nn

Margins = Callable[[Tensor], Tensor]
"""Function from noise `[B, n]` to the margins of class 0 over each of the others, `[B, K]`."""


class OfMargins(nn.Module):
    """Logits with these margins."""

    def __init__(self, margins: Margins) -> None:
        super().__init__()
        self.margins = margins

    def forward(self, x: Tensor) -> Tensor:
        margins = self.margins(x.flatten(1))
        return torch.cat((torch.zeros_like(margins[:, :1]), -margins), dim=1)


@dataclass(frozen=True)
class Problem:
    """A network with its exact flip probability.

    Attributes:
        name: name of the problem.
        size: number of coordinates.
        probability: probability of a flip.
        network: function from `[B, n]` to logits.
    """

    name: str
    size: int
    probability: float
    network: nn.Module

    @property
    def label(self) -> str:
        """Describe the problem."""
        return f"{self.name}, {self.size} dimensions, {self.probability:.0e}"


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the zero of an increasing or decreasing function."""
    zero = optimize.brentq(function, low, high, xtol=1e-30)
    assert isinstance(zero, float)
    return zero


def tail_quantile(p: float) -> float:
    """Return the number that a standard normal one exceeds with probability `p`."""
    return float(stats.norm.isf(p))


def half_space(size: int, p: float) -> Margins:
    """Return `u_1 > b`."""
    b = tail_quantile(p)
    return lambda u: b - u.mean(dim=1, keepdim=True) * math.sqrt(size)


def classes(size: int, p: float) -> Margins:
    """Return independent normal margins of up to nine competitors, every other one three times as steep.

    The competitor `k` wins with probability `p_k`, in proportion to `2^-k`: `P = 1 - prod (1 - p_k)`.
    """
    count = min(size, 9)
    shares = 0.5 ** np.arange(count)
    probabilities = root(lambda q: -float(np.expm1(np.log1p(-q * shares).sum())) - p, p / 4, 4 * p) * shares
    b = torch.tensor([tail_quantile(float(probability)) for probability in probabilities], dtype=torch.float64)
    steep = torch.tensor([3.0 if k % 2 else 1.0 for k in range(count)], dtype=torch.float64)
    return lambda u: (b.to(u) - u[:, :count]) * steep.to(u)


def opposite(size: int, p: float) -> Margins:
    """Return `|u_1| > b`, by one competitor: the nearest flips lie on both sides."""
    b = tail_quantile(p / 2)
    return lambda u: b - u[:, :1].abs()


def cube(size: int, p: float) -> Margins:
    """Return `max |u_i| > b` over at most ten coordinates."""
    count = min(size, 10)
    b = tail_quantile(-math.expm1(math.log1p(-p) / count) / 2)
    return lambda u: b - u[:, :count].abs().amax(dim=1, keepdim=True)


def ball(size: int, p: float) -> Margins:
    """Return `|u + d| > r`, with `d` of length 1: noncentral chi-squared."""
    tail = stats.ncx2(size, 1.0)
    r = math.sqrt(root(lambda s: math.log(max(tail.sf(s), 1e-300)) - math.log(p), size, 30 * size + 300))
    shift = torch.zeros(size)
    shift[0] = 1.0
    return lambda u: r - (u + shift.to(u)).norm(dim=1, keepdim=True)


def quadratic(bend: float) -> Callable[[int, float], Margins]:
    """Return `u_1 + bend / 2 |(u_2 .. u_k)|^2 > b`, `k` at most 10: a normal number and a chi-squared one."""

    def make(size: int, p: float) -> Margins:
        last = min(size, 10)

        def tail(b: float) -> float:
            freedom = last - 1

            def at(y: float) -> float:
                return float(stats.norm.sf(b - bend / 2 * y) * stats.chi2.pdf(y, freedom))

            ends = [0.0, *(float(2**k) for k in range(9))]
            return sum(
                integrate.quad(at, low, high, epsabs=0, epsrel=1e-8)[0] for low, high in itertools.pairwise(ends)
            )

        b = root(lambda b: math.log(max(tail(b), 1e-300)) - math.log(p), 0.0, 60.0)
        return lambda u: b - u[:, :1] - bend / 2 * u[:, 1:last].square().sum(dim=1, keepdim=True)

    return make


FAMILIES: dict[str, Callable[[int, float], Margins]] = {
    "a half-space": half_space,
    "several classes": classes,
    "two opposite half-spaces": opposite,
    "outside a cube": cube,
    "outside a ball": ball,
    "bent towards the point": quadratic(0.1),
    "bent away": quadratic(-0.2),
}
"""Functions from the number of coordinates and the probability to margins, by name."""

PROBABILITIES = (1e-3, 1e-6, 1e-9, 1e-12)


def problem(name: str, size: int, probability: float) -> Problem:
    """Return a problem of `FAMILIES`."""
    return Problem(name, size, probability, OfMargins(FAMILIES[name](size, probability)).eval())
