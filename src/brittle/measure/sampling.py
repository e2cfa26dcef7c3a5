"""Noisy forward passes: as many copies for every point, or in two stages, the second for those that need it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.measure.base import Measurement, NetworkTraits, Passes, check_draws
from brittle.measure.chunks import MIRRORED, PAIRS, SINGLE, NoiseChunk, noisy_chunks
from brittle.measure.forward import Clean
from brittle.measure.rows import join, pick
from brittle.measure.sample_sums import KEPT_DRAWS, Sampled, SampleSums
from brittle.model.classifier import Classifier
from brittle.noise import Noise

FIRST_SHARE = 0.3
"""Share of the draws that the first stage takes: 60 of 200, of which no flip says a flip probability below 0.1."""

FEWEST_FIRST = 4
"""Noisy copies of a point that a first stage has at least, where that many pairs are to be had."""

NEAR = 3.0
"""Standard deviations of the nearest margin within which its mean must lie for a point to need the second stage."""


@dataclass(frozen=True)
class SampledInStages:
    """What the noisy copies of each point showed, where some points have more of them than others.

    Attributes:
        parts: for each number of copies that some point has, the positions of these points and what they showed.
        passes: passes through the network of each point, the clean one included, `[B]`, int64.
    """

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
    a point goes on follows from its own copies, and a second stage goes through the network point by point, so that
    what it shows does not depend on the other points of the batch.

    Attributes:
        noise: the noise.
        draws: number of noisy copies, even; at most, where it is adaptive.
        clip: clip the noisy copies to the classifier's bounds; the linear theory then no longer holds exactly.
        adaptive: draw them in two stages.
    """

    noise: Noise
    draws: int
    clip: bool = False
    adaptive: bool = False

    differentiates: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_draws(self.draws)

    @property
    def stream(self) -> Hashable:
        """Stages and numbers of draws share their passes: those of a smaller budget are the first of a larger one."""
        return replace(self, draws=2, adaptive=False)

    @property
    def noise_source(self) -> Hashable:
        """What is done with the copies does not change the draws."""
        return ("sample", self.noise)

    @property
    def first_stage(self) -> int:
        """Copies that every point has: all, or of two stages those of the first, `KEPT_DRAWS` at most."""
        first = min(max(FEWEST_FIRST, math.ceil(FIRST_SHARE * self.draws)), self.draws // 2, KEPT_DRAWS)
        return first if self.adaptive else self.draws

    @property
    def cost_varies(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether points differ in copies."""
        return self.adaptive

    def cost(self, network: NetworkTraits) -> Passes:
        """A forward pass a copy; of two stages the first, and the second for half of the points, as in trials."""
        return Passes((self.first_stage + self.draws) // 2)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Any]:
        """The results of `needs`, from the draws of the largest."""
        need, singles = needs[0], SampleSums.start(clean, members=1)
        if not need.noise.is_symmetric:
            return _single_copies(needs, SamplePasses(classifier, clean, need.clip, singles))
        passes = SamplePasses(classifier, clean, need.clip, SampleSums.start(clean))
        copies = _Copies(need, clean, passes, singles)
        copies.take_common(needs)
        return copies.results(needs)


@dataclass(frozen=True)
class SamplePasses:
    """Forward passes of noisy copies, and the sums over them.

    Attributes:
        classifier: what the copies go through.
        clean: the points.
        clip: whether they are clipped to its bounds.
        sums: over their logits.
    """

    classifier: Classifier
    clean: Clean
    clip: bool
    sums: SampleSums

    def logits(self, chunk: NoiseChunk) -> Tensor:
        """The logits of the copies of a chunk, `[B, units, members, C]`, float64."""
        copies = self.classifier.bounds.clip(chunk.inputs) if self.clip else chunk.inputs
        with torch.no_grad():
            return chunk.unfold(self.clean.logits_of(self.classifier, copies, chunk.rows).double())


@dataclass
class _Copies:
    """The noisy copies of a batch: pairs, and the first members of pairs that not every point completes.

    Attributes:
        need: the noise, and what is done with the copies.
        clean: the points.
        passes: through the network, with the sums over pairs.
        singles: sums over the first members alone.
        pairs: how many pairs every point has.
        first: how many first members every point has.
        unpaired: logits of the first members that come after these pairs, `[B, first - pairs, C]`.
        after_first: what first members showed, by their number.
        after_pairs: what pairs showed, by their number.
    """

    need: Sample
    clean: Clean
    passes: SamplePasses
    singles: SampleSums
    pairs: int = 0
    first: int = 0
    unpaired: Tensor | None = None
    after_first: dict[int, Sampled] = field(default_factory=dict)
    after_pairs: dict[int, Sampled] = field(default_factory=dict)

    def take_common(self, needs: Sequence[Sample]) -> None:
        """Take the copies that every point has: all pairs of needs of one stage, and the first stages of the others."""
        staged = [need for need in needs if need.adaptive]
        firsts = {need.first_stage for need in staged}
        self.pairs = max((need.draws // 2 for need in needs if not need.adaptive), default=0)
        self.first = max(firsts, default=0)
        whole = {need.draws // 2 for need in needs if need.draws // 2 <= self.pairs}
        for chunk in _chunks(self.need, whole | {end for end in firsts if end <= self.pairs}, PAIRS, 0, self.clean):
            logits = self.passes.logits(chunk)
            self.passes.sums.add(logits)
            self._add_first(logits[:, :, :1], chunk.end, firsts)
            if chunk.end in whole:
                self.after_pairs[chunk.end] = self.passes.sums.read(chunk.end)
        unpaired: list[Tensor] = []
        for chunk in _chunks(self.need, firsts, SINGLE, self.pairs, self.clean):
            unpaired.append(self.passes.logits(chunk))
            self._add_first(unpaired[-1], chunk.end, firsts)
        self.unpaired = torch.cat(unpaired, dim=1)[:, :, 0] if unpaired else None

    def _add_first(self, logits: Tensor, end: int, firsts: set[int]) -> None:
        if end <= self.first:
            self.singles.add(logits)
        if end in firsts:
            self.after_first[end] = self.singles.read(end)

    def results(self, needs: Sequence[Sample]) -> list[Sampled | SampledInStages]:
        """The results, after the copies beyond those that all points have."""
        going = {need: needs_more(self.after_first[need.first_stage]) for need in needs if need.adaptive}
        later: dict[int, list[Sampled]] = {need.draws // 2: [] for need in going}
        for point in range(len(self.clean.ids)):
            ends = {need.draws // 2 for need, some in going.items() if some[point]} - self.after_pairs.keys()
            for end, found in self._complete(point, ends).items():
                later[end].append(found)
        return [
            _in_stages(
                need,
                going[need],
                self.after_first[need.first_stage],
                self.after_pairs.get(need.draws // 2),
                later[need.draws // 2],
                self.clean,
            )
            if need.adaptive
            else self.after_pairs[need.draws // 2]
            for need in needs
        ]

    def _complete(self, point: int, ends: set[int]) -> Mapping[int, Sampled]:
        """What one point's pairs show, by their number: mirror images of its single copies first, then whole pairs."""
        row = torch.tensor([point], device=self.clean.inputs.device)
        clean = self.clean.only(row)
        passes = replace(self.passes, clean=clean, sums=pick(self.passes.sums, row))
        found: dict[int, Sampled] = {}
        for chunk in _chunks(self.need, {min(end, self.first) for end in ends}, MIRRORED, self.pairs, clean):
            assert self.unpaired is not None
            own = self.unpaired[row, chunk.first - self.pairs : chunk.end - self.pairs]
            passes.sums.add(torch.stack((own, passes.logits(chunk)[:, :, 0]), dim=2))
            if chunk.end in ends:
                found[chunk.end] = passes.sums.read(chunk.end)
        return found | _read_at(ends, _chunks(self.need, ends, PAIRS, max(self.pairs, self.first), clean), passes)


def _single_copies(needs: Sequence[Sample], passes: SamplePasses) -> list[Sampled | SampledInStages]:
    """The results under noise that is not symmetric: copies that every point has, then those of points sent alone."""
    need, common, clean = needs[0], max(need.first_stage for need in needs), passes.clean
    ends = {count for need in needs for count in (need.first_stage, need.draws) if count <= common}
    after = _read_at(ends, _chunks(need, ends, SINGLE, 0, clean), passes)
    going = {need: needs_more(after[need.first_stage]) for need in needs if need.adaptive}
    later: dict[int, list[Sampled]] = {need.draws: [] for need in going}
    for point in range(len(clean.ids)):
        ends = {need.draws for need, some in going.items() if some[point]} - after.keys()
        row = torch.tensor([point], device=clean.inputs.device)
        own = replace(passes, clean=clean.only(row), sums=pick(passes.sums, row))
        for end, sampled in _read_at(ends, _chunks(need, ends, SINGLE, common, own.clean), own).items():
            later[end].append(sampled)
    return [
        _in_stages(one, going[one], after[one.first_stage], after.get(one.draws), later[one.draws], clean)
        if one.adaptive
        else after[one.draws]
        for one in needs
    ]


def _chunks(
    need: Sample, ends: Iterable[int], signs: tuple[int, ...], after: int, clean: Clean
) -> Iterable[NoiseChunk]:
    """Copies of the units after the first `after`, in chunks that end at every one of `ends`."""
    budgets = [end * len(signs) for end in ends if end > after]
    return () if not budgets else noisy_chunks(clean, need.noise, "sample", budgets, signs, after * len(signs))


def _read_at(ends: set[int], chunks: Iterable[NoiseChunk], passes: SamplePasses) -> dict[int, Sampled]:
    """What the units up to each of `ends` showed."""
    found: dict[int, Sampled] = {}
    for chunk in chunks:
        passes.sums.add(passes.logits(chunk))
        if chunk.end in ends:
            found[chunk.end] = passes.sums.read(chunk.end)
    return found


def _in_stages(
    need: Sample, going: Tensor, first: Sampled, whole: Sampled | None, later: Sequence[Sampled], clean: Clean
) -> SampledInStages:
    """What was found for an adaptive need: of the points that stopped, then of those that went on.

    Args:
        need: what was asked for.
        going: which points went on, `[B]`.
        first: what the first stage of all points showed.
        whole: what all copies of all points showed, where these were sent; or None.
        later: otherwise what all copies of each point that went on showed.
        clean: the points.
    """
    stopped, went = (some.nonzero().flatten() for some in (~going, going))
    parts = [(stopped, pick(first, stopped))] if len(stopped) else []
    if len(went):
        parts.append((went, join(later) if whole is None else pick(whole, went)))
    copies = torch.where(going, need.draws, need.first_stage)
    return SampledInStages(tuple(parts), copies + clean.passes)


def needs_more(first: Sampled) -> Tensor:
    """Which points need a second stage, by the copies of their first, `[B]`; none with logits that are not finite."""
    assert first.nearest is not None
    return first.nearest.mean(dim=1).abs() < NEAR * first.nearest.std(dim=1)
