"""Signs: search the corners of a cube around the point, block by block, without gradients."""

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.search import DOUBLINGS, Found, Search


def segments(search: Search, neighbours: Found, effort: Effort, rows: Tensor) -> None:
    """Bisect the segments from each point to far inputs of another prediction: the inverted input, the darkest and the
    brightest, mid grey, and fixed patterns of random numbers. Without bounds the range is that of `Bounds.reach`, and a
    segment whose end has the same prediction is doubled. An attack with gradients that ends farther away is misled."""
    ends = _far_inputs(search, rows, effort.patterns)
    rows = rows.repeat_interleave(effort.patterns)
    flipped = search.look(rows, ends) < 0
    for _ in range(0 if search.bounded else DOUBLINGS):
        if bool(flipped.all()):
            break
        ends = torch.where(flipped[:, None], ends, search.bounds.clip(2 * ends - search.origin[rows]))
        unflipped = (~flipped).nonzero()[:, 0]
        flipped[unflipped] = search.look(rows[unflipped], ends[unflipped]) < 0
    search.bisect_segments(rows[flipped], ends[flipped], effort.halvings)


def _far_inputs(search: Search, rows: Tensor, count: int) -> Tensor:
    """Return the first `count` far inputs of each of the points `rows`, point after point: `[R count, n]`."""
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
        signs = signs.index_select(axis, torch.arange(size) * signs.shape[axis] // size)
    return 2.0 * signs.flatten().float() - 1.0


CUTS = 6  # cuts of the bisection along a direction that crosses the boundary earlier
FURTHER = 0.999  # a new direction counts if it crosses the boundary within this share of the radius
GRIDS = (2, 3, 6)  # cells along an axis of the coarse patterns that a search starts from
DIRECTIONS = 2 + len(GRIDS)  # starts of a search: the nearest input found, all signs alike, and the patterns
NOTICEABLE = 1e-6  # a flip is kept if the margin falls by more than this share, which rounding does not reach


def rays(search: Search, neighbours: Found, effort: Effort, rows: Tensor) -> None:
    """Hierarchical search over directions of signs, with the boundary found along each by bisection.

    The perturbation is `r s`, `s` a vector of signs. Blocks of `s` are flipped in turn, halves first, then quarters
    and so on. A flip is kept where the margin over the nearest competitor falls at a radius just inside the boundary;
    where another class wins there, the radius shrinks to the new boundary. For networks without gradients (binarised
    ones); the only information it uses are logits. The search is done from each of a few directions: that of the
    nearest input found, all signs alike, and coarse patterns that are the same for every point.

    Sources: Chen and Gu, RayS: a ray searching method for hard-label adversarial attack (KDD 2020), algorithms 2 and
    3 (hierarchy, radius); Al-Dujaili and O'Reilly, Sign bits are all you need for black-box attacks (ICLR 2020),
    algorithm 1 (flips kept by the loss).
    """
    offset = search.best.points[rows] - search.origin[rows]
    nearest = torch.where(offset >= 0, 1.0, -1.0).to(offset)
    generator = torch.Generator().manual_seed(0)
    coarse = (coarse_signs(search.shape, cells, generator) for cells in GRIDS)
    patterns = [pattern.to(offset).expand_as(nearest) for pattern in (torch.ones(search.shape.numel()), *coarse)]
    for signs in (nearest, *patterns):
        rays = _Rays(search, rows, signs.clone(), effort.queries)
        size = search.origin.shape[1]
        blocks, block = 1, 0
        while bool((rays.left > 0).any()):
            rays.flip(block * size // blocks, (block + 1) * size // blocks)
            block += 1
            if block == blocks:
                blocks, block = (2 * blocks if 2 * blocks <= size else 1), 0


class _Rays:
    """The direction and the radius of each point: a step along `signs`, `[R, n]`, of the length `radius` ends where
    another class wins; `margin` is that at `FURTHER * radius`, and `left` the forward passes still to be spent."""

    def __init__(self, search: Search, rows: Tensor, signs: Tensor, budget: int) -> None:
        self.search, self.rows, self.signs = search, rows, signs
        self.radius = torch.zeros_like(search.best.distance[rows]) + _widest(search, rows)
        self.left = torch.full_like(rows, budget)
        flipped = self._look(torch.arange(len(rows), device=rows.device), self.radius, self.signs) < 0
        for _ in range(0 if search.declared.finite else DOUBLINGS):
            unflipped = (~flipped).nonzero()[:, 0]
            self.radius[unflipped] *= 2
            flipped[unflipped] = self._look(unflipped, self.radius[unflipped], self.signs[unflipped]) < 0
        self.rows, self.signs, self.radius = rows[flipped], self.signs[flipped], self.radius[flipped]
        self.left = self.left[flipped]
        self.margin = torch.full_like(self.radius, torch.inf)
        self._shrink(torch.arange(len(self.rows), device=rows.device), self.signs, 20)

    def flip(self, start: int, end: int) -> None:
        """Try the direction of each point with passes left, its signs `start` to `end` flipped."""
        index = (self.left > 0).nonzero()[:, 0]
        signs = self.signs[index]
        signs[:, start:end] *= -1
        margin = self._look(index, FURTHER * self.radius[index], signs)
        better = margin < self.margin[index] - NOTICEABLE * self.margin[index].abs().nan_to_num(posinf=0)
        improved = index[better]
        self.signs[improved], self.margin[improved] = signs[better], margin[better]
        crossing = index[self.margin[index] < 0]
        self.radius[crossing] *= FURTHER
        self._shrink(crossing, self.signs[crossing], CUTS)

    def _shrink(self, index: Tensor, signs: Tensor, cuts: int) -> None:
        """Bisect the radius of the rows `index` down to the boundary and take the margin just inside."""
        if not len(index):
            return
        upper, lower = self.radius[index], torch.zeros_like(self.radius[index])
        gap = 1 / 16
        bracketed = torch.zeros_like(index, dtype=torch.bool)
        for _ in range(cuts):
            cut = torch.where(bracketed, (lower + upper) / 2, (1 - gap) * upper)
            gap = min(2 * gap, 0.5)
            flipped = self._look(index, cut, signs) < 0
            upper, lower = torch.where(flipped, cut, upper), torch.where(flipped, lower, cut)
            bracketed |= ~flipped
        self.radius[index] = upper
        self.margin[index] = self._look(index, FURTHER * upper, signs)

    def _look(self, index: Tensor, radius: Tensor, signs: Tensor) -> Tensor:
        rows = self.rows[index]
        self.left[index] -= 1
        return self.search.look(rows, self.search.origin[rows] + radius.to(signs)[:, None] * signs)


def _widest(search: Search, rows: Tensor) -> Tensor | float:
    """Return a radius that reaches across the bounds in every coordinate; without bounds one to begin with, `[R]`."""
    if search.declared.pair is not None:
        return search.declared.pair[1] - search.declared.pair[0]
    low, high = search.declared.reach(search.origin[rows])
    spread = (search.best.points[rows] - search.origin[rows]).abs().amax(1)
    return torch.maximum((high - low).expand_as(search.origin[rows]).amax(1), spread).double()
