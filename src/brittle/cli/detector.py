"""The commands of the detector of brittle predictions."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from brittle.cli.common import ROW_FAILURES, Flag, check_new, say, show, whole_rows
from brittle.cli.options import BatchSize, DataOptions, NetworkOptions, Overwrite, Quiet
from brittle.errors import UsageError, printable
from brittle.estimate import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd

    from brittle.detector.pseudo_margin import PseudoMargin

detector = App(name="detector", help="Calibrate a rule that says from one forward pass that a prediction is brittle.")
pseudo_margin = App(name="pseudo-margin", help="Learn a stand-in for the input margin from the features of a model.")

Run = Annotated[Path, Parameter(name="run")]


@detector.command
def fit(
    run_folder: Run,
    *,
    epsilon: str | None = None,
    limit: float | None = None,
    norm: str | None = None,
    tpr: float = 0.95,
    score: str = "logit_margin",
    confidence: float = CONFIDENCE,
    seed: int = 0,
    column: str | None = None,
    pseudo_margin: Path | None = None,
    scores: Path | None = None,
    out: Path = Path("detector.json"),
    overwrite: Overwrite = False,
) -> int:
    """Calibrate a detector on RUN, by its input margins with --epsilon or by its noise with --limit, and write it.

    Parameters
    ----------
    run_folder
        A folder that `brittle score` wrote, with --scores input_margin logit_margin for --epsilon, with
        --until decided --limit 0.9 for --limit; and with the score.
    epsilon
        Predictions whose margin is at most this are brittle; in pixel units, such as 8/255.
    limit
        Predictions that survive the noise of RUN with a probability below this are brittle, such as 0.9.
    norm
        Of the margins, l2, linf or l1; by default the one that RUN holds them in. With --limit, of the score.
    tpr
        Share of the brittle predictions that must be flagged, on average over calibrations.
    score
        What decides: logit_margin, feature_margin, max_probability, probability_margin, entropy, softmax or
        pseudo_margin; or one of one forward pass that an installed package offers.
    confidence
        Confidence of all intervals.
    seed
        Seed of the split into calibration and held-out points.
    column
        Label of the margins, where RUN holds several in this norm; with --limit of the flip probability, by default the
        one drawn for --limit, else the one that speaks for RUN.
    pseudo_margin
        The file of the pseudo-margin that gave the score, where that decides.
    scores
        Another run of the same model and data that holds the score.
    out
        The file to write.
    """
    from brittle.detector import Detector
    from brittle.store.reading import read_table

    check_new(out, overwrite)
    found = Detector.fit(
        read_table(run_folder),
        epsilon,
        norm,
        tpr,
        score,
        confidence,
        seed,
        limit=limit,
        column=column,
        scores=None if scores is None else read_table(scores),
        pseudo_margin=_pseudo_margin(pseudo_margin),
    )
    show(str(found))
    print(found.save(out))
    return 0


@detector.command
def apply(
    file: Path,
    model: str,
    data: Path,
    *,
    out: Path,
    network: NetworkOptions = NetworkOptions(),
    head: str | None = None,
    reading: DataOptions = DataOptions(),
    pseudo_margin: Path | None = None,
    force: Annotated[bool, Flag] = False,
    batch_size: BatchSize = "auto",
    overwrite: Overwrite = False,
    allow_row_errors: Annotated[bool, Flag] = False,
    quiet: Quiet = False,
) -> int:
    """Flag every point of DATA whose prediction by MODEL is brittle, as the detector FILE says, and write a table.

    The bounds and the preprocessing are those that the detector was fitted with. Points that cannot be scored are
    flagged too, however many; they are counted, and the exit code is then 4.

    Parameters
    ----------
    file
        A detector that `brittle detector fit` wrote.
    model
        As for `brittle score`.
    data
        As for `brittle score`.
    out
        The table to write, .parquet or .csv.
    head
        Name of the last linear layer, where the detector needs features; that of the fit by default.
    pseudo_margin
        The file of the pseudo-margin that the detector was fitted with, where it was.
    force
        Accept another model than the one that the detector was fitted for; every row says so.
    allow_row_errors
        Exit with 0 even where some points got no score; they are flagged all the same.
    """
    from brittle.detector import Detector, check_out, kind_of, write_flags
    from brittle.run.progress import progress

    check_out(out)
    check_new(out, overwrite)
    _check_no_texts(model)
    rule = Detector.load(file)
    if head is not None and not kind_of(rule.score).uses_features:
        raise UsageError(f"the detector reads {rule.score}, which needs no features; leave out --head")
    known, rows = rule.model, whole_rows(batch_size)
    points = reading.open(data, known.bounds, model=model)
    classifier = network.load(model, known.bounds, known.mean, known.std, outputs=known.outputs, head=head)
    learned = _pseudo_margin(pseudo_margin)
    with progress(not quiet) as advance:
        flags = rule.apply(classifier, points, force, pseudo_margin=learned, batch_size=rows, progress=advance)
    say(quiet, f"{flags['brittle'].sum()} of {len(flags)} predictions are flagged as brittle at {rule.criterion.size}")
    if bool(flags["forced"].to_numpy().any()):
        differing = "the detector was forced onto a model or preprocessing that it was not fitted for"
        print(f"brittle: note: forced: {differing}; its flags promise nothing here", file=sys.stderr)
    print(write_flags(flags, out))
    return _conclude(flags, allow_row_errors)


@pseudo_margin.command(name="fit")
def fit_pseudo_margin(
    run_folder: Run,
    model: str,
    data: Path,
    *,
    norm: str | None = None,
    seed: int = 0,
    network: NetworkOptions = NetworkOptions(),
    head: str | None = None,
    reading: DataOptions = DataOptions(),
    out: Path = Path("pseudo-margin.safetensors"),
    overwrite: Overwrite = False,
) -> int:
    """Learn the input margins of RUN from the features of MODEL on the same DATA, and write what was learned.

    Calibrate a detector with it on points that it was not trained on.

    Parameters
    ----------
    run_folder
        A folder that `brittle score --scores input_margin` wrote.
    model
        The model of the run.
    data
        The data of the run.
    norm
        Of the margins, l2, linf or l1; by default the one that RUN holds them in.
    seed
        Seed of the training.
    head
        Name of the last linear layer; that of the run by default.
    out
        The file to write, .safetensors.
    """
    from brittle.detector.pseudo_margin import SUFFIX, PseudoMargin
    from brittle.model.bounds import Bounds
    from brittle.store.reading import read_table

    check_new(out, overwrite, SUFFIX)
    _check_no_texts(model)
    table = read_table(run_folder)
    declared = table.record.model
    bounds = Bounds.from_record(asdict(declared))
    points = reading.open(data, bounds, limit=table.record.data.limit, model=model)
    known = {"outputs": declared.outputs, "head": head or declared.head}
    classifier = network.load(model, bounds, declared.mean, declared.std, **known)
    learned = PseudoMargin.fit_run(table, classifier, points, norm, seed)
    print(f"{learned.recipe.points} points, validation loss {learned.recipe.validation_loss:.4g}")
    print(learned.save(out))
    return 0


def _check_no_texts(model: str) -> None:
    """Raise where the model reads texts, whose points have several tensors, which detectors do not know."""
    from brittle.model.loading.hugging_face import reads_texts

    if reads_texts(model):
        raise UsageError(
            f"{model} reads texts, which detectors and pseudo-margins do not know; use brittle score",
        )


def _conclude(flags: pd.DataFrame, allow_row_errors: bool) -> int:
    """Say which points got no score; the exit code."""
    from brittle.estimate import Status

    failed = flags.loc[flags["score"].isna()]
    if not len(failed):
        return 0
    print(f"brittle: {len(failed)} of {len(flags)} points got no score and are flagged; the first:", file=sys.stderr)
    for point, status in failed[["point", "status"]].head(3).itertuples(index=False):
        why = Status[status.upper()].sentence
        print(f"brittle:   point {printable(point)}: {status}: {why}", file=sys.stderr)
    return 0 if allow_row_errors else ROW_FAILURES


def _pseudo_margin(path: Path | None) -> PseudoMargin | None:
    from brittle.detector.pseudo_margin import PseudoMargin

    return None if path is None else PseudoMargin.load(path)
