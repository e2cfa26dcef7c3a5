"""A run: examine, measure each point once, derive every score, write rows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from brittle import doctor
from brittle.classifier import Classifier
from brittle.data import Batch, Points, array_points
from brittle.data.images import thumbnails
from brittle.errors import DataError, ParameterError
from brittle.estimate import Estimate, Status
from brittle.intervals import check_confidence
from brittle.measure import Clean, Curved, Measurement, NearestPoint, take
from brittle.measure.forward import default_rows, look
from brittle.record import FIRST_ROWS, Record
from brittle.scores import Score
from brittle.table import COUNTEREXAMPLES, POINTS, SCORES, RunWriter, Table, parameters_json

CONFIDENCE = 0.99
"""Confidence of all intervals of a run unless told."""

SHARD = 256
"""Points in a shard of the run folder."""

MOST_FAILURES = FIRST_ROWS // 100
"""A run stops when more than this many of its first rows get no number."""

MOST_SEED = 2**63 - 1

Progress = Callable[[int, int, int], None]
"""Called with the points done, all points, and the passes through the network so far."""


def score(
    classifier: Classifier,
    data: Points | tuple[Any, Any] | Tensor,
    scores: Sequence[Score],
    *,
    seed: int = 0,
    batch_size: int | None = None,
    confidence: float = CONFIDENCE,
    out: str | os.PathLike[str] | None = None,
    expected_accuracy: float | None = None,
    progress: Progress | None = None,
    command: Sequence[str] | None = None,
) -> Table:
    """Score every point of `data` by every score of `scores`.

    Measurements that several scores need are taken once. The noise of a point is keyed by (seed, point id), so its
    scores do not depend on the batch size or on the other points, except as a network rounds differently in another
    batch (attacks can amplify that, see `docs/attacks.md`).

    Args:
        classifier: the trained model.
        data: `(x, y)` with `x` `[N, *shape]` in the declared units and `y` `[N]` or None; `x` alone; or points from
            `brittle.data.open_points`.
        scores: what to compute; each at most once, told apart by name and parameters.
        seed: seed of the noise.
        batch_size: most rows in one pass through the network; by default 64 on a CPU and 512 elsewhere, fewer for
            large inputs.
        confidence: of all intervals in the table.
        out: folder to write the run to, shard by shard; None keeps it in memory.
        expected_accuracy: stop when the accuracy on the first labelled points is surely below.
        progress: called after every batch.
        command: how the run was started, for the record.

    Returns:
        the table.

    Raises:
        DataError: the data do not fit the declaration, or too many of the first rows get no number.
        ModelError: the model cannot be scored as it stands.
        ParameterError: a parameter is outside its range.
        StorageError: `out` holds a run or cannot be written.
    """
    started = time.monotonic()
    _check_kinds(classifier, scores)
    points = _as_points(data, classifier.bounds)
    _check_parameters(scores, seed, batch_size, confidence)
    head = next(iter(points.batches(doctor.GUARD_ROWS if expected_accuracy else doctor.LOOKED_AT)))
    rows = batch_size or default_rows(head.inputs, classifier.device)
    with classifier.evaluating():
        diagnosis = doctor.examine(classifier, head, points.labels, scores, seed, rows)
        if expected_accuracy is not None:
            doctor.check_accuracy(expected_accuracy, classifier, head, rows)
        record = Record.start(classifier, points, scores, seed, confidence, rows, diagnosis, command)
        sink = _Sink(None if out is None else RunWriter.create(out, record.provenance()))
        for batch in points.batches(max(1, rows // 2)):
            doctor.check_values(batch, classifier.bounds)
            found = _evaluate(classifier, batch, scores, seed, rows, confidence)
            batch_points, batch_scores = _rows(found, scores)
            record.add(batch_points, batch_scores)
            _check_failures(record)
            sink.add(batch_points, batch_scores, _counterexamples(found, scores, classifier.bounds), len(scores))
            if progress is not None:
                progress(record.points, len(points), record.passes)
    record.finish(time.monotonic() - started)
    return sink.close(record.provenance())


def plan(scores: Iterable[Score]) -> tuple[Measurement, ...]:
    """The measurements that `scores` need, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(score.needs for score in scores)))


@dataclass
class _Evaluated:
    """A batch with everything that was found out about it.

    Attributes:
        batch: the points.
        predicted: class index of each point, or None.
        status: how each point ended before any score.
        detail: what was seen where it failed.
        passes: all passes spent on each point and, where it failed, on what stood in its place.
        estimates: one per score, over all points of the batch.
        nearest: for each score, the inputs with another prediction that it found, or None.
        measured: positions in the batch of the points whose estimates count.
    """

    batch: Batch
    predicted: list[int | None]
    status: list[Status]
    detail: list[str | None]
    passes: list[int]
    estimates: list[Estimate]
    nearest: list[NearestPoint | None]
    measured: list[int]

    def fail(self, position: int, status: Status, seen: str) -> None:
        """Say why a point is not measured."""
        self.status[position] = status
        self.detail[position] = f"row {self.batch.rows[position]}: {seen}"


