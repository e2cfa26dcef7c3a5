"""Whether gradients explain how the margin falls on the way to the input that was found."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.measure.nearest.search import Search

PARTS = (8, 32)
"""Parts of the way, at first and, where these leave more than `UNEXPLAINED`, once more."""

UNEXPLAINED = 0.5
"""Gradients that leave a larger share of the fall unexplained mislead. Of the healthy networks of `docs/attacks.md`
none leaves as much at more than one point in a hundred."""


def unexplained(search: Search, rows: Tensor) -> Tensor:
    """Share of the fall of the margin that its gradients do not explain, `[R]`, float64; 0 where nothing was found.

    `|m(x) - m(x') + int_0^1 grad m(x + u (x' - x)) . (x' - x) du| / |m(x) - m(x')|`, `m = z_t - z_j` with `j` the class
    at the input `x'` that was found; the integral by the midpoint rule. It is 0 for the gradients of a function that
    has them almost everywhere and does not jump, whatever its shape; 1 where gradients vanish on the way. Steps, such
    as rounding, and gradients that were detached or made up leave the rest.

    Source: Sundararajan, Taly and Yan, Axiomatic attribution for deep networks (ICML 2017), section 3 (the integral of
    the gradients is the difference of the values).

    Args:
        search: after its attacks.
        rows: indices of points, `[R]`.
    """
    share = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    left = search.best.distance[rows].isfinite().nonzero()[:, 0]
    for parts in PARTS:
        share[left] = _missed(search, rows[left], parts)
        left = left[share[left] > UNEXPLAINED]
    return share


def _missed(search: Search, rows: Tensor, parts: int) -> Tensor:
    """The share with so many `parts`, `[R]`."""
    origin, ends, targets = search.origin[rows], search.best.points[rows], search.best.predicted[rows]
    way = ends - origin
    fall = search.differentiate(rows, origin, targets).margin - search.differentiate(rows, ends, targets).margin
    explained = torch.zeros_like(fall)
    for part in range(parts):
        response = search.differentiate(rows, origin + (part + 0.5) / parts * way, targets)
        explained -= (response.gradient * way).sum(dim=1, dtype=torch.float64) / parts
    return ((fall - explained).abs() / fall.abs().clamp_min(torch.finfo(fall.dtype).tiny)).nan_to_num()
