"""Noisy forward passes: as many copies for every point, or in two stages, the second for those that need it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.measure.base import Measurement, NetworkTraits, Passes, check_draws
from brittle.measure.chunks import MIRRORED, PAIRS, SINGLE, NoiseChunk, noisy_chunks
from brittle.measure.forward import Clean, row_numbers
from brittle.measure.rows import join, pick
from brittle.measure.sample_sums import KEPT_DRAWS, Sampled, SampleSums
from brittle.model.classifier import Classifier
from brittle.noise import Noise

FIRST_SHARE = 0.3
"""Share of the draws that the first stage takes: 60 of 200, of which no flip says a flip probability below 0.1."""

FEWEST_FIRST = 4
"""Noisy copies of a point that a first stage has at least, where that many pairs are to be had."""

TOGETHER, MOST_PASSES = 2**21, 16
"""Numbers of inputs, or of logits, that are drawn or summed in one go, where these are several passes, and how many
passes at most."""

NEAR = 3.0
"""Standard deviations of the nearest margin within which its mean must lie for a point to need the second stage."""


@dataclass(frozen=True)
class SampledInStages:
    """What the noisy copies of each point showed, where some points have more of them than others. `parts` hold, for
    each number of copies that some point has, the positions of these points and what they showed."""

    parts: tuple[tuple[Tensor, Sampled], ...]
    passes: Tensor


@dataclass(frozen=True)
class Sample(Measurement):
    """Noisy forward passes in antithetic pairs `(e, -e)`; of noise that is not symmetric in single copies.

    With `adaptive` every point has a first stage of `FIRST_SHARE` of the draws: the first members of as many pairs.
    These are independent draws, so that they say as much as so few can, by counting and of the variance. The rest,
    their mirror images and then whole pairs, is for those points alone whose nearest margin then has a mean within
    `NEAR` of its standard deviations from 0: where the first copies say that nearly all will agree, more of them change
    little. What a point showed in the end is in single copies, or in pairs. The result is a `SampledInStages`. Whether
    a point goes on follows from its own copies; points that go on share the passes. With `clip` copies are clipped to
    the classifier's bounds, and the linear theory no longer holds exactly. With `votes_only` less time is taken; who
    shares the copies may get more. With `probability`, which is not for `adaptive`, the change of the probability is
    measured; an estimator is then asked twice, at the points and at their copies.
    """

    noise: Noise
    draws: int
    clip: bool = False
    adaptive: bool = False
    votes_only: bool = False
    probability: bool = False

    differentiates = False

    def __post_init__(self) -> None:
        check_draws(self.draws)

    @property
    def stream(self) -> Hashable:
        """Stages and numbers of draws share their passes: those of a smaller budget are the first of a larger one."""
        return replace(self, draws=2, adaptive=False, votes_only=False, probability=False)

    @property
    def noise_source(self) -> Hashable:
        """What is done with the copies does not change the draws."""
        return ("sample", self.noise)

    @property
    def first_stage(self) -> int:
        """Copies that every point has: all, or of two stages those of the first, `KEPT_DRAWS` at most."""
        first = min(max(FEWEST_FIRST, math.ceil(FIRST_SHARE * self.draws)), self.draws // 2, KEPT_DRAWS)
        return first if self.adaptive else self.draws

    def cost(self, network: NetworkTraits) -> Passes:
        """A forward pass a copy; of two stages the first, and the second for half of the points, as in trials."""
        return Passes((self.first_stage + self.draws) // 2 + self.probability_passes(network.own_probability))

    def probability_passes(self, own_probability: bool) -> int:
        """Passes in which an estimator is asked for probabilities."""
        return 1 + self.draws if self.probability and own_probability else 0

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Any]:
        """The results of `needs`, from the draws of the largest."""
        return _Copies(needs, classifier, clean).results()


class _Copies:
    """The noisy copies of a batch, in units: pairs, or single copies of noise that is not symmetric.

    Every point has `common` units, as many as the largest need of one stage asks for, and `first` first members of
    units, as many as the largest first stage; what these showed stands in `after` and `after_first`, by their numbers.
    Of the first `changing` units the change of the probability is asked for.
    """

    def __init__(self, needs: Sequence[Sample], classifier: Classifier, clean: Clean) -> None:
        self.needs, self.classifier, self.clean = needs, classifier, clean
        self.signs = PAIRS if needs[0].noise.is_symmetric else SINGLE
        self.units = {need: need.draws // len(self.signs) for need in needs}
        self.firsts = {need.first_stage for need in needs if need.adaptive}
        self.first = max(self.firsts, default=0)
        self.common = max((units for need, units in self.units.items() if not need.adaptive), default=0)
        if self.signs == SINGLE:
            self.common = max(self.common, self.first)
        votes_only = all(need.votes_only for need in needs)
        self.changing = max((units for need, units in self.units.items() if need.probability), default=0)
        with_logs = clean.with_probabilities(classifier) if self.changing else clean
        self.sums = SampleSums.start(with_logs, len(self.signs), votes_only)
        self.singles = SampleSums.start(clean, members=1, votes_only=not self.firsts)
        self.after: dict[int, Sampled] = {}
        self.after_first: dict[int, Sampled] = {}

    def results(self) -> list[Sampled | SampledInStages]:
        """The results of all needs: the copies that every point has, then those of points that go on."""
        unpaired = self._take_common()
        going = {need: needs_more(self.after_first[need.first_stage]) for need in self.needs if need.adaptive}
        later: dict[int, list[tuple[Tensor, Sampled]]] = {self.units[need]: [] for need in going}
        groups: dict[frozenset[int], list[int]] = {}
        for point in range(len(self.clean.ids)):
            ends = {self.units[need] for need, some in going.items() if some[point]} - self.after.keys()
            groups.setdefault(frozenset(ends), []).append(point)
        for ends, points in groups.items():
            rows = torch.tensor(points, device=self.clean.inputs.device)
            for end, found in self._complete(rows, ends, unpaired).items() if ends else ():
                later[end].append((rows, found))
        return [
            self._in_stages(need, going[need], later) if need.adaptive else self._of_all(need) for need in self.needs
        ]

    def _of_all(self, need: Sample) -> Sampled:
        """Return the sums for a need that is not adaptive, with its passes."""
        sampled = self.after[self.units[need]]
        return replace(sampled, passes=sampled.passes + need.probability_passes(self.classifier.own_probability))

    def _passes(
        self, clean: Clean, ends: Iterable[int], signs: tuple[int, ...], after: int
    ) -> Iterator[tuple[NoiseChunk, Tensor, Tensor | None]]:
        """Copies of the units beyond the first `after`, in chunks that end at every one of `ends`; with their logits,
        `[B, units, members, C]`, float64, and of the units `changing` with their log-probabilities."""
        budgets = [end * len(signs) for end in ends if end > after]
        if not budgets:
            return
        # Small passes are drawn, and their logits summed, in one go, which costs less.
        row = max(row_numbers(clean.inputs, clean.extra_inputs), clean.logits.shape[1])
        passes = max(1, min(MOST_PASSES, TOGETHER // (clean.rows * row)))
        for chunk in noisy_chunks(clean, self.needs[0].noise, "sample", budgets, signs, after * len(signs), passes):
            copies = self.classifier.bounds.clip(chunk.inputs) if self.needs[0].clip else chunk.inputs
            with torch.no_grad():
                logits = chunk.unfold(clean.logits_of(self.classifier, copies, chunk.rows).double())
                logs = logits if chunk.end <= self.changing else None
                if logs is not None and self.classifier.own_probability:
                    logs = chunk.unfold(clean.logits_of(self.classifier, copies, chunk.rows, probabilities=True))
            yield chunk, logits, logs

    def _take_common(self) -> Tensor | None:
        """Take the copies that every point has; the logits of the first members beyond the common pairs."""
        whole = {units for units in self.units.values() if units <= self.common}
        ends = whole | {end for end in self.firsts if end <= self.common}
        for chunk, logits, logs in self._passes(self.clean, ends, self.signs, 0):
            self.sums.add(logits, logs)
            if chunk.end in whole:
                self.after[chunk.end] = self.sums.read(chunk.end)
            self._add_first(chunk.end, logits[:, :, :1])
        unpaired: list[Tensor] = []
        for chunk, logits, _ in self._passes(self.clean, self.firsts, SINGLE, self.common):
            unpaired.append(logits)
            self._add_first(chunk.end, logits)
        return torch.cat(unpaired, dim=1)[:, :, 0] if unpaired else None

    def _add_first(self, end: int, logits: Tensor) -> None:
        if end <= self.first:
            self.singles.add(logits)
        if end in self.firsts:
            self.after_first[end] = self.singles.read(end)

    def _complete(self, rows: Tensor, ends: Set[int], unpaired: Tensor | None) -> dict[int, Sampled]:
        """What the units of the points at the positions `rows` show, by their number: mirror images of their single
        copies first, then whole units."""
        clean, sums, found = self.clean.only(rows), pick(self.sums, rows), {}
        for chunk, logits, _ in self._passes(clean, {min(end, self.first) for end in ends}, MIRRORED, self.common):
            assert unpaired is not None
            own = unpaired[rows, chunk.first - self.common : chunk.end - self.common]
            sums.add(torch.stack((own, logits[:, :, 0]), dim=2))
            if chunk.end in ends:
                found[chunk.end] = sums.read(chunk.end)
        for chunk, logits, _ in self._passes(clean, ends, self.signs, max(self.common, self.first)):
            sums.add(logits)
            if chunk.end in ends:
                found[chunk.end] = sums.read(chunk.end)
        return found

    def _in_stages(
        self, need: Sample, going: Tensor, later: Mapping[int, Sequence[tuple[Tensor, Sampled]]]
    ) -> SampledInStages:
        """What was found for an adaptive need: of the points that stopped, then of those `going` on, `[B]`."""
        stopped, went = (some.nonzero().flatten() for some in (~going, going))
        parts = [(stopped, pick(self.after_first[need.first_stage], stopped))] if len(stopped) else []
        if len(went):
            units = self.units[need]
            if units in self.after:
                parts.append((went, pick(self.after[units], went)))
            else:
                rows, found = (join(each) for each in zip(*later[units], strict=True))
                parts.append((rows, found))
        copies = torch.where(going, need.draws, need.first_stage)
        return SampledInStages(tuple(parts), copies + self.clean.passes)


def needs_more(first: Sampled) -> Tensor:
    """Which points need a second stage, by the copies of their first, `[B]`; none with logits that are not finite."""
    assert first.nearest is not None
    return first.nearest.mean(dim=1).abs() < NEAR * first.nearest.std(dim=1)
