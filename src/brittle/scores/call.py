"""One score of some points in memory, without a run: what calling a score does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from brittle.data.arrays import array_points
from brittle.data.points import Points
from brittle.data.values import check_values
from brittle.errors import ParameterError
from brittle.estimate import Estimate
from brittle.intervals import check_confidence
from brittle.measure.forward import default_rows
from brittle.model.classifier import Classifier
from brittle.scores.evaluate import evaluate
from brittle.scores.sound import ScoreLike, check_score, check_serves

MOST_SEED = 2**63 - 1
"""The largest seed of noise."""


def call(
    score: ScoreLike,
    classifier: Classifier,
    x: Tensor | Points,
    ids: Sequence[object] | None,
    extra_inputs: Mapping[str, Tensor | np.ndarray] | None,
    mask: str | Tensor | np.ndarray | None,
    seed: int,
    confidence: float,
) -> Estimate:
    """What a score says of every point of `x`, in batches as those of a run.

    Arguments and errors are those of `Score.__call__`.
    """
    check_score(score)
    check_classifier(classifier)
    check_serves(score, classifier.decision)
    check_confidence(confidence)
    check_seed(seed)
    if not isinstance(x, Points):
        x = array_points(x, ids=ids, bounds=classifier.bounds, extra_inputs=extra_inputs, mask=mask)
    elif given := [
        name for name, one in (("ids", ids), ("extra_inputs", extra_inputs), ("mask", mask)) if one is not None
    ]:
        raise ParameterError(f"the points have their own; leave {given[0]} out, or give the inputs as a tensor")
    classifier.look_up(x.class_names)
    rows = default_rows(next(iter(x.batches(1, 0, 1))).inputs, classifier.device)
    parts: list[Estimate] = []
    with classifier.evaluating():
        for batch in x.batches(max(1, rows // 2)):
            check_values(batch, classifier.bounds)
            parts += evaluate(classifier, batch, [score], seed, rows, confidence).estimates
    return concatenate(parts)


def check_classifier(classifier: object) -> None:
    """Raise unless it is a `brittle.Classifier` of something that can be called.

    Raises:
        ParameterError: it is something else.
    """
    if not isinstance(classifier, Classifier):
        kind = type(classifier).__name__
        raise ParameterError(f"expected a brittle.Classifier, found {kind}; wrap it: brittle.Classifier(model)")
    if isinstance(classifier.model, type) or not callable(classifier.model):
        raise ParameterError(
            f"the classifier wraps {classifier.model!r:.60}, and not a network; give a torch.nn.Module, or a function "
            f"from inputs to class scores",
        )


def check_seed(seed: object) -> None:
    """Raise unless it is a whole number that seeds the noise.

    Raises:
        ParameterError: it is not.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
        raise ParameterError(f"the seed must be a whole number from 0 to {MOST_SEED}; found {seed!r:.40}")


def concatenate(parts: Sequence[Estimate]) -> Estimate:
    """The estimates of several batches as one; where some say no evidence, as of no point measured, it is 0."""
    counts = any(part.counted is not None for part in parts)
    evidence = any(part.evidence is not None for part in parts)
    full = [
        replace(
            part,
            evidence=torch.zeros_like(part.status) if evidence and part.evidence is None else part.evidence,
            counted=(part.low, part.high) if counts and part.counted is None else part.counted,
        )
        for part in parts
    ]
    names = ("value", "low", "high", "status", "passes")
    value, low, high, status, passes = (torch.cat([getattr(part, name) for part in full]) for name in names)
    detail = tuple(text for part in full for text in part.detail or [None] * len(part.value))
    return Estimate(
        value,
        low,
        high,
        status,
        passes,
        detail if any(detail) else None,
        torch.cat([part.evidence for part in full if part.evidence is not None]) if evidence else None,
        tuple(torch.cat(ends) for ends in zip(*(part.counted for part in full if part.counted), strict=True))  # type: ignore[arg-type]
        if counts
        else None,
    )
