"""A run: examine, measure each point once, derive every score, write rows, shard by shard."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Literal

import pyarrow as pa

from brittle import doctor
from brittle.data import Batch
from brittle.errors import ParameterError, warn
from brittle.estimate import CONFIDENCE, MOST_DRAWS
from brittle.model.classifier import Classifier
from brittle.run.arguments import Data, make_job
from brittle.run.job import Job, Shard
from brittle.run.progress import Progress
from brittle.run.progress import progress as shown_progress
from brittle.run.record import MOST_FAILURES, RunningRecord, describe
from brittle.run.workers import Processes, Workers
from brittle.scores import Score
from brittle.scores.choose import drawn_until
from brittle.store.folder import RunFolder, check_free
from brittle.store.reading import read_table
from brittle.store.record import Account, RunRecord, WarningRecord, check_same
from brittle.store.schemas import KINDS
from brittle.store.table import Table


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """How a job is carried out; none of it decides a number. Fields are as of `score`, but for

    Attributes:
        workers: processes that compute the shards of a run folder, in place of this one.
        note: called with the code and the sentence of every note, once each, those of the examination before anything
            is scored.
    """

    expected_accuracy: float | None = None
    progress: Progress | None = None
    command: Sequence[str] | None = None
    most_failures: int | None = MOST_FAILURES
    skip_doctor: bool = False
    workers: Workers | None = None
    part: tuple[int, int] | None = None
    note: Callable[[str, str], None] | None = None

    def __post_init__(self) -> None:
        if self.part is not None and not 1 <= self.part[0] <= self.part[1]:
            raise ParameterError(f"a part is one of so many, such as 1/8; found {self.part[0]}/{self.part[1]}")


def score(
    classifier: Classifier,
    data: Data,
    scores: Sequence[Score],
    *,
    seed: int = 0,
    batch_size: int | None = None,
    confidence: float = CONFIDENCE,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    expected_accuracy: float | None = None,
    progress: Progress | bool | None = None,
    command: Sequence[str] | None = None,
    most_failures: int | None = MOST_FAILURES,
    skip_doctor: bool = False,
    until: Literal["decided"] | None = None,
    limit: float | None = None,
    precision: float | None = None,
    most_draws: int = MOST_DRAWS,
    workers: int | None = None,
    part: tuple[int, int] | None = None,
) -> Table:
    """Score every point of `data` by every score of `scores`.

    Measurements that several scores need are taken once. The noise of a point is keyed by (seed, point id), so its
    scores do not depend on the batch size or on the other points, except as a network rounds differently in another
    batch (attacks can amplify that, see `docs/attacks.md`).

    Args:
        classifier: the trained model.
        data: `(x, y)` with `x` `[N, *shape]` in the declared units and `y` `[N]` or None; `x` alone; a data set or
            loader of PyTorch, or a list of images of Pillow, read as `brittle.data.dataset_points` does; a path, read
            as `brittle.data.open_points` does; or points from either of these two.
        scores: what to compute; each at most once, told apart by name and parameters.
        seed: seed of the noise.
        batch_size: most rows in one pass through the network; by default 64 on a CPU and 512 elsewhere, fewer for
            large inputs.
        confidence: of all intervals in the table.
        out: folder to write the run to, shard by shard; None keeps it in memory.
        resume: go on with the run in `out`, if there is one: shards that are there and whole are kept.
        expected_accuracy: stop when the accuracy on the first labelled points is surely below.
        progress: True shows how far the run is, on a terminal, in a notebook or in lines; a function is called after
            every batch with the points done, all points and the passes through the network so far.
        command: how the run was started, for the record.
        most_failures: stop when more of the first 1,000 points than this get no number; None never stops for that.
        skip_doctor: leave out the checks before the run (see `docs/doctor.md`); the record says so.
        until: `decided` counts noisy copies of each point until it is decided whether its prediction holds with
            probability `limit` or more (`brittle.scores.choose.drawn_until`).
        limit: that probability, such as 0.9.
        precision: count noisy copies of each point until the interval of its flip probability is no wider.
        workers: processes that compute side by side, with one thread each, as `--workers` has them; each gets a copy of
            the model and of the data, so what you define has to stand in a module that can be imported. The table is
            the same for any number of them, and for none with one thread. None computes here.
        part: compute this part of so many of the shards, such as (1, 8), to be put together by `brittle join`.
        most_draws: noisy copies of a point at most, where `until` or `precision` is given.

    Returns:
        the table.

    Warns:
        BrittleWarning: a note of the examination, before anything is scored, or of what the run showed, after it;
            each once. The record holds them all.

    Raises:
        DataError: the data do not fit the declaration, or too many of the first rows get no number.
        ModelError: the model cannot be scored as it stands.
        ParameterError: a parameter is outside its range.
        ResumeError: `out` holds another experiment than this one; the fields that differ are named.
        StorageError: `out` holds a run that is not to be resumed, is written by another process, or cannot be written.
    """
    if out is not None and not resume:
        check_free(out)
    shards: list[Shard] = []
    rule = partial(drawn_until, until=until, limit=limit, precision=precision, most_draws=most_draws)
    job = make_job(classifier, data, scores, seed, batch_size, confidence, rule)
    processes = None if workers is None else Processes(workers)
    with shown_progress(progress) as advance, _place(out, processes) as place:
        options = JobOptions(
            expected_accuracy=expected_accuracy,
            progress=advance,
            command=command,
            most_failures=most_failures,
            skip_doctor=skip_doctor,
            workers=processes,
            part=part,
            note=warn,
        )
        record = execute(job, place, options, keep=shards.append if place is None else None)
        if place is not None:
            return read_table(place)
    tables = {
        kind: pa.concat_tables([schema.empty_table(), *(shard.tables[kind] for shard in shards)]).combine_chunks()
        for kind, schema in KINDS.items()
    }
    return Table(record=record, **tables)


def _place(
    out: str | os.PathLike[str] | None, processes: Processes | None
) -> AbstractContextManager[str | os.PathLike[str] | None]:
    """The run folder; for other processes, which write into one, a folder of its own that is removed afterwards."""
    return nullcontext(out) if out is not None or processes is None else TemporaryDirectory(prefix="brittle-")


def execute(
    job: Job,
    out: str | os.PathLike[str] | None,
    options: JobOptions = JobOptions(),
    keep: Callable[[Shard], None] | None = None,
) -> RunRecord:
    """Compute the shards of `job` that are not there yet; gives the record of the run.

    Args:
        job: what is computed.
        out: the run folder; a run in it is resumed, and one that is complete costs no pass. None writes nothing.
        options: how it is carried out.
        keep: called with every shard that this process computed.
    """
    started = time.monotonic()
    record = RunningRecord(describe(job, options.command, options.part), [], options.most_failures)
    share = job.share(options.part)
    opened: AbstractContextManager[RunFolder | None] = nullcontext() if out is None else RunFolder.open(out)
    with opened as folder, job.classifier.evaluating():
        before = None if folder is None else folder.record
        if folder is not None and before is not None:
            check_same(before, record.fixed, os.fspath(folder.path))
            if before.finished is not None and folder.shards.keys() == {*share}:
                _note(before.warnings, options)
                return before
        diagnosis = _examine(job, options)
        reference = diagnosis.reference.checked(job.classifier, "when the run begins")
        record.examined(diagnosis, job.classifier.decision, None if before is None else before.created)
        examined = record.now.warnings
        _note(examined, options)
        if folder is not None and before is not None:
            folder.begin(record.now)
        _Execution(job, options, folder, record, reference, share, keep).carry_out()
        doctor.check_unchanged(job.points, diagnosis.digest)
        record.finish(time.monotonic() - started)
        if folder is not None:
            folder.finish(record.now)
    _note([warning for warning in record.now.warnings if warning not in examined], options)
    return record.now


def _note(warnings: Sequence[WarningRecord], options: JobOptions) -> None:
    if options.note is not None:
        for warning in dict.fromkeys(warnings):
            options.note(warning.code, warning.sentence)


def _examine(job: Job, options: JobOptions) -> doctor.Diagnosis:
    expected = options.expected_accuracy
    first = next(iter(job.points.batches(doctor.GUARD_ROWS if expected else doctor.LOOKED_AT)))
    labels, scores = job.points.labels, job.scores
    diagnosis = doctor.examine(
        job.classifier, first, labels, scores, job.seed, job.rows, points=job.points, skip=options.skip_doctor
    )
    if expected is not None:
        subject = doctor.Subject(job.classifier, first, labels, scores, job.seed, job.rows)
        doctor.check_accuracy(expected, subject, diagnosis.findings)
    return replace(diagnosis, findings=(*job.left_out, *diagnosis.findings))


@dataclass(frozen=True)
class _Execution:
    """The shards `share` of a run that are being computed, and what they are written to and accounted for in."""

    job: Job
    options: JobOptions
    folder: RunFolder | None
    record: RunningRecord
    reference: doctor.Reference
    share: Sequence[int]
    keep: Callable[[Shard], None] | None

    def carry_out(self) -> None:
        """Compute every shard that is not there, and account for all of them."""
        with closing(self._shards()) as shards:
            for account, points in shards:
                self.record.add(account, points)
                if self.options.workers is not None:
                    self._report(self.record.account.points, self.record.account.passes)
        if self.folder is not None and self.folder.shards.keys() != {*self.share}:
            there = len(self.folder.shards)
            raise RuntimeError(f"{there} of {len(self.share)} shards are there at the end of the run")
        if self.options.workers is None:
            self._report(self.job.points_in(self.share), self.record.account.passes)

    def _shards(self) -> Generator[tuple[Account, pa.Table]]:
        """The account and the points of every shard: of those that are there, then of the others once they are safe."""
        folder, workers = self.folder, self.options.workers
        missing = [number for number in self.share if folder is None or number not in folder.shards]
        if folder is not None:
            for number, entry in sorted(folder.shards.items()):
                yield entry.account, folder.points(number)
        if folder is not None and workers is not None:
            expected = (self.record.fixed, self.reference.content(self.job.classifier))
            with closing(workers.shards(missing, self.job, expected)) as shards:
                for packed in shards:
                    self._begin(folder)
                    folder.enter(packed)
                    yield packed.account, folder.points(packed.number)
            return
        for number in missing:
            shard = self.job.shard(number, begun=self._batch_reporter(), reference=self.reference)
            if self.keep is not None:
                self.keep(shard)
            if folder is not None:
                self._begin(folder)
                folder.commit(number, shard.tables, shard.account)
            yield shard.account, shard.tables["points"]

    def _begin(self, folder: RunFolder) -> None:
        """Make the folder a run once there is a shard: what fails before leaves none, so that it can be tried again."""
        if not folder.shards:
            folder.begin(self.record.now)

    def _batch_reporter(self) -> Callable[[Batch], None] | None:
        """What reports every batch of the next shard, on top of what is accounted for."""
        if self.options.progress is None:
            return None
        classifier, done = self.job.classifier, self.record.account.points
        before = classifier.passes - self.record.account.passes

        def begun(batch: Batch) -> None:
            nonlocal done
            self._report(done, classifier.passes - before)
            done += len(batch)

        return begun

    def _report(self, done: int, passes: int) -> None:
        if self.options.progress is not None:
            self.options.progress(done, self.job.points_in(self.share), passes)
