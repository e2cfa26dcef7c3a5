"""Bounds of softmax over a box: its least and largest values, and planes below and above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.extensions.certificates.curves import NARROW
from brittle.extensions.certificates.operators import causal
from brittle.extensions.certificates.region import Enclosure


@dataclass(frozen=True)
class Planes:
    """`lower[i] . x + low[i] <= softmax(x)[i] <= upper[i] . x + high[i]` for all `x` of a box, over the last axis.
    `lower` and `upper` are `[..., n, n]`, `low` and `high` `[..., n]`, float64."""

    lower: Tensor
    low: Tensor
    upper: Tensor
    high: Tensor


def box(interval: Enclosure, seen: Tensor | None = None) -> Enclosure:
    """Bounds of softmax over the last axis, exact: `1 / sum_j exp(x_j - x_i)` at the corners that suit each `i`."""
    below, above = _differences(interval)
    largest, least = (_exponentials(one, seen).sum(-1) for one in (above, below))
    return Enclosure(_unseen(largest.reciprocal(), seen), _unseen(least.reciprocal(), seen))


def planes(interval: Enclosure, seen: Tensor | None = None) -> Planes:
    """Planes around softmax over the last axis.

    With `t = sum_j exp(x_j - x_i)`, `softmax_i = 1 / t`. Below: `1 / t >= 2 / s - t / s^2` for any `s > 0`, and each
    exponential is at most its chord. Above: `1 / t <= 1 / a + 1 / b - t / (a b)` for `t` in `[a, b]`, and each
    exponential is at least its tangent.

    Source: Wei, Wu, Wu, Chen, Barrett, Farchi, Convex bounds on the softmax function with applications to robustness
    verification (AISTATS 2023), section 3.2 (the bounds by exponential and reciprocal).
    """
    below, above = _differences(interval)
    small, large = _exponentials(below, seen), _exponentials(above, seen)
    middle = (below + above) / 2
    tangent = _exponentials(middle, seen)
    wide = above - below > NARROW
    # On a narrow interval a rising line through the upper end's value, at the lower end.
    chord = torch.where(wide, (large - small) / torch.where(wide, above - below, 1.0), tangent)
    top = torch.where(wide, small - chord * below, large - chord * below)
    about = (chord * middle + top).sum(-1)
    lower = -chord / about[..., None] / about[..., None]
    low = 2 / about - top.sum(-1) / about / about
    least, most = small.sum(-1), large.sum(-1)
    upper = -tangent / least[..., None] / most[..., None]
    high = 1 / least + 1 / most - (tangent * (1 - middle)).sum(-1) / least / most
    # Where an exponential overflows, 0 and the largest value are bounds.
    finite = lower.isfinite().all(-1) & upper.isfinite().all(-1) & low.isfinite() & high.isfinite()
    flat = ~finite & (interval.lower.isfinite() & interval.upper.isfinite()).all(-1, keepdim=True)
    lower, low = lower.masked_fill(flat[..., None], 0.0), low.masked_fill(flat, 0.0)
    upper, high = upper.masked_fill(flat[..., None], 0.0), torch.where(flat, 1 / least, high)
    return Planes(
        _unseen(_of_numbers(lower), seen, 2),
        _unseen(low, seen),
        _unseen(_of_numbers(upper), seen, 2),
        _unseen(high, seen),
    )


def _differences(interval: Enclosure) -> tuple[Tensor, Tensor]:
    """Bounds of `x_j - x_i`, `[..., i, j]`; 0 for `j = i`."""
    same = torch.eye(interval.lower.shape[-1], dtype=torch.bool, device=interval.lower.device)
    below = interval.lower[..., None, :] - interval.upper[..., :, None]
    above = interval.upper[..., None, :] - interval.lower[..., :, None]
    return below.masked_fill(same, 0.0), above.masked_fill(same, 0.0)


def _exponentials(values: Tensor, seen: Tensor | None) -> Tensor:
    return values.exp() if seen is None else values.exp() * seen[..., None, :]


def _unseen(values: Tensor, seen: Tensor | None, axes: int = 1) -> Tensor:
    """0 for the places that the softmax does not see."""
    if seen is None:
        return values
    return values.masked_fill(~(seen if axes == 1 else seen[..., None]), 0.0)


def _of_numbers(slopes: Tensor) -> Tensor:
    """Slopes in `x` from slopes in `x_j - x_i`."""
    return slopes - torch.diag_embed(slopes.sum(dim=-1))


def seen_places(mask: Any, values: Tensor) -> Tensor | None:
    """The places that a softmax sees, as booleans that fit `values`."""
    return causal(values) if isinstance(mask, str) else mask
