"""Do the chosen scores see a decision boundary that is known to be there?

Around some of the user's own points the classifier is replaced by one that agrees with it, but for one class: beyond a
half-space at a known distance, in a random direction, that class wins. A distance must find that boundary, and a flip
probability must count what lies beyond it: `Phi(-d / sigma)` for normal noise, at most the model's own flips on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.doctor.subject import Subject
from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status, score_label
from brittle.measure import Clean, take
from brittle.measure.forward import look
from brittle.model.aside import Aside
from brittle.model.bounds import Bounds
from brittle.model.classifier import Classifier
from brittle.norms import COUNT, DUAL_ORDER
from brittle.scores import (
    MMSE,
    FirstOrderMargin,
    InputMargin,
    Moments,
    MonteCarlo,
    NoiseScore,
    Score,
    Shrinkage,
    Taylor,
)
from brittle.scores.evaluate import withhold

PLANTS = 8
"""Points around which boundaries are planted."""

CONFIDENCE = 1 - 1e-4
"""Confidence of the intervals that are compared, so that eight comparisons fail by chance once in 1,250 times."""

DEPTH = 0.9
"""The planted class starts so far below the predicted one, as a share of the point's own margin."""

FRACTIONS = (0.1, 0.25, 0.5, 0.75)
"""Planted distances, as shares of the distance that the score gives the point without a plant."""

QUANTILES = (0.25, 0.5, 1.0, 1.5, 2.0)
"""Planted distances, in standard deviations of the noise."""

CLEARLY = 1.5
"""A boundary of the model itself so many times as far as the plant is not taken for it."""

DISTANCES: dict[type[Score], float] = {InputMargin: 0.05, FirstOrderMargin: 1e-3}
"""Relative error of a planted distance that is let pass, by kind of score."""

PROBABILITIES: dict[type[NoiseScore], float] = {
    MonteCarlo: 1e-3,
    Taylor: 1e-3,
    Shrinkage: 0.02,
    Moments: 0.02,
    MMSE: 0.02,
}
"""Error of a planted probability beyond the score's own interval that is let pass, by kind of score."""


@dataclass(frozen=True)
class PlantResult:
    """What a score made of one planted boundary.

    Attributes:
        score: the score with its parameters.
        row: row of the point.
        planted: what was planted, a distance or a probability.
        least: the least value that is right.
        most: the largest value that is right.
        low: lower end of what was found.
        found: what was found; NaN where there is no number.
        high: upper end of it.
        status: how the evaluation ended.
    """

    score: str
    row: int
    planted: float
    least: float
    most: float
    low: float
    found: float
    high: float
    status: str

    @property
    def right(self) -> bool:
        """Whether what was found holds a value that is right; a missing number does not."""
        return self.low <= self.most and self.high >= self.least


def can_be_planted(score: Score) -> bool:
    """Whether what a score must say of a planted boundary is known."""
    if any(need.uses_features or need.reads_layers for need in score.needs) or getattr(score, "norm", None) == COUNT:
        return False
    normal = not isinstance(score, NoiseScore) or (score.noise.name == "gaussian" and not getattr(score, "clip", False))
    return type(score) in {*DISTANCES, *PROBABILITIES} and normal


def plant(subject: Subject) -> Iterator[PlantResult]:
    """Plant boundaries for every chosen score of which it is known what it must say.

    Raises:
        ParameterError: there is no such score among the chosen ones, or no point with a prediction that is no tie.
    """
    if not subject.decision.of_classes:
        raise ParameterError(f"boundaries are planted between classes; {subject.decision.label} decides something else")
    scores = _largest_budgets([score for score in subject.scores if can_be_planted(score)])
    if not scores:
        known = ", ".join(kind.name for kind in (*DISTANCES, *PROBABILITIES))
        raise ParameterError(f"none of the chosen scores can be checked with planted boundaries; choose among {known}")
    inputs = subject.inputs[:PLANTS]
    aside = None if subject.aside is None else subject.aside.only(torch.arange(len(inputs)))
    clean = _look(subject.classifier, inputs, subject.seed, aside)
    rows = (clean.finite & ~clean.tied).nonzero().flatten().tolist()
    if not rows:
        raise ParameterError(f"none of the first {len(clean.inputs)} points has a prediction that is no tie")
    for score in scores:
        own = _estimate(score, subject.classifier, clean)
        for number, row in enumerate(rows):
            yield _plant(subject, score, own, clean, row, number)


