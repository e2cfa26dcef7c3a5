"""Noisy copies in chunks, and budgets that share them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from brittle.measure.base import Measurement, check_draws
from brittle.measure.forward import Clean
from brittle.model.classifier import Classifier
from brittle.noise import Noise


@dataclass(frozen=True)
class NoiseChunk:
    """Some units of noise for each point of a batch.

    A unit is an antithetic pair `(e, -e)`, or a single draw, `e` or `-e`.

    Attributes:
        inputs: noisy copies, `[B * units * members, *shape]`, in this order.
        first: number of the first unit.
        units: how many units there are.
        members: draws in a unit, 2 or 1.
    """

    inputs: Tensor
    first: int
    units: int
    members: int

    @property
    def end(self) -> int:
        """How many units there are up to its last, those of the chunks before it included."""
        return self.first + self.units

    @property
    def drawn(self) -> int:
        """How many draws these are."""
        return self.end * self.members

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
    clean: Clean, noise: Noise, purpose: str, budgets: Sequence[int], signs: tuple[int, ...] = PAIRS, after: int = 0
) -> Iterator[NoiseChunk]:
    """Noisy copies of the points after the first `after` draws and up to the largest of `budgets`.

    They come in chunks that end at every budget. The noise of a unit is the same for all `signs`.

    Raises:
        ParameterError: `signs` ask for mirror images, and the noise is not added to the input.
    """
    members = len(signs)
    stream = clean.stream(noise, purpose)
    most = max(1, clean.rows // (len(clean.inputs) * members))
    first = after // members
    stream.skip(first)
    for end in sorted({budget // members for budget in budgets}):
        while first < end:
            units = min(most, end - first)
            yield NoiseChunk(stream.copies(units, signs).flatten(0, 2), first, units, members)
            first += units


Result_co = TypeVar("Result_co", covariant=True)


class Sums(Protocol[Result_co]):
    """Running sums over noisy copies, from which the result of every budget can be read."""

    def add(self, chunk: NoiseChunk) -> None:
        """Send the copies of `chunk` through the network, and add what they show."""
        ...

    def read(self, units: int) -> Result_co:
        """What the first `units` units of noise showed; what is added later does not change it."""
        ...


def at_budgets(chunks: Iterable[NoiseChunk], sums: Sums[Result_co], budgets: Sequence[int]) -> list[Result_co]:
    """The result at each of `budgets`, in draws: the largest is measured, the smaller ones are read off on the way."""
    found: dict[int, Result_co] = {}
    for chunk in chunks:
        sums.add(chunk)
        if chunk.drawn in budgets:
            found[chunk.drawn] = sums.read(chunk.end)
    return [found[budget] for budget in budgets]


@dataclass(frozen=True)
class NoisyPasses(Measurement, Generic[Result_co]):
    """Passes of `draws` noisy copies in antithetic pairs `(e, -e)`; all budgets of one noise share them.

    Attributes:
        noise: the noise.
        draws: number of noisy copies, even.

    Class attributes:
        purpose: what keys the draws, with the seed and the id of the point.

    Raises:
        ParameterError: `draws` is out of range.
    """

    noise: Noise
    draws: int

    purpose: ClassVar[str]

    def __post_init__(self) -> None:
        check_draws(self.draws)

    @property
    def stream(self) -> Hashable:
        """The same for every number of draws: those of a smaller budget are the first of a larger one."""
        return replace(self, draws=2)

    @property
    def noise_source(self) -> Hashable:
        """The purpose and the noise: what is done with the copies does not change the draws."""
        return (self.purpose, self.noise)

    @abstractmethod
    def sums(self, classifier: Classifier, clean: Clean) -> Sums[Result_co]:
        """Sums over the copies, none added yet."""

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Result_co]:
        """The results of `needs`, from the draws of the largest."""
        first, budgets = needs[0], [need.draws for need in needs]
        chunks = noisy_chunks(clean, first.noise, cls.purpose, budgets)
        return at_budgets(chunks, first.sums(classifier, clean), budgets)


def add_in_turn(total: Tensor, by_unit: Tensor) -> None:
    """Add each unit of `by_unit` `[B, units, *rest]` to `total` `[B, *rest]`, one by one.

    So the last bits do not depend on how the units were cut into chunks.
    """
    for one in by_unit.unbind(1):
        total += one
