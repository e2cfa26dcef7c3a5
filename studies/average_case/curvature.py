"""The bounds of propositions 1 and 2 (UAI, sections 3.2.1 and 3.2.2): a product over the other classes.

For margins `g_i(x) = x^T A_i x + u_i^T x + c_i` and noise `N(0, s^2 / d)` proposition 1 says that Taylor's error is at
most `k s^(C-1) prod_i lambda_max(A_i) / |u_i|`. A product vanishes as soon as one margin is linear, while the others
still bend. In the same limit of many dimensions `e^T A_i e` is `s^2 lambda_mean(A_i)`, so each margin is shifted by
`s sqrt(d) lambda_mean / |u_i|` of its deviations, and the error is at most the sum of these shifts over `sqrt(2 pi)`.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor, nn

from studies.counting import exact_interval
from studies.ranks import spearman

ITERATIONS, COPIES = 4, 6
"""Of the power iteration, and noisy copies over which a curvature is averaged."""

NODES = 4000
"""Equally likely values of a chi-square variable that an expectation is taken over."""

FEWEST = 5
"""Points that tell below which nothing is said of a network."""

FIRST, SECOND, SHIFT = 1.0, 0.5, 1.0
"""Margins of the counterexample in units of their deviations, and the shift by its curvature."""


def counterexample(dimension: int) -> dict[str, float]:
    """Two margins with orthogonal gradients of length 1: the first is linear, the second has the curvature `a` in every
    direction but the first's gradient.

    In units of their deviation the margins are `b_1 + z_1` and `b_2 + z_2 + (z_2^2 + q) r / d`, `q` chi-square of the
    other `d - 2` directions and `r = SHIFT`, and so independent; the second is negative between its two roots in `z_2`.
    """
    quantiles = (np.arange(NODES) + 0.5) / NODES
    rest = stats.chi2.ppf(quantiles, dimension - 2)
    bend, scale = SHIFT / dimension, math.sqrt(dimension)
    level = SECOND + bend * rest
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


def margins(network: nn.Module, points: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """`g = f_t - f_i`, `[B]`."""
    logits = network(points)
    return logits.gather(1, own[:, None])[:, 0] - logits.gather(1, others[:, None])[:, 0]


def slopes(network: nn.Module, points: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """Gradients of the margins, flat."""
    points = points.clone().requires_grad_()
    return torch.autograd.grad(margins(network, points, own, others).sum(), points)[0].flatten(1)


def curvatures(network: nn.Module, x: Tensor, sigma: float, seed: int) -> tuple[Tensor, Tensor]:
    """Largest curvature of each margin over the noise, and the length of its gradient at the point, `[B, C - 1]` each.

    The curvature is half the largest eigenvalue, by size, of the Hessian averaged over noisy copies, as `x^T A x` has
    the Hessian `2 A`: power iteration on differences of gradients a step of sigma apart, the same copies at every step.
    """
    with torch.no_grad():
        own = network(x).argmax(1)
        classes = network(x[:1]).shape[1]
    others = torch.arange(classes).expand(len(x), -1)[torch.arange(classes) != own[:, None]]
    flat, mine = x.repeat_interleave(classes - 1, 0), own.repeat_interleave(classes - 1)
    generator = torch.Generator().manual_seed(seed)
    noise = [sigma * torch.randn(flat.shape, generator=generator) for _ in range(COPIES)]
    way = torch.randn(flat.shape, generator=generator)
    size = torch.zeros(len(flat))
    for _ in range(ITERATIONS):
        way = way / way.flatten(1).norm(dim=1).clamp_min(1e-30).view(-1, *[1] * (x.ndim - 1))
        turned = torch.zeros_like(flat).flatten(1)
        for e in noise:
            turned += slopes(network, flat + e + sigma * way, mine, others)
            turned -= slopes(network, flat + e - sigma * way, mine, others)
        turned /= 2 * sigma * COPIES
        size, way = turned.norm(dim=1) / 2, turned.view(flat.shape)
    lengths = slopes(network, flat, mine, others).norm(dim=1)
    return size.view(len(x), -1), lengths.view(len(x), -1)


def bounds(network: nn.Module, x: Tensor, sigma: float, seed: int) -> pd.DataFrame:
    """The logarithm to base ten of the product of proposition 1 without `k`, and of the sum, of each point.

    Minus infinity stands where they are zero, as a product is of which one margin does not bend at all.
    """
    curvature, length = curvatures(network, x, sigma, seed)
    scale = sigma * math.sqrt(x[0].numel())  # the papers' s, whose noise has the variance s^2 / d
    each = scale * curvature.double() / length.double()
    return pd.DataFrame({"product": each.log10().sum(1).numpy(), "sum": each.sum(1).log10().numpy()})


def needed(frame: pd.DataFrame) -> dict[str, float]:
    """Which `k` the bounds need, from rows `product`, `sum`, `taylor`, `flips`, `draws`: over points that tell.

    A point tells where the exact interval of the count does not hold Taylor's value. `product_range` and `sum_range`
    are the decades between the 10% and the 90% quantile of the `k` that each point needs; `product_zero` and
    `sum_zero` are the shares of points whose bound is zero, for which no `k` is enough.
    """
    low, high = exact_interval(frame["flips"].to_numpy(), int(frame["draws"].iloc[0]))
    off = 1 - frame["taylor"].to_numpy()
    tells = (off < low) | (off > high)
    error = np.abs(off - frame["flips"].to_numpy() / frame["draws"].to_numpy())[tells]
    result: dict[str, float] = {"points": int(tells.sum())}
    for name in ("product", "sum"):
        asked = np.log10(error) - frame[name].to_numpy()[tells]
        result[f"{name}_zero"] = float(np.isposinf(asked).mean()) if len(asked) else np.nan
        asked = asked[np.isfinite(asked)]
        ends = np.quantile(asked, [0.1, 0.5, 0.9]) if len(asked) >= FEWEST else np.full(3, np.nan)
        result |= {f"{name}_middle": ends[1], f"{name}_range": ends[2] - ends[0]}
        result[f"{name}_rank"] = spearman(error, frame[name].to_numpy()[tells]) if len(error) >= FEWEST else np.nan
    return result
