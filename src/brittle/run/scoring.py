"""A run: examine, measure each point once, derive every score, write rows, shard by shard."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

import pyarrow as pa
from torch import Tensor

from brittle import doctor
from brittle.data import Batch, Points, as_points
from brittle.doctor.reference import REFERENCE
from brittle.errors import DataError, ParameterError
from brittle.intervals import check_confidence
from brittle.measure.forward import default_rows
from brittle.model.classifier import Classifier
from brittle.run.identity import check_same
from brittle.run.job import Job, Shard
from brittle.run.record import Record, describe
from brittle.run.workers import Workers
from brittle.scores import Score
from brittle.scores.call import check_classifier, check_seed
from brittle.scores.outside import check_scores
from brittle.store.account import FIRST_ROWS, Account
from brittle.store.folder import RunFolder
from brittle.store.table import KINDS, Table, check_free, read_table

CONFIDENCE = 0.99
"""Confidence of all intervals of a run unless told."""

MOST_FAILURES = FIRST_ROWS // 100
"""A run stops when more than this many of its first rows get no number, unless told."""

Progress = Callable[[int, int, int], None]
"""Called with the points done, all points, and the passes through the network so far."""

Keep = Callable[[Shard], None]
"""What is done with a shard once its rows are there."""


def score(
    classifier: Classifier,
    data: Points | tuple[Any, Any] | Tensor,
    scores: Sequence[Score],
    *,
    seed: int = 0,
    batch_size: int | None = None,
    confidence: float = CONFIDENCE,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    expected_accuracy: float | None = None,
    progress: Progress | None = None,
    command: Sequence[str] | None = None,
    most_failures: int | None = MOST_FAILURES,
    skip_doctor: bool = False,
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
        resume: go on with the run in `out`, if there is one: shards that are there and whole are kept.
        expected_accuracy: stop when the accuracy on the first labelled points is surely below.
        progress: called with every batch.
        command: how the run was started, for the record.
        most_failures: stop when more of the first 1,000 points than this get no number; None never stops for that.
        skip_doctor: leave out the checks before the run (see `docs/doctor.md`); the record says so.

    Returns:
        the table.

    Raises:
        DataError: the data do not fit the declaration, or too many of the first rows get no number.
        ModelError: the model cannot be scored as it stands.
        ParameterError: a parameter is outside its range.
        ResumeError: `out` holds another experiment than this one; the fields that differ are named.
        StorageError: `out` holds a run that is not to be resumed, is written by another process, or cannot be written.
    """
    if out is not None and not resume:
        check_free(out)
    parts: list[Shard] = []
    job = make_job(classifier, data, scores, seed, batch_size, confidence)
    options = (expected_accuracy, progress, command, most_failures)
    keep = parts.append if out is None else None
    provenance = execute(job, out, *options, keep=keep, skip_doctor=skip_doctor)
    if out is not None:
        return read_table(out)
    tables = {kind: pa.concat_tables([part.tables[kind] for part in parts]).combine_chunks() for kind in KINDS}
    return Table(provenance=provenance, **tables)


def execute(
    job: Job,
    out: str | os.PathLike[str] | None,
    expected_accuracy: float | None = None,
    progress: Progress | None = None,
    command: Sequence[str] | None = None,
    most_failures: int | None = MOST_FAILURES,
    *,
    keep: Keep | None = None,
    skip_doctor: bool = False,
    workers: Workers | None = None,
) -> dict[str, Any]:
    """Compute the shards of `job` that are not there yet; gives the record of the run.

    Args:
        job: what is computed.
        out: the run folder; a run in it is resumed, and one that is complete costs no pass. None writes nothing.
        expected_accuracy: stop when the accuracy on the first labelled points is surely below.
        progress: called with every batch.
        command: how the run was started, for the record.
        most_failures: stop when more of the first 1,000 points than this get no number; None never stops for that.
        keep: called with every shard that was computed.
        skip_doctor: leave out the checks before the run.
        workers: processes that compute the shards of a run folder, in place of this one.

    Raises:
        As `score`.
    """
    started = time.monotonic()
    fixed = describe(job, command)
    opened: AbstractContextManager[RunFolder | None] = nullcontext() if out is None else RunFolder.open(out)
    with opened as folder, job.classifier.evaluating():
        before = None if folder is None else folder.record
        if folder is not None and before is not None:
            check_same(before, fixed, os.fspath(folder.path))
            if before["finished"] and len(folder.shards) == job.shards:
                return before
        diagnosis = _examine(job, expected_accuracy, skip_doctor)
        assert diagnosis.reference is not None
        reference = diagnosis.reference.checked(job.classifier, "when the run begins")
        record = Record.start(fixed, diagnosis)
        if before is not None:
            record.created = before["created"]
        if folder is not None and (workers is None or before is not None):
            folder.begin(record.provenance())
        with closing(_shards(job, folder, record, reference, progress, keep, workers)) as shards:
            for account, points in shards:
                record.account += account
                record.confusion += doctor.confusion_in(points)
                _check_failures(record.account, most_failures)
        if folder is not None and len(folder.shards) != job.shards:
            raise RuntimeError(f"{len(folder.shards)} of {job.shards} shards are there at the end of the run")
        doctor.check_unchanged(job.points, diagnosis.digest)
        record.finish(time.monotonic() - started)
        if folder is not None:
            folder.finish(record.provenance())
    return record.provenance()


