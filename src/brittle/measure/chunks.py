"""Noisy copies in chunks that end at every budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.noise import Noise


@dataclass(frozen=True)
class NoiseChunk:
    """Some units of noise for each point of a batch. A unit is an antithetic pair `(e, -e)`, or a single draw, `e` or
    `-e`. The inputs are `[B * units * members, *shape]`, in this order; `first` is the number of the first unit."""

    inputs: Tensor
    first_unit: int
    units: int
    members: int

    @property
    def end(self) -> int:
        """Number of units up to the last of this chunk, with those of the chunks before it."""
        return self.first_unit + self.units

    @property
    def rows(self) -> Tensor:
        """The position of the point that each copy is one of, `[copies]`."""
        copies = self.units * self.members
        points = len(self.inputs) // copies
        return torch.arange(points, device=self.inputs.device).repeat_interleave(copies)

    def unfold(self, values: Tensor) -> Tensor:
        """`values`, one row per copy, as `[B, units, members, *rest]`."""
        return values.view(-1, self.units, self.members, *values.shape[1:])


PAIRS, SINGLE, MIRRORED = (1, -1), (1,), (-1,)
"""Signs with which a unit takes its noise `e`: an antithetic pair, its first member alone, its second alone."""


def noisy_chunks(
    clean: Clean,
    noise: Noise,
    purpose: str,
    budgets: Sequence[int],
    signs: tuple[int, ...] = PAIRS,
    passes: int = 1,
) -> Iterator[NoiseChunk]:
    """Noisy copies of the points, up to the largest of `budgets`.

    They come in chunks that end at every budget, for about so many `passes` through the network each. The noise of a
    unit is the same for all `signs`.
    """
    members = len(signs)
    stream = clean.stream(noise, purpose)
    max_units = max(1, passes * clean.rows // (len(clean.inputs) * members))
    start = 0
    for end in sorted({budget // members for budget in budgets}):
        while start < end:
            units = min(max_units, end - start)
            yield NoiseChunk(stream.copies(units, signs).flatten(0, 2), start, units, members)
            start += units


def add_in_turn(total: Tensor, by_unit: Tensor) -> None:
    """Add each unit of `by_unit` `[B, units, *rest]` to `total` `[B, *rest]`, one by one. So the last bits do not
    depend on how the units were cut into chunks."""
    for unit in by_unit.unbind(1):
        total += unit
