"""Segments to fixed far inputs, cut where the prediction changes: no gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.search import DOUBLINGS, Found, Search


def segments(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Bisect the segments from each point to far inputs of another prediction.

    The far inputs are the same for every point: the inverted input, the darkest and the brightest, mid grey, and fixed
    patterns of random numbers. Without bounds the range is that of `Bounds.reach`, and a segment whose end has the same
    prediction is doubled. The distance is an upper bound for any network, with any gradients; an attack with gradients
    that ends farther away is misled by them.
    """
    ends = _far_inputs(search, rows, effort.patterns)
    rows = rows.repeat_interleave(effort.patterns)
    flipped = search.look(rows, ends) < 0
    for _ in range(0 if search.bounded else DOUBLINGS):
        if bool(flipped.all()):
            break
        ends = torch.where(flipped[:, None], ends, search.bounds.clip(2 * ends - search.origin[rows]))
        kept = (~flipped).nonzero()[:, 0]
        flipped[kept] = search.look(rows[kept], ends[kept]) < 0
    search.bisect_segments(rows[flipped], ends[flipped], effort.halvings)


def _far_inputs(search: Search, rows: Tensor, count: int) -> Tensor:
    """The first `count` far inputs of each of the points `rows`, point after point: `[R count, n]`."""
    points = search.origin[rows]
    low, high = search.declared.reach(points)
    generator = torch.Generator().manual_seed(0)
    fixed = torch.rand(max(0, count - 4), points.shape[1], generator=generator, dtype=torch.float64)
    fixed[::2] = fixed[::2].round()
    patterns = (low + (high - low) * pattern for pattern in fixed.to(points))
    constant = (torch.as_tensor(end).to(points) for end in (low, high, (low + high) / 2))
    ends = torch.stack([end.expand_as(points) for end in (low + high - points, *constant, *patterns)], dim=1)
    return ends[:, :count].flatten(0, 1)


def coarse_signs(shape: torch.Size, cells: int, generator: torch.Generator) -> Tensor:
    """Random signs, alike within each of at most `cells` cells along the last two axes of a `shape`: `[n]`, 1 or -1."""
    signs = torch.randint(0, 2, [*shape[:-2], *(min(cells, size) for size in shape[-2:])], generator=generator)
    for axis, size in enumerate(shape[-2:], start=max(0, len(shape) - 2)):
        cell = torch.arange(size) * signs.shape[axis] // size
        signs = signs.index_select(axis, cell)
    return 2.0 * signs.flatten().float() - 1.0
