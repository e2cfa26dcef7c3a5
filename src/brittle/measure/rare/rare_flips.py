"""What three ways to sample rare flips say of a point: plain copies first, then all where these hardly flip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.measure.base import MOST_DRAWS, Measurement, NetworkTraits, Passes
from brittle.measure.forward import Clean
from brittle.measure.rare.asking import Ask, Search, Seen, Spent, answer
from brittle.measure.rare.importance import Weighted, importance
from brittle.measure.rare.mixture import Covariance
from brittle.measure.rare.stretched import Descent, Stretched, shrunk_copies, stretched
from brittle.measure.rare.subset import Draw, SubsetSimulation, subset
from brittle.measure.rare.tangents import Tangents, nearest_flips
from brittle.model.classifier import Classifier
from brittle.noise import Noise

FEWEST_COPIES = 20
"""Fewer have no level that says anything."""

ENOUGH_FLIPS = 20
"""Flips among the plain copies from which on counting them is enough."""

STARTS = 32
"""Plain copies with the smallest margins, whose gradients are taken."""


@dataclass(frozen=True)
class ByLevels:
    """Flip probabilities that are products over levels, `[B]` each.

    Attributes:
        log: logarithm of the probability, float64; minus infinity where the chains did not get there, NaN where there
            was nothing to follow.
        variance: of that logarithm, between chains.
        levels: how many there were.
    """

    log: Tensor
    variance: Tensor
    levels: Tensor

    @classmethod
    def of(cls, found: Sequence[SubsetSimulation | Descent | None], device: torch.device) -> ByLevels:
        """What was found at each point."""
        logs = [math.nan if each is None else each.log_probability for each in found]
        variances = [math.nan if each is None else each.variance for each in found]
        log, variance = (torch.tensor(each, dtype=torch.float64, device=device) for each in (logs, variances))
        return cls(log, variance, torch.tensor([0 if each is None else each.levels for each in found], device=device))


@dataclass(frozen=True)
class RareSampled:
    """What was sampled at each point, `[B]` each.

    Attributes:
        drawn: plain noisy copies.
        flips: those of them that flip, ties among them.
        ties: those that tie, with the draws of importance sampling that tie.
        kept_ties: those of the plain ones that tie.
        subset: the flip probability by subset simulation.
        stretched: by stretched noise.
        strays: share of the flips of stretched noise where importance sampling expects none.
        surprises: share of the flips that they lead to, at noise that is not stretched, where it expects none.
        shrunk: copies with shrunk noise that flip, of `shrunk_drawn`.
        shrunk_drawn: copies with shrunk noise.
        weighted: the flip probability by importance sampling; 0 where no draw flipped, NaN where there was none.
        weighted_error: its standard error.
        effective: effective number of its draws that flip.
        nonfinite: copies with NaN or infinite logits.
        tied: whether the prediction of the clean input was a tie.
        passes: passes through the network, the clean one included.
    """

    drawn: int
    flips: Tensor
    ties: Tensor
    kept_ties: Tensor
    subset: ByLevels
    stretched: ByLevels
    strays: Tensor
    surprises: Tensor
    shrunk: Tensor
    shrunk_drawn: int
    weighted: Tensor
    weighted_error: Tensor
    effective: Tensor
    nonfinite: Tensor
    tied: Tensor
    passes: Tensor


@dataclass(frozen=True)
class RareFlips(Measurement):
    """Plain noisy copies and, where fewer than `ENOUGH_FLIPS` flip, three ways to sample rare flips.

    Attributes:
        noise: normal noise that says its covariance and has draws.
        copies: plain noisy copies, and copies in each level of subset simulation and of stretched noise.
        weighted: draws of importance sampling.

    Raises:
        ParameterError: a number is out of range.
    """

    noise: Noise
    copies: int
    weighted: int

    needs_gradients: ClassVar[bool] = False
    cost_varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("copies", "weighted"):
            value = getattr(self, name)
            if type(value) is not int or not FEWEST_COPIES <= value <= MOST_DRAWS:
                raise ParameterError(
                    f"{name} must be a whole number between {FEWEST_COPIES} and {MOST_DRAWS}; found {value!r:.40}"
                )

    def cost(self, network: NetworkTraits) -> Passes:
        """What a flip probability of about 1e-6 takes; counting takes `copies`, 1e-12 about twice as much."""
        return Passes(36 * self.copies + self.weighted, 90)

    def memory(self, points: int, network: NetworkTraits) -> int:
        """The noise of the first stretched copies, plain and stretched, and that of importance sampling."""
        return points * network.dimension * (24 * self.copies + 12 * self.weighted)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[RareSampled]:
        """The result of `needs`, which are all alike."""
        need: RareFlips = needs[0]
        with torch.no_grad():
            searches = [need._search(clean, point) for point in range(len(clean.ids))]
            found, spent = answer(classifier, clean, searches)
        return [_together(need, clean, found, spent) for _ in needs]

    def _search(self, clean: Clean, point: int) -> Search[RareFound]:
        """The search of one point."""
        purposes = ("rare_subset", "rare_weighted", "rare_stretched")
        draws = Draws(*(self._draws(clean, point, purpose) for purpose in purposes))

        varies = None if clean.varies is None else clean.varies[point : point + 1]
        noise = self.noise.at(clean.inputs[point : point + 1], varies)

        def covariance(vectors: Tensor) -> Tensor:
            return noise.covariance(vectors) * noise.sigma**2

        return search(draws, covariance, clean.competitors()[point], self.copies, self.weighted)

    def _draws(self, clean: Clean, point: int, purpose: str) -> Draw:
        stream = clean.only(torch.tensor([point], device=clean.inputs.device)).stream(self.noise, purpose)
        return lambda count: stream.draw(count)[0].flatten(1)


@dataclass(frozen=True)
class RareFound:
    """What was sampled at one point.

    Attributes:
        flips: plain copies that flip.
        ties: plain copies that tie.
        nonfinite: copies with NaN or infinite logits.
        subset: by subset simulation; None where counting was enough.
        weighted: by importance sampling; None likewise, and where nothing leads to a flip.
        stretched: by stretched noise; None where subset simulation found no flip.
    """

    flips: int
    ties: int
    nonfinite: int
    subset: SubsetSimulation | None = None
    weighted: Weighted | None = None
    stretched: Stretched | None = None

    @property
    def descent(self) -> Descent | None:
        """Where stretched noise led to; None where nothing was stretched, or no stretched copy flipped."""
        return self.stretched and self.stretched.descent

    def unexpected(self, flipped: Tensor | None) -> float:
        """The share of `flipped` noise `[m, n]` where importance sampling expects no flips; 0 where there is none."""
        if self.weighted is None or flipped is None or not len(flipped):
            return 0.0
        return float(self.weighted.unexpected(flipped).double().mean())


@dataclass(frozen=True)
class Draws:
    """Independent noise of one point.

    Attributes:
        plain: for the plain copies and for subset simulation.
        weighted: for importance sampling.
        stretched: for the copies that are stretched.
    """

    plain: Draw
    weighted: Draw
    stretched: Draw


def search(draws: Draws, covariance: Covariance, competitors: Tensor, copies: int, weighted: int) -> Search[RareFound]:
    """Sample the flips of one point.

    Args:
        draws: noise.
        covariance: of the noise.
        competitors: classes whose nearest flips are looked for.
        copies: plain copies, and copies in a level.
        weighted: draws of importance sampling.
    """
    first = draws.plain(copies)
    seen = yield Ask(first)
    counted = RareFound(int((seen.margins <= 0).sum()), int((seen.margins == 0).sum()), seen.nonfinite)
    if counted.flips >= ENOUGH_FLIPS or counted.nonfinite:
        return counted
    scales = _scales(seen)
    seen = replace(seen, margins=(seen.every / scales).amin(dim=1))
    by_levels = yield from subset(draws.plain, first, seen, scales)
    if by_levels.nonfinite:
        return replace(counted, nonfinite=by_levels.nonfinite)
    nearest = yield from nearest_flips(covariance, scales, competitors, first.shape[1])
    starts = first[seen.margins.argsort(stable=True)[:STARTS]]
    slopes = yield Ask(starts, True, scales)
    near = Tangents.at(starts, slopes, covariance).without_own()
    tangents = Tangents.together((nearest, near, near.means(covariance)))
    by_weights = yield from importance(draws.weighted, covariance, scales, tangents, by_levels.flipped, weighted)
    nonfinite = slopes.nonfinite + (0 if by_weights is None else by_weights.nonfinite)
    counted = replace(counted, nonfinite=nonfinite, subset=by_levels, weighted=by_weights)
    if not len(by_levels.flipped):
        return counted
    return replace(counted, stretched=(yield from stretched(draws.stretched, copies)))


def _scales(seen: Seen) -> Tensor:
    """Standard deviations of the margins over the copies, `[C]`; 1 where there is none."""
    deviations = seen.every.std(dim=0)
    return torch.where(deviations.isfinite() & (deviations > 0), deviations, 1.0)


def _together(need: RareFlips, clean: Clean, found: Sequence[RareFound], spent: Sequence[Spent]) -> RareSampled:
    """What was found at all points of a batch."""
    device = clean.logits.device

    def numbers(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=device)

    def whole(values: list[int]) -> Tensor:
        return torch.tensor(values, device=device)

    weighted = [Estimated.of(each.weighted) for each in found]
    return RareSampled(
        drawn=need.copies,
        flips=whole([each.flips for each in found]),
        ties=whole([each.ties + (each.weighted.ties if each.weighted else 0) for each in found]),
        kept_ties=whole([each.ties for each in found]),
        subset=ByLevels.of([each.subset for each in found], device),
        stretched=ByLevels.of([each.descent for each in found], device),
        strays=numbers([each.unexpected(each.stretched and each.stretched.flipped) for each in found]),
        surprises=numbers([each.unexpected(each.descent and each.descent.flipped) for each in found]),
        shrunk=whole([each.stretched.shrunk if each.stretched else 0 for each in found]),
        shrunk_drawn=shrunk_copies(need.copies),
        weighted=numbers([each.value for each in weighted]),
        weighted_error=numbers([each.error for each in weighted]),
        effective=numbers([each.effective for each in weighted]),
        nonfinite=whole([each.nonfinite for each in found]),
        tied=clean.tied,
        passes=whole([clean.passes + each.forward + each.backward for each in spent]),
    )


@dataclass(frozen=True)
class Estimated:
    """An estimate of importance sampling.

    Attributes:
        value: mean of the weights.
        error: its standard error.
        effective: `(sum w)^2 / sum w^2`.
    """

    value: float
    error: float
    effective: float

    @classmethod
    def of(cls, weighted: Weighted | None) -> Estimated:
        """The estimate of some draws; NaN without them."""
        if weighted is None:
            return cls(math.nan, math.nan, 0.0)
        weights = weighted.weights
        total, squares = float(weights.sum()), float(weights.square().sum())
        effective = total**2 / squares if squares > 0 else 0.0
        return cls(total / len(weights), float(weights.std()) / len(weights) ** 0.5, effective)
