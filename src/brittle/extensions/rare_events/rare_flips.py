"""Rare flips at the points of a batch: plain copies first, then both ways to sample them where these hardly flip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.extensions.rare_events.stretched import Stretched, shrunk_copies, stretched
from brittle.extensions.rare_events.subset import Draw, LevelProduct, Result, Search, subset
from brittle.measure.base import LARGEST_DRAWS, Measurement, NetworkTraits, Passes
from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import margins_of
from brittle.model.classifier import Classifier
from brittle.noise import Noise

FEWEST_COPIES = 20
"""Fewer have no level that says anything."""

ENOUGH_FLIPS = 20
"""Flips among the plain copies from which on counting them is enough."""


@dataclass(frozen=True)
class ByLevels:
    """Flip probabilities that are products over levels, `[B]` each. Their logarithm is minus infinity where the chains
    did not get there, NaN where there was nothing to follow; its variance is that between chains."""

    log: Tensor
    variance: Tensor
    levels: Tensor

    @classmethod
    def of(cls, products: Sequence[LevelProduct | None], device: torch.device) -> ByLevels:
        """The products of all points."""
        each = [LevelProduct(math.nan, math.nan, 0) if one is None else one for one in products]
        return cls(
            *(
                torch.tensor([getattr(one, name) for one in each], dtype=torch.float64, device=device)
                for name in ("log", "variance", "levels")
            )
        )


@dataclass(frozen=True)
class RareSampled:
    """Sampled flips of each point, `[B]` each. Ties are among the `flips` of the plain copies `drawn`; `shrunk` flip of
    `shrunk_drawn` copies with shrunk noise. `subset` and `stretched` are the flip probability by either way."""

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
    """Plain noisy copies and, where fewer than `ENOUGH_FLIPS` flip, two ways to sample rare flips. The noise is normal
    and has draws; so many `copies` are in each level, too."""

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
        """Passes at a flip probability of about 1e-6; counting takes `copies`, 1e-12 about twice as much."""
        return Passes(36 * self.copies)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[RareSampled]:
        need: RareFlips = needs[0]
        with torch.no_grad():
            searches = [need._search(clean, point) for point in range(len(clean.ids))]
            found, passes = _run(classifier, clean, searches)
        device = clean.logits.device

        def whole(numbers: list[int]) -> Tensor:
            return torch.tensor(numbers, device=device)

        sampled = RareSampled(
            drawn=need.copies,
            flips=whole([one.flips for one in found]),
            ties=whole([one.ties for one in found]),
            subset=ByLevels.of([one.subset for one in found], device),
            stretched=ByLevels.of([one.stretched and one.stretched.product for one in found], device),
            shrunk=whole([one.stretched.shrunk if one.stretched else 0 for one in found]),
            shrunk_drawn=shrunk_copies(need.copies),
            nonfinite=whole([one.nonfinite for one in found]),
            tied=clean.tied,
            passes=whole([clean.passes + spent for spent in passes]),
        )
        return [sampled for _ in needs]

    def _search(self, clean: Clean, point: int) -> Search[RarePoint]:
        """The search of one point; the two ways have independent noise."""
        only = clean.only(torch.tensor([point], device=clean.inputs.device))

        def draws(purpose: str) -> Draw:
            stream = only.stream(self.noise, purpose)
            return lambda count: stream.draw(count)[0].flatten(1)

        return search(draws("rare_subset"), draws("rare_stretched"), self.copies)


@dataclass(frozen=True)
class RarePoint:
    """Sampled flips of one point. `subset` is None where counting was enough, `stretched` where subset simulation found
    no flip."""

    flips: int
    ties: int
    nonfinite: int
    subset: LevelProduct | None = None
    stretched: Stretched | None = None


def search(plain: Draw, for_stretching: Draw, copies: int) -> Search[RarePoint]:
    """Sample the flips of one point with `copies` plain copies, and as many in a level."""
    noise = plain(copies)
    every = yield noise
    nearest = every.amin(dim=1)
    counted = RarePoint(int((nearest <= 0).sum()), int((nearest == 0).sum()), int((nearest == -torch.inf).sum()))
    if counted.flips >= ENOUGH_FLIPS or counted.nonfinite:
        return counted
    # A class that is far in its margin but steep counts as one that is near and flat.
    deviations = every.std(dim=0)
    scales = torch.where(deviations.isfinite() & (deviations > 0), deviations, 1.0)
    by_subset = yield from subset(plain, noise, every, scales)
    if by_subset.nonfinite:
        return replace(counted, nonfinite=by_subset.nonfinite)
    if by_subset.log == -math.inf:
        return replace(counted, subset=by_subset)
    return replace(counted, subset=by_subset, stretched=(yield from stretched(for_stretching, copies)))


def _run(classifier: Classifier, clean: Clean, searches: Sequence[Search[Result]]) -> tuple[list[Result], list[int]]:
    """The results of one search for each point of `clean`, which share passes, and how many passes each took."""
    passes = [0] * len(searches)
    results: dict[int, Result] = {}
    waiting = {point: next(search) for point, search in enumerate(searches)}
    while waiting:
        sizes = [len(noise) for noise in waiting.values()]
        points = torch.tensor(list(waiting), device=clean.inputs.device)
        points = points.repeat_interleave(torch.tensor(sizes, device=points.device))
        margins = _margins(classifier, clean, points, torch.cat(list(waiting.values()))).split(sizes)
        asking, waiting = list(waiting), {}
        for point, every in zip(asking, margins, strict=True):
            passes[point] += len(every)
            try:
                waiting[point] = searches[point].send(every)
            except StopIteration as end:
                results[point] = end.value
    return [results[point] for point in range(len(searches))], passes


def _margins(classifier: Classifier, clean: Clean, points: Tensor, noise: Tensor) -> Tensor:
    """All margins of copies with `noise` `[m, n]` of the points `[m]`, in passes of at most `clean.rows` rows."""
    parts = []
    for rows in torch.arange(len(points), device=points.device).split(clean.rows):
        chosen = points[rows]
        copies = clean.inputs[chosen] + noise[rows].to(clean.inputs).view(-1, *clean.inputs.shape[1:])
        logits, predicted = clean.logits_of(classifier, copies, chosen), clean.predicted[chosen]
        margins = margins_of(logits, predicted).double().scatter(1, predicted[:, None], torch.inf)
        broken = ~logits.isfinite().all(dim=1, keepdim=True)
        parts.append(margins.masked_fill(broken, -torch.inf))
    return torch.cat(parts)
