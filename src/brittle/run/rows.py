"""A batch that was evaluated, as rows of the tables that a run leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from brittle.data.images import is_image, thumbnails
from brittle.estimate import Estimate, Evidence, Status, parameters_json
from brittle.model.bounds import Bounds
from brittle.model.classifier import Classifier
from brittle.scores import Score
from brittle.scores.evaluate import Evaluated
from brittle.store.schemas import COUNTEREXAMPLES, POINTS, SCORES, keeps, pack

_STATUS = {int(status): status for status in Status}
"""The members by their numbers: `Status(number)` takes far longer, once a point."""


def rows_of(found: Evaluated, scores: Sequence[Score], classifier: Classifier) -> dict[str, pa.Table]:
    """The rows of a batch, by the kinds of shard file that hold them."""
    return {
        "points": _points(found, classifier),
        "scores": _scores(found, scores, classifier),
        "counterexamples": _counterexamples(found, scores, classifier),
    }


def _points(found: Evaluated, classifier: Classifier) -> pa.Table:
    batch, decision = found.batch, classifier.decision
    unknown: Sequence[Any] = [None] * len(batch)
    columns = {
        "point": batch.ids,
        "row": batch.rows,
        "name": batch.names or unknown,
        "label": batch.labels or unknown if batch.targets is None else decision.target_codes(batch.targets),
        "predicted": found.predicted,
        "decided": found.decided,
        "target": unknown if batch.targets is None else decision.target_words(batch.targets),
        "correct": found.correct,
        "status": [status.slug for status in found.status],
        "detail": found.detail,
        "passes": found.passes,
        "image": batch.images or unknown,
        "input": _packed(batch.inputs, classifier.dtype, [one.has_value for one in batch.status]),
    }
    return pa.Table.from_pydict(columns, schema=POINTS)


def _scores(found: Evaluated, scores: Sequence[Score], classifier: Classifier) -> pa.Table:
    count, by_class = len(found.batch), classifier.decision.of_classes
    unknown: list[Any] = [None] * count
    cells = [
        {"score": [score.name] * count, "parameters": [parameters_json(score.parameters)] * count}
        | _cells(estimate, by_class)
        for score, estimate in zip(scores, found.estimates, strict=True)
    ]
    columns = {
        key: list(chain.from_iterable(zip(*(own.get(key, unknown) for own in cells), strict=True)))
        for key in SCORES.names[1:]
    }
    return pa.Table.from_pydict({"point": [one for one in found.batch.ids for _ in scores]} | columns, schema=SCORES)


def _counterexamples(found: Evaluated, scores: Sequence[Score], classifier: Classifier) -> pa.Table:
    """A row for every point and score that found an input with another prediction."""
    rows: list[dict[str, Any]] = []
    bounds = classifier.bounds
    for score, other in zip(scores, found.counterexamples, strict=True):
        if other is None:
            continue
        inputs = other.inputs.cpu()
        difference = _magnified(inputs - found.batch.inputs[other.positions], bounds)
        columns = {
            "point": [found.batch.ids[position] for position in other.positions],
            "predicted": other.codes,
            "decided": other.words,
            "image": thumbnails(inputs, bounds) or [None] * len(inputs),
            "difference": thumbnails(difference, bounds) or [None] * len(inputs),
            "input": _packed(inputs, classifier.dtype, inputs.flatten(1).isfinite().all(1).tolist()),
        }
        named = {"score": score.name, "parameters": parameters_json(score.parameters)}
        rows += [named | dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return pa.Table.from_pylist(rows, schema=COUNTEREXAMPLES)


def _packed(inputs: Tensor, dtype: torch.dtype | None, wanted: Sequence[bool]) -> Sequence[bytes | None]:
    """Inputs `[N, *shape]` as a network of `dtype` gets them, in cells; None where they are images, large, unwanted.
    They lose no digit: single precision holds what is narrower."""
    shape = tuple(inputs.shape[1:])
    if is_image(shape) or not keeps(shape):
        return [None] * len(inputs)
    seen = inputs.to("cpu", dtype or inputs.dtype)
    packed = pack((seen if seen.dtype == torch.float64 else seen.float()).numpy())
    return [cell if keep else None for cell, keep in zip(packed, wanted, strict=True)]


def _magnified(difference: Tensor, bounds: Bounds) -> Tensor:
    """Differences `[N, *shape]` around the middle of the bounds, the largest of each as far as it can go."""
    low, high = bounds.envelope
    largest = difference.flatten(1).abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny)
    return (low + high) / 2 + difference * ((high - low) / 2 / largest).view(-1, *[1] * (difference.dim() - 1))


def _cells(estimate: Estimate, by_class: bool) -> dict[str, list[Any]]:
    """What the table holds of an estimate, a list over its points for each column; NaN is no number there. Votes are
    those for classes, where the decision is one."""
    status = [_STATUS[code] for code in estimate.status.tolist()]
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    if estimate.counted is not None:
        numbers |= dict(zip(("counted_low", "counted_high"), estimate.counted, strict=True))
    columns: dict[str, list[Any]] = {
        name: [None if math.isnan(number) else number for number in values.tolist()] for name, values in numbers.items()
    }
    columns |= {
        "status": [state.slug for state in status],
        "detail": list(estimate.detail or [None] * len(status)),
        "passes": estimate.passes.tolist(),
    }
    if estimate.evidence is not None:
        known = zip(estimate.evidence.tolist(), status, strict=True)
        columns["evidence"] = [Evidence(code).slug if state.has_value else None for code, state in known]
    if estimate.votes is not None and by_class:
        columns["votes"] = [
            (cell or None) if state.has_value else None for cell, state in zip(estimate.votes, status, strict=True)
        ]
    return columns
