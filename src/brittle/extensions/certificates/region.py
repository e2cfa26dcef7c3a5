"""Boxes of values, and the inputs around a point with the minima of linear functions over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.estimate import DUAL_ORDER
from brittle.measure.rows import pick
from brittle.model.bounds import Bounds


@dataclass(frozen=True)
class Enclosure:
    """All values between two tensors, `[B, *shape]`, float64."""

    lower: Tensor
    upper: Tensor

    @property
    def centre(self) -> Tensor:
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> Tensor:
        return (self.upper - self.lower) / 2

    def map(self, function: Callable[[Tensor], Tensor]) -> Enclosure:
        """Return the image under an elementwise function that does not decrease."""
        return Enclosure(function(self.lower), function(self.upper))

    def __and__(self, enclosure: Enclosure) -> Enclosure:
        """Return the intersection."""
        return Enclosure(self.lower.maximum(enclosure.lower), self.upper.minimum(enclosure.upper))


@dataclass(frozen=True)
class Bounded:
    """A layer's value at the points, with the graph of the relaxed network behind it, and its bounds over the region.

    The value is `[B, *shape]`, float64, as are the bounds. `is_tight` where linear relaxation makes the bounds no
    smaller: the image of an interval that it cut, or exact. `is_box` where each number is a different one of the
    input, scaled and shifted, so that the values fill a box.
    """

    value: Tensor
    interval: Enclosure
    is_tight: bool = False
    is_box: bool = False


NEWTON_STEPS = 16  # Newton's steps to where a linear function becomes negative; each ends at or before it


@dataclass(frozen=True)
class Region:
    """All inputs within a distance of each point, and in a box. Points, `[B, *shape]`, and radii, `[B]`, are float64,
    in the classifier's units; `room` is how far the bounds let each number go down and up, relative to the points."""

    points: Tensor
    radii: Tensor
    room: Enclosure
    norm: str

    @classmethod
    def around(cls, points: Tensor, radii: Tensor, norm: str, bounds: Bounds) -> Region:
        """Return the inputs within `radii` of `points`, and within `bounds`."""
        infinite = torch.full_like(points, math.inf)
        room = Enclosure(-infinite, infinite)
        if not bounds.none:
            # A point outside the bounds counts as inside, which only makes the box larger.
            low, high = bounds.ends(points)
            room = room & Enclosure((low - points).clamp(max=0), (high - points).clamp(min=0))
        return cls(points, radii, room, norm)

    @property
    def box(self) -> Enclosure:
        """The smallest box around these inputs, relative to the points."""
        reach = self.radii.view(-1, *[1] * (self.points.dim() - 1)).expand_as(self.points)
        return self.room & Enclosure(-reach, reach)

    def rows(self) -> list[Region]:
        return [pick(self, row) for row in torch.arange(len(self.points), device=self.points.device).split(1)]

    def lower_bound(self, gradients: Tensor) -> Tensor:
        """Return a lower bound of `min_d a . d` over displacements `d`, `[S, B]`; `gradients` `a` are `[S, B, *shape]`.

        Exact for `linf`, and without bounds for the others: `-r ||a||_q` with the dual norm. With bounds the larger of
        the minima over the whole ball and over its clipped box.
        """
        flat, box = gradients.flatten(2), self.box
        centre, radius = box.centre.flatten(1), box.radius.flatten(1)
        in_box = torch.einsum("sbn,bn->sb", flat, centre) - torch.einsum("sbn,bn->sb", flat.abs(), radius)
        if self.norm == "linf":
            return in_box
        return in_box.maximum(-self.radii * torch.linalg.vector_norm(flat, DUAL_ORDER[self.norm], dim=2))

    def reach(self, constants: Tensor, gradients: Tensor) -> Tensor:
        """Return the largest distance, at any radii, at which each `c + a . d` is positive, `[S, B]`.

        `a` is `[S, B, *shape]`. In the box of radius `r` it falls by at most `g(r) = sum |a_i| min(r, m_i)`, with `m_i`
        the room in the falling direction. `g` is concave, so that Newton's steps from 0 towards `g(r) = c` never go
        beyond it. In a ball it falls by at most `r ||a||_q`, too, and the larger distance counts.
        """
        sizes = gradients.flatten(2).abs()
        room = torch.where(gradients > 0, -self.room.lower, self.room.upper).flatten(2)
        distance = torch.zeros_like(constants)
        for _ in range(NEWTON_STEPS):
            slope = torch.einsum("sbn,sbn->sb", sizes, (distance[..., None] < room).to(sizes.dtype))
            remaining = constants - torch.einsum("sbn,sbn->sb", sizes, room.minimum(distance[..., None]))
            step = torch.where(slope > 0, remaining / slope, torch.where(remaining > 0, math.inf, 0.0)).clamp(min=0)
            distance = distance + step
            if not (step > 1e-12 * distance).any():
                break
        if self.norm != "linf":
            dual = torch.linalg.vector_norm(sizes, DUAL_ORDER[self.norm], dim=2)
            distance = distance.maximum((constants / dual).nan_to_num(0.0))
        return torch.where(constants > 0, distance, 0.0)
