"""What was found out about a batch, as rows of the tables that a run leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from brittle.data import Batch
from brittle.data.images import is_image, thumbnails
from brittle.decisions import Decision
from brittle.estimate import Estimate, Evidence, Status, parameters_json
from brittle.model.bounds import Bounds
from brittle.run.evaluated import Evaluated
from brittle.scores import Score
from brittle.store.inputs import keeps, pack
from brittle.store.schemas import COUNTEREXAMPLES, POINTS, SCORES


def rows_of(
    found: Evaluated, scores: Sequence[Score], decision: Decision, dtype: torch.dtype | None
) -> tuple[pa.Table, pa.Table]:
    """The rows of a batch: one per point, and one per point and score, point by point.

    `dtype` is what the network computes in, as `Classifier.dtype` says it.
    """
    batch = found.batch
    labels = _label_codes(batch, decision)
    points = {
        "point": batch.ids,
        "row": batch.rows,
        "name": batch.names or [None] * len(batch),
        "label": labels,
        "predicted": found.predicted,
        "decided": found.decided,
        "target": [None] * len(batch) if batch.targets is None else decision.target_words(batch.targets),
        "correct": found.correct,
        "status": [status.slug for status in found.status],
        "detail": found.detail,
        "passes": found.passes,
        "image": batch.images or [None] * len(batch),
        "input": _kept(batch, batch.inputs, dtype, [one.has_value for one in batch.status]),
    }
    rows: list[dict[str, Any]] = []
    columns = [cells(estimate) for estimate in found.estimates]
    measured = set(found.measured)
    named = [(score.name, parameters_json(score.parameters)) for score in scores]
    for position, point in enumerate(batch.ids):
        for number, (name, parameters) in enumerate(named):
            own = {"point": point, "score": name, "parameters": parameters}
            if position in measured:
                rows.append(own | {key: values[position] for key, values in columns[number].items()})
            else:
                failed = {"status": found.status[position].slug, "detail": found.detail[position], "passes": 0}
                rows.append(own | failed)
    return pa.Table.from_pydict(points, schema=POINTS), pa.Table.from_pylist(rows, schema=SCORES)


def _label_codes(batch: Batch, decision: Decision) -> Sequence[int | None]:
    """What the data say is right for each point, as the number that tables hold; None where they do not say it."""
    if batch.targets is not None:
        return decision.target_codes(batch.targets)
    return batch.labels or [None] * len(batch)


def counterexamples_of(
    found: Evaluated, scores: Sequence[Score], bounds: Bounds, dtype: torch.dtype | None
) -> pa.Table:
    """A row for every point and score that found an input with another prediction; `dtype` as in `rows_of`."""
    rows: list[dict[str, Any]] = []
    for score, nearest, there in zip(scores, found.nearest, found.there, strict=True):
        if nearest is None or there is None:
            continue
        known = there.positions
        inputs, points = found.batch.inputs[known], nearest.points[known].cpu()
        columns = {
            "point": [found.batch.ids[position] for position in known],
            "predicted": there.codes,
            "decided": there.words,
            "image": thumbnails(points, bounds) or [None] * len(known),
            "difference": thumbnails(_magnified(points - inputs, bounds), bounds) or [None] * len(known),
            "input": _kept(found.batch, points, dtype, points.flatten(1).isfinite().all(1).tolist()),
        }
        named = {"score": score.name, "parameters": parameters_json(score.parameters)}
        rows += [named | dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return pa.Table.from_pylist(rows, schema=COUNTEREXAMPLES)


def _kept(batch: Batch, inputs: Tensor, dtype: torch.dtype | None, wanted: Sequence[bool]) -> Sequence[bytes | None]:
    """Inputs `[N, *shape]` of a batch as the network gets them, in cells; None where they are images, large, unwanted.

    They lose no digit: single precision holds what is narrower.
    """
    shape = tuple(inputs.shape[1:])
    if is_image(shape) or not keeps(shape):
        return [None] * len(inputs)
    seen = inputs.to("cpu", dtype or inputs.dtype)
    cells = pack((seen if seen.dtype == torch.float64 else seen.float()).numpy())
    return [cell if keep else None for cell, keep in zip(cells, wanted, strict=True)]


def _magnified(difference: Tensor, bounds: Bounds) -> Tensor:
    """Differences `[N, *shape]` around the middle of the bounds, the largest of each as far as it can go."""
    low, high = bounds.envelope
    largest = difference.flatten(1).abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny)
    return (low + high) / 2 + difference * ((high - low) / 2 / largest).view(-1, *[1] * (difference.dim() - 1))


def cells(estimate: Estimate) -> dict[str, list[Any]]:
    """What the table holds of an estimate, a list over its points for each column."""
    status = [Status(code) for code in estimate.status.tolist()]

    def numbers(values: Tensor) -> list[float | None]:
        numbered = zip(values.tolist(), status, strict=True)
        return [value if state.has_value and not math.isnan(value) else None for value, state in numbered]

    return {
        "value": numbers(estimate.value),
        "low": numbers(estimate.low),
        "high": numbers(estimate.high),
        "status": [state.slug for state in status],
        "detail": list(estimate.detail or [None] * len(status)),
        "passes": estimate.passes.tolist(),
    } | _evidence(estimate, status)


def _evidence(estimate: Estimate, status: Sequence[Status]) -> dict[str, list[Any]]:
    """What stands behind the numbers of a flip probability; nothing for other scores."""
    valued = [state.has_value for state in status]
    columns: dict[str, list[Any]] = {}
    if estimate.evidence is not None:
        slugs = [Evidence(code).slug for code in estimate.evidence.tolist()]
        columns["evidence"] = [slug if known else None for slug, known in zip(slugs, valued, strict=True)]
    if estimate.counted is not None:
        for name, end in zip(("counted_low", "counted_high"), estimate.counted, strict=True):
            columns[name] = [number if known else None for number, known in zip(end.tolist(), valued, strict=True)]
    return columns