def _evaluate(
    classifier: Classifier, batch: Batch, scores: Sequence[Score], seed: int, rows: int, confidence: float
) -> _Evaluated:
    """Look at a batch, leave out what cannot be measured, measure the rest once and derive every score."""
    count = len(batch)
    found = _Evaluated(batch, [None] * count, list(batch.status), list(batch.detail), [0] * count, [], [], [])
    _mark_nonfinite_inputs(found)
    needs = plan(scores)
    clean = _look(classifier, found, seed, rows, needs)
    if clean is None:
        return found
    before = classifier.passes
    measured = take(needs, classifier, clean)
    own = _own_passes(measured, clean)
    shared = (classifier.passes - before - int(own.sum())) // count
    found.passes = (own + clean.passes + shared).tolist()
    labels = clean.predicted.tolist()
    for position in found.measured:
        found.predicted[position] = labels[position]
    found.estimates = [score.estimate(measured, confidence) for score in scores]
    found.nearest = [score.counterexamples(measured) for score in scores]
    return found


def _own_passes(measured: Mapping[Measurement, Any], clean: Clean) -> Tensor:
    """Passes beyond the clean one of measurements that spend on each point what it needs, `[B]`; others spend alike."""
    spent: dict[Hashable, Tensor] = {}
    for need, result in measured.items():
        if isinstance(result, NearestPoint | Curved):
            known = spent.get(need.stream, torch.zeros_like(result.passes))
            spent[need.stream] = torch.maximum(known, result.passes - clean.passes)
    return torch.stack([torch.zeros_like(clean.predicted), *spent.values()]).sum(dim=0)


def _mark_nonfinite_inputs(found: _Evaluated) -> None:
    finite = found.batch.inputs.flatten(1).isfinite()
    for position in (~finite.all(dim=1)).nonzero().flatten().tolist():
        inputs = found.batch.inputs[position].flatten()
        nan, total = int(inputs.isnan().sum()), inputs.numel()
        infinite = total - nan - int(inputs.isfinite().sum())
        seen = [f"{number} {what}" for number, what in ((nan, "NaN"), (infinite, "infinite")) if number]
        found.fail(position, Status.NONFINITE_INPUT, f"{' and '.join(seen)} of {total}")


def _look(
    classifier: Classifier, found: _Evaluated, seed: int, rows: int, needs: Sequence[Measurement]
) -> Clean | None:
    """The clean pass over a batch; points that cannot be measured are marked, None when there are no others.

    They keep their place, filled with the lower bound, so that the others are computed in the same batch as ever.
    """
    sound = [status.has_value for status in found.status]
    if not any(sound):
        return None
    inputs = found.batch.inputs.clone()
    inputs[[not each for each in sound]] = classifier.bounds[0]
    differentiate, observe = (any(getattr(need, use) for need in needs) for use in ("uses_graph", "uses_features"))
    clean = look(classifier, inputs, found.batch.ids, seed, rows=rows, differentiate=differentiate, observe=observe)
    _mark_bad_outcomes(found, clean)
    found.measured = [position for position, status in enumerate(found.status) if status.has_value]
    return clean


def _mark_bad_outcomes(found: _Evaluated, clean: Clean) -> None:
    classes = clean.logits.shape[1]
    broken = (~clean.logits.isfinite()).sum(dim=1).tolist()
    for position, count in enumerate(broken):
        label = None if found.batch.labels is None else found.batch.labels[position]
        if not found.status[position].has_value:
            continue
        if count:
            found.fail(position, Status.NONFINITE_LOGITS, f"{count} of {classes} logits are NaN or infinite")
        elif label is not None and not 0 <= label < classes:
            found.fail(position, Status.LABEL_RANGE, f"label {label}, the model has 0..{classes - 1}")


def _rows(found: _Evaluated, scores: Sequence[Score]) -> tuple[pa.Table, pa.Table]:
    """The rows of a batch: one per point, and one per point and score, point by point."""
    batch = found.batch
    labels = batch.labels or [None] * len(batch)
    known = [None if None in (label, own) else label == own for label, own in zip(labels, found.predicted, strict=True)]
    points = {
        "point": batch.ids,
        "row": batch.rows,
        "name": batch.names or [None] * len(batch),
        "label": labels,
        "predicted": found.predicted,
        "correct": known,
        "status": [status.slug for status in found.status],
        "detail": found.detail,
        "passes": found.passes,
        "image": batch.images or [None] * len(batch),
    }
    rows: list[dict[str, Any]] = []
    columns = [_columns(estimate) for estimate in found.estimates]
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