def _largest_budgets(scores: Sequence[Score]) -> list[Score]:
    """Of scores that differ in their draws alone the one with most: smaller budgets are its first draws."""
    kept: dict[str, Score] = {}
    for score in scores:
        others = {name: value for name, value in score.parameters.items() if name != "draws"}
        key = score_label(score.name, others)
        before = kept.get(key)
        if before is None or getattr(score, "draws", 0) >= getattr(before, "draws", 0):
            kept[key] = score
    return list(kept.values())


def _plant(subject: Subject, score: Score, own: Estimate, clean: Clean, row: int, number: int) -> PlantResult:
    """What `score` says of one boundary around the point at `row`."""
    at = clean.only(torch.tensor([row], device=clean.inputs.device))
    direction = _inward(at, subject.classifier.bounds, number)
    before = float(own.value[row])
    upper = float((own.high if isinstance(score, MonteCarlo) else own.value)[row])
    if type(score) in DISTANCES:
        planted, shrink = _distance(score, before, number), _per_length(score, direction)
        length = planted / shrink
    else:
        sigma = score.noise.sigma  # type: ignore[attr-defined]
        length = QUANTILES[number % len(QUANTILES)] * sigma
        planted = float(torch.special.ndtr(torch.tensor(-length / sigma, dtype=torch.float64)))
    classifier = planted_classifier(subject.classifier, at, direction, length)
    found = _estimate(score, classifier, _look(classifier, at.inputs, subject.seed, at.aside, at.ids))
    value, low, high = (float(part[0]) for part in (found.value, found.low, found.high))
    if type(score) in DISTANCES:
        slack = DISTANCES[type(score)]
        nearer = not before > CLEARLY * planted
        least, most, low, high = (0.0 if nearer else planted * (1 - slack)), planted * (1 + slack), value, value
    else:
        slack = PROBABILITIES[type(score)]  # type: ignore[index]
        least, most = planted - slack, min(1.0, planted + (upper if upper == upper else 1.0)) + slack
        low, high = (value if end != end else end for end in (low, high))  # the linear model has no interval
    status = Status(int(found.status[0])).slug
    return PlantResult(score.label, subject.batch.rows[row], planted, least, most, low, value, high, status)


def planted_classifier(base: Classifier, point: Clean, direction: Tensor, length: float) -> Classifier:
    """`base` with the least likely class of `point` winning beyond `length` from it in `direction`.

    Its logit is that of the predicted class plus `slope (u^T (x - x0) - d)`: linear, so the boundary is a hyperplane.

    Args:
        base: the classifier.
        point: one point, `x0`.
        direction: `u`, of length 1, `[*shape]`.
        length: `d`, in input units.
    """
    top = point.logits[0].topk(2).values
    slope = DEPTH * float(top[0] - top[1]) / length
    own, other = int(point.predicted[0]), int(point.logits[0].argmin())

    def model(inputs: Tensor) -> Tensor:
        logits = base(inputs)
        along = ((inputs - point.inputs) * direction).flatten(1).sum(dim=1)
        moved = logits[:, own] + slope * (along - length)
        columns = [moved if number == other else logits[:, number] for number in range(logits.shape[1])]
        return torch.stack(columns, dim=1)

    return Classifier(model, base.bounds, device=base.device)


def _inward(at: Clean, bounds: Bounds, number: int) -> Tensor:
    """A random direction of length 1 from a point towards the farther bound of every coordinate that varies."""
    generator, point = torch.Generator().manual_seed(number), at.inputs[0]
    sizes = torch.randn(point.shape, generator=generator, dtype=torch.float64).abs()
    sizes = sizes if at.varies is None else sizes * at.varies[0].to(sizes)
    low, high = bounds.ends(point)
    signs = torch.where(point < (low + high) / 2, 1.0, -1.0)  # of two infinite ends neither is farther
    return (sizes / sizes.norm()).to(point) * signs.to(point)


def _distance(score: Score, before: float, number: int) -> float:
    """A distance to plant for a score that gives the point `before` without a plant."""
    size = before if 0 < before < float("inf") else 1.0
    return FRACTIONS[number % len(FRACTIONS)] * size


def _per_length(score: Score, direction: Tensor) -> float:
    """Distance to a hyperplane in the norm of the score, for one of L2 distance 1: one over the dual norm of `u`."""
    order = DUAL_ORDER[score.norm]  # type: ignore[attr-defined]
    return 1.0 / float(direction.double().flatten().norm(p=order))


def _look(
    classifier: Classifier, inputs: Tensor, seed: int, aside: Aside | None, ids: tuple[str, ...] | None = None
) -> Clean:
    return look(classifier, inputs, ids or [f"planted {row}" for row in range(len(inputs))], seed, aside=aside)


def _estimate(score: Score, classifier: Classifier, clean: Clean) -> Estimate:
    return withhold(score.estimate(take(score.needs, classifier, clean), CONFIDENCE))
