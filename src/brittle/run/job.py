"""Job of a run, shard by shard: the same rows in any order of the shards, in any process."""

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

SHARD = 256  # points in a shard of the run folder, or a multiple: a long run has as many points in a shard as shards
LARGE_BATCH = 256  # points in a batch from which on shards grow with the batches, which models with narrow inputs have
FEW_SHARDS = 4  # shards that a run of few points is divided into at most, so that they can be shared
ROWS_A_POINT = (
    64  # rows of a pass per point at least, half as many of a model outside PyTorch: calls cost more than rows
)

T = TypeVar("T")


@dataclass
class Job:
    """Everything that decides the numbers of a run. `fit` are the rows in one pass that memory has room for here."""

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
        """Return what `take` gives for the most rows in one pass, which are halved for good where memory runs out."""
        while True:
            forward, backward = self.classifier.forward_passes, self.classifier.backward_passes
            try:
                return take(self.fit)
            except (BrittleError, RuntimeError, MemoryError) as error:
                if not ran_out(error):
                    raise
                if self.fit == 1:
                    advice = "give smaller inputs, free memory, or compute on another device (--device)"
                    sentence = f"out of memory: one row in a pass does not fit on {self.classifier.device}; {advice}"
                    raise ModelError("out_of_memory", sentence) from error
            # Out of the block above, whose error holds what fills the memory.
            self.classifier.count(forward - self.classifier.forward_passes, backward - self.classifier.backward_passes)
            self.fit //= 2

    @property
    def shards(self) -> int:
        return -(-len(self.points) // self.shard_points)

    @property
    def shard_points(self) -> int:
        """Points in a shard; the last may have fewer. Batches hold the same points whatever this is."""
        count, batch = len(self.points), self.batch_points
        while batch * FEW_SHARDS < count:
            batch *= 2
        if batch < SHARD and (count <= SHARD or SHARD % batch == 0):
            return batch
        return whole_shard(count, self.batch_points)

    @property
    def batch_points(self) -> int:
        """Points that are measured at a time: of few points fewer, so that they can be shared among workers."""
        least = ROWS_A_POINT if self.classifier.forward_only is None else ROWS_A_POINT // 2
        shared = max(POINTS, 1 << max(1, self.rows // least).bit_length() - 1)
        while shared * FEW_SHARDS < len(self.points):
            shared *= 2
        return min(shared, batch_points(self.rows, self.classifier.device))

    def share(self, part: tuple[int, int] | None) -> range:
        """Return the shards of a part of the run, such as (1, 8), in which points are shared evenly; None has all."""
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
        """Return the rows of shard `number`, without those of the data that are lost, each with why. `begun` is called
        with each batch before it is measured; by `reference` it is checked that the network is still the same."""
        before = self.classifier.passes
        parts: list[dict[str, pa.Table]] = []
        rechecks = Rechecks(self.classifier, number, -(-self.shard_points // self.batch_points), reference)
        with self.classifier.evaluating():
            for batch in self.batches(number, lost):
                if begun is not None:
                    begun(batch)
                rechecks.begin(batch)
                evaluated = self.fitting(partial(self._evaluated, rechecks.watched, batch))
                parts += [rows_of(part, self.scores, self.classifier) for part in evaluated]
            passes = self.classifier.passes - before
            check_passes = self.fitting(rechecks.check)
        tables = {kind: pa.concat_tables([part[kind] for part in parts]).combine_chunks() for kind in parts[0]}
        start = number * self.shard_points
        account = Account.of(tables["points"], tables["scores"], passes, check_passes, start)
        return Shard(number, tables, account, self.fit)

    def _evaluated(self, classifier: Classifier, batch: Batch, rows: int) -> list[Evaluated]:
        """Return a batch in pieces, as many points of it at a time as these rows are of all."""
        pieces = batch.pieces(-(-len(batch) * rows // self.rows))
        return [evaluate(classifier, piece, self.scores, self.seed, rows, self.confidence) for piece in pieces]

    def begin(self) -> Reference:
        """Return the first points as a process that is about to compute shards sees them, after other inputs."""
        batch = next(iter(self.points.batches(doctor.LOOKED_AT)))

        def seen(rows: int) -> Reference:
            subject = doctor.Subject(self.classifier, batch, None, self.scores, self.seed, rows)
            return subject.reference(others_first=True)

        with self.classifier.evaluating(), torch.no_grad():
            return self.fitting(seen)

    def batches(self, number: int, lost: Mapping[int, str] | None = None) -> Iterator[Batch]:
        start = number * self.shard_points
        for batch in self.points.batches(self.batch_points, start, start + self.shard_points):
            check_values(batch, self.classifier.bounds)
            yield _without(batch, lost or {})


def _without(batch: Batch, lost: Mapping[int, str]) -> Batch:
    if not any(row in lost for row in batch.rows):
        return batch
    status = [Status.WORKER_DIED if row in lost else state for row, state in zip(batch.rows, batch.status, strict=True)]
    detail = [f"row {i}: {lost[i]}" if i in lost else text for i, text in zip(batch.rows, batch.detail, strict=True)]
    return replace(batch, status=tuple(status), detail=tuple(detail))


def whole_shard(count: int, batch: int = SHARD) -> int:
    """Return the points in a shard of a run of so many, unless they are few, in batches of so many points."""
    size = SHARD * max(1, batch // LARGE_BATCH)
    return size * max(1, -(-math.isqrt(count) // size))


Opening = Callable[[], Job]  # opens the job of a run in another process; it is pickled

Opened = tuple[RunRecord, Mapping[str, Any]]  # a worker's job, and logits of its first points (`Reference.content`)


class Workers(Protocol):
    """Processes that share the shards of a run."""

    def shards(self, numbers: Sequence[int], job: Job, expected: Opened) -> Generator[Shard]:
        """Yield the shards with these numbers as they are done; a worker that opened anything but `expected` is
        refused, and what one raises is raised here."""
        ...


_STATUS = {int(status): status for status in Status}  # `Status(number)` takes far longer, once a point


def rows_of(evaluated: Evaluated, scores: Sequence[Score], classifier: Classifier) -> dict[str, pa.Table]:
    """Return the rows of a batch, by the kinds of shard file that hold them."""
    tables = {"points": _points(evaluated, classifier), "scores": _scores(evaluated, scores, classifier)}
    return tables | {"counterexamples": _counterexamples(evaluated, scores, classifier)}


def _points(evaluated: Evaluated, classifier: Classifier) -> pa.Table:
    batch, decision = evaluated.batch, classifier.decision
    unknown: Sequence[Any] = [None] * len(batch)
    inputs = batch.inputs if batch.extra_inputs is None else batch.extra_inputs.kept(batch.inputs)
    columns = {
        "point": batch.ids,
        "row": batch.rows,
        "name": batch.names or unknown,
        "label": batch.labels or unknown if batch.targets is None else decision.target_codes(batch.targets),
        "predicted": evaluated.predicted,
        "decided": evaluated.decided,
        "target": unknown if batch.targets is None else decision.target_words(batch.targets),
        "correct": evaluated.correct,
        "label_probability": evaluated.label_probability,
        "status": [status.slug for status in evaluated.status],
        "detail": evaluated.detail,
        "passes": evaluated.passes,
        "image": batch.images or unknown,
        "input": _packed(inputs, classifier.dtype, [status.has_value for status in batch.status]),
    }
    return pa.Table.from_pydict(columns, schema=schemas.POINTS)


def _scores(evaluated: Evaluated, scores: Sequence[Score], classifier: Classifier) -> pa.Table:
    count, by_class = len(evaluated.batch), classifier.decision.of_classes
    unknown: list[Any] = [None] * count
    cells = [
        {"score": [score.name] * count, "parameters": [parameters_json(score.parameters)] * count}
        | _cells(estimate, by_class)
        for score, estimate in zip(scores, evaluated.estimates, strict=True)
    ]
    columns = {
        key: list(chain.from_iterable(zip(*(score.get(key, unknown) for score in cells), strict=True)))
        for key in schemas.SCORES.names[1:]
    }
    points = {"point": [point for point in evaluated.batch.ids for _ in scores]}
    return pa.Table.from_pydict(points | columns, schema=schemas.SCORES)


def _counterexamples(evaluated: Evaluated, scores: Sequence[Score], classifier: Classifier) -> pa.Table:
    """Return a row for every point and score that found an input with another prediction."""
    rows: list[dict[str, Any]] = []
    bounds = classifier.bounds
    for score, neighbours in zip(scores, evaluated.counterexamples, strict=True):
        if neighbours is None:
            continue
        inputs = neighbours.inputs.cpu()
        difference = _magnified(inputs - evaluated.batch.inputs[neighbours.positions], bounds)
        columns = {
            "point": [evaluated.batch.ids[position] for position in neighbours.positions],
            "predicted": neighbours.codes,
            "decided": neighbours.words,
            "image": thumbnails(inputs, bounds) or [None] * len(inputs),
            "difference": thumbnails(difference, bounds) or [None] * len(inputs),
            "input": _packed(inputs, classifier.dtype, (~inputs.isinf()).flatten(1).all(1).tolist()),
        }
        keys = {"score": score.name, "parameters": parameters_json(score.parameters)}
        rows += [keys | dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return pa.Table.from_pylist(rows, schema=schemas.COUNTEREXAMPLES)


def _packed(inputs: Tensor, dtype: torch.dtype | None, is_packed: Sequence[bool]) -> Sequence[bytes | None]:
    """Return inputs `[N, *shape]` as a network of `dtype` gets them, in cells, with every digit; None where they are
    images, large or unwanted."""
    shape = tuple(inputs.shape[1:])
    if is_image(shape) or not schemas.keeps(shape):
        return [None] * len(inputs)
    typed = inputs.to("cpu", dtype or inputs.dtype)
    packed = schemas.pack((typed if typed.dtype == torch.float64 else typed.float()).numpy())
    return [cell if keep else None for cell, keep in zip(packed, is_packed, strict=True)]


def _magnified(difference: Tensor, bounds: Bounds) -> Tensor:
    """Differences `[N, *shape]` around the middle of the bounds, the largest of each as far as it can go."""
    low, high = bounds.envelope
    largest = difference.flatten(1).abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny)
    return (low + high) / 2 + difference * ((high - low) / 2 / largest).view(-1, *[1] * (difference.dim() - 1))


def _cells(estimate: Estimate, by_class: bool) -> dict[str, list[Any]]:
    """Return the cells of an estimate, a list over its points for each column; NaN becomes null."""
    status = [_STATUS[code] for code in estimate.status.tolist()]
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    if estimate.counted is not None:
        numbers |= dict(zip(("counted_low", "counted_high"), estimate.counted, strict=True))
    columns: dict[str, list[Any]] = {
        name: [None if math.isnan(number) else number for number in values.tolist()] for name, values in numbers.items()
    }
    columns["status"], columns["passes"] = [state.slug for state in status], estimate.passes.tolist()
    columns["detail"] = list(estimate.detail or [None] * len(status))
    if estimate.evidence is not None:
        pairs = zip(estimate.evidence.tolist(), status, strict=True)
        columns["evidence"] = [Evidence(code).slug if state.has_value else None for code, state in pairs]
    if estimate.votes is not None and by_class:
        columns["votes"] = [
            (cell or None) if state.has_value else None for cell, state in zip(estimate.votes, status, strict=True)
        ]
    return columns