def _counterexamples(found: _Evaluated, scores: Sequence[Score], bounds: tuple[float, float]) -> pa.Table:
    """A row for every point and score that found an input with another prediction."""
    rows: list[dict[str, Any]] = []
    for score, nearest in zip(scores, found.nearest, strict=True):
        if nearest is None:
            continue
        known = [position for position in found.measured if int(nearest.predicted[position]) >= 0]
        inputs, points = found.batch.inputs[known], nearest.points[known].cpu()
        shown = thumbnails(points, bounds) or [None] * len(known)
        differences = thumbnails(_magnified(points - inputs, bounds), bounds) or [None] * len(known)
        named = {"score": score.name, "parameters": parameters_json(score.parameters)}
        rows += [
            {"point": found.batch.ids[position], "predicted": predicted, "image": image, "difference": difference}
            | named
            for position, predicted, image, difference in zip(
                known, nearest.predicted[known].tolist(), shown, differences, strict=True
            )
        ]
    return pa.Table.from_pylist(rows, schema=COUNTEREXAMPLES)


def _magnified(difference: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Differences `[N, *shape]` around the middle of the bounds, the largest of each as far as it can go."""
    low, high = bounds
    largest = difference.flatten(1).abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny)
    return (low + high) / 2 + difference * ((high - low) / 2 / largest).view(-1, *[1] * (difference.dim() - 1))


def _columns(estimate: Estimate) -> dict[str, list[Any]]:
    status = [Status(code) for code in estimate.status.tolist()]

    def numbers(values: Tensor) -> list[float | None]:
        return [value if state.has_value else None for value, state in zip(values.tolist(), status, strict=True)]

    return {
        "value": numbers(estimate.value),
        "low": numbers(estimate.low),
        "high": numbers(estimate.high),
        "status": [state.slug for state in status],
        "detail": list(estimate.detail or [None] * len(status)),
        "passes": estimate.passes.tolist(),
    }


class _Sink:
    """Collects rows and commits them shard by shard, the same shards whatever the batch size."""

    def __init__(self, writer: RunWriter | None) -> None:
        self._writer = writer
        self._points = POINTS.empty_table()
        self._scores = SCORES.empty_table()
        self._counterexamples = COUNTEREXAMPLES.empty_table()

    def add(self, points: pa.Table, scores: pa.Table, counterexamples: pa.Table, per_point: int) -> None:
        """Take the rows of a batch, `per_point` score rows for each point."""
        self._points = pa.concat_tables([self._points, points])
        self._scores = pa.concat_tables([self._scores, scores])
        self._counterexamples = pa.concat_tables([self._counterexamples, counterexamples])
        while self._writer is not None and len(self._points) >= SHARD:
            shard = self._points[:SHARD]
            members = set(shard["point"].to_pylist())
            inside = [point in members for point in self._counterexamples["point"].to_pylist()]
            own, others = (
                self._counterexamples.filter(pa.array(mask, pa.bool_()))
                for mask in (inside, [not one for one in inside])
            )
            self._writer.commit(shard, self._scores[: SHARD * per_point], own)
            self._points, self._scores, self._counterexamples = (
                self._points[SHARD:],
                self._scores[SHARD * per_point :],
                others,
            )

    def close(self, provenance: dict[str, Any]) -> Table:
        """Commit what is left and give the table."""
        if self._writer is None:
            parts = (part.combine_chunks() for part in (self._points, self._scores, self._counterexamples))
            points, scores, counterexamples = parts
            return Table(points, scores, provenance, counterexamples)
        if len(self._points):
            self._writer.commit(self._points, self._scores, self._counterexamples)
        return self._writer.finish(provenance)


def _check_failures(record: Record) -> None:
    if record.failed_early > MOST_FAILURES:
        raise DataError(
            "too_many_failures",
            f"{record.failed_early} of the first {min(record.points, FIRST_ROWS)} points got no number (at most "
            f"{MOST_FAILURES} of {FIRST_ROWS} may); "
            f"the last one: {record.last_failure}",
        )


def _as_points(data: Points | tuple[Any, Any] | Tensor, bounds: tuple[float, float]) -> Points:
    if isinstance(data, Points):
        return data
    x, y = data if isinstance(data, tuple) else (data, None)
    return array_points(x, y, bounds=bounds)


def _check_kinds(classifier: Any, scores: Any) -> None:
    if not isinstance(classifier, Classifier):
        kind = type(classifier).__name__
        raise ParameterError(
            "classifier", f"expected a brittle.Classifier, found {kind}; wrap it: brittle.Classifier(model)"
        )
    if not isinstance(scores, Sequence) or not all(isinstance(score, Score) for score in scores):
        raise ParameterError(
            "scores", f"expected a list of scores such as [brittle.scores.Moments(sigma=0.1)]; found {scores!r:.80}"
        )


def _check_parameters(scores: Sequence[Score], seed: int, batch_size: int | None, confidence: float) -> None:
    check_confidence(confidence)
    if not scores:
        raise ParameterError("scores", "no score was asked for; name at least one")
    labels = [score.label for score in scores]
    if len(set(labels)) < len(labels):
        twice = next(label for number, label in enumerate(labels) if label in labels[:number])
        raise ParameterError("scores", f"{twice} is asked for twice; the table could not tell them apart")
    if not 0 <= seed <= MOST_SEED:
        raise ParameterError("seed", f"the seed must lie between 0 and {MOST_SEED}; found {seed}")
    if batch_size is not None and batch_size < 1:
        raise ParameterError("batch_size", f"the batch size must be at least 1; found {batch_size}")
