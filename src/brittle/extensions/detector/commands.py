"""The commands of the detector of brittle predictions."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import App

from brittle.cli.common import BatchSize, Overwrite, Quiet, Run, check_new, say, say_failures, show
from brittle.cli.options import DataOptions, Device, Weights, declare, load_network
from brittle.errors import BrittleWarning, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from brittle.data import Points
    from brittle.extensions.detector.identity import Identity
    from brittle.model.classifier import Classifier


detector = App(name="detector", help="Calibrate a rule that says from one forward pass that a prediction is brittle.")
surrogate = App(name="surrogate", help="Learn what a run measured, so that one forward pass predicts it.")


@detector.command
def fit(
    run_folder: Run,
    *,
    epsilon: str | None = None,
    limit: float | None = None,
    norm: str | None = None,
    tpr: float = 0.95,
    score: str = "logit_margin",
    column: str | None = None,
    pseudo_margin: Path | None = None,
    out: Path = Path("detector.json"),
    overwrite: Overwrite = False,
) -> int:
    """Calibrate a detector on RUN, by its input margins with --epsilon or by its noise with --limit, and write it.

    Args:
        run_folder: A folder that `brittle score` wrote, with --scores input_margin logit_margin for --epsilon, or
            with the same --limit; and with the score.
        epsilon: Predictions whose margin is at most this are brittle; in pixel units, such as 8/255.
        limit: Predictions that survive the noise of RUN with a probability below this are brittle, such as 0.9.
        norm: Of the margins, l2, linf or l1; by default the one that RUN holds them in. With --limit, of the score.
        tpr: Share of the brittle predictions that must be flagged, on average over calibrations.
        score: What decides, a score that reads one forward pass, such as logit_margin or entropy.
        column: Label of the margins or the flip probability, where RUN holds several; by default its representative.
        pseudo_margin: The file of the pseudo-margin that gave the score, where that decides.
        out: The file to write.
    """
    from brittle.extensions.detector.detector import Detector
    from brittle.extensions.detector.surrogate import Surrogate
    from brittle.store.reading import read_table

    check_new(out, overwrite)
    rule = Detector.fit(
        read_table(run_folder, images=False),
        epsilon,
        norm,
        tpr,
        score,
        limit=limit,
        column=column,
        pseudo_margin=None if pseudo_margin is None else Surrogate.load(pseudo_margin),
    )
    show(str(rule))
    print(rule.save(out))
    return 0


@detector.command
def apply(
    file: Path,
    model: str,
    data: Path,
    *,
    out: Path,
    weights: Weights = None,
    device: Device = None,
    reading: DataOptions = DataOptions(),
    pseudo_margin: Path | None = None,
    batch_size: BatchSize = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Flag every point of DATA whose prediction by MODEL is brittle by the detector FILE, and write a table.

    The bounds and the preprocessing are those that the detector was fitted with. Points that cannot be scored are
    flagged too, however many they are; the command counts them and ends with exit code 4.

    Args:
        file: A detector that `brittle detector fit` wrote.
        model: As for `brittle score`.
        data: As for `brittle score`.
        out: The table to write, .csv, .parquet, .arrow, .json or .jsonl.
        pseudo_margin: The file of the pseudo-margin that the detector was fitted with, where it was.
    """
    from brittle.extensions.detector.detector import Detector
    from brittle.extensions.detector.flags import write_flags
    from brittle.extensions.detector.surrogate import Surrogate
    from brittle.run.progress import progress

    rule = Detector.load(_check_out(out, overwrite, model, file))
    classifier, points = _open(rule.model, model, data, weights, device, reading)
    learned = None if pseudo_margin is None else Surrogate.load(pseudo_margin)
    with progress(not quiet) as advance:
        flags = rule.apply(classifier, points, pseudo_margin=learned, batch_size=batch_size, progress=advance)
    say(quiet, f"{flags['brittle'].sum()} of {len(flags)} predictions are flagged as brittle at {rule.criterion.size}")
    print(write_flags(flags, out))
    return _conclude(flags, "got no score and are flagged")


