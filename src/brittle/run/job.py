"""What a run computes, shard by shard: the same rows in any order of the shards, in any process."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import torch
from torch import Tensor

from brittle import doctor
from brittle.data import Batch, Points
from brittle.data.images import is_image, thumbnails
from brittle.data.points import check_values
from brittle.doctor.rounding import Reference
from brittle.errors import BrittleError, ModelError, ParameterError
from brittle.estimate import Estimate, Evidence, Status, parameters_json
from brittle.measure.forward import POINTS, batch_points
from brittle.model.bounds import Bounds
from brittle.model.classifier import Classifier
from brittle.model.passes import ran_out
from brittle.run.rechecks import Rechecks
from brittle.scores import Score
from brittle.scores.evaluate import Evaluated, evaluate
from brittle.store import schemas
from brittle.store.folder import Shard
from brittle.store.record import Account, RunRecord

SHARD = 256
"""Points in a shard of the run folder, or a multiple of this: what a run holds are the points of one shard, and the
manifest of all, which is written with each of them; so a long one has as many points in a shard as shards."""

LARGE_BATCH = 256
"""Points in a batch from which on shards grow with the batches, which models with narrow inputs have."""

FEW_SHARDS = 4
"""Shards that a run of few points is divided into at most, between its batches, so that they can be shared."""

ROWS_A_POINT = 64
"""One point of a batch at least for so many rows of a pass: fewer are not divided, as calls cost more than rows."""


T = TypeVar("T")


@dataclass
class Job:
    """Everything that decides the numbers of a run. `fit` is the rows in one pass that memory has room for in this
    process, as far as is known; it decides no number."""

    classifier: Classifier
    points: Points
    scores: Sequence[Score]
    seed: int
    rows: int
    confidence: float
    fit: int = field(init=False)

    def __post_init__(self) -> None:
        self.fit = self.rows

    def fitting(self, take: Callable[[int], T]) -> T:
        """What `take` gives for the most rows in one pass, which are halved for good where memory runs out. What was
        sent through the network in vain is not counted."""
        while True:
            forward, backward = self.classifier.forward_passes, self.classifier.backward_passes
            try:
                return take(self.fit)
            except (BrittleError, RuntimeError, MemoryError) as error:
                if not ran_out(error):
                    raise
                if self.fit == 1:
                    raise ModelError(
                        "out_of_memory",
                        f"out of memory: one row in a pass does not fit on {self.classifier.device}; give smaller "
                        f"inputs, free memory, or compute on another device (--device)",
                    ) from error
            # Out of the block above, whose error holds what fills the memory.
            self.classifier.count(forward - self.classifier.forward_passes, backward - self.classifier.backward_passes)
            self.fit //= 2

    @property
    def shards(self) -> int:
        return -(-len(self.points) // self.shard_points)

    @property
    def shard_points(self) -> int:
        """Points in a shard; the last may have fewer. Batches hold the same points whatever this is."""
        count, few = len(self.points), self.batch_points
        while few * FEW_SHARDS < count:
            few *= 2
        if few < SHARD and (count <= SHARD or SHARD % few == 0):
            return few
        return whole_shard(count, self.batch_points)

    @property
    def batch_points(self) -> int:
        """Points that are measured at a time: of few points fewer, so that they can be shared among workers."""
        shared = max(POINTS, 1 << max(1, self.rows // ROWS_A_POINT).bit_length() - 1)
        while shared * FEW_SHARDS < len(self.points):
            shared *= 2
        return min(shared, batch_points(self.rows, self.classifier.device))

    def share(self, part: tuple[int, int] | None) -> range:
        """The shards of a part of the run, such as (1, 8), in which points are shared evenly; None has all."""
        number, count = part or (1, 1)
        if not 1 <= number <= count:
            raise ParameterError(f"a part is one of so many, such as 1/8; found {number}/{count}")
        return range(number - 1, self.shards, count)

    def points_in(self, shards: Sequence[int]) -> int:
        size, count = self.shard_points, len(self.points)
        return sum(min(size, count - number * size) for number in shards)

    def shard(
        self,
        number: int,
        lost: Mapping[int, str] | None = None,
        begun: Callable[[Batch], None] | None = None,
        reference: Reference | None = None,
    ) -> Shard:
        """The rows of shard `number`, without those of the data that are lost, each with why.

        `begun` is called with each batch before it is measured. `reference` holds the first points as this process saw
        them at first, to check that the network is still the same; None does not look.
        """
        before = self.classifier.passes
        parts: list[dict[str, pa.Table]] = []
        rechecks = Rechecks(self.classifier, number, -(-self.shard_points // self.batch_points), reference)
        with self.classifier.evaluating():
            for batch in self.batches(number, lost):
                if begun is not None:
                    begun(batch)
                rechecks.begin(batch)
                found = self.fitting(partial(self._evaluated, rechecks.watched, batch))
                parts += [rows_of(each, self.scores, self.classifier) for each in found]
            spent = self.classifier.passes - before
            check_passes = self.fitting(rechecks.check)
        tables = {kind: pa.concat_tables([part[kind] for part in parts]).combine_chunks() for kind in parts[0]}
        first = number * self.shard_points
        account = Account.of(tables["points"], tables["scores"], spent, check_passes, first)
        return Shard(number, tables, account, self.fit)

    def _evaluated(self, classifier: Classifier, batch: Batch, rows: int) -> list[Evaluated]:
        """A batch in pieces, as many points of it at a time as these rows are of all."""
        return [
            evaluate(classifier, piece, self.scores, self.seed, rows, self.confidence)
            for piece in batch.pieces(-(-len(batch) * rows // self.rows))
        ]

    def begin(self) -> Reference:
        """The first points as a process that is about to compute shards sees them, after other inputs."""
        first = next(iter(self.points.batches(doctor.LOOKED_AT)))

        def seen(rows: int) -> Reference:
            subject = doctor.Subject(self.classifier, first, None, self.scores, self.seed, rows)
            return subject.reference(others_first=True)

        with self.classifier.evaluating(), torch.no_grad():
            return self.fitting(seen)

    def batches(self, number: int, lost: Mapping[int, str] | None = None) -> Iterator[Batch]:
        """The batches of a shard, with the rows of `lost` marked."""
        start = number * self.shard_points
        for batch in self.points.batches(self.batch_points, start, start + self.shard_points):
            check_values(batch, self.classifier.bounds)
            yield _without(batch, lost or {})


def _without(batch: Batch, lost: Mapping[int, str]) -> Batch:
    """`batch` with the rows of `lost` marked as lost, so that the others are computed as ever."""
    if not any(row in lost for row in batch.rows):
        return batch
    status = [Status.WORKER_DIED if row in lost else own for row, own in zip(batch.rows, batch.status, strict=True)]
    detail = [
        f"row {row}: {lost[row]}" if row in lost else own for row, own in zip(batch.rows, batch.detail, strict=True)
    ]
    return replace(batch, status=tuple(status), detail=tuple(detail))


def whole_shard(count: int, batch: int = SHARD) -> int:
    """Return the points in a shard of a run of so many, unless they are few, in batches of so many points."""
    size = SHARD * max(1, batch // LARGE_BATCH)
    return size * max(1, -(-math.isqrt(count) // size))


Opening = Callable[[], Job]
"""Opens the job of a run in another process; it is pickled."""

Opened = tuple[RunRecord, Mapping[str, Any]]
"""The record of a worker's job, and the logits of its first points (`Reference.content`)."""


