"""The norms of a perturbation, and projections in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.nearest import taxicab
from brittle.measure.nearest.counting import ends_downhill, fewest
from brittle.norms import COUNT, DUAL_ORDER, ORDER

NEWTON_STEPS = 100
"""More than the projections need: each step fixes further coordinates at the box, about ten steps in practice."""


@dataclass(frozen=True)
class Norm:
    """A norm of perturbations `[R, n]`.

    Attributes:
        name: `linf`, `l2`, `l1` or `l0`.
        order: order `p`; 0 counts the coordinates that are not 0.
        dual_order: order `q` of the dual norm, that of gradients.
        steepest: the direction along which a linear function with the given gradient rises fastest at bounded norm,
            up to a factor, `[R, n] -> [R, n]`.
    """

    name: str
    order: float
    dual_order: float
    steepest: Callable[[Tensor], Tensor]

    def length(self, vectors: Tensor) -> Tensor:
        """Norm of each row, `[R]`, float64."""
        return torch.linalg.vector_norm(vectors.double(), self.order, dim=1)

    def dual(self, gradients: Tensor) -> Tensor:
        """Dual norm of each row, `[R]`, float64: how fast a linear function changes per unit of the norm."""
        return torch.linalg.vector_norm(gradients.double(), self.dual_order, dim=1)

    def to_plane(
        self, points: Tensor, gradient: Tensor, drop: Tensor, low: float | Tensor, high: float | Tensor
    ) -> Tensor:
        """Distance to where the linear function has fallen by `drop`, `[R]`: `drop / dual(gradient)`, without a box.

        In L0 the number of coordinates that it takes inside the box, `n + 1` where all do not suffice. Infinity where
        the gradient vanishes. `[R]`, float64.
        """
        slope = self.dual(gradient)
        if self.order == 0:
            gains = gradient * (points - ends_downhill(points, gradient, low, high))
            return torch.where(slope > 0, fewest(gains, drop).double(), torch.inf)
        return torch.where(slope > 0, drop / slope, torch.inf)

    def into_ball(self, vectors: Tensor, radius: Tensor) -> Tensor:
        """The nearest vector of at most norm `radius`, `[R]`, to each row: `[R, n]`."""
        if self.name == "l1":
            return taxicab.into_ball(vectors, radius)
        bound = radius.to(vectors.dtype)[:, None]
        if self.name == "linf":
            return vectors.clamp(-bound, bound)
        length = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        return vectors * (bound / length.clamp_min(torch.finfo(vectors.dtype).tiny)).clamp_max(1)

    def onto_plane(
        self, points: Tensor, gradient: Tensor, drop: Tensor, low: float | Tensor, high: float | Tensor
    ) -> Tensor:
        """The nearest point `y` in the box to each row `x` with `gradient . (x - y) = drop`.

        The solution is `y = clip(x - l u)`, `u` the steepest direction, for the one number `l` that meets the
        equation. Its left side is concave and piecewise linear in `l`, so Newton's method from `l = 0` never
        overshoots and ends at the solution after finitely many steps. Where the box holds no solution, the point of
        the box that comes nearest to the plane.

        Source: Croce and Hein, Minimally distorted adversarial examples with a fast adaptive boundary attack (ICML
        2020), section 2.2, solve the same problem by sorting.

        Args:
            points: `[R, n]`, in the box.
            gradient: `[R, n]`; a row of zeros leaves its point where it is.
            drop: by how much the linear function has to fall, `[R]`; negative to rise.
            low: lower bound of every coordinate, or one for each, `[n]`; minus infinity for none.
            high: upper bound, likewise.

        Returns:
            `[R, n]`.
        """
        if self.name == "l1":
            return taxicab.onto_plane(points, gradient, drop, low, high)
        downhill = gradient * drop.sign().to(gradient.dtype)[:, None]
        direction = self.steepest(downhill)
        gain = downhill * direction
        room = torch.where(direction > 0, points - low, high - points) / direction.abs()
        room = torch.where(direction == 0, torch.inf, room)
        wanted, step = drop.abs().to(points.dtype), points.new_zeros(len(points))
        at_bound = torch.where(room.isinf(), 0, gain * room)
        for _ in range(NEWTON_STEPS):
            free = room > step[:, None]
            slope = torch.where(free, gain, 0).sum(dim=1)
            reached = torch.where(free, 0, at_bound).sum(dim=1)
            newton = torch.where(slope > 0, (wanted - reached) / slope, step)
            newton = torch.where((slope <= 0) & (wanted > reached), room.nan_to_num(posinf=0).amax(dim=1), newton)
            if not bool((newton > step).any()):
                break
            step = torch.maximum(step, newton)
        return (points - step[:, None] * direction).clamp(low, high)  # type: ignore[arg-type]


_STEEPEST: dict[str, Callable[[Tensor], Tensor]] = {
    "linf": torch.sign,
    "l2": lambda gradient: gradient,
    "l1": lambda gradient: gradient,
}

NORMS = {name: Norm(name, ORDER[name], dual, _STEEPEST[name]) for name, dual in DUAL_ORDER.items()}
"""The norms of `brittle.norms` by name."""

DISTANCES = NORMS | {COUNT: Norm(COUNT, 0.0, torch.inf, torch.sign)}
"""What perturbations are measured by: the norms, and how many features change."""
