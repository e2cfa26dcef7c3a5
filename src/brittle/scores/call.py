"""One score of some points in memory, without a run: what calling a score does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.data.arrays import array_points
from brittle.data.points import Batch, Points
from brittle.data.values import check_values, readable
from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status
from brittle.intervals import check_confidence
from brittle.measure.base import Measurement, look_for, take
from brittle.measure.forward import default_rows
from brittle.model.classifier import Classifier

MOST_SEED = 2**63 - 1
"""The largest seed of noise."""

Formula = Callable[[Mapping[Measurement, Any], float, int], Estimate]
"""From what was measured, the confidence of the intervals and the number of points, to an estimate."""


def apply(
    needs: Sequence[Measurement],
    formula: Formula,
    classifier: Classifier,
    data: Points,
    seed: int,
    confidence: float,
) -> Estimate:
    """What `formula` says of every point of `data`, in batches as those of a run.

    Args:
        needs: the measurements that it reads.
        formula: such as `brittle.scores.sound.estimate_of` of a score.
        classifier: the trained model.
        data: the points, from `called_with`.
        seed: of the noise.
        confidence: of all intervals.

    Raises:
        DataError: values lie outside the bounds.
        ModelError: the model fails on them.
        ParameterError: an argument is of another kind, or outside its range.
    """
    check_confidence(confidence)
    check_seed(seed)
    classifier.look_up(data.class_names)
    with classifier.evaluating():
        parts = [
            _of_batch(needs, formula, classifier, batch, rows, seed, confidence)
            for batch, rows in _batches(classifier, data)
        ]
    return _joined(parts)


def called_with(
    classifier: object,
    x: Tensor | Points,
    ids: Sequence[object] | None,
    beside: Mapping[str, Tensor | np.ndarray] | None,
    mask: str | Tensor | np.ndarray | None,
) -> Points:
    """The points that a score, or a search, is called with.

    Args:
        classifier: what is to be scored.
        x: `[B, *shape]`, in the declared units; or points, which have their own ids and tensors.
        ids: one for each point, which keys its noise; its position by default.
        beside: other tensors of the points, as `brittle.data.array_points` takes them.
        mask: which coordinates vary, likewise.

    Raises:
        DataError: `x` holds no points, or the ids or other tensors are not one for each.
        ParameterError: the classifier is none; or points are given with ids, other tensors or a mask of their own.
    """
    check_classifier(classifier)
    assert isinstance(classifier, Classifier)
    if not isinstance(x, Points):
        return array_points(x, ids=ids, bounds=classifier.bounds, extra_inputs=beside, mask=mask)
    for name, given in (("ids", ids), ("beside", beside), ("mask", mask)):
        if given is not None:
            raise ParameterError(f"the points have their own; leave {name} out, or give the inputs as a tensor")
    return x


def check_classifier(classifier: object) -> None:
    """Raise unless it is a `brittle.Classifier`.

    Raises:
        ParameterError: it is something else.
    """
    if isinstance(classifier, Classifier):
        _check_network(classifier.model)
    else:
        kind = type(classifier).__name__
        raise ParameterError(f"expected a brittle.Classifier, found {kind}; wrap it: brittle.Classifier(model)")


def _check_network(model: object) -> None:
    """Raise where what a classifier wraps is a class, or nothing that can be called.

    Raises:
        ParameterError: it is.
    """
    if isinstance(model, type):
        name = model.__name__
        raise ParameterError(f"the classifier wraps the class {name}; make a network of it: {name}(...)")
    if not callable(model):
        raise ParameterError(
            f"the classifier wraps {model!r:.60}, of type {type(model).__name__}, and not a network; give a "
            "torch.nn.Module, or a function from inputs to class scores",
        )


def check_seed(seed: object) -> None:
    """Raise unless it is a whole number that seeds the noise.

    Raises:
        ParameterError: it is not.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
        raise ParameterError(f"the seed must be a whole number from 0 to {MOST_SEED}; found {seed!r:.40}")


def _batches(classifier: Classifier, points: Points) -> Iterator[tuple[Batch, int]]:
    """The points in batches of half as many as there are rows in a pass, as a run has them, and these rows."""
    rows = default_rows(next(iter(points.batches(1, 0, 1))).inputs, classifier.device)
    for batch in points.batches(max(1, rows // 2)):
        check_values(batch, classifier.bounds)
        yield batch, rows


def _of_batch(
    needs: Sequence[Measurement],
    formula: Formula,
    classifier: Classifier,
    batch: Batch,
    rows: int,
    seed: int,
    confidence: float,
) -> Estimate:
    """The estimate for a batch; inputs that are no numbers, or were not read, are passed over, and keep their place."""
    sound = readable(batch)
    inputs = batch.inputs.clone()
    inputs[~sound] = classifier.bounds.filler(inputs)
    clean = look_for(needs, classifier, inputs, batch.ids, seed, rows, confidence, batch.extra_inputs)
    found = formula(take(needs, classifier, clean), confidence, len(inputs))
    found = _without(found, ~clean.finite, Status.NONFINITE_LOGITS)
    found = _without(found, ~sound.to(found.status.device), Status.NONFINITE_INPUT)
    for status in {own for own in batch.status if not own.has_value}:
        there = torch.tensor([own is status for own in batch.status], device=found.status.device)
        found = _without(found, there, status)
    return found


def _without(found: Estimate, where: Tensor, status: Status) -> Estimate:
    """`found` with this status, which comes with no number and no passes, where `where` holds."""
    if not bool(where.any()):
        return found
    missing = torch.tensor(torch.nan, dtype=torch.float64, device=found.value.device)
    value, low, high = (torch.where(where, missing, one) for one in (found.value, found.low, found.high))
    counted = found.counted and tuple(torch.where(where, missing, one) for one in found.counted)
    return replace(
        found,
        value=value,
        low=low,
        high=high,
        status=torch.where(where, int(status), found.status),
        passes=torch.where(where, 0, found.passes),
        counted=counted,
    )


def _joined(parts: Sequence[Estimate]) -> Estimate:
    """The estimates of several batches as one."""
    value, low, high, status, passes = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("value", "low", "high", "status", "passes")
    )
    detail = sum((part.detail or (None,) * len(part.value) for part in parts), ())
    evidence = [part.evidence for part in parts if part.evidence is not None]
    counted = [part.counted for part in parts if part.counted is not None]
    return Estimate(
        value,
        low,
        high,
        status,
        passes,
        detail if any(detail) else None,
        torch.cat(evidence) if evidence else None,
        (torch.cat([low for low, _ in counted]), torch.cat([high for _, high in counted])) if counted else None,
    )
