"""The bounds of propositions 1 and 2 (UAI, sections 3.2.1 and 3.2.2): a product over the other classes.

For margins `g_i(x) = x^T A_i x + u_i^T x + c_i` and noise `N(0, s^2 / d)` proposition 1 says that Taylor's error is at
most `k s^(C-1) prod_i lambda_max(A_i) / |u_i|`, and proposition 2 that MMSE's is, with `lambda_max - lambda_mean` in
the place of `lambda_max`. A product vanishes as soon as one margin is linear, while the others still bend. In the same
limit of many dimensions `e^T A_i e` is `s^2 lambda_mean(A_i)`, so each margin is shifted by `s sqrt(d) lambda_mean /
|u_i|` of its deviations, and Taylor's error is at most the sum of these shifts over `sqrt(2 pi)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor, nn

ITERATIONS, COPIES = 4, 6
"""Steps of the power iteration, and number of noisy copies over which a curvature is averaged."""

NODES = 4000
"""Equally likely values of a chi-square variable that an expectation is taken over."""

FIRST, SECOND, SHIFT = 1.0, 0.5, 1.0
"""Margins of the counterexample in units of their deviations, and the shift by its curvature."""


def counterexample(dimension: int) -> dict[str, float]:
    """Two margins with orthogonal gradients of length 1: the first is linear, the second has the curvature `a` in every
    direction but the first's gradient.

    In units of their deviation the margins are `b_1 + z_1` and `b_2 + z_2 + (z_2^2 + q) r / d`, `q` chi-square of the
    other `d - 2` directions and `r = SHIFT`, and so independent; the second is negative between its two roots in `z_2`.
    """
    quantiles = (np.arange(NODES) + 0.5) / NODES
    remainder = stats.chi2.ppf(quantiles, dimension - 2)
    bend, scale = SHIFT / dimension, math.sqrt(dimension)
    level = SECOND + bend * remainder
    inside = np.maximum(1 - 4 * bend * level, 0)
    low, high = (-1 - np.sqrt(inside)) / (2 * bend), (-1 + np.sqrt(inside)) / (2 * bend)
    above = 1 - (stats.norm.cdf(high) - stats.norm.cdf(low))
    return {
        "dimension": dimension,
        "truth": float(stats.norm.cdf(FIRST) * above.mean()),
        "taylor": float(stats.norm.cdf(FIRST) * stats.norm.cdf(SECOND)),
        "product": math.prod(curvature * scale for curvature in (0.0, bend / scale)),
        "sum": SHIFT / math.sqrt(2 * math.pi),
    }


def margins(network: nn.Module, points: Tensor, predicted: Tensor, competitors: Tensor) -> Tensor:
    """`g = f_t - f_i`, `[B]`."""
    logits = network(points)
    return logits.gather(1, predicted[:, None])[:, 0] - logits.gather(1, competitors[:, None])[:, 0]


def slopes(network: nn.Module, points: Tensor, predicted: Tensor, competitors: Tensor) -> Tensor:
    """Gradients of the margins, flat."""
    points = points.clone().requires_grad_()
    return torch.autograd.grad(margins(network, points, predicted, competitors).sum(), points)[0].flatten(1)


@dataclass(frozen=True)
class Curvatures:
    """Curvatures of each margin, `[B, C - 1]` each.

    Attributes:
        largest: curvature over the noise, the largest by size, with its sign.
        mean: curvature, over all directions.
        length: of the gradient at the point.
    """

    largest: Tensor
    mean: Tensor
    length: Tensor


def curvatures(network: nn.Module, x: Tensor, sigma: float, seed: int) -> Curvatures:
    """Estimate the curvature of each margin over the noise.

    Curvatures are half the eigenvalues of the Hessian averaged over noisy copies, as `x^T A x` has the Hessian `2 A`,
    from differences of gradients a step of sigma apart: the largest by power iteration, the same copies at every step,
    the mean by one random direction for each copy (Hutchinson's estimator of the trace).
    """
    with torch.no_grad():
        predicted = network(x).argmax(1)
        classes = network(x[:1]).shape[1]
    competitors = torch.arange(classes).expand(len(x), -1)[torch.arange(classes) != predicted[:, None]]
    flat, mine = x.repeat_interleave(classes - 1, 0), predicted.repeat_interleave(classes - 1)
    generator = torch.Generator().manual_seed(seed)
    noise = [sigma * torch.randn(flat.shape, generator=generator) for _ in range(COPIES)]
    direction = torch.randn(flat.shape, generator=generator)

    def turned(point: Tensor, axis: Tensor) -> Tensor:
        """Return the Hessian times a direction of length 1, flat."""
        ahead, back = (slopes(network, point + step * axis, mine, competitors) for step in (sigma, -sigma))
        return (ahead - back) / (2 * sigma)

    largest = torch.zeros(len(flat))
    for _ in range(ITERATIONS):
        direction = direction / direction.flatten(1).norm(dim=1).clamp_min(1e-30).view(-1, *[1] * (x.ndim - 1))
        products = torch.stack([turned(flat + e, direction) for e in noise]).mean(0)
        along = (products * direction.flatten(1)).sum(1)
        largest, direction = products.norm(dim=1).copysign(along) / 2, products.view(flat.shape)
    mean = torch.zeros(len(flat))
    for e in noise:
        signs = torch.randint(0, 2, flat.shape, generator=generator) * 2.0 - 1
        direction = signs / math.sqrt(flat[0].numel())
        mean += (turned(flat + e, direction) * direction.flatten(1)).sum(1) / (2 * COPIES)
    length = slopes(network, flat, mine, competitors).norm(dim=1)
    return Curvatures(*(numbers.view(len(x), -1) for numbers in (largest, mean, length)))


def bounds(network: nn.Module, x: Tensor, sigma: float, seed: int) -> pd.DataFrame:
    """Return the bounds of each point without their `k`, as logarithms to base ten.

    `product` and `sum` are those of proposition 1 and of the sum in its place, `product_mmse` and `sum_mmse` the same
    with the curvatures of proposition 2; `margins` is the number of the other classes. Minus infinity stands where they
    are zero, as a product is of which one margin does not bend at all.
    """
    bent = curvatures(network, x, sigma, seed)
    scale = sigma * math.sqrt(x[0].numel())  # the papers' s, whose noise has the variance s^2 / d
    columns = {"margins": np.full(len(x), bent.length.shape[1])}
    for suffix, curvature in (("", bent.largest), ("_mmse", bent.largest - bent.mean)):
        shifts = scale * curvature.double().abs() / bent.length.double()
        columns |= {f"product{suffix}": shifts.log10().sum(1).numpy(), f"sum{suffix}": shifts.sum(1).log10().numpy()}
    return pd.DataFrame(columns)
