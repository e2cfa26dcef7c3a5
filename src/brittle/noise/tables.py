"""Noise for tables: a scale for each feature, coordinates from other rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.data.formats import as_points
from brittle.data.points import Points, SomePoints
from brittle.errors import DataError, ParameterError, UsageError, listed
from brittle.model.rules import Rules
from brittle.noise.families import DiagonalGaussian, digest_of_tensors
from brittle.noise.transform import Transforming

FEW = 10
"""A column of whole numbers with at most so many different ones is taken for a category."""

SWAP_ROWS, SWAP_NUMBERS = 10_000, 2**24
"""Rows of the data at most whose values `Swap` takes, and numbers that these hold."""

READ = 1024
"""Rows that are read at a time."""

NAMES_KEPT = 12
"""Names of features that stay as they are in what a report says."""


@dataclass(frozen=True)
class PerFeature(DiagonalGaussian):
    """Normal noise with a standard deviation of `sigma` times each feature's own: `K = diag(scale^2)`.

    A feature of scale 0, such as a category, stays as it is.

    Attributes:
        sigma: in standard deviations of each feature.
        scale: standard deviation of each feature, `[n]`; 0 where it stays. `PerFeature.of` learns it from data.
        still: what stays as it is, in words, for a report.

    Raises:
        ParameterError: `sigma` is not positive, a scale is negative or not finite, or all are 0.
    """

    still: str = field(default="", compare=False)

    name: ClassVar[str] = "per_feature"
    unit: ClassVar[str] = "deviations per feature"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not bool(self.scale.any()):
            raise ParameterError("no feature has a scale above 0, so noise would change nothing")

    @classmethod
    def of(
        cls,
        points: Any,
        sigma: float,
        categories: Collection[str | int] | None = None,
        moving: Collection[str | int] = (),
    ) -> PerFeature:
        """Scales as data have them, which are read once: the standard deviation of each feature, 0 of categories.

        Of points that were chosen, those of all from which they were.

        Args:
            points: the data, as `brittle.score` takes them: points, an array `[N, n]`, a frame, `(x, y)`, a path.
            sigma: in standard deviations of each feature.
            categories: features that stay as they are, by name or place; by default columns of whole numbers of which
                at most `FEW` differ. Columns of text and of type `category` stay in any case.
            moving: features that are no categories, whatever they hold.
        """
        points = _all_of(points)
        deviations, few = _scales(points)
        names = _names(points, len(deviations))
        stays = few & ~_mask(moving, names) if categories is None else _mask(categories, names)
        stays = stays | _mask(points.provenance.get("categories", ()), names)
        scale = torch.where(stays, 0.0, deviations)
        kept = [names[place] for place in (scale == 0).nonzero().flatten().tolist()]
        return cls(sigma, scale, listed(kept, NAMES_KEPT) if kept else "")

    @property
    def explanation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        stays = f"; {self.still} unchanged" if self.still else ""
        return f"Normal, drawn for every feature independently, with a share of its standard deviation{stays}"


@dataclass(frozen=True, init=False)
class Swap(Transforming):
    """Each coordinate is replaced with some probability by that of a random row of the data.

    So a copy holds values that occur, also of categories; every coordinate is drawn from a row of its own. That row may
    be the point's own, or hold the same value, which then stays.

    Attributes:
        sigma: probability with which a coordinate is replaced.
        rows: the values to take, `[R, n]`.
        columns: which coordinates may be replaced, `[n]`; all by default.
        together: places of coordinates that are replaced together, by those of one row; none by default.
        digest: of all these.

    Raises:
        ParameterError: the probability is not above 0 and at most 1, or the rows are not finite, `[R, n]`.
    """

    rows: Tensor = field(init=False, repr=False, compare=False)
    columns: Tensor = field(init=False, repr=False, compare=False)
    together: Sequence[Sequence[int]] = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False, metadata={"written": "rows"})

    name: ClassVar[str] = "swap"
    explanation: ClassVar[str] = "Values of a random share of the coordinates from other rows of the data"
    unit: ClassVar[str] = "of the coordinates"

    def __init__(
        self, share: float, rows: Tensor, columns: Tensor | None = None, together: Sequence[Sequence[int]] = ()
    ) -> None:
        """Values of these rows with the probability `share`."""
        check_share(share)
        rows = rows.detach().cpu().flatten(1).clone()
        if not len(rows) or not bool(rows.isfinite().all()):
            raise ParameterError(f"rows to swap with must be finite, [R, n]; found {list(rows.shape)}")
        own = torch.ones(rows.shape[1], dtype=torch.bool) if columns is None else columns.cpu().flatten() != 0
        if len(own) != rows.shape[1] or not bool(own.any()):
            raise ParameterError(f"{int(own.sum())} of {len(own)} columns may be swapped, in rows of {rows.shape[1]}")
        digest = digest_of_tensors(rows, own, *map(torch.tensor, together))
        self._set(sigma=share, rows=rows, columns=own, together=together, digest=digest)

    @classmethod
    def of(
        cls,
        points: Any,
        share: float,
        columns: Collection[str | int] | None = None,
        rules: Mapping[str, str] | None = None,
    ) -> Swap:
        """Swaps with the first rows of the data, `SWAP_ROWS` at most; of points that were chosen, with those of all.

        Args:
            points: the data, as `brittle.score` takes them.
            share: probability with which a coordinate is replaced.
            columns: features that may be replaced, by name or place; all by default.
            rules: of columns, as `Classifier` has them; those of a one-hot group, and tied ones, are replaced together.
        """
        points = _all_of(points)
        rows = _first_rows(points)
        names = _names(points, rows.shape[1])
        together = Rules.of(rules or {}, names).together
        return cls(share, rows, None if columns is None else _mask(columns, names), together)

    def moves(self, size: int, device: torch.device | str = "cpu") -> Tensor | None:
        # A family that is derived from it may do more than swap.
        return self.columns if type(self).apply is Swap.apply else None

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        size = self.rows.shape[1]
        if x.numel() != size:
            raise ParameterError(f"the rows to swap with have {size} coordinates, the input {x.numel()}")
        chosen = torch.rand(size, generator=generator, dtype=torch.float32) < self.sigma
        other = torch.randint(len(self.rows), (size,), generator=generator)
        for places in self.together:
            chosen[places], other[places] = bool(chosen[places[0]]), int(other[places[0]])
        return torch.where(chosen & self.columns, self.rows[other, torch.arange(size)].to(x), x.flatten()).view_as(x)


def _all_of(data: Any) -> Points:
    """All points of data, of which some may have been chosen: the noise of a point does not depend on the others."""
    points = as_points(data, None, levels=True)
    while isinstance(points, SomePoints):
        points = points.points
    return points


def check_share(share: object) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share <= 1.0:
        raise ParameterError(f"the share of values or tokens to change is above 0 and at most 1; found {share!r:.40}")


def _scales(points: Points) -> tuple[Tensor, Tensor]:
    """Standard deviation of each column, `[n]`, float64, and which hold whole numbers of which at most `FEW` differ."""
    count, mean, squares = 0, torch.zeros(1).double(), torch.zeros(1).double()
    seen: dict[int, set[float] | None] = {}
    for rows in _rows(points):
        together, own = count + len(rows), rows.mean(dim=0)
        step = own - mean
        squares = squares + ((rows - own).square().sum(dim=0) + step.square() * (count * len(rows) / together))
        mean, count = mean + step * (len(rows) / together), together
        seen = {place: _few_values(seen.get(place, set()), column) for place, column in enumerate(rows.T)}
    return (squares / count).sqrt(), torch.tensor([few is not None for few in seen.values()])


def _few_values(seen: set[float] | None, column: Tensor) -> set[float] | None:
    """The values seen so far with those of `column`; None where there are too many, or one is no whole number."""
    values = column.unique()
    if seen is None or bool((values != values.round()).any()):
        return None
    both = seen | set(values[: FEW + 1].tolist())
    return both if len(both) <= FEW else None


def _rows(points: Points) -> Iterator[Tensor]:
    """The rows that can be read, `[b, n]` each, float64."""
    empty = True
    for batch in points.batches(READ):
        inputs = batch.inputs.detach().cpu().double().flatten(1)
        good = torch.tensor([status.has_value for status in batch.status]) & inputs.isfinite().all(dim=1)
        if bool(good.any()):
            empty = False
            yield inputs[good]
    if empty:
        raise DataError("shape", "none of the rows could be read, so noise cannot be learned from them")


def _first_rows(points: Points) -> Tensor:
    parts: list[Tensor] = []
    for rows in _rows(points):
        parts.append(rows.float())
        if sum(map(len, parts)) >= SWAP_ROWS or sum(part.numel() for part in parts) >= SWAP_NUMBERS:
            break
    return torch.cat(parts)[: min(SWAP_ROWS, max(2, SWAP_NUMBERS // parts[0].shape[1]))]


def _names(points: Points, size: int) -> Sequence[str]:
    """The names of the features; their places where they have none."""
    named = points.provenance.get("feature_names")
    return named if named is not None and len(named) == size else [*map(str, range(size))]


def _mask(wanted: Collection[str | int], names: Sequence[str]) -> Tensor:
    """Which features are `wanted`, `[n]`."""
    chosen = {str(one) for one in wanted}
    if missing := sorted(chosen - set(names)):
        raise UsageError(
            f"no feature is called {listed([f'{one!r:.40}' for one in missing])}; there are {listed(list(names))}",
        )
    return torch.tensor([name in chosen for name in names])
