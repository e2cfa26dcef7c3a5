"""Noise for tables: a scale for each feature, coordinates from other rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.data.formats import as_points
from brittle.data.points import Points, SomePoints
from brittle.errors import DataError, ParameterError, UsageError, listed
from brittle.noise.families import DiagonalGaussian

FEW = 10
"""A column of whole numbers with at most so many different ones is taken for a category."""

READ = 1024
"""Rows that are read at a time."""


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

        Missing values are left out.

        Of points that were chosen, those of all from which they were.

        Args:
            points: the data, as `brittle.score` takes them: points, an array `[N, n]`, a frame, `(x, y)`, a path.
            sigma: in standard deviations of each feature.
            categories: features that stay as they are, by name or place; by default columns of whole numbers of which
                at most `FEW` differ. Columns of text and of type `category` stay in any case.
            moving: features that are no categories, whatever they hold.
        """
        points = all_of(points)
        deviations, few = _scales(points)
        names = names_of(points, len(deviations))
        stays = few & ~mask_of(moving, names) if categories is None else mask_of(categories, names)
        stays = stays | mask_of(points.provenance.get("categories", ()), names)
        scale = torch.where(stays, 0.0, deviations)
        kept = [names[place] for place in (scale == 0).nonzero().flatten().tolist()]
        return cls(sigma, scale, listed(kept, 12) if kept else "")

    @property
    def explanation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        stays = f"; {self.still} unchanged" if self.still else ""
        return f"Normal, drawn for every feature independently, with a share of its standard deviation{stays}"


def all_of(data: Any) -> Points:
    """All points of data, of which some may have been chosen: the noise of a point does not depend on the others."""
    points = as_points(data, None, levels=True)
    while isinstance(points, SomePoints):
        points = points.points
    return points


def _scales(points: Points) -> tuple[Tensor, Tensor]:
    """Standard deviation of each column, `[n]`, float64, and which hold whole numbers of which at most `FEW` differ."""
    count, mean, squares = torch.zeros(3, 1).double()
    seen: dict[int, set[float] | None] = {}
    for rows in readable_rows(points):
        more = (~rows.isnan()).double().sum(dim=0)
        together, own = (count + more).clamp_min(1), rows.nanmean(dim=0).nan_to_num()
        step = own - mean
        squares = squares + ((rows - own).square().nansum(dim=0) + step.square() * (count * more / together))
        mean, count = mean + step * (more / together), count + more
        seen = {place: _few_values(seen.get(place, set()), column) for place, column in enumerate(rows.T)}
    return (squares / count.clamp_min(1)).sqrt(), torch.tensor([few is not None for few in seen.values()])


def _few_values(seen: set[float] | None, column: Tensor) -> set[float] | None:
    """The values seen so far with those of `column`; None where there are too many, or one is no whole number."""
    values = column[~column.isnan()].unique()
    if seen is None or bool((values != values.round()).any()):
        return None
    both = seen | set(values[: FEW + 1].tolist())
    return both if len(both) <= FEW else None


def readable_rows(points: Points) -> Iterator[Tensor]:
    """The rows that can be read, `[b, n]` each, float64; NaN where a value is missing."""
    empty = True
    for batch in points.batches(READ):
        read = [status.has_value for status in batch.status]
        rows = batch.inputs[read].detach().cpu().double().flatten(1)
        if len(rows := rows[~(rows.isinf().any(dim=1) | rows.isnan().all(dim=1))]):
            empty = False
            yield rows
    if empty:
        raise DataError("shape", "none of the rows could be read, so noise cannot be learned from them")


def names_of(points: Points, size: int) -> Sequence[str]:
    """The names of the features; their places where they have none."""
    named = points.provenance.get("feature_names")
    return named if named is not None and len(named) == size else [*map(str, range(size))]


def mask_of(wanted: Collection[str | int], names: Sequence[str]) -> Tensor:
    """Which features are `wanted`, `[n]`."""
    chosen = {str(one) for one in wanted}
    if missing := sorted(chosen - set(names)):
        raise UsageError(
            f"no feature is called {listed([f'{one!r:.40}' for one in missing])}; there are {listed(list(names))}",
        )
    return torch.tensor([name in chosen for name in names])
