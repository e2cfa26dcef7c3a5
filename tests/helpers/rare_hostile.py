"""Networks with hidden rare flips: where no margin leads, behind the point, in corners, beyond steps.

The noise is standard normal at the point 0, where class 0 is predicted. Truths are closed forms of scipy, or a
convolution; nothing is shared with `brittle`. A *cliff* is a region of flips at whose edge the margin jumps, without
falling before. Beside each cliff a slope in the first coordinate leads to flips that are a hundred times rarer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import torch
from helpers.rare_truth import Margins, OfMargins, Problem, root, tail_quantile
from scipy import integrate, stats
from torch import Tensor

RARER = 100.0
"""Ratio of the flips of a cliff to those that the slope leads to."""

Hostile = Callable[[int, float], tuple[Margins, float]]
"""Function from the number of coordinates and an approximate probability to margins and their probability."""

Region = Callable[[Tensor], Tensor]
"""Function from noise `[B, n]` to whether it lies in a cliff, `[B]`."""


def beside_a_slope(region: Region, p: float, share: float | None = None) -> Margins:
    """Return a cliff of probability `p / (1 + 1 / RARER)`, beside a slope."""
    slope = tail_quantile(p / RARER if share is None else share)
    return lambda u: torch.where(region(u)[:, None], -1.0, slope - u[:, :1])


def either(hidden: float, slope: float) -> float:
    """Return the probability that at least one of two independent events happens."""
    return hidden + slope - hidden * slope


def cliff(rarer: float) -> Hostile:
    """Return `u_2 > c`, beside flips of the slope that are so many times rarer."""

    def make(size: int, p: float) -> tuple[Margins, float]:
        c = tail_quantile(p)
        return beside_a_slope(lambda u: u[:, 1] > c, p, p / rarer), either(p, p / rarer)

    return make


def cliff_of_all(size: int, p: float) -> tuple[Margins, float]:
    """Return `(u_2 + .. + u_n) / sqrt(n - 1) > c`: no single coordinate predicts it."""
    c = tail_quantile(p)
    return beside_a_slope(lambda u: u[:, 1:].sum(dim=1) / math.sqrt(size - 1) > c, p), either(p, p / RARER)


def cliff_uphill(size: int, p: float) -> tuple[Margins, float]:
    """Return `u_2 > c`, with a margin that grows towards it."""
    c, slope = tail_quantile(p), tail_quantile(p / RARER)

    def margins(u: Tensor) -> Tensor:
        return torch.where(u[:, 1:2] > c, -1.0, (slope - u[:, :1]) * (1.0 + u[:, 1:2].clamp_min(0.0)))

    return margins, either(p, p / RARER)


def cliff_behind(size: int, p: float) -> tuple[Margins, float]:
    """Return `u_1 < -c`, on the side from which the slope leads away."""
    c, slope = tail_quantile(p), p / RARER
    return beside_a_slope(lambda u: u[:, 0] < -c, p), p + slope


def slab_cliff(width: float) -> Hostile:
    """Return `c < u_2 < c + width`."""

    def make(size: int, p: float) -> tuple[Margins, float]:
        c = root(lambda c: math.log(stats.norm.sf(c) - stats.norm.sf(c + width)) - math.log(p), 0.5, 20.0)
        return beside_a_slope(lambda u: (u[:, 1] > c) & (u[:, 1] < c + width), p), either(p, p / RARER)

    return make


def corner_cliff(size: int, p: float) -> tuple[Margins, float]:
    """Return `u_1 < -a` and `u_2 > a`: as in XOR, no single coordinate decides."""
    a = tail_quantile(math.sqrt(p))
    return beside_a_slope(lambda u: (u[:, 0] < -a) & (u[:, 1] > a), p), p + p / RARER


def xor_cliff(size: int, p: float) -> tuple[Margins, float]:
    """Return `|u_1| > a` and `|u_2| > a`, of unequal signs."""
    a, slope = tail_quantile(math.sqrt(p / 2)), tail_quantile(p / RARER)

    def region(u: Tensor) -> Tensor:
        return (u[:, :2].abs().amin(dim=1) > a) & (u[:, 0] * u[:, 1] < 0)

    # The slope's flips overlap those of one of the two corners: P(u_1 > max(a, slope), u_2 < -a).
    shared = float(stats.norm.sf(max(a, slope)) * stats.norm.sf(a))
    return beside_a_slope(region, p), p + p / RARER - shared


def shell_cliff(size: int, p: float) -> tuple[Margins, float]:
    """Return `|u| > r`, beside a slope: P = P(|u| > r or u_1 > b), by conditioning on the other coordinates."""
    r2, slope = float(stats.chi2.isf(p, size)), tail_quantile(p / RARER)

    def both(y: float) -> float:
        return float(stats.norm.pdf(y) * stats.chi2.sf(max(0.0, r2 - y * y), size - 1))

    shared, _ = integrate.quad(both, slope, slope + 10.0, epsabs=0, epsrel=1e-6)
    return beside_a_slope(lambda u: u.square().sum(dim=1) > r2, p), p + p / RARER - shared


def ball_cliff(size: int, p: float) -> tuple[Margins, float]:
    """Return `|u - (r + d) e_2| < r`, a ball as large as `n`; the probability sets its distance `d`."""
    r = float(size)

    def inside(d: float) -> float:
        return math.log(max(float(stats.ncx2.cdf(r * r, size, (r + d) ** 2)), 1e-300)) - math.log(p)

    distance = r + root(inside, 0.0, 20.0)

    def region(u: Tensor) -> Tensor:
        return u.square().sum(dim=1) - 2.0 * distance * u[:, 1] < r * r - distance * distance

    return beside_a_slope(region, p), p + p / RARER  # both at once: less than a percent of the slope's


def slab(size: int, p: float) -> tuple[Margins, float]:
    """Return `b < u_1 < b + 0.5`: beyond it the first class is predicted again."""
    b = root(lambda b: math.log(stats.norm.sf(b) - stats.norm.sf(b + 0.5)) - math.log(p), 0.5, 20.0)
    return lambda u: (u[:, :1] - b - 0.25).abs() - 0.25, p


def far_and_near(size: int, p: float) -> tuple[Margins, float]:
    """Return a near half-space with a flat margin, and farther ones with steep margins in other coordinates."""
    count = min(size - 1, 10)
    near = tail_quantile(p)
    far = near + 0.4
    distant = -math.expm1(count * math.log1p(-stats.norm.sf(far)))

    def margins(u: Tensor) -> Tensor:
        return torch.cat((0.01 * (near - u[:, :1]), 5.0 * (far - u[:, 1 : 1 + count])), dim=1)

    return margins, either(p, distant)


def near_small(size: int, p: float) -> tuple[Margins, float]:
    """Return a small corner nearer than a half-space: `u_1 > b`, or `u_2, u_3 > a` (`u_1 < 0, u_2 > a` of two)."""
    b, a = tail_quantile(p / 2), tail_quantile(math.sqrt(p / 2))
    if size == 2:
        return lambda u: torch.cat((b - u[:, :1], torch.maximum(a - u[:, 1:2], a + u[:, :1])), dim=1), p
    corner = either(p / 2, p / 2)
    return lambda u: torch.cat((b - u[:, :1], (a - u[:, 1:3]).amax(dim=1, keepdim=True)), dim=1), corner


def chi_squares(size: int, p: float) -> tuple[Margins, float]:
    """Return `u_1^2 + 0.5 |(u_2 .. u_k)|^2 > t`, `k` at most 5, a generalised chi-squared number."""
    last = min(size, 5)

    def tail(t: float) -> float:
        def at(y: float) -> float:
            return float(2 * stats.norm.pdf(y) * stats.chi2.sf(2 * (t - y * y), last - 1))

        top = math.sqrt(t)
        cuts = np.linspace(0.0, top, 9)
        pieces = [integrate.quad(at, low, high, epsabs=0, epsrel=1e-8)[0] for low, high in itertools.pairwise(cuts)]
        return sum(pieces) + float(2 * stats.norm.sf(top))

    t = root(lambda t: math.log(tail(t)) - math.log(p), 1.0, 200.0)
    return lambda u: t - u[:, :1].square() - 0.5 * u[:, 1:last].square().sum(dim=1, keepdim=True), p


def saturated(size: int, p: float) -> tuple[Margins, float]:
    """Return `tanh(3 (b - u_1))`: flat at the point, and mostly within the rounding of single precision."""
    b = tail_quantile(p)
    return lambda u: torch.tanh(3.0 * (b - u[:, :1])), p


def quantised(size: int, p: float) -> tuple[Margins, float]:
    """Return the margin `b - u_1` in steps of a quarter, with the gradient of the smooth margin."""
    b = tail_quantile(p)

    def margins(u: Tensor) -> Tensor:
        smooth = b - u[:, :1]
        return smooth + (torch.ceil(4.0 * smooth) / 4.0 - smooth).detach()

    return margins, p


def stairs(size: int, p: float) -> tuple[Margins, float]:
    """Return the margin in steps of 1, with a gradient in another coordinate alone."""
    b = tail_quantile(p)
    return lambda u: torch.ceil(b - u[:, :1]).detach() + 0.01 * u[:, 1:2].tanh() * (u[:, :1] <= b).detach(), p


def gaps_behind(size: int, p: float) -> tuple[Margins, float]:
    """Return `u_1 > b`, and a slab `-b - 0.5 < u_1 < -b` on the other side, both with slopes."""
    b = tail_quantile(p / 2)
    behind = float(stats.norm.sf(b) - stats.norm.sf(b + 0.5))

    def margins(u: Tensor) -> Tensor:
        return torch.minimum(b - u[:, :1], (u[:, :1] + b + 0.25).abs() - 0.25)

    return margins, p / 2 + behind


CLIP, STEP = 2.0, 1e-3
"""Clipping of coordinates, and step of the grid of a convolution."""


def clipped(size: int, p: float) -> tuple[Margins, float]:
    """Return `sum of clip(u_i, -2, 2) > t` over at most 20 coordinates: noise clipped to bounds, by convolution."""
    count = min(size, 20)
    p = max(p, 1e-6) if count < 20 else p
    step = STEP * 4
    grid = np.arange(-CLIP, CLIP + step / 2, step)
    masses = stats.norm.cdf(np.minimum(grid + step / 2, 50)) - stats.norm.cdf(grid - step / 2)
    masses[0], masses[-1] = stats.norm.cdf(grid[0] + step / 2), stats.norm.sf(grid[-1] - step / 2)
    mass = np.ones(1)
    for _ in range(count):
        mass = np.convolve(mass, masses)
    values = np.linspace(-count * CLIP, count * CLIP, len(mass))
    beyond = np.cumsum(mass[::-1])[::-1]
    number = int(np.argmax(beyond <= p))
    t, truth = float(values[number] - step / 2), float(beyond[number])
    return lambda u: t - u[:, :count].clamp(-CLIP, CLIP).sum(dim=1, keepdim=True), truth


def short_noise_cliff(size: int, p: float) -> tuple[Margins, float]:
    """Return `r < |u| < R` for noise shorter than usual, without 0 itself: no stretched copy meets it."""
    high2 = float(stats.chi2.ppf(p, size))
    low2 = 0.01 * high2
    hidden = p - float(stats.chi2.cdf(low2, size))

    def region(u: Tensor) -> Tensor:
        squares = u.square().sum(dim=1)
        return (squares < high2) & (squares > low2)

    return beside_a_slope(region, p), hidden + p / RARER


def tiny_ball(size: int, p: float) -> tuple[Margins, float]:
    """Return `|u - 4 e_2| < r`, a ball that one direction in thousands meets; the probability sets `r`."""

    def inside(r: float) -> float:
        return math.log(max(float(stats.ncx2.cdf(r * r, size, 16.0)), 1e-300)) - math.log(p)

    r = root(inside, 1e-6, 60.0)

    def region(u: Tensor) -> Tensor:
        centre = torch.zeros(size, dtype=u.dtype)
        centre[1] = 4.0
        return (u - centre).square().sum(dim=1) < r * r

    return beside_a_slope(region, p), either(p, p / RARER)


def narrow_corner(size: int, p: float) -> tuple[Margins, float]:
    """Return `u_2 .. u_k > a`, `k` at most 12: a corner that one direction in thousands meets."""
    count = min(size - 1, 11)
    a = tail_quantile(p ** (1.0 / count))
    return beside_a_slope(lambda u: u[:, 1 : 1 + count].amin(dim=1) > a, p), either(p, p / RARER)


HOSTILE: dict[str, Hostile] = {
    "a cliff beside a slope": cliff(RARER),
    "a cliff as rare as the slope": cliff(1.0),
    "a cliff of all coordinates": cliff_of_all,
    "a cliff uphill": cliff_uphill,
    "a cliff behind": cliff_behind,
    "a slab as a cliff": slab_cliff(1.0),
    "a thin slab as a cliff": slab_cliff(0.1),
    "a corner as a cliff": corner_cliff,
    "XOR corners as cliffs": xor_cliff,
    "outside a ball as a cliff": shell_cliff,
    "a ball as a cliff": ball_cliff,
    "a slab": slab,
    "far steep ones, a near flat one": far_and_near,
    "a small near corner": near_small,
    "generalised chi-squared": chi_squares,
    "saturated": saturated,
    "quantised": quantised,
    "stairs": stairs,
    "slabs behind": gaps_behind,
    "clipped to bounds": clipped,
    "short noise as a cliff": short_noise_cliff,
    "a tiny ball as a cliff": tiny_ball,
    "a narrow corner as a cliff": narrow_corner,
}

INVISIBLE = (
    "a slab as a cliff",
    "a thin slab as a cliff",
    "a ball as a cliff",
    "short noise as a cliff",
    "a tiny ball as a cliff",
    "a narrow corner as a cliff",
)
"""Cliffs that a few hundred stretched and shrunk copies may miss: few rays from the point meet them, or only within a
small part of their length."""


def hostile(name: str, size: int, probability: float) -> Problem:
    """Return a problem of `HOSTILE`.

    Raises:
        ValueError: no such problem of this size and probability.
    """
    margins, truth = HOSTILE[name](size, probability)
    return Problem(name, size, truth, OfMargins(margins).eval())
