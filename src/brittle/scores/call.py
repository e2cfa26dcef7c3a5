"""One score of some points in memory, without a run: what calling a score does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from brittle.data.arrays import array_points
from brittle.data.points import Batch
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
    x: Tensor,
    ids: Sequence[object] | None,
    seed: int,
    confidence: float,
) -> Estimate:
    """What `formula` says of every point of `x`, in batches as those of a run.

    Args:
        needs: the measurements that it reads.
        formula: such as `brittle.scores.sound.estimate_of` of a score.
        classifier: the trained model.
        x: `[B, *shape]`, in the declared units.
        ids: one for each point, which keys its noise; its position by default.
        seed: of the noise.
        confidence: of all intervals.

    Raises:
        DataError: `x` holds no points, or values outside the bounds; or the ids are not one for each.
        ModelError: the model fails on them.
        ParameterError: an argument is of another kind, or outside its range.
    """
    check_classifier(classifier)
    check_confidence(confidence)
    check_seed(seed)
    with classifier.evaluating():
        parts = [
            _of_batch(needs, formula, classifier, batch, rows, seed, confidence)
            for batch, rows in _batches(classifier, x, ids)
        ]
    return _joined(parts)


def check_classifier(classifier: object) -> None:
    """Raise unless it is a `brittle.Classifier`.

    Raises:
        ParameterError: it is something else.
    """
    if isinstance(classifier, Classifier):
        _check_network(classifier.model)
    else:
        kind = type(classifier).__name__
        raise ParameterError(
            "classifier", f"expected a brittle.Classifier, found {kind}; wrap it: brittle.Classifier(model)"
        )


def _check_network(model: object) -> None:
    """Raise where what a classifier wraps is a class, or nothing that can be called.

    Raises:
        ParameterError: it is.
    """
    if isinstance(model, type):
        name = model.__name__
        raise ParameterError("classifier", f"the classifier wraps the class {name}; make a network of it: {name}(...)")
    if not callable(model):
        raise ParameterError(
            "classifier",
            f"the classifier wraps {model!r:.60}, of type {type(model).__name__}, and not a network; give a "
            "torch.nn.Module, or a function from inputs to class scores",
        )


def check_seed(seed: object) -> None:
    """Raise unless it is a whole number that seeds the noise.

    Raises:
        ParameterError: it is not.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
        raise ParameterError("seed", f"the seed must be a whole number from 0 to {MOST_SEED}; found {seed!r:.40}")


def _batches(classifier: Classifier, x: Tensor, ids: Sequence[object] | None) -> Iterator[tuple[Batch, int]]:
    """The points in batches of half as many as there are rows in a pass, as a run has them, and these rows."""
    points = array_points(x, ids=ids, bounds=classifier.bounds)
    rows = default_rows(next(iter(points.read(1, 0))).inputs, classifier.device)
    first = 0
    for chunk in points.read(max(1, rows // 2), 0):
        inputs = chunk.inputs
        numbers = range(first, first + len(inputs))
        first += len(inputs)
        fine = (Status.OK,) * len(inputs)
        batch = Batch(
            tuple(numbers),
            tuple(points.ids[numbers.start : numbers.stop]),
            None,
            None,
            inputs,
            fine,
            (None,) * len(inputs),
        )
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
    """The estimate for a batch; inputs that are no numbers are passed over, and keep their place."""
    sound = readable(batch)
    inputs = batch.inputs.clone()
    inputs[~sound] = classifier.bounds.filler(inputs)
    clean = look_for(needs, classifier, inputs, batch.ids, seed, rows, confidence)
    found = formula(take(needs, classifier, clean), confidence, len(inputs))
    found = _without(found, ~clean.finite, Status.NONFINITE_LOGITS)
    return _without(found, ~sound.to(found.status.device), Status.NONFINITE_INPUT)


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
