"""Flip probabilities too small to count: plain copies first, then two methods to sample rare flips that must agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from scipy import special
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.extensions.rare_events.stretched import shrunk_copies, stretch_noise
from brittle.extensions.rare_events.subset import Draw, LevelProduct, Result, Search, simulate_subset
from brittle.intervals import clopper_pearson
from brittle.measure.base import LARGEST_DRAWS, Measurement, NetworkTraits, Passes
from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import margins_of
from brittle.model.classifier import Classifier
from brittle.noise import Noise
from brittle.scores.base import NoiseScore, finish, initial_status, mark

FEWEST_COPIES = 20  # minimum number of copies for levels with a meaning
ENOUGH_FLIPS = 20  # number of flips among the plain copies from which a count suffices


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
            stretched=ByLevels.of([point.stretched for point in points], device),
            shrunk=as_tensor([point.shrunk for point in points]),
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
    """Sampled flips of one point. `subset` is None where a count suffices, `stretched` where either found no flip."""

    flips: int
    ties: int
    nonfinite: int
    subset: LevelProduct | None = None
    stretched: LevelProduct | None = None
    shrunk: int = 0


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
    stretched, shrunk = yield from stretch_noise(for_stretching, copies)
    return replace(counted, subset=by_subset, stretched=stretched, shrunk=shrunk)


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


COPIES = 200  # noisy copies in a level by default
UNSEEN = 0.03  # share by which each level raises the standard error of a product above the spread between its chains


@dataclass(frozen=True)
class RareEvent(NoiseScore):
    """`1 - p_robust = P(argmax z(x + e) != t)` under normal noise, down to 1e-12.

    If at least 20 of `copies` plain noisy copies flip, the value is their share, with its exact interval, and the
    status is `ok`. Otherwise two methods that fail differently, both with large errors, sample the rare flips. *Subset
    simulation* climbs from the plain copies to the flips by levels of the margin, each about a fifth as probable as the
    level before. *Stretched noise* flips often; it is stretched less and less, and keeps copies by their flips alone,
    so that it needs no margin as a guide.

    `coarse`: both agree within their errors; the value is their mean, the interval spans both. Otherwise the value is
    the larger, and the interval goes from 0 to the larger upper end, that by counting included: `unforeseen` if
    stretched or shrunk noise shows flips beyond the interval, `disagree` otherwise, `no_flip` without any flip. No
    number leaves the interval by counting.

    Validity: normal noise. The interval of a number covers the sampling error. It does not cover flips to which no
    margin leads and that few rays from the point meet, or meet only along a small part of their length: tiny balls,
    thin slabs, narrow corners. Only the interval by counting holds for every network.

    Source: S.-K. Au, J. Beck, Prob. Eng. Mech. 16 (2001), for subset simulation; K. Cheng et al., Rare event estimation
    with sequential directional importance sampling, Struct. Saf. 100 (2023), for stretched noise.

    Attributes:
        noise: the noise family, instead of `sigma`; normal.
        copies: plain noisy copies, and copies in each level of both methods, at least 20.

    Raises:
        ParameterError: `sigma` is not a positive finite number, the noise is not normal or has no draws, or a number is
            out of range.
    """

    copies: int = COPIES

    name: ClassVar[str] = "rare_event"
    title = "Rare events"
    cost = "1 + copies where they flip, about 7,000 per sigma at 1e-6"
    reference = "Au, Beck (2001); Cheng et al. (2023)"
    serves = "all"
    explanation = (
        "Flip probabilities that no count reaches, by subset simulation and stretched noise: a number where both "
        "agree, elsewhere an upper bound. Many passes."
    )
    preference = 9
    model = "sampling by levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.noise.normal:
            raise ParameterError(
                f"{self.name} needs normal noise with a known covariance, unlike the family {self.noise.name}; use "
                f"brittle.noise.Gaussian, or monte_carlo for this family"
            )
        RareFlips(self.noise, self.copies)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        return (RareFlips(self.noise, self.copies),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        sampled: RareSampled = measured[self.needs[0]]
        subset, stretched = (_Estimate.of(product, confidence) for product in (sampled.subset, sampled.stretched))
        counted = _count_flips(sampled, confidence)
        # The count may cut off either end of the interval of the mean, so each has half the error.
        count_low, count_high = _count_flips(sampled, (1.0 + confidence) / 2.0)
        highest = torch.maximum(subset.high, stretched.high)
        mean_low = torch.maximum(torch.minimum(subset.low, stretched.low), count_low)
        mean_high, mean = torch.minimum(highest, count_high), _mean(subset, stretched)
        shrunk = clopper_pearson(sampled.shrunk.cpu().numpy(), sampled.shrunk_drawn, confidence)[0]
        unforeseen = torch.from_numpy(shrunk).to(highest) > highest
        difference = (subset.log - stretched.log).nan_to_num(nan=torch.inf).abs()
        close = difference <= _quantile(confidence) * (subset.variance + stretched.variance).sqrt()
        agree = close & ~((mean < mean_low) | (mean > mean_high)) & ~unforeseen

        share, enough = sampled.flips.double() / sampled.drawn, sampled.flips >= ENOUGH_FLIPS
        raw = (product.log.exp().nan_to_num(nan=0.0) for product in (sampled.subset, sampled.stretched))
        largest = torch.maximum(torch.maximum(*raw), share).clamp_max(1.0)
        has_flips = largest > 0
        upper = torch.maximum(counted[1], torch.where(has_flips, highest, 0.0)).clamp_max(1.0)
        value = torch.where(enough, share, torch.where(agree, mean, largest))
        low = torch.where(enough, counted[0], torch.where(agree, mean_low, 0.0))
        high = torch.where(enough, counted[1], torch.where(agree, mean_high, upper))

        status = initial_status(sampled.tied, sampled.nonfinite > 0)
        status = mark(status, sampled.ties > 0, Status.NOISY_TIES)
        for condition, member in (
            (~has_flips, Status.NO_FLIP),
            (agree, Status.COARSE),
            (unforeseen | (stretched.low > subset.high), Status.UNFORESEEN),
            (torch.ones_like(enough), Status.DISAGREE),
        ):
            status = mark(status, ~enough & condition, member)
        evidence = torch.where(enough | ~has_flips, int(Evidence.COUNTED), int(Evidence.SAMPLED))
        detail = _detail(sampled, subset, stretched, status)
        return finish(value, low, high, status, sampled.passes, detail, evidence, counted)


@dataclass(frozen=True)
class _Estimate:
    """A flip probability on the scale of the logarithm, `[B]` each. Chains depend on those of the level before, which
    adds `UNSEEN` per level to their standard error; the logarithm is low by half its variance, which is added."""

    log: Tensor
    variance: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, product: ByLevels, confidence: float) -> _Estimate:
        """Return the estimate of a product of levels with its interval; 0 where the levels did not reach the flips."""
        variance = (1.0 + UNSEEN * product.levels).square() * product.variance.nan_to_num(nan=0.0)
        log = product.log.nan_to_num(nan=-torch.inf) + variance / 2.0
        width = _quantile(confidence) * variance.sqrt()
        return cls(log, variance, torch.exp(log - width), torch.exp(log + width))


def _quantile(confidence: float) -> float:
    return float(special.ndtri((1.0 + confidence) / 2.0))


def _mean(subset: _Estimate, stretched: _Estimate) -> Tensor:
    """Return the mean of both on the scale of the logarithm, weighted by precision, `[B]`."""
    weights = [1.0 / estimate.variance.clamp_min(1e-6) for estimate in (subset, stretched)]
    return ((weights[0] * subset.log + weights[1] * stretched.log) / (weights[0] + weights[1])).exp().clamp_max(1.0)


def _count_flips(sampled: RareSampled, confidence: float) -> tuple[Tensor, Tensor]:
    """Return the exact interval from the plain copies; a tie is a flip at the upper end only."""
    flips, ties = sampled.flips.cpu().numpy(), sampled.ties.cpu().numpy()
    low = clopper_pearson(flips - ties, sampled.drawn, confidence)[0]
    high = clopper_pearson(flips, sampled.drawn, confidence)[1]
    return torch.from_numpy(low).to(sampled.subset.log), torch.from_numpy(high).to(sampled.subset.log)


def _detail(sampled: RareSampled, subset: _Estimate, stretched: _Estimate, status: Tensor) -> tuple[str | None, ...]:
    def describe(code: int, point: int) -> str | None:
        if code == Status.NONFINITE_LOGITS:
            return f"{int(sampled.nonfinite[point])} noisy copies gave NaN or infinite logits"
        if code not in (Status.DISAGREE, Status.UNFORESEEN, Status.COARSE):
            return None
        text = ", ".join(
            f"{name} says [{float(estimate.low[point]):.2g}, {float(estimate.high[point]):.2g}]"
            for name, estimate in (("subset simulation", subset), ("stretched noise", stretched))
        )
        shrunk = int(sampled.shrunk[point])
        return f"{text}; {shrunk} of {sampled.shrunk_drawn} copies with shrunk noise flip" if shrunk else text

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
