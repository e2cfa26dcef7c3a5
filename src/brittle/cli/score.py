"""The command that scores every point and writes a run folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from brittle.cli.common import (
    DATA,
    LENGTH,
    MODEL,
    OUTPUT,
    BatchSize,
    Config,
    Quiet,
    open_run,
    program,
    say,
    say_failures,
    show,
)  # fmt: skip
from brittle.cli.options import DataOptions, ModelOptions
from brittle.cli.score_options import BY_DEFAULT, Opening, ScoreOptions
from brittle.errors import UsageError, listed
from brittle.estimate import CONFIDENCE
from brittle.registry import load
from brittle.scores import NoiseScore

if TYPE_CHECKING:
    from brittle.run.job import Job, Workers
    from brittle.run.job import Opening as JobOpening
    from brittle.store.record import RunRecord


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run.

    Attributes:
        confidence: Confidence of all intervals.
        expected_accuracy: Stop when the accuracy on the first 1,000 labelled points is surely below.
        skip_doctor: Leave out the checks before the run; the record says so.
        resume: Go on with the run in OUT, where one was begun.
        mirror: A second place of the run, such as s3://bucket/run, which gets each file once it is whole in OUT; with
            --resume a run goes on from either.
    """

    confidence: float = CONFIDENCE
    batch_size: BatchSize = None
    expected_accuracy: float | None = None
    skip_doctor: bool = False
    resume: bool = False
    mirror: str | None = None
    quiet: Quiet = False
    config: Config = None  # read when the command line is