def _shards(
    job: Job,
    folder: RunFolder | None,
    record: Record,
    reference: doctor.Reference,
    progress: Progress | None,
    keep: Keep | None,
    workers: Workers | None,
) -> Generator[tuple[Account, pa.Table]]:
    """The account and the points of every shard: of those that are there, then of the others once they are safe."""
    there = {} if folder is None else dict(folder.shards)
    missing = [number for number in range(job.shards) if number not in there]
    if folder is not None:
        for number, entry in sorted(there.items()):
            yield Account.read(entry["account"]), folder.points(number)
    if workers is not None and folder is not None:
        told = record.fixed | {REFERENCE: reference.content(job.classifier)}
        with closing(workers.shards(missing, told)) as shards:
            for packed in shards:
                if not folder.shards:  # workers that cannot be had leave no run behind
                    folder.begin(record.provenance())
                entry = folder.enter(packed)
                yield Account.read(entry["account"]), folder.points(entry["number"])
                if progress is not None:
                    progress(record.account.points, len(job.points), record.account.passes)
        return
    for number in missing:
        begun = None if progress is None else _shown(job, number, record.account, progress)
        shard = job.shard(number, begun=begun, reference=reference)
        if keep is not None:
            keep(shard)
        if folder is not None:
            folder.commit(number, shard.tables, shard.account)
        yield shard.account, shard.tables["points"]
    if progress is not None:
        progress(len(job.points), len(job.points), record.account.passes)


def _shown(job: Job, number: int, account: Account, progress: Progress) -> Callable[[Batch], None]:
    """Tells `progress` of every batch of shard `number`, on top of what is accounted for."""
    first, before = job.first_row(number), job.classifier.passes - account.passes

    def show(batch: Batch) -> None:
        progress(account.points + batch.rows[0] - first, len(job.points), job.classifier.passes - before)

    return show


def _examine(job: Job, expected_accuracy: float | None, skip: bool) -> doctor.Diagnosis:
    looked_at = doctor.GUARD_ROWS if expected_accuracy else doctor.LOOKED_AT
    head = next(iter(job.points.batches(looked_at)))
    subject = (job.classifier, head, job.points.labels, job.scores, job.seed, job.rows)
    diagnosis = doctor.examine(*subject, points=job.points, skip=skip)
    if expected_accuracy is not None:
        doctor.check_accuracy(expected_accuracy, doctor.Subject(*subject))
    return diagnosis


def make_job(
    classifier: Classifier,
    data: Points | tuple[Any, Any] | Tensor,
    scores: Sequence[Score],
    seed: int,
    batch_size: int | None,
    confidence: float,
) -> Job:
    """The job of `score` with these arguments.

    Raises:
        ParameterError: a parameter is outside its range.
        DataError: the data do not fit the declaration.
    """
    _check_kinds(classifier, scores)
    points = as_points(data, classifier.bounds)
    _check_parameters(scores, seed, batch_size, confidence)
    head = next(iter(points.batches(1)))
    rows = batch_size or default_rows(head.inputs, classifier.device)
    return Job(classifier, points, tuple(scores), seed, rows, confidence)


def _check_failures(account: Account, most: int | None) -> None:
    if most is not None and account.failed_early > most:
        raise DataError(
            "too_many_failures",
            f"{account.failed_early} of the first {min(account.points, FIRST_ROWS)} points got no number (at most "
            f"{most} of {FIRST_ROWS} may); one of them: {account.failures[0]}",
        )


def _check_kinds(classifier: Any, scores: Any) -> None:
    check_classifier(classifier)
    if not isinstance(scores, Sequence) or not all(isinstance(score, Score) for score in scores):
        raise ParameterError(
            "scores", f"expected a list of scores such as [brittle.scores.Moments(sigma=0.1)]; found {scores!r:.80}"
        )
    check_scores(scores)


def _check_parameters(scores: Sequence[Score], seed: int, batch_size: int | None, confidence: float) -> None:
    check_confidence(confidence)
    if not scores:
        raise ParameterError("scores", "no score was asked for; name at least one")
    labels = [score.label for score in scores]
    if len(set(labels)) < len(labels):
        twice = next(label for number, label in enumerate(labels) if label in labels[:number])
        raise ParameterError("scores", f"{twice} is asked for twice; the table could not tell them apart")
    check_seed(seed)
    if batch_size is not None and batch_size < 1:
        raise ParameterError("batch_size", f"the batch size must be at least 1; found {batch_size}")