@surrogate.command(name="fit")
def fit_surrogate(
    run_folder: Run,
    model: str,
    data: Path,
    *,
    alpha: float | None = None,
    norm: str | None = None,
    form: Literal["head", "paper", "margins"] | None = None,
    weights: Weights = None,
    device: Device = None,
    reading: DataOptions = DataOptions(),
    out: Path = Path("surrogate.safetensors"),
    overwrite: Overwrite = False,
) -> int:
    """Learn from the features of MODEL on the same DATA what RUN measured, and write the surrogate: its input margins
    (a pseudo-margin), or with --alpha the probability that noise keeps a prediction, with a lower bound.

    Calibrate a detector with a pseudo-margin on points that it was not trained on.

    Args:
        run_folder: A folder that `brittle score --scores input_margin` wrote, or with --alpha `--scores monte_carlo
            --limit none`.
        model: The model of the run.
        data: The data of the run.
        alpha: Learn the probability, with a bound that fails at this share of the points, such as 0.1.
        norm: Of the margins, l2, linf or l1; by default the one that RUN holds them in.
        form: What it reads: the features and the margins of the last layer (head), the features alone (paper), or
            these margins alone (margins); by default margins, unless the features help.
        out: The file to write, .safetensors.
    """
    from brittle.extensions.detector.surrogate import SUFFIX, Surrogate
    from brittle.model.bounds import Bounds
    from brittle.store.reading import read_table

    check_new(out, overwrite, SUFFIX)
    _check_no_texts(model)
    table = read_table(run_folder, images=False)
    declared = table.record.model
    bounds = Bounds.from_record(asdict(declared))
    points = reading.open(data, bounds, limit=table.record.data.limit, model=model)
    options = {"outputs": declared.outputs, "head": declared.head, "device": device}
    classifier = declare(load_network(model, weights), model, bounds, declared.mean, declared.std, **options)
    learned = Surrogate.fit_run(table, classifier, points, norm, alpha=alpha, form=form)
    show(str(learned))
    print(learned.save(out))
    return 0


@surrogate.command(name="apply")
def apply_surrogate(
    file: Path,
    model: str,
    data: Path,
    *,
    out: Path,
    alpha: float | None = None,
    by_class: bool = False,
    weights: Weights = None,
    device: Device = None,
    reading: DataOptions = DataOptions(),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Predict for every point of DATA with which probability noise keeps the prediction of MODEL, and write a table.

    A row has the prediction, and for each sigma of the run p_robust and a lower bound, bound_1 at the smallest one.
    Points that cannot be run have the bound 0; the command counts them and ends with exit code 4.

    Args:
        file: A surrogate that `brittle surrogate fit --alpha` wrote.
        model: As for `brittle score`.
        data: As for `brittle score`; other points than those of the fit.
        out: The table to write, .csv, .parquet, .arrow, .json or .jsonl.
        alpha: Share of the points at which the bound may fail; by default that of the fit.
        by_class: Let the bound hold among the points predicted as each class.
    """
    import warnings

    from brittle.extensions.detector.flags import write_flags
    from brittle.extensions.detector.surrogate import Surrogate

    learned = Surrogate.load(_check_out(out, overwrite, model, file))
    classifier, points = _open(learned.calibrated[0], model, data, weights, device, reading)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", BrittleWarning)
        frame = learned.apply(classifier, points, alpha, by_class=by_class)
    for note in notes:
        show(f"brittle: {note.message}", sys.stderr)
    for k, target in enumerate(learned.recipe.targets):
        place = f"_{k + 1}" if len(learned.recipe.targets) > 1 else ""
        say(quiet, f"p_robust{place} is that of {target}: {frame[f'p_robust{place}'].mean():.3f} in the mean")
    print(write_flags(frame, out))
    return _conclude(frame, "have no prediction and the bound 0")


def _check_out(out: Path, overwrite: bool, model: str, file: Path) -> Path:
    """Return the file to read, once it is checked that the table can be written."""
    from brittle.extensions.detector.flags import check_out

    check_out(out)
    check_new(out, overwrite)
    _check_no_texts(model)
    return file


def _open(
    identity: Identity, model: str, data: Path, weights: Path | None, device: str | None, reading: DataOptions
) -> tuple[Classifier, Points]:
    """Return the model, as the fit declared it, and the points."""
    points = reading.open(data, identity.bounds, model=model)
    declared = {"outputs": identity.outputs, "device": device}
    network = load_network(model, weights)
    return declare(network, model, identity.bounds, identity.mean, identity.std, **declared), points


def _check_no_texts(model: str) -> None:
    from brittle.model.loading.load import reads_texts

    if reads_texts(model):
        raise UsageError(f"{model} reads texts, which detectors and surrogates do not know; use brittle score")


def _conclude(frame: pd.DataFrame, fault: str) -> int:
    """Print the first points without a number, and return the exit code."""
    from brittle.estimate import Status

    failed = frame.loc[frame[next(name for name in ("score", "p_robust", "p_robust_1") if name in frame)].isna()]
    if not len(failed):
        return 0
    rows = failed[["point", "status"]].head(3).itertuples(index=False)
    head = f"{len(failed)} of {len(frame)} points {fault}; the first:"
    return say_failures(head, [f"point {point}: {status}: {Status[status.upper()].sentence}" for point, status in rows])
