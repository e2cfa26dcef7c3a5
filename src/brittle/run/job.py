"""What a run computes, shard by shard: the same rows in any order of the shards, in any process."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import torch

from brittle import doctor
from brittle.data import Batch, Points
from brittle.data.points import check_values
from brittle.doctor.rounding import Reference
from brittle.errors import BrittleError, ModelError, ParameterError
from brittle.estimate import Status
from brittle.measure.forward import POINTS, batch_points
from brittle.model.classifier import Classifier
from brittle.model.passes import ran_out
from brittle.run.rechecks import Rechecks
from brittle.run.rows import rows_of
from brittle.scores import Score
from brittle.scores.evaluate import Evaluated, evaluate
from brittle.store.folder import Shard
from brittle.store.record import Account, RunRecord

SHARD = 256
"""Points in a shard of the run folder, or a multiple of this: what a run holds are the points of one shard, and the
manifest of all, which is written with each of them; so a long one has as many points in a shard as shards."""

FEW_SHARDS = 4
"""Shards that a run of few points is divided into at most, between its batches, so that they can be shared."""


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
        return SHARD * max(1, -(-math.isqrt(count) // SHARD))

    @property
    def batch_points(self) -> int:
        """Points that are measured at a time: of few points fewer, so that they can be shared among workers."""
        shared = POINTS
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
