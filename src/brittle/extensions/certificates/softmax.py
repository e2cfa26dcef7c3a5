"""Bounds of softmax over a box: its smallest and largest values, and planes below and above it."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.extensions.certificates.curves import NARROW
from brittle.extensions.certificates.operators import causal_mask
from brittle.extensions.certificates.region import Enclosure


@dataclass(frozen=True)
class Planes:
    """`lower[i] . x + low[i] <= softmax(x)[i] <= upper[i] . x + high[i]` for all `x` of a box, over the last axis.
    `lower` and `upper` are `[..., n, n]`, `low` and `high` `[..., n]`, float64."""

    lower: Tensor
    low: Tensor
    upper: Tensor
    high: Tensor


def box(interval: Enclosure, visible: Tensor | None = None) -> Enclosure:
    """Return exact bounds of softmax over the last axis: `1 / sum_j exp(x_j - x_i)` at two corners for each `i`."""
    below, above = _differences(interval)
    largest, smallest = (_exponentials(differences, visible).sum(-1) for differences in (above, below))
    return Enclosure(_mask_hidden(largest.reciprocal(), visible), _mask_hidden(smallest.reciprocal(), visible))


def planes(interval: Enclosure, visible: Tensor | None = None) -> Planes:
    """Return planes around softmax over the last axis.

    With `t = sum_j exp(x_j - x_i)`, `softmax_i = 1 / t`. Below: `1 / t >= 2 / s - t / s^2` for any `s > 0`, and each
    exponential is at most its chord. Above: `1 / t <= 1 / a + 1 / b - t / (a b)` for `t` in `[a, b]`, and each
    exponential is at least its tangent.

    Source: Wei, Wu, Wu, Chen, Barrett, Farchi, Convex bounds on the softmax function with applications to robustness
    verification (AISTATS 2023), section 3.2 (the bounds by exponential and reciprocal).
    """
    below, above = _differences(interval)
    small, large = _exponentials(below, visible), _exponentials(above, visible)
    middle = (below + above) / 2
    tangent = _exponentials(middle, visible)
    is_wide = above - below > NARROW
    # On a narrow interval a rising line through the upper end's value, at the lower end.
    chord = torch.where(is_wide, (large - small) / torch.where(is_wide, above - below, 1.0), tangent)
    top = torch.where(is_wide, small - chord * below, large - chord * below)
    s = (chord * middle + top).sum(-1)
    lower = -chord / s[..., None] / s[..., None]
    low = 2 / s - top.sum(-1) / s / s
    smallest_sum, largest_sum = small.sum(-1), large.sum(-1)
    upper = -tangent / smallest_sum[..., None] / largest_sum[..., None]
    high = 1 / smallest_sum + 1 / largest_sum - (tangent * (1 - middle)).sum(-1) / smallest_sum / largest_sum
    # Where an exponential overflows, 0 and the largest value are bounds.
    is_finite = lower.isfinite().all(-1) & upper.isfinite().all(-1) & low.isfinite() & high.isfinite()
    is_flat = ~is_finite & (interval.lower.isfinite() & interval.upper.isfinite()).all(-1, keepdim=True)
    lower, low = lower.masked_fill(is_flat[..., None], 0.0), low.masked_fill(is_flat, 0.0)
    upper, high = upper.masked_fill(is_flat[..., None], 0.0), torch.where(is_flat, 1 / smallest_sum, high)
    return Planes(
        _mask_hidden(_slopes_of_numbers(lower), visible, 2),
        _mask_hidden(low, visible),
        _mask_hidden(_slopes_of_numbers(upper), visible, 2),
        _mask_hidden(high, visible),
    )


def _differences(interval: Enclosure) -> tuple[Tensor, Tensor]:
    """Return bounds of `x_j - x_i`, `[..., i, j]`; 0 for `j = i`."""
    same = torch.eye(interval.lower.shape[-1], dtype=torch.bool, device=interval.lower.device)
    below = interval.lower[..., None, :] - interval.upper[..., :, None]
    above = interval.upper[..., None, :] - interval.lower[..., :, None]
    return below.masked_fill(same, 0.0), above.masked_fill(same, 0.0)


def _exponentials(values: Tensor, visible: Tensor | None) -> Tensor:
    return values.exp() if visible is None else values.exp() * visible[..., None, :]


def _mask_hidden(values: Tensor, visible: Tensor | None, axes: int = 1) -> Tensor:
    """Set the values of places that the softmax does not see to 0."""
    if visible is None:
        return values
    return values.masked_fill(~(visible if axes == 1 else visible[..., None]), 0.0)


def _slopes_of_numbers(slopes: Tensor) -> Tensor:
    return slopes - torch.diag_embed(slopes.sum(dim=-1))


def visible_places(mask: Any, values: Tensor) -> Tensor | None:
    """Return the places that a softmax sees, as booleans that fit `values`."""
    return causal_mask(values) if isinstance(mask, str) else mask
