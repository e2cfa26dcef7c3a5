"""Noise for tables: a scale for each feature, learned from the data."""

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

FEW = 10  # most distinct values of a column of whole numbers that counts as a category
READ = 1024  # rows read at a time


@dataclass(frozen=True)
class PerFeature(DiagonalGaussian):
    """Normal noise with a standard deviation of `sigma` times that of each feature: `K = diag(scale^2)`.

    A feature of scale 0, such as a category, stays as it is.

    Attributes:
        sigma: size of the noise in standard deviations of each feature.
        scale: standard deviation of each feature, `[n]`; 0 where it stays. `PerFeature.of` learns it from data.
        still: names of the features that stay, for a report.

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
        """Estimate the standard deviation of each feature in one pass over the full data set; categories get 0.

        Args:
            points: the data, as for `brittle.score`: points, an array `[N, n]`, a frame, `(x, y)`, a path.
            sigma: size of the noise in standard deviations of each feature.
            categories: features that stay as they are, by name or place; by default columns of at most `FEW` distinct
                whole numbers. Columns of text and of type `category` stay in any case.
            moving: features that are not categories, whatever their values.
        """
        points = full_points(points)
        deviations, has_few_values = _scales(points)
        names = feature_names_of(points, len(deviations))
        guesses = has_few_values & ~select_features(moving, names)
        stays = guesses if categories is None else select_features(categories, names)
        stays = stays | select_features(points.provenance.get("categories", ()), names)
        scale = torch.where(stays, 0.0, deviations)
        still_names = [names[place] for place in (scale == 0).nonzero().flatten().tolist()]
        return cls(sigma, scale, listed(still_names, 12) if still_names else "")

    @property
    def explanation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        stays = f"; {self.still} unchanged" if self.still else ""
        return f"Normal, drawn for every feature independently, with a share of its standard deviation{stays}"


def full_points(data: Any) -> Points:
    """Return the full data set of a subset, so that the noise of a point does not depend on the choice of others."""
    points = as_points(data, None, levels=True)
    while isinstance(points, SomePoints):
        points = points.points
    return points


def _scales(points: Points) -> tuple[Tensor, Tensor]:
    """Return the deviation of each column, `[n]`, float64, and the mask of columns of few whole numbers."""
    count, mean, squares = torch.zeros(3, 1).double()
    values_of: dict[int, set[float] | None] = {}
    for rows in readable_rows(points):
        more = (~rows.isnan()).double().sum(dim=0)
        total, batch_mean = (count + more).clamp_min(1), rows.nanmean(dim=0).nan_to_num()
        step = batch_mean - mean
        squares = squares + ((rows - batch_mean).square().nansum(dim=0) + step.square() * (count * more / total))
        mean, count = mean + step * (more / total), count + more
        values_of = {place: _few_values(values_of.get(place, set()), column) for place, column in enumerate(rows.T)}
    return (squares / count.clamp_min(1)).sqrt(), torch.tensor([values is not None for values in values_of.values()])


def _few_values(previous: set[float] | None, column: Tensor) -> set[float] | None:
    """Add the values of `column` to the previous ones; None where they are too many, or not whole numbers."""
    values = column[~column.isnan()].unique()
    if previous is None or bool((values != values.round()).any()):
        return None
    union = previous | set(values[: FEW + 1].tolist())
    return union if len(union) <= FEW else None


def readable_rows(points: Points) -> Iterator[Tensor]:
    """Yield readable rows, `[b, n]` each, float64; NaN where a value is missing."""
    empty = True
    for batch in points.batches(READ):
        read = [status.has_value for status in batch.status]
        rows = batch.inputs[read].detach().cpu().double().flatten(1)
        if len(rows := rows[~(rows.isinf().any(dim=1) | rows.isnan().all(dim=1))]):
            empty = False
            yield rows
    if empty:
        raise DataError("shape", "none of the rows could be read, so noise cannot be learned from them")


def feature_names_of(points: Points, size: int) -> Sequence[str]:
    names = points.provenance.get("feature_names")
    return names if names is not None and len(names) == size else [*map(str, range(size))]


def select_features(features: Collection[str | int], names: Sequence[str]) -> Tensor:
    chosen = {str(feature) for feature in features}
    if missing := [f"{name!r:.40}" for name in sorted(chosen - set(names))]:
        raise UsageError(f"no feature is called {listed(missing)}; there are {listed(list(names))}")
    return torch.tensor([name in chosen for name in names])
