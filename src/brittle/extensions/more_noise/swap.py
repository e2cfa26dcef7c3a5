"""Noise of tables that takes values from other rows of the data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.data.points import Points
from brittle.errors import ParameterError
from brittle.model.rules import Rules
from brittle.noise.families import digest_of_tensors
from brittle.noise.named import NamedNoise, NoiseData
from brittle.noise.tables import all_of, mask_of, names_of, readable_rows
from brittle.noise.transform import Transforming, check_share

SWAP_ROWS, SWAP_NUMBERS = 10_000, 2**24
"""Rows of the data at most whose values `Swap` takes, and numbers that these hold."""


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
        points = all_of(points)
        rows = first_rows(points)
        names = names_of(points, rows.shape[1])
        together = Rules.of(rules or {}, names).together
        return cls(share, rows, None if columns is None else mask_of(columns, names), together)

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


def first_rows(points: Points) -> Tensor:
    """Return the values of the first rows, `[R, n]`, at most `SWAP_ROWS` and `SWAP_NUMBERS`; a missing one is that of
    the nearest row before it that has one, or else of the last."""
    parts: list[Tensor] = []
    for rows in readable_rows(points):
        parts.append(rows.float())
        if sum(map(len, parts)) >= SWAP_ROWS or sum(part.numel() for part in parts) >= SWAP_NUMBERS:
            break
    rows = torch.cat(parts)[: min(SWAP_ROWS, max(2, SWAP_NUMBERS // parts[0].shape[1]))]
    twice = torch.cat((rows, rows))
    places = torch.arange(len(twice))[:, None].where(~twice.isnan(), 0).cummax(dim=0).values
    return twice.gather(0, places)[len(rows) :].nan_to_num()


def _make(shares: Sequence[float], data: NoiseData) -> list[Swap]:
    checked = [Swap(share, torch.zeros(1, 1)) for share in shares]
    if data.points is None:
        return checked
    return [Swap.of(data.points, noise.sigma, data.categories or None, data.rules) for noise in checked]


SWAP = NamedNoise(_make, 0.1, changes="columns")
"""The word `swap` of `--noise`."""
