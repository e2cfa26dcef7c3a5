"""The declared range of an input: one pair of numbers, a pair for each feature, or none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.errors import ParameterError

TOLERANCE = 1e-6  # distance that an input may lie outside the bounds, as a share of their distance
MOST_NUMBERS = 1 << 16  # most numbers that the bounds per feature of a recorded run may have
BoundsLike = Any  # forms that `Bounds.of` reads: a pair of numbers, a pair of arrays, "none" or None, or bounds


@dataclass(frozen=True, eq=False)
class Bounds:
    """Range of an input, kept by attacks, clipping and checks: one pair for all values, one for each, or none."""

    lower: Tensor  # float64, perhaps infinite: one number `[]`, or an array, broadcast to an input `[*shape]`
    upper: Tensor  # upper bounds, likewise

    @classmethod
    def of(cls, bounds: BoundsLike) -> Bounds:
        """Read the bounds `(0, 1)`, `(0, inf)`, `(lower_array, upper_array)`, `"none"` or `(-inf, inf)`."""
        if isinstance(bounds, Bounds):
            return bounds
        if bounds is None or (isinstance(bounds, str) and bounds == "none"):
            return NONE
        expected = "bounds must be two numbers, the lower one first, or two arrays of them of one shape"
        try:
            ends = [end.detach().cpu() if isinstance(end, Tensor) else end for end in bounds]
            arrays = [torch.from_numpy(np.array(end, dtype=np.float64)) for end in ends]
            low, high = (end.clone() for end in torch.broadcast_tensors(*arrays))
        except (TypeError, ValueError, RuntimeError) as error:
            raise ParameterError(f"{expected}; found {bounds!r:.60}") from error
        lows, highs = low.flatten(), high.flatten()
        alike = bool(((lows == lows[:1]) & (highs == highs[:1])).all())  # one pair for all
        wrong = ~(lows <= highs) | (lows == math.inf) | (highs == -math.inf) | (alike & (lows == highs))
        if isinstance(bounds, str) or not len(lows):
            raise ParameterError(f"{expected}; found {bounds!r:.60}")
        if bool(wrong.any()):
            place = int(wrong.nonzero()[0])
            position = f" at the feature in place {place}" if len(lows) > 1 else ""
            raise ParameterError(f"{expected}; found {lows[place]:g}, {highs[place]:g}{position}")
        return cls(lows[0].clone(), highs[0].clone()) if alike else cls(low, high)

    def __eq__(self, bounds: object) -> bool:
        if not isinstance(bounds, Bounds):
            try:
                bounds = Bounds.of(bounds)
            except ParameterError:
                return False
        return torch.equal(self.lower, bounds.lower) and torch.equal(self.upper, bounds.upper)

    def __hash__(self) -> int:
        return hash((self.lower.numpy().tobytes(), self.upper.numpy().tobytes()))

    def __iter__(self) -> Iterator[float]:
        """Return the two numbers of one pair, so that `low, high = classifier.bounds` works."""
        if self.pair is None:
            raise ParameterError(f"this needs one lowest and one highest value for all features; the bounds are {self}")
        return iter(self.pair)

    def __str__(self) -> str:
        if self.none:
            return "none"
        if not self.lower.dim():
            return f"[{float(self.lower):g}, {float(self.upper):g}]"
        return f"per feature, of shape {list(self.lower.shape)}"

    __repr__ = __str__

    @property
    def pair(self) -> tuple[float, float] | None:
        """The lowest and the highest value, where they are finite and the same for all features; else None."""
        if self.lower.dim() or not self.finite:
            return None
        return float(self.lower), float(self.upper)

    @property
    def none(self) -> bool:
        """True where no value has a bound."""
        return bool((self.lower.isinf() & self.upper.isinf()).all())

    @property
    def finite(self) -> bool:
        """True where every value has both bounds."""
        return bool((self.lower.isfinite() & self.upper.isfinite()).all())

    @property
    def envelope(self) -> tuple[float, float]:
        """The smallest lower and the largest upper bound."""
        return float(self.lower.min()), float(self.upper.max())

    def ends(self, like: Tensor) -> tuple[Any, Any]:
        """Lower and upper bounds for arithmetic with `like`: numbers, or tensors of its type on its device."""
        if not self.lower.dim():
            return float(self.lower), float(self.upper)
        return self.lower.to(like), self.upper.to(like)

    def clip(self, inputs: Tensor) -> Tensor:
        """`min(max(x, lower), upper)` of every value of `inputs`, `[..., *shape]`."""
        return inputs.clamp(*self.ends(inputs))

    def contains(self, inputs: Tensor) -> Tensor:
        """Return for each of `inputs`, `[B, *shape]`, whether it lies inside up to the rounding of `allowed`, `[B]`."""
        low, high = self.allowed(inputs)
        return ((inputs >= low) & (inputs <= high)).flatten(1).all(dim=1)

    def allowed(self, like: Tensor) -> tuple[Any, Any]:
        """Return the bounds, and the rounding beyond them that an input may have, as `ends` gives them."""
        if self.pair is not None:
            low, high = self.pair
            slack = TOLERANCE * (high - low)
            return low - slack, high + slack
        span = (self.upper - self.lower).nan_to_num(posinf=0.0)
        low, high = (
            end + sign * TOLERANCE * torch.maximum(span, end.abs().nan_to_num(posinf=0.0))
            for end, sign in ((self.lower, -1), (self.upper, 1))
        )
        return low.to(like), high.to(like)

    def sample(self, shape: Sequence[int], like: Tensor, shares: tuple[float, float] = (0.0, 1.0)) -> Tensor:
        """Return inputs `[*shape]`, uniform between two shares of the way between finite bounds; always the same."""
        uniform = torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
        low, high = self.ends(uniform)
        return ((uniform * (shares[1] - shares[0]) + shares[0]) * (high - low) + low).to(like)

    def closed(self, inputs: Tensor) -> Bounds:
        """Return finite bounds: where there are none, a tenth of its range beyond what each feature of `inputs` has."""
        if self.finite:
            return self
        values = inputs.detach().double().cpu()
        smallest, largest = values.amin(0), values.amax(0)
        room = 0.1 * torch.where(largest > smallest, largest - smallest, torch.maximum(smallest.abs(), largest.abs()))
        room = torch.where(room > 0, room, 1.0)
        low = torch.where(self.lower.isfinite(), self.lower, smallest - room)
        high = torch.where(self.upper.isfinite(), self.upper, largest + room)
        return Bounds(torch.minimum(low, high), torch.maximum(low, high))

    def reach(self, points: Tensor) -> tuple[Any, Any]:
        """Return finite bounds for each of `points`, `[R, *shape]`, from that point alone.

        Without bounds they lie 2 root mean squares of the point on either side of 0; from a single one at least 4 away.
        """
        low, high = self.ends(points)
        if self.finite:
            return low, high
        size = 2 * points.detach().flatten(1).double().square().mean(1).sqrt()
        size = torch.where(size > 0, size, 1.0).to(points).view(-1, *[1] * (points.dim() - 1))
        low, high = (torch.as_tensor(end).to(points).expand_as(points) for end in (low, high))
        lower = torch.where(low.isfinite(), low, torch.where(high.isfinite(), (high - 2 * size).minimum(-size), -size))
        upper = torch.where(high.isfinite(), high, torch.where(low.isfinite(), (low + 2 * size).maximum(size), size))
        return lower, upper

    def scale(self, points: Tensor) -> Any:
        """Return the length against which steps at `points`, `[R, *shape]`, are small: the narrowest width."""
        if self.pair is not None:
            return self.pair[1] - self.pair[0]
        low, high = self.reach(points)
        span = (high - low).expand_as(points).flatten(1)
        smallest = torch.where(span > 0, span, torch.inf).amin(1)
        return smallest.view(-1, *[1] * (points.dim() - 1))

    def largest(self, inputs: Tensor) -> float:
        """Return the largest size of a value: of a bound, or where one is infinite also of `inputs`, `[B, *shape]`."""
        ends = torch.cat((self.lower.flatten(), self.upper.flatten())).abs()
        largest = float(ends[ends.isfinite()].max()) if bool(ends.isfinite().any()) else 0.0
        return largest if self.finite else max(largest, float(inputs.abs().max()))

    def filler(self, like: Tensor) -> Any:
        """Return the value in place of an unreadable input: the lower bound of one pair, else 0 or the nearest."""
        if self.pair is not None:
            return self.pair[0]
        low, high = self.ends(like)
        return torch.zeros_like(like[0]).clamp(low, high)

    def flat(self, shape: Sequence[int]) -> Bounds:
        """Return the bounds of inputs of this shape that are laid out as `[R, n]`."""
        if not self.lower.dim():
            return self
        self.check_shape(shape)
        return Bounds(*(end.expand(*shape).reshape(-1) for end in (self.lower, self.upper)))

    def check_shape(self, shape: Sequence[int]) -> None:
        bounds_shape = self.lower.shape
        pairs = zip(reversed(bounds_shape), reversed(shape), strict=False)
        if len(bounds_shape) > len(shape) or any(size not in (1, expected) for size, expected in pairs):
            shapes = f"{list(bounds_shape)}, an input has shape {list(shape)}"
            raise ParameterError(
                f"the bounds per feature have shape {shapes}; give a lower and an upper bound for each feature"
            )

    @property
    def recorded(self) -> dict[str, Any]:
        """The bounds as JSON values: `bounds`, and per feature `lower`, `upper` and `bounds_shape`."""
        if self.pair is not None or self.none:
            return {"bounds": None if self.pair is None else list(self.pair)}
        if self.lower.numel() > MOST_NUMBERS:
            raise ParameterError(
                f"bounds per feature hold {self.lower.numel():,} pairs, more than the {MOST_NUMBERS:,} of a run; "
                "give arrays that are broadcast, such as one number for each channel, [3, 1, 1]"
            )
        return {"bounds": None, "bounds_shape": list(self.lower.shape)} | {
            name: [number if math.isfinite(number) else None for number in end.flatten().tolist()]
            for name, end in (("lower", self.lower), ("upper", self.upper))
        }

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any]) -> Bounds:
        """Return the bounds that `recorded` holds, as `Bounds.recorded` gives them."""
        shape = recorded.get("bounds_shape")
        if shape is None:
            return cls.of(recorded["bounds"])
        blanks = (("lower", -math.inf), ("upper", math.inf))
        ends = [[blank if end is None else end for end in recorded[name]] for name, blank in blanks]
        return cls(*(torch.tensor(end, dtype=torch.float64).reshape(tuple(shape)) for end in ends))


NONE = Bounds(torch.tensor(-math.inf, dtype=torch.float64), torch.tensor(math.inf, dtype=torch.float64))  # no bounds


def check_bounds(bounds: Sequence[float] | Bounds) -> tuple[float, float]:
    """`(low, high)` as numbers; a `ParameterError` where they are not two finite, increasing ones."""
    pair = Bounds.of(bounds).pair
    if pair is None:
        raise ParameterError(f"bounds must be two finite numbers, the lower one first; found {bounds!r:.40}")
    return pair
