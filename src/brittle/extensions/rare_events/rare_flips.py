"""Rare flips at the points of a batch: plain copies first, then two methods to sample flips where these are rare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.extensions.rare_events.stretched import Stretched, shrunk_copies, stretch_noise
from brittle.extensions.rare_events.subset import Draw, LevelProduct, Result, Search, simulate_subset
from brittle.measure.base import LARGEST_DRAWS, Measurement, NetworkTraits, Passes
from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import margins_of
from brittle.model.classifier import Classifier
from brittle.noise import Noise

FEWEST_COPIES = 20
"""Minimum number of copies for levels with a meaning."""

ENOUGH_FLIPS = 20
"""Number of flips among the plain copies from which a count suffices."""


@dataclass(frozen=True)
class ByLevels:
    """Flip probabilities that are products over levels, `[B]` each. The logarithm is minus infinity where the chains
    did not reach the flips, NaN where the method did not run; its variance is that between chains."""

    log: Tensor
    variance: Tensor
    levels: Tensor

    @classmethod
    def of(cls, products: Sequence[LevelProduct | None], device: torch.device) -> ByLevels:
        """Collect the products of all points."""
        rows = [(p.log, p.variance, p.levels) if p else (math.nan, math.nan, 0) for p in products]
        return cls(*torch.tensor(rows, dtype=torch.float64, device=device).reshape(-1, 3).unbind(dim=1))


@dataclass(frozen=True)
class RareSampled:
    """Sampled flips of each point, `[B]` each. `flips` of `drawn` plain copies include `ties`; `shrunk` counts flips of
    `shrunk_drawn` copies with shrunk noise. `subset` and `stretched` are the flip probability by either method."""

    drawn: int
    flips: Tensor
    ties: Tensor
    subset: ByLevels
    stretched: ByLevels
    shrunk: Tensor
    shrunk_drawn: int
    nonfinite: Tensor
    tied: Tensor
    passes: Tensor


@dataclass(frozen=True)
class RareFlips(Measurement):
    """Plain noisy copies and, where fewer than `ENOUGH_FLIPS` flip, two methods to sample rare flips. The noise is
    normal and has draws; each level has `copies` copies, too."""

    noise: Noise
    copies: int

    differentiates = False
    needs_gradients = False

    def __post_init__(self) -> None:
        if type(self.copies) is not int or not FEWEST_COPIES <= self.copies <= LARGEST_DRAWS:
            raise ParameterError(
                f"copies must be a whole number between {FEWEST_COPIES} and {LARGEST_DRAWS}; found {self.copies!r:.40}"
            )

    def cost(self, network: NetworkTraits) -> Passes:
        """Count passes at a flip probability of about 1e-6; counting takes `copies`, 1e-12 about twice as much."""
        return Passes(36 * self.copies)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[RareSampled]:
        need: RareFlips = needs[0]
        with torch.no_grad():
            searches = [need._search(clean, point) for point in range(len(clean.ids))]
            points, passes = _run(classifier, clean, searches)
        device = clean.logits.device

        def as_tensor(numbers: list[int]) -> Tensor:
            return torch.tensor(numbers, device=device)

        sampled = RareSampled(
            drawn=need.copies,
            flips=as_tensor([point.flips for point in points]),
            ties=as_tensor([point.ties for point in points]),
            subset=ByLevels.of([point.subset for point in points], device),
            stretched=ByLevels.of([point.stretched and point.stretched.product for point in points], device),
            shrunk=as_tensor([point.stretched.shrunk if point.stretched else 0 for point in points]),
            shrunk_drawn=shrunk_copies(need.copies),
            nonfinite=as_tensor([point.nonfinite for point in points]),
            tied=clean.tied,
            passes=as_tensor([clean.passes + count for count in passes]),
        )
        return [sampled for _ in needs]

    def _search(self, clean: Clean, point: int) -> Search[RarePoint]:
        """Start the search of one point; the two methods have independent noise."""
        only = clean.only(torch.tensor([point], device=clean.inputs.device))

        def draws(purpose: str) -> Draw:
            stream = only.stream(self.noise, purpose)
            return lambda count: stream.draw(count)[0].flatten(1)

        return search(draws("rare_subset"), draws("rare_stretched"), self.copies)


@dataclass(frozen=True)
class RarePoint:
    """Sampled flips of one point. `subset` is None where a count suffices, `stretched` where that found no flip."""

    flips: int
    ties: int
    nonfinite: int
    subset: LevelProduct | None = None
    stretched: Stretched | None = None


def search(plain: Draw, for_stretching: Draw, copies: int) -> Search[RarePoint]:
    """Sample the flips of one point with `copies` plain copies, and as many in a level."""
    noise = plain(copies)
    margins = yield noise
    nearest = margins.amin(dim=1)
    counted = RarePoint(int((nearest <= 0).sum()), int((nearest == 0).sum()), int((nearest == -torch.inf).sum()))
    if counted.flips >= ENOUGH_FLIPS or counted.nonfinite:
        return counted
    # Margins in units of their deviation: a class with a far but steep margin counts like a class near and flat.
    deviations = margins.std(dim=0)
    scales = torch.where(deviations.isfinite() & (deviations > 0), deviations, 1.0)
    by_subset = yield from simulate_subset(plain, noise, margins, scales)
    if by_subset.nonfinite:
        return replace(counted, nonfinite=by_subset.nonfinite)
    if by_subset.log == -math.inf:
        return replace(counted, subset=by_subset)
    return replace(counted, subset=by_subset, stretched=(yield from stretch_noise(for_stretching, copies)))


def _run(classifier: Classifier, clean: Clean, searches: Sequence[Search[Result]]) -> tuple[list[Result], list[int]]:
    """Run one search per point of `clean`, in shared passes; return the results and the passes of each search."""
    passes = [0] * len(searches)
    results: dict[int, Result] = {}
    waiting = {point: next(search) for point, search in enumerate(searches)}
    while waiting:
        sizes = [len(noise) for noise in waiting.values()]
        points = torch.tensor(list(waiting), device=clean.inputs.device)
        points = points.repeat_interleave(torch.tensor(sizes, device=points.device))
        margins = _margins(classifier, clean, points, torch.cat(list(waiting.values()))).split(sizes)
        asking, waiting = list(waiting), {}
        for point, point_margins in zip(asking, margins, strict=True):
            passes[point] += len(point_margins)
            try:
                waiting[point] = searches[point].send(point_margins)
            except StopIteration as end:
                results[point] = end.value
    return [results[point] for point in range(len(searches))], passes


def _margins(classifier: Classifier, clean: Clean, points: Tensor, noise: Tensor) -> Tensor:
    """Return all margins of copies with `noise` `[m, n]` of the points `[m]`, in passes of up to `clean.rows` rows."""
    parts = []
    for rows in torch.arange(len(points), device=points.device).split(clean.rows):
        positions = points[rows]
        copies = clean.inputs[positions] + noise[rows].to(clean.inputs).view(-1, *clean.inputs.shape[1:])
        logits, predicted = clean.logits_of(classifier, copies, positions), clean.predicted[positions]
        margins = margins_of(logits, predicted).double().scatter(1, predicted[:, None], torch.inf)
        parts.append(margins.masked_fill(~logits.isfinite().all(dim=1, keepdim=True), -torch.inf))
    return torch.cat(parts)
