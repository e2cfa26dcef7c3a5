"""Normal noise relative to the point, by its root mean square or in decibels; and values from other rows of a table."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.data.points import Points
from brittle.errors import ParameterError
from brittle.model.rules import Rules
from brittle.noise.base import Action, Noise, at_one, identity
from brittle.noise.families import digest_of_tensors
from brittle.noise.named import NamedNoise, NoiseData
from brittle.noise.tables import feature_names_of, full_points, readable_rows, select_features
from brittle.noise.transform import Transforming, check_share


@dataclass(frozen=True)
class Relative(Noise):
    """Independent normal coordinates with the standard deviation `sigma rms(x)`, `rms(x)^2 = mean_i x_i^2`.

    The noise scales with each point, as embeddings of tokens or waveforms need it. A point of zeros has none. All
    scores of the average case apply to it; scores of derivatives alone (`change_bound`) do not.

    Attributes:
        sigma: standard deviation of a coordinate, as a share of the root mean square of the point's coordinates.
    """

    name: ClassVar[str] = "relative"
    explanation: ClassVar[str] = "Normal, with a share of the root mean square of the point's own values"
    normal: ClassVar[bool] = True
    unit: ClassVar[str] = "of the rms"
    covariance = identity  # of the draws before they are scaled at each point

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float32, device=generator.device)

    def scales(self, inputs: Tensor, varies: Tensor | None = None) -> Tensor:
        """Return the root mean square of each point `[B, *shape]` over the coordinates that vary, `[B]`, float64."""
        squares = inputs.detach().double().square()
        if varies is None:
            return squares.flatten(1).mean(dim=1).sqrt()
        weights = varies.expand_as(squares).to(squares).flatten(1)
        return ((squares.flatten(1) * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1)).sqrt()

    def covariance_at(self, inputs: Tensor, varies: Tensor | None = None) -> Action:
        """Return the action `rms(x_b)^2 v` on the vectors of each point, over the coordinates that vary."""
        squares = self.scales(inputs, varies).square()
        return lambda vectors: vectors * squares.to(vectors).view(-1, *[1] * (vectors.dim() - 1))

    @property
    def shape(self) -> Noise:
        """The family at `sigma = 1`: the point determines `K`."""
        return at_one(self)


@dataclass(frozen=True, init=False)
class Decibels(Relative):
    """White normal noise at a signal-to-noise ratio in decibels of each point's own power.

    `10 log10(mean_i x_i^2 / s^2) = level`, so the standard deviation of a coordinate is `10^(-level / 20) rms(x)`:
    a tenth of the root mean square at 20 dB, all of it at 0 dB.

    Attributes:
        sigma: `10^(-level / 20)`.

    Raises:
        ParameterError: the level is not a number from -300 to 300.
    """

    name: ClassVar[str] = "decibels"
    explanation: ClassVar[str] = "White normal noise, so many decibels below the power of the point itself"
    unit: ClassVar[str] = "dB"

    def __init__(self, level: float) -> None:
        """Set the noise `level` decibels below the power of the point."""
        if isinstance(level, bool) or not isinstance(level, int | float) or not abs(level) <= 300.0:
            raise ParameterError(f"a level in decibels is a number from -300 to 300; found {level!r:.40}")
        object.__setattr__(self, "sigma", 10.0 ** (-level / 20.0))
        self.__post_init__()

    @property
    def level(self) -> float:
        """The signal-to-noise ratio in decibels."""
        return -20.0 * math.log10(self.sigma)


RELATIVE = NamedNoise(
    lambda shares, data: list(map(Relative, shares)), 0.5, sigma="root mean squares of each point", above=0.0
)
DECIBELS = NamedNoise(lambda levels, data: list(map(Decibels, levels)), 20.0)


SWAP_ROWS, SWAP_NUMBERS = 10_000, 2**24  # largest number of rows that `Swap` draws from, and of the numbers in them


@dataclass(frozen=True, init=False)
class Swap(Transforming):
    """Replace each coordinate with some probability by that of a random row of the data.

    A copy holds values that occur, also of categories; each coordinate draws its own row. That row may be the point
    itself, or hold the same value, which then stays.

    Attributes:
        sigma: probability with which a coordinate is replaced.
        rows: the rows to draw from, `[R, n]`.
        columns: mask of the coordinates that may be replaced, `[n]`; all by default.
        together: groups of places of coordinates that are replaced together, from one row; none by default.
        digest: digest of rows, columns and groups.

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
        """Replace coordinates with the probability `share` by those of `rows`."""
        check_share(share)
        rows = rows.detach().cpu().flatten(1).clone()
        if not len(rows) or not bool(rows.isfinite().all()):
            raise ParameterError(f"rows to swap with must be finite, [R, n]; found {list(rows.shape)}")
        columns = torch.ones(rows.shape[1], dtype=torch.bool) if columns is None else columns.cpu().flatten() != 0
        if len(columns) != rows.shape[1] or not bool(columns.any()):
            raise ParameterError(f"{int(columns.sum())} of {len(columns)} columns swap, in rows of {rows.shape[1]}")
        digest = digest_of_tensors(rows, columns, *map(torch.tensor, together))
        self._set(sigma=share, rows=rows, columns=columns, together=together, digest=digest)

    @classmethod
    def of(
        cls,
        points: Any,
        share: float,
        columns: Collection[str | int] | None = None,
        rules: Mapping[str, str] | None = None,
    ) -> Swap:
        """Return swaps with the first rows of the data, at most `SWAP_ROWS`; a subset uses rows of the full data set.

        Args:
            points: the data, in any form that `brittle.score` takes.
            share: probability with which a coordinate is replaced.
            columns: features that may be replaced, by name or place; all by default.
            rules: rules of columns, as in `Classifier`; one-hot groups and tied columns are replaced together.
        """
        points = full_points(points)
        rows = first_rows(points)
        names = feature_names_of(points, rows.shape[1])
        together = Rules.of(rules or {}, names).together
        return cls(share, rows, None if columns is None else select_features(columns, names), together)

    def moves(self, size: int, device: torch.device | str = "cpu") -> Tensor | None:
        # A subclass may do more than swap.
        return self.columns if type(self).apply is Swap.apply else None

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        size = self.rows.shape[1]
        if x.numel() != size:
            raise ParameterError(f"the rows to swap with have {size} coordinates, the input {x.numel()}")
        chosen = torch.rand(size, generator=generator, dtype=torch.float32) < self.sigma
        sources = torch.randint(len(self.rows), (size,), generator=generator)
        for places in self.together:
            chosen[places], sources[places] = bool(chosen[places[0]]), int(sources[places[0]])
        return torch.where(chosen & self.columns, self.rows[sources, torch.arange(size)].to(x), x.flatten()).view_as(x)


def first_rows(points: Points) -> Tensor:
    """Return the first rows, `[R, n]`, at most `SWAP_ROWS` and `SWAP_NUMBERS`; a missing value is filled from the
    nearest row before it that has one, or else from the last row that has one."""
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


SWAP = NamedNoise(_make, 0.1, changes="columns")  # the word `swap` of `--noise`