@Parameter(name="*", group=LENGTH)
@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Options of the processes.

    Attributes:
        workers: Processes that compute side by side, with one thread each; by default one process with all threads, or
            as many as the cluster has room for.
        cluster: Let them run on a Ray cluster: auto (the one that this machine belongs to), or host:port of its head.
        part: Compute one part of so many, such as 3/8, into a run folder of its own; brittle join puts them together.
    """

    workers: int | None = None
    cluster: str | None = None
    part: str | None = None

    @property
    def which(self) -> tuple[int, int] | None:
        """The number of the part, and of how many; None for the whole."""
        if self.part is None:
            return None
        number, _, count = self.part.partition("/")
        short = number.isdecimal() and count.isdecimal() and len(self.part) < 20
        if not (short and 1 <= int(number) <= int(count)):
            raise UsageError(f"--part takes one of so many, such as 3/8; found {self.part!r:.40}")
        return int(number), int(count)

    def processes(self, opening: JobOpening, device: str | None) -> Workers | None:
        """Start the processes, each of which opens the run by `opening`; None for this process alone."""
        if self.cluster is None:
            if self.workers is None:
                return None
            return load("workers", "processes")(self.workers, opening)
        if device is not None and device.startswith("cuda:"):
            raise UsageError(f"each worker of a cluster sees its own GPUs alone: give --device cuda, not {device}")
        cluster = load("workers", "cluster")(self.cluster, opening, self.workers, int(device == "cuda"))
        cluster.prepare()
        return cluster


def score(
    model: Annotated[str, Parameter(group=MODEL)],
    data: Annotated[Path, Parameter(group=DATA)],
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    declared: ModelOptions = ModelOptions(),
    reading: DataOptions = DataOptions(),
    scoring: ScoreOptions = ScoreOptions(),
    running: RunOptions = RunOptions(),
    sharing: WorkerOptions = WorkerOptions(),
    inside: Annotated[tuple[str, ...], Parameter(parse=False)] = (),
) -> int:
    """Score every point of DATA by MODEL and write the run folder OUT.

    Args:
        model: A .pt2 archive of torch.export, an .onnx or .skops file; trees of XGBoost or CatBoost (.json) or
            LightGBM (.txt); ./file.py:factory or package.module:factory, a
            function that returns the network or a scikit-learn classifier; a Hugging Face folder, or
            hf:OWNER/NAME of its Hub; timm:NAME with --weights.
        data: An .npz file with x and y, a .npy, a .csv, .tsv or Parquet table of features, texts or images, WebDataset
            shards (.tar), a folder of images or of IDX files.
        out: Folder for the run, a new one without --resume.
        inside: The words of this command where another one calls it, which says the result itself.
    """
    from brittle.run import execute
    from brittle.run.progress import progress
    from brittle.store.folder import RunFolder, check_writable

    part = sharing.which
    workers = sharing.processes(partial(open_again, tuple(sys.argv[1:])), declared.device)
    folder = RunFolder(out) if running.mirror is None else load("place", "mirror")(out, running.mirror)
    check_writable(out) if running.resume else folder.check_free()
    contents = sorted(file.name for file in out.iterdir()) if out.is_dir() and not running.resume else []
    if contents:
        say(running.quiet, f"{out} holds other files, too ({listed(contents)}); they stay as they are")
    job = open_job(model, data, declared, reading, scoring, running)
    if not job.share(part):
        say(False, f"part {sharing.part} has nothing to do: the run has {job.shards} shards to share")
    with progress(not running.quiet) as advance:
        record = execute(
            job, folder, expected_accuracy=running.expected_accuracy, progress=advance, workers=workers, part=part,
            command=("brittle", *(inside or sys.argv[1:])), skip_doctor=running.skip_doctor,
            note=lambda code, sentence: say(False, f"note: {code}: {sentence}"),
        )  # fmt: skip
    if declared.decides.level and scoring.scores is BY_DEFAULT:
        say(running.quiet, f"logit_margin is left out: with {declared.decides.label} it is the same at every point")
    if job.classifier.passes == 0:
        say(running.quiet, f"the run in {out} was finished before; nothing was computed")
    return _conclude(record, out, running, silent=bool(inside) and running.quiet)


def open_again(words: Sequence[str]) -> Job:
    """Open the job of the command `brittle WORDS` in another process; the first process has printed its notes."""
    words = [*(word for word in words if word not in ("--debug", "--quiet")), "--quiet"]
    model, data, _, declared, reading, scoring, running, *_ = read_arguments(words)
    return open_job(model, data, declared, reading, scoring, running)


def read_arguments(words: Sequence[str]) -> tuple[Any, ...]:
    """Return the arguments that `score` gets from the command `brittle WORDS`, in their order."""
    app = import_module("brittle.cli.commands").app  # which reads this file when this command is called
    _, bound, _ = app.parse_args([*words], exit_on_error=False, print_error=False)
    bound.apply_defaults()
    return (*bound.arguments.values(),)


def open_job(
    model: str, data: Path, declared: ModelOptions, reading: DataOptions, scoring: ScoreOptions, running: RunOptions
) -> Job:
    """Open what the arguments of `score` name, and return the job that they ask for."""
    from brittle.run import make_job

    quiet, rows = running.quiet, running.batch_size
    opening = Opening.checked(model, data, declared, reading, scoring, quiet)
    opening.check_there()
    provenance, scores = opening.points.provenance, opening.scores
    for kind in ("text", "label"):
        if provenance.get(f"{kind}_column") is not None:
            say(quiet, f"{kind}s are the column {provenance[f'{kind}_column']!r:.60} of {data}")
    if provenance.get("cut_texts"):
        longest = provenance.get("text_length")
        say(quiet, f"{provenance['cut_texts']:,} texts are longer than {longest:,} tokens; their ends are cut off")
    for still in dict.fromkeys(getattr(score.noise, "still", "") for score in scores if isinstance(score, NoiseScore)):
        say(quiet or not still, f"noise leaves {still} unchanged; --categories names all columns that stay")
    return make_job(opening.classifier, opening.points, scores, scoring.seed, rows, running.confidence)


def _conclude(record: RunRecord, out: Path, running: RunOptions, *, silent: bool) -> int:
    """Say what became of the points, but for the result where `silent`; the exit code."""
    from brittle.analysis.outcomes import refuted_points, refuted_text
    from brittle.analysis.overview import overview
    from brittle.analysis.overview_text import how_brittle
    from brittle.store.reading import read_shards
    from brittle.text import chosen_text

    account = record.account
    share = f"{account.correct / account.labelled:.1%}" if account.labelled else ""
    accuracy = share and (f"accuracy {share}, " if record.model.decision is None else f"{share} right, ")
    if any({"limit", "precision"} & score.parameters.keys() for score in record.scores) and not running.quiet:
        show(how_brittle(overview(open_run(out))))
    doubt = ""
    if any(score.parameters.get("certify") for score in record.scores):
        doubt = refuted_text(sum(refuted_points(shard.columns) for shard in read_shards(out)))
    chosen = chosen_text(account.points, record.data)
    points = f"{account.points} points{chosen and f' ({chosen})'}"
    target = shlex.quote(str(out))
    seconds = "" if record.seconds is None else f", {record.seconds:.1f} s"
    done = f"{points}, {accuracy}{account.passes:,} passes{seconds}"
    say(silent, f"{done}; next: {program()} show {target}, {program()} report {target}")
    say(running.quiet or not doubt, doubt)
    if not account.failed:
        return 0
    head = f"{account.failed} of {account.points} points got no number; some of them:"
    return say_failures(head, account.failures)
