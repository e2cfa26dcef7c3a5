"""Noisy copies in chunks that end at every budget, and forward passes of as many copies for every point."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.measure.base import Measurement, NetworkTraits, Passes, check_draws
from brittle.measure.forward import Clean, row_numbers
from brittle.measure.sample_sums import Sampled, SampleSums
from brittle.model.classifier import Classifier
from brittle.noise import Noise

PAIRS, SINGLE, MIRRORED = (1, -1), (1,), (-1,)  # signs of the noise `e` in a unit: a pair, its first, its second
TOGETHER, MOST_PASSES = 2**21, 16  # numbers drawn, or logits summed, in one go of several passes; the most passes


@dataclass(frozen=True)
class NoiseChunk:
    """Some units of noise for each point of a batch: antithetic pairs `(e, -e)`, or single draws, `e` or `-e`."""

    inputs: Tensor  # `[B * units * members, *shape]`, in this order
    first_unit: int
    units: int
    members: int

    @property
    def end(self) -> int:
        """Number of units up to the last of this chunk."""
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


def noisy_chunks(
    clean: Clean, noise: Noise, purpose: str, budgets: Sequence[int], signs: tuple[int, ...] = PAIRS, passes: int = 1
) -> Iterator[NoiseChunk]:
    """Yield noisy copies of the points in chunks that end at every budget, for about so many `passes` through the
    network each. The noise of a unit is the same for all `signs`."""
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
    """Add each unit of `[B, units, *rest]` in turn, so that the last bits do not depend on the cut into chunks."""
    for unit in by_unit.unbind(1):
        total += unit


@dataclass(frozen=True)
class Sample(Measurement):
    """Noisy forward passes in antithetic pairs `(e, -e)`; of noise that is not symmetric in single copies.

    With `clip` copies are clipped to the classifier's bounds, and the linear theory no longer holds exactly. With
    `votes_only` less time is taken; a measurement that shares the copies may read more. With `probability` the change
    of the probability is measured; an estimator is then asked twice, at the points and at their copies.
    """

    noise: Noise
    draws: int
    clip: bool = False
    votes_only: bool = False
    probability: bool = False

    differentiates = False

    def __post_init__(self) -> None:
        check_draws(self.draws)

    @property
    def stream(self) -> Hashable:
        """All budgets share their passes: those of a smaller one are the first of a larger one."""
        return replace(self, draws=2, votes_only=False, probability=False)

    @property
    def noise_source(self) -> Hashable:
        """Key of the noise: the use of the copies does not change the draws."""
        return ("sample", self.noise)

    def cost(self, network: NetworkTraits) -> Passes:
        """Return a forward pass a copy."""
        return Passes(self.draws + self.probability_passes(network.own_probability))

    def probability_passes(self, own_probability: bool) -> int:
        """Return passes in which an estimator is asked for probabilities."""
        return 1 + self.draws if self.probability and own_probability else 0

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Sampled]:
        """Return the results of `needs`, from the draws of the largest."""
        signs = PAIRS if needs[0].noise.is_symmetric else SINGLE
        units = {need: need.draws // len(signs) for need in needs}
        changing = max((units[need] for need in needs if need.probability), default=0)
        with_logs = clean.with_probabilities(classifier) if changing else clean
        sums, votes_only = SampleSums.start(with_logs, len(signs)), all(need.votes_only for need in needs)
        budgets, after = [end * len(signs) for end in units.values()], {}
        for chunk in noisy_chunks(clean, needs[0].noise, "sample", budgets, signs, passes=passes_together(clean)):
            copies = classifier.bounds.clip(chunk.inputs) if needs[0].clip else chunk.inputs
            with torch.no_grad():
                logits = chunk.unfold(clean.logits_of(classifier, copies, chunk.rows))
                logs = logits if chunk.end <= changing else None
                if logs is not None and classifier.own_probability:
                    logs = chunk.unfold(clean.logits_of(classifier, copies, chunk.rows, probabilities=True))
            sums.add(logits, logs, votes_only=votes_only)
            if chunk.end in units.values():
                after[chunk.end] = sums.read()
        results = {need: after[end] for need, end in units.items()}
        extra = {need: need.probability_passes(classifier.own_probability) for need in needs}
        return [replace(results[need], passes=results[need].passes + extra[need]) for need in needs]


def passes_together(clean: Clean) -> int:
    """Return how many small passes are drawn, and their logits summed, in one go, which costs less."""
    row = max(row_numbers(clean.inputs, clean.extra_inputs), clean.logits.shape[1])
    return max(1, min(MOST_PASSES, TOGETHER // (clean.rows * row)))
