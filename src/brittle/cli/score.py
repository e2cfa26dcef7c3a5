"""The command that scores every point and writes a run folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from brittle.cli.common import ARGUMENTS, OUTPUT, ROW_FAILURES, check_order, in_pairs, program, say, show, whole_rows
from brittle.cli.options import DataOptions, ModelOptions, Opening
from brittle.cli.run_options import RunOptions, WorkerOptions
from brittle.cli.score_options import BY_DEFAULT, ScoreOptions
from brittle.errors import listed, printable
from brittle.scores import NoiseScore

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.run.job import Job
    from brittle.store.record import RunRecord


def score(
    model: Annotated[str, Parameter(group=ARGUMENTS)],
    data: Annotated[Path, Parameter(group=ARGUMENTS)],
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    declared: ModelOptions = ModelOptions(),
    reading: DataOptions = DataOptions(),
    scoring: ScoreOptions = ScoreOptions(),
    running: RunOptions = RunOptions(),
    sharing: WorkerOptions = WorkerOptions(),
) -> int:
    """Score every point of DATA by MODEL and write the run folder OUT.

    Parameters
    ----------
    model
        A torch.export archive (.pt2), or package.module:factory or ./file.py:factory, a function without arguments
        that returns the network or a scikit-learn classifier; an ONNX file (.onnx), a folder of a Hugging Face
        classifier of images or texts, timm:NAME with --weights, or a scikit-learn classifier saved by skops (.skops).
    data
        An .npz file with x (or images) and y (or labels), a .npy file, a .csv, .tsv or Parquet table of features or of
        texts, a folder of images by class or without classes, a Parquet file or folder of images as Hugging Face
        writes them, WebDataset shards (.tar), or a folder of MNIST-style IDX files.
    out
        Folder for the run; it must not hold one yet, unless it is resumed.
    """
    return scored(("brittle", *sys.argv[1:]), model, data, out, declared, reading, scoring, running, sharing)


def scored(
    command: Sequence[str],
    model: str,
    data: Path,
    out: Path,
    declared: ModelOptions = ModelOptions(),
    reading: DataOptions = DataOptions(),
    scoring: ScoreOptions = ScoreOptions(),
    running: RunOptions = RunOptions(),
    sharing: WorkerOptions = WorkerOptions(),
    *,
    inside: bool = False,
) -> int:
    """As `score`, for a command that is recorded word by word; `inside` another one, which says the result itself."""
    from brittle.run import JobOptions, execute
    from brittle.run.progress import progress

    part = sharing.which
    workers = sharing.processes(partial(open_again, tuple(sys.argv[1:])), declared.device)
    job = _open_job(model, data, out, declared, reading, scoring, running)
    with progress(running.quiet, sys.stderr) as advance:
        options = JobOptions(
            expected_accuracy=running.expected_accuracy,
            progress=advance,
            command=command,
            skip_doctor=running.skip_doctor,
            workers=workers,
            part=part,
            note=_say_note,
        )
        record = execute(job, out, options)
    if declared.decides.level and scoring.scores is BY_DEFAULT:
        say(running.quiet, f"logit_margin is left out: with {declared.decides.label} it is the same at every point")
    if job.classifier.passes == 0:
        say(running.quiet, f"the run in {out} was finished before; nothing was computed")
    return _conclude(record, out, running, silent=inside and running.quiet)


def open_again(words: Sequence[str]) -> Job:
    """What the command `brittle WORDS` computes, opened in another process; what is said was said by the first."""
    app = import_module("brittle.cli.commands").app  # which reads this file when this command is called
    quiet = [] if "--quiet" in words else ["--quiet"]
    words = [word for word in words if word != "--debug"]
    _, given, _ = app.parse_args(in_pairs([*words, *quiet]), exit_on_error=False, print_error=False)
    given.apply_defaults()
    model, data, _, declared, reading, scoring, running, _ = given.arguments.values()
    return _open_job(model, data, None, declared, reading, scoring, running)


def _open_job(
    model: str,
    data: Path,
    out: Path | None,
    declared: ModelOptions,
    reading: DataOptions,
    scoring: ScoreOptions,
    running: RunOptions,
) -> Job:
    """What the run computes; all that can be refused before the data and the model are opened is refused first.

    A worker writes no folder, so its `out` is None.
    """
    from brittle.run import make_job

    declared = scoring.declared(declared)
    choice = scoring.choose(declared)
    if out is not None:
        running.check_folder(out)
        _say_others(out, running)
    opening = Opening(model, data, declared, reading)
    choice.check_texts(opening.reads_texts)
    opening.check_inputs()
    if choice.default_noise:
        say(running.quiet, f"sigma {choice.spread:g}, a tenth of the value range {choice.bounds}")
    rows = whole_rows(running.batch_size)
    check_order(model, data)
    opening.check()
    points = opening.points
    _say_columns(points, data, running)
    scores = choice.scores(points, opening.texts)
    for still in dict.fromkeys(getattr(score.noise, "still", "") for score in scores if isinstance(score, NoiseScore)):
        say(running.quiet or not still, f"noise leaves {still} unchanged; --categories names all columns that stay")
    classifier = opening.classifier
    choice.check_model(classifier)
    return make_job(classifier, points, scores, scoring.seed, rows, running.confidence)


def _say_columns(points: Points, data: Path, running: RunOptions) -> None:
    """Say which columns of a table hold the labels and the texts, and that texts were cut."""
    known = points.provenance
    for what in ("text", "label"):
        if known.get(f"{what}_column") is not None:
            say(running.quiet, f"{what}s are the column {known[f'{what}_column']!r:.60} of {data}")
    if known.get("cut_texts"):
        most = known.get("text_length")
        say(running.quiet, f"{known['cut_texts']:,} texts are longer than {most:,} tokens; their ends are cut off")


def _say_others(out: Path, running: RunOptions) -> None:
    """Say that a folder without a run holds other files, which stay."""
    others = sorted(one.name for one in out.iterdir()) if out.is_dir() and not running.resume else []
    if others:
        say(running.quiet, f"{out} holds other files, too ({listed(others, 3)}); they stay as they are")


def _say_note(code: str, sentence: str) -> None:
    show(f"brittle: note: {code}: {sentence}", sys.stderr)


def _say_decisions(out: Path) -> None:
    """Print how many points hold, break and are undecided."""
    from brittle.analysis import decisions, format_decisions
    from brittle.store.reading import read_table

    show(format_decisions(decisions(read_table(out))), sys.stdout)


def _refuted_text(record: RunRecord, out: Path) -> str:
    """That attacks refuted certificates; empty where none did, or none were asked for."""
    from brittle.analysis.outcomes import refuted_points, refuted_text
    from brittle.store.reading import read_table

    if not any(score.parameters.get("certify") for score in record.scores):
        return ""
    return refuted_text(refuted_points(read_table(out).columns))


def _conclude(record: RunRecord, out: Path, running: RunOptions, *, silent: bool) -> int:
    """Say what became of the points, but for the result where `silent`; the exit code."""
    from brittle.text import chosen_text

    account = record.account
    right = f"{account.correct / account.labelled:.1%}" if account.labelled else ""
    accuracy = right and (f"accuracy {right}, " if record.model.decision is None else f"{right} right, ")
    if any("limit" in score.parameters for score in record.scores) and not running.quiet:
        _say_decisions(out)
    chosen = chosen_text(account.points, record.data.chosen_from)
    points = f"{account.points} points{chosen and f' ({chosen})'}"
    where = shlex.quote(str(out))
    done = f"{points}, {accuracy}{account.passes:,} passes, {record.seconds or 0.0:.1f} s"
    say(silent, f"{done}; next: {program()} show {where}, {program()} report {where}")
    if doubt := _refuted_text(record, out):
        say(running.quiet, doubt)
    if not account.failed:
        return 0
    print(f"brittle: {account.failed} of {account.points} points got no number; some of them:", file=sys.stderr)
    for sentence in account.failures:
        print(f"brittle:   {printable(sentence)}", file=sys.stderr)
    return 0 if running.allow_row_errors else ROW_FAILURES
