"""Margins as functions of a few normal numbers, with their exact flip probabilities.

Linear ones, quadratics, cubics, kinks, steps that no margin announces, and shells. Nothing here is shared with
`brittle`: SciPy gives the probabilities, in closed form or by one integral over the noise that all competitors share.
Competitors with separate noise have a further normal number each: with `f_k` of the shared numbers `v`, margin `k` is
`f_k(v) + spread u_k`, so that `P(all > 0) = E prod_k Phi(f_k(v) / spread)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy import optimize, special, stats
from torch import Tensor

PLACES = np.linspace(-12.0, 12.0, 8_001)
WEIGHTS = stats.norm.pdf(PLACES)
"""Weights of the integral over one shared number."""


@dataclass(frozen=True)
class Case:
    """Margins at a point under standard normal noise.

    Attributes:
        family: `linear`, `quadratic`, `cubic`, `kink`, `step` or `shell`.
        name: the family and what distinguishes the case in it.
        size: number of coordinates of the noise.
        competitors: number of margins `K`.
        margins: function from noise `[..., size]` to margins `[..., K]`, all positive at noise 0.
        flip: the probability that a margin is at most 0.
    """

    family: str
    name: str
    size: int
    competitors: int
    margins: Callable[[Tensor], Tensor]
    flip: float

    def logits(self, noise: Tensor) -> Tensor:
        """Return logits with these margins, `[..., K + 1]`; class 0 is predicted."""
        margins = self.margins(noise)
        return torch.cat((torch.zeros_like(margins[..., :1]), -margins), dim=-1)


@cache
def cases() -> list[Case]:
    """Return every case; flip probabilities from 1e-3 to 0.33, and 0 for parabolas that never reach 0."""
    problems = [_linear(p, k) for p in (0.3, 0.1, 0.0254, 1e-3) for k in (1, 4, 9)]
    for a in (0.45, 0.6, 0.9):
        for sign in (1.0, -1.0):
            problems += [_quadratic(a, sign, p, k) for p in (0.1, 0.0254, 2e-3) for k in (1, 4)]
            problems += [_bent_along(a, sign, m) for m in (1.3, 2.0, 3.0) if sign < 0]
        problems += [_bent_along(a, 1.0, math.sqrt(a / 2) + part * _lowest(a)) for part in (0.5, 2.0)]
    problems += [_cubic(m) for m in (1.0, 3.0, 8.0)]
    problems += [_kink(steep, bend, p) for steep, bend in ((20.0, 0.3), (2.0, 1.0)) for p in (0.1, 0.0254)]
    problems += [_kink_alone(20.0, 0.3), _kink_alone(3.0, 1.0)]
    problems += [
        _step(m, q, depth, two_sided)
        for m, q, depth in ((1.75, 0.065, 0.01), (1.75, 0.065, 0.5), (2.3, 0.03, 0.01), (2.8, 0.002, 0.01))
        for two_sided in (False, True)
    ]
    return problems + [_shell(size, off, p) for size in (2, 10, 50) for off in (0.0, 1.0) for p in (0.1, 0.0254, 2e-3)]


def _flips(shared: Callable[[np.ndarray], np.ndarray], spread: float, competitors: int) -> float:
    """Return `1 - E Phi(shared(v) / spread)^competitors` for standard normal `v`."""
    survive = competitors * special.log_ndtr(shared(PLACES) / spread)
    return float((WEIGHTS * -np.expm1(survive)).sum() * (PLACES[1] - PLACES[0]))


def _level(flips: Callable[[float], float], flip: float) -> float:
    """Return the mean margin at which a decreasing probability is `flip`."""
    level = optimize.brentq(lambda mean: math.log(max(flips(mean), 1e-300) / flip), -2.0, 60.0, xtol=1e-13)
    assert isinstance(level, float)
    return level


def _beside(family: str, name: str, shared: Callable, spread: float, flip: float, competitors: int) -> Case:
    """Return equal competitors with separate noise: `mean + shared(v) + spread u_k`, `v` an array or a tensor."""
    mean = _level(lambda mean: _flips(lambda v: mean + shared(v), spread, competitors), flip)
    label = f"{family}, {name}, {competitors + 1} classes, {flip:.3g}"
    return Case(
        family,
        label,
        1 + competitors,
        competitors,
        lambda noise: mean + shared(noise[..., :1]) + spread * noise[..., 1:],
        _flips(lambda v: mean + shared(v), spread, competitors),
    )


def _linear(flip: float, competitors: int) -> Case:
    return _beside("linear", "even", lambda v: v * math.sqrt(0.5), math.sqrt(0.5), flip, competitors)


def _quadratic(a: float, sign: float, flip: float, competitors: int) -> Case:
    """Return a margin of variance 1, a share `a` of it quadratic in a separate coordinate."""
    bend = sign * math.sqrt(a / 2)
    return _beside(
        "quadratic", f"a = {sign * a:.3g}", lambda v: bend * (v * v - 1), math.sqrt(1 - a), flip, competitors
    )


def _lowest(a: float) -> float:
    """Return how far `sqrt(1 - a) v + sqrt(a / 2) v^2` goes below 0."""
    return (1 - a) / (4 * math.sqrt(a / 2))


def _bent_along(a: float, sign: float, mean: float) -> Case:
    """`mean + sqrt(1 - a) v + sign sqrt(a / 2) (v^2 - 1)`: it bends along its gradient."""
    slope, bend = math.sqrt(1 - a), sign * math.sqrt(a / 2)
    constant = mean - bend
    inside = slope**2 - 4 * bend * constant
    flip = 0.0 if bend > 0 else 1.0
    if inside > 0:
        ends = sorted((-slope + side * math.sqrt(inside)) / (2 * bend) for side in (1, -1))
        between = float(stats.norm.cdf(ends[1]) - stats.norm.cdf(ends[0]))
        flip = between if bend > 0 else float(stats.norm.cdf(ends[0]) + stats.norm.sf(ends[1]))
    name = f"quadratic, along, a = {sign * a:.3g}, {flip:.3g}"
    return Case("quadratic", name, 1, 1, lambda noise: constant + slope * noise + bend * noise.square(), flip)


def _cubic(mean: float) -> Case:
    """`mean - v^3`: odd in the noise, so that pairs show no bend."""
    flip = float(stats.norm.sf(np.cbrt(mean)))
    return Case("cubic", f"cubic, {flip:.3g}", 1, 1, lambda noise: mean - noise**3, flip)


def _kink(steep: float, bend: float, flip: float) -> Case:
    """`mean + u / 2 - steep relu(v - bend)`."""
    name = f"{steep:g} relu(v - {bend:g})"
    return _beside("kink", name, lambda v: -steep * (v - bend + abs(v - bend)) / 2, 0.5, flip, 1)


def _kink_alone(steep: float, bend: float) -> Case:
    """`3 - steep relu(v - bend)`."""
    flip = float(stats.norm.sf(bend + 3.0 / steep))
    name = f"kink, 3 - {steep:g} relu(v - {bend:g}), {flip:.3g}"
    return Case("kink", name, 1, 1, lambda noise: 3.0 - steep * (noise - bend).clamp_min(0.0), flip)


def _step(mean: float, q: float, depth: float, two_sided: bool) -> Case:
    """`mean + u`, but `-depth` with probability `q`, whatever `u`: at one end of `v`, or at both ends alike."""
    start = float(stats.norm.isf(q / 2 if two_sided else q))
    flip = q + (1 - q) * float(stats.norm.sf(mean))

    def margins(noise: Tensor) -> Tensor:
        over = (noise[..., 1:].abs() if two_sided else noise[..., 1:]) > start
        return torch.where(over, -depth, mean + noise[..., :1])

    ends = "both ends" if two_sided else "one end"
    return Case("step", f"step, {mean:g} + u, -{depth:g} in {q:g} at {ends}, {flip:.3g}", 2, 1, margins, flip)


def _shell(size: int, off: float, flip: float) -> Case:
    """`r^2 - |u + d|^2`, `d` of length `off`: inside a ball, at or beside its centre."""
    square = float(stats.chi2.isf(flip, size) if off == 0 else stats.ncx2.isf(flip, size, off**2))
    probability = float(stats.chi2.sf(square, size) if off == 0 else stats.ncx2.sf(square, size, off**2))

    def margins(noise: Tensor) -> Tensor:
        shift = torch.zeros(size, dtype=noise.dtype)
        shift[0] = off
        return square - (noise + shift).square().sum(dim=-1, keepdim=True)

    return Case("shell", f"shell, {size} dimensions, {off:g} off, {probability:.3g}", size, 1, margins, probability)
