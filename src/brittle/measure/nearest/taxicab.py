"""Projections in L1: on a ball, on a ball inside a box, and on a plane inside a box."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

HALVINGS = 30


def into_ball(vectors: Tensor, radius: Tensor) -> Tensor:
    """The vector nearest to each row in L2 that has at most the L1 norm `radius`, `[R]`: `[R, n]`.

    `sign(v) max(|v| - l, 0)` with the one `l` that gives the norm; 0 where the row has it already.

    Source: Duchi, Shalev-Shwartz, Singer and Chandra, Efficient projections onto the l1-ball for learning in high
    dimensions (ICML 2008), figure 1.
    """
    sizes = vectors.abs()
    sorted_sizes = sizes.sort(dim=1, descending=True).values
    counts = torch.arange(1, vectors.shape[1] + 1, device=vectors.device)
    levels = (sorted_sizes.cumsum(dim=1) - radius.to(vectors)[:, None]) / counts
    kept = (sorted_sizes > levels).sum(dim=1, keepdim=True).clamp_min(1)
    level = levels.gather(1, kept - 1).clamp_min(0)
    return vectors.sign() * (sizes - level).clamp_min(0)


def onto_plane(points: Tensor, gradient: Tensor, drop: Tensor, low: float | Tensor, high: float | Tensor) -> Tensor:
    """The point `y` of the box nearest in L1 to each row `x` with `gradient . (x - y) = drop`.

    A fractional knapsack: coordinates move in the order of `|gradient|`, each as far as the box allows, until the
    linear function has fallen by `drop`; the last moves by what is left. Where the box holds no solution, the point of
    the box that comes nearest to the plane.

    Source: Croce and Hein, Minimally distorted adversarial examples with a fast adaptive boundary attack (ICML 2020),
    section 2.2; Dantzig, Discrete-variable extremum problems (Operations Research 1957).

    Args:
        points: `[R, n]`, in the box.
        gradient: `[R, n]`; a row of zeros leaves its point where it is.
        drop: by how much the linear function has to fall, `[R]`; negative to rise.
        low: lower bound of every coordinate, or one for each, `[n]`; minus infinity for none.
        high: upper bound, likewise.

    Returns:
        `[R, n]`.
    """
    downhill = gradient * drop.sign().to(gradient)[:, None]
    slope, order = downhill.abs().sort(dim=1, descending=True, stable=True)
    room = torch.where(downhill > 0, points - low, high - points).gather(1, order).clamp_min(0)
    gain = torch.where(slope > 0, slope * room, 0)
    before = pad(gain.cumsum(dim=1)[:, :-1], (1, 0))
    left = (drop.abs().to(points)[:, None] - before).clamp_min(0)
    moved = torch.where(slope > 0, torch.minimum(left / slope, room), 0)
    step = torch.zeros_like(points).scatter(1, order, moved)
    return (points - downhill.sign() * step).clamp(low, high)  # type: ignore[arg-type]


def into_box_and_ball(vectors: Tensor, radius: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    """The vector of the box nearest to each row in L2 that has at most the L1 norm `radius`, `[R]`: `[R, n]`.

    `clip(sign(v) max(|v| - l, 0))` with the one `l` that gives the norm, by bisection to a part in `2^HALVINGS` of the
    largest coordinate; 0 where the clipped row has it already.

    Source: Croce and Hein, Mind the box: l1-APGD for sparse adversarial attacks on image classifiers (ICML 2021),
    proposition 2.2.

    Args:
        vectors: `[R, n]`.
        radius: `[R]`.
        low: the box, at most 0: numbers or `[R, n]`; minus infinity for none.
        high: likewise, at least 0.
    """
    sizes = vectors.abs()
    room = torch.where(vectors > 0, high, -low).clamp_min(0)
    bound = radius.to(vectors)[:, None]
    lower = torch.zeros_like(bound)
    upper = sizes.amax(dim=1, keepdim=True)
    inside = torch.minimum(sizes, room).sum(dim=1, keepdim=True) <= bound
    for _ in range(HALVINGS):
        middle = (lower + upper) / 2
        outside = torch.minimum((sizes - middle).clamp_min(0), room).sum(dim=1, keepdim=True) > bound
        lower, upper = torch.where(outside, middle, lower), torch.where(outside, upper, middle)
    level = torch.where(inside, 0, upper)
    return vectors.sign() * torch.minimum((sizes - level).clamp_min(0), room)
