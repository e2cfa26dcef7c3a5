"""A run: examine, measure each point once, derive every score, write rows, shard by shard."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

import pyarrow as pa
from torch import nn

from brittle import doctor
from brittle.data import Batch
from brittle.data.formats import Data
from brittle.decisions import Decision
from brittle.errors import ParameterError, warn
from brittle.estimate import CONFIDENCE, LIMIT
from brittle.model.arrays import is_estimator, names_itself
from brittle.model.classifier import Classifier
from brittle.noise.named import changes
from brittle.registry import load
from brittle.run.arguments import Asked, check_words, labels_and_scores, make_job, with_labels
from brittle.run.job import Job, Workers
from brittle.run.progress import Progress, ProgressLine
from brittle.run.progress import progress as shown_progress
from brittle.run.record import MOST_FAILURES, RunningRecord, describe
from brittle.scores.choose import NO_LIMIT
from brittle.store.folder import RunFolder, RunWriter, Shard
from brittle.store.reading import read_table
from brittle.store.record import Finding, RunRecord
from brittle.store.schemas import SHARD_KINDS
from brittle.store.table import Table


class Memory:
    """The shards of a run that is written nowhere."""

    record: RunRecord | None = None

    def __init__(self) -> None:
        self.shards: dict[int, Shard] = {}

    def open(self, expected: RunRecord | None = None) -> AbstractContextManager[object]:
        return nullcontext()

    def commit(self, shard: Shard) -> None:
        self.shards[shard.number] = shard

    def points(self, number: int) -> pa.Table:
        return self.shards[number].tables["points"]

    def note(self, record: RunRecord) -> None:
        self.record = record

    def table(self) -> Table:
        assert self.record is not None
        shards = [shard for _, shard in sorted(self.shards.items())]
        tables = {
            kind: pa.concat_tables([schema.empty_table(), *(shard.tables[kind] for shard in shards)]).combine_chunks()
            for kind, schema in SHARD_KINDS.items()
        }
        return Table(record=self.record, **tables)


def score(
    classifier: Any,
    data: Data,
    y: Any = None,
    scores: Asked = None,
    *,
    sigma: float | Sequence[float] | None = None,
    noise: str | None = None,
    label_column: str | None = None,
    decision: Decision | str | None = None,
    name: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    confidence: float = CONFIDENCE,
    out: str | os.PathLike[str] | None = None,
    mirror: str | None = None,
    resume: bool = False,
    expected_accuracy: float | None = None,
    progress: Progress | bool | None = None,
    command: Sequence[str] | None = None,
    most_failures: int | None = MOST_FAILURES,
    skip_doctor: bool = False,
    limit: float | None = LIMIT,
    precision: float | None = None,
    draws: int | Sequence[int] | None = None,
    workers: int | None = None,
    part: tuple[int, int] | None = None,
    **reading: Any,
) -> Table:
    """Score every point of `data` by every score of `scores`.

    Measurements that several scores need are taken once. The noise of a point is keyed by (seed, point id), so its
    scores do not depend on the batch size or on the other points, except as a network rounds differently in another
    batch (attacks can amplify that, see `docs/explanation/attacks.md`).

    Args:
        classifier: the trained model; a network of PyTorch, a fitted estimator of scikit-learn or a model of MAITE as
            it is stands for `brittle.Classifier` of it, without bounds where it is an estimator or the noise is one of
            columns. Or its name, as the command line takes it: a file, a folder, or `FILE.py:FACTORY`, which runs.
        data: `x` `[N, *shape]` in the declared units, or the pair `(x, y)`; a data set or loader of PyTorch, a data set
            of MAITE, or a list of images of Pillow, read as `brittle.data.dataset_points` does; a path, read as
            `brittle.data.open_points` does; or points from either of these two; a frame of pandas, alone or as `x`,
            read as a table in a file. Of an estimator that was fitted on a frame, columns of text and categories stay
            as they are.
        y: the label of each point, `[N]`, where `data` are arrays, a tensor or a frame alone; or `scores`: a text, a
            score, or a list of scores or of different names with a score's among them is no `y`.
        scores: what to compute; each at most once, told apart by name and parameters. Or names, such as `"shrinkage"`
            or `["shrinkage", "input_margin"]` (`brittle list`); by default `shrinkage`, `softmax` and `logit_margin`.
        sigma: standard deviations of the noise of scores by name; by default a tenth of the range of the inputs.
        noise: the noise of scores by name, in the words of `--noise`: `"per-feature"`, `"rotation:15"`.
        label_column: the column of a frame or a table that holds the labels; by default label, target, class or y.
        decision: what is decided from the output of a model that is given as it is, in the words of `--decision`, such
            as `"within:0.5"` of a regressor, or one of `brittle.decisions`; by default the predicted class.
        name: name of a model that is given as it is, in the record and on the page; by default its type.
        seed: seed of the noise.
        batch_size: most rows in one pass through the network; by default 64 to 4,096 on a CPU, by their size, up to
            16,384 of a model outside PyTorch, and 512 elsewhere; fewer of very large ones. On a CPU wide layers are
            given fewer, down to 64. It is halved where memory runs out.
        confidence: of all intervals in the table.
        out: folder to write the run to, shard by shard; None keeps it in memory.
        mirror: a second place for it, such as `s3://bucket/run`, which gets each file once it is whole in `out`; with
            `resume` a run goes on from either.
        resume: go on with the run in `out`, if there is one: shards that are there and whole are kept.
        expected_accuracy: stop when the accuracy on the first labelled points is surely below.
        progress: True shows how far the run is, on a terminal, in a notebook or in lines, and before a long one how
            long it will take; a function is called after every batch with points done, all points and passes so far.
        command: how the run was started, for the record.
        most_failures: stop when more of the first 1,000 points than this get no number; None never stops for that.
        skip_doctor: leave out the checks before the run (see `docs/reference/doctor.md`); the record says so.
        limit: count noisy copies of each point until it is decided whether its prediction is kept with this
            probability or more; None counts exactly `draws`. It, `precision` and `draws` are for scores by name.
        precision: count until the interval of that probability is no wider, whatever the limit.
        draws: noisy copies of a point at most; by default 1,000. Several make several scores.
        workers: processes that compute side by side, with one thread each, as `--workers` has them; each gets a copy of
            the model and of the data, so what you define has to stand in a module that can be imported. The table is
            the same for any number of them, and for none with one thread. None computes here.
        part: compute this part of so many of the shards, such as (1, 8), to be put together by `brittle join`.
        reading: how data that are given as a path are read: `split`, `layout`, `text_column` and the other fields of
            `brittle.data.reading.Reading`, but `bounds` and `limit`.

    Returns:
        the table.

    Warns:
        BrittleWarning: a note of the examination before the scoring, or of the results; each once, and in the record.

    Raises:
        DataError: the data do not fit the declaration, or too many of the first rows get no number.
        ModelError: the model cannot be scored as it stands.
        ParameterError: a parameter is outside its range.
        ResumeError: `out` holds another experiment than this one; the fields that differ are named.
        StorageError: `out` holds a run that is not to be resumed, is written by another process, or cannot be written.
    """
    if out is None and mirror is not None:
        raise ParameterError("mirror= is a second place of the run folder out=, and there is none; give both")
    memory = Memory()
    folder = None if out is None else RunFolder(out) if mirror is None else load("place", "mirror")(out, mirror)
    if folder is not None and not resume:
        folder.check_free()
    y, scores = labels_and_scores(y, scores)
    data = with_labels(data, y)
    check_words(reading, score.__annotations__)
    words = reading if label_column is None else {"label_column": label_column, **reading}
    if isinstance(classifier, str | os.PathLike):
        model, words = load("model", "by_name")(classifier, data, words, decision, name, noise)
    else:
        model = _declared(classifier, decision, name, noise)
    options: dict[str, object] = {} if limit == LIMIT else {"limit": NO_LIMIT if limit is None else limit}
    options |= {} if precision is None else {"precision": precision}
    options |= {} if draws is None else {"draws": tuple(draws) if isinstance(draws, Iterable) else (draws,)}
    job = make_job(model, data, scores, seed, batch_size, confidence, sigma, noise, words, options)
    with shown_progress(progress) as advance:
        execute(
            job,
            folder or memory,
            expected_accuracy=expected_accuracy,
            progress=advance,
            command=command,
            most_failures=most_failures,
            skip_doctor=skip_doctor,
            workers=None if workers is None else load("workers", "processes")(workers),
            part=part,
            note=warn,
        )
    return memory.table() if out is None else read_table(out)


def _declared(model: Any, decision: Decision | str | None, name: str | None, noise: str | None) -> Any:
    """Return a network or an estimator as it is with what `score` is told of it; anything else as it stands."""
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise ParameterError(f"a name is a text, such as 'forest'; found {name!r:.40}")
    if isinstance(model, nn.Module) or is_estimator(model) or names_itself(model):
        source = None if name is None else {"spec": name}
        of_columns = isinstance(noise, str) and changes(noise) == "columns"
        bounds = None if is_estimator(model) or of_columns else (0.0, 1.0)
        return Classifier(model, bounds, decision=decision, source=source)
    if decision is not None or name is not None:
        raise ParameterError(
            "decision= and name= are for a model as it is; a Classifier has its own: Classifier(model, decision=..., "
            "source={'spec': name})"
        )
    return model


def execute(
    job: Job,
    out: RunWriter,
    *,
    expected_accuracy: float | None = None,
    progress: Progress | None = None,
    command: Sequence[str] | None = None,
    most_failures: int | None = MOST_FAILURES,
    skip_doctor: bool = False,
    workers: Workers | None = None,
    part: tuple[int, int] | None = None,
    note: Callable[[str, str], None] = lambda code, sentence: None,
) -> RunRecord:
    """Compute the shards of `job` that are not in `out` yet; return the run's record. For other arguments see `score`.

    `note` is called once with the code and the sentence of every note, those of the examination before the scoring.
    """
    started = time.monotonic()
    share = job.share(part)

    def advance(done: int, passes: int) -> None:
        if progress is not None:
            progress(done, job.points_in(share), passes)

    record = RunningRecord(describe(job, command, part), most_failures)

    with out.open(record.now), job.classifier.evaluating():
        before = out.record
        if before is not None and before.finished is not None and out.shards.keys() == {*share}:
            _note(before.warnings, note)
            return before
        subject, reference, digest = _examine(job, expected_accuracy, skip_doctor, record, before and before.created)
        examined = record.now.warnings
        _note(examined, note)
        if before is not None:
            out.note(record.now)
        for number, entry in sorted(out.shards.items()):
            record.add(entry.account, out.points(number))
        missing = [number for number in share if number not in out.shards]
        if isinstance(progress, ProgressLine):
            points = job.points_in(missing)
            progress.begin(points, points * subject.seconds_per_point, points * subject.seconds_to_read)
        with closing(_computed(missing, job, workers, record, reference, advance)) as shards:
            for shard in shards:
                if not out.shards:  # what fails before the first shard leaves no run, so that it can be tried again
                    out.note(record.now)
                out.commit(shard)
                job.fit = min(job.fit, shard.fit or job.fit)
                record.add(shard.account, shard.tables["points"])
        if not out.shards.keys() >= {*share}:
            raise RuntimeError(f"{len(out.shards)} of {len(share)} shards were computed, and no error was raised")
        doctor.check_unchanged(job.points, digest)
        if job.fit < job.rows:
            record.note_memory(job)
        record.finish(None if before is not None else time.monotonic() - started)
        out.note(record.now)
    _note([warning for warning in record.now.warnings if warning not in examined], note)
    return record.now


def _note(findings: Sequence[Finding], note: Callable[[str, str], None]) -> None:
    for finding in dict.fromkeys(findings):
        note(finding.code, finding.sentence)


def _examine(
    job: Job, expected: float | None, skipped: bool, record: RunningRecord, created: str | None
) -> tuple[doctor.Subject, doctor.Reference, str]:
    """Make the checks, and record what they found; what they look at, its points with their logits, and a digest."""
    batch = next(iter(job.points.batches(doctor.GUARD_ROWS if expected else doctor.LOOKED_AT)))
    digest = doctor.digest(batch)

    def seen(rows: int) -> tuple[doctor.Subject, doctor.Reference]:
        subject = doctor.Subject(
            job.classifier, batch, job.points.labels, job.scores, job.seed, rows, job.points, expected
        )
        doctor.examine(subject, skip=skipped)
        return subject, subject.reference().checked(job.classifier, "when the run begins")

    subject, reference = job.fitting(seen)
    record.examined(subject, created, skipped=skipped)
    return subject, reference, digest


def _computed(
    numbers: Sequence[int],
    job: Job,
    workers: Workers | None,
    record: RunningRecord,
    reference: doctor.Reference,
    advance: Callable[[int, int], None],
) -> Generator[Shard]:
    """Yield the shards with these numbers, by other processes or by this one, which reports every batch."""
    if workers is not None:
        expected = record.now, reference.content(job.classifier)
        with closing(workers.shards(numbers, job, expected)) as shards:
            for shard in shards:
                yield shard
                advance(record.now.account.points, record.now.account.passes)
        return
    for number in numbers:
        done, lost_passes = record.now.account.points, job.classifier.passes - record.now.account.passes

        def begun(batch: Batch) -> None:
            nonlocal done
            advance(done, job.classifier.passes - lost_passes)  # noqa: B023 - called within the loop
            done += len(batch)

        yield job.shard(number, begun=begun, reference=reference)
    advance(record.now.account.points, record.now.account.passes)