class Workers(Protocol):
    """Processes that share the shards of a run."""

    def shards(self, numbers: Sequence[int], job: Job, expected: Opened) -> Generator[Shard]:
        """The shards with these numbers, in the order in which they are done. A worker that opened something else than
        `expected`, what this process opened, is refused; what one raises is raised here."""
        ...


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
    inputs = batch.inputs if batch.extra_inputs is None else batch.extra_inputs.kept(batch.inputs)
    columns = {
        "point": batch.ids,
        "row": batch.rows,
        "name": batch.names or unknown,
        "label": batch.labels or unknown if batch.targets is None else decision.target_codes(batch.targets),
        "predicted": found.predicted,
        "decided": found.decided,
        "target": unknown if batch.targets is None else decision.target_words(batch.targets),
        "correct": found.correct,
        "label_probability": found.label_probability,
        "status": [status.slug for status in found.status],
        "detail": found.detail,
        "passes": found.passes,
        "image": batch.images or unknown,
        "input": _packed(inputs, classifier.dtype, [one.has_value for one in batch.status]),
    }
    return pa.Table.from_pydict(columns, schema=schemas.POINTS)


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
        for key in schemas.SCORES.names[1:]
    }
    return pa.Table.from_pydict(
        {"point": [one for one in found.batch.ids for _ in scores]} | columns, schema=schemas.SCORES
    )


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
            "input": _packed(inputs, classifier.dtype, (~inputs.isinf()).flatten(1).all(1).tolist()),
        }
        named = {"score": score.name, "parameters": parameters_json(score.parameters)}
        rows += [named | dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return pa.Table.from_pylist(rows, schema=schemas.COUNTEREXAMPLES)


def _packed(inputs: Tensor, dtype: torch.dtype | None, wanted: Sequence[bool]) -> Sequence[bytes | None]:
    """Inputs `[N, *shape]` as a network of `dtype` gets them, in cells; None where they are images, large, unwanted.
    They lose no digit: single precision holds what is narrower."""
    shape = tuple(inputs.shape[1:])
    if is_image(shape) or not schemas.keeps(shape):
        return [None] * len(inputs)
    seen = inputs.to("cpu", dtype or inputs.dtype)
    packed = schemas.pack((seen if seen.dtype == torch.float64 else seen.float()).numpy())
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
