"""The command line: parses, calls, prints. Results go to files and stdout, talk to stderr."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from brittle._version import __version__
from brittle.bounds import check_bounds
from brittle.cli.common import Flag, Many, load, say, sigmas_of, sphere_or, whole_numbers, whole_rows
from brittle.cli.compare import compare
from brittle.cli.corrupt import corrupt
from brittle.cli.detector import detector, pseudo_margin
from brittle.cli.doctor import doctor
from brittle.cli.verify import verify
from brittle.errors import BrittleError, UsageError, printable

if TYPE_CHECKING:
    from brittle.scores import Score

ROW_FAILURES, INTERRUPTED, TERMINATED = 4, 130, 143
"""Exit codes: some points got no number; interrupted from the keyboard; asked to end."""

app = App(
    name="brittle",
    version=__version__,
    help="How easily does each prediction of a trained classifier break, how sure is that, and what did it cost?",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    config=whole_numbers,
)


app.command(detector)
app.command(pseudo_margin)
app.command(compare)
app.command(corrupt)
app.command(doctor)
app.command(verify)


def run() -> None:
    """Entry point of the `brittle` command."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(main(sys.argv[1:]))


class _Terminated(BaseException):
    """The process was asked to end."""


def _terminate(number: int, frame: object) -> None:
    raise _Terminated


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        return app(rest, exit_on_error=False, print_error=False, result_action="return_value") or 0
    except CycloptsError as error:
        print(f"brittle: {error}", file=sys.stderr)
        return UsageError.exit_code
    except BrittleError as error:
        if debug:
            raise
        print(f"brittle: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("brittle: interrupted; what a run folder holds is whole, go on with it by --resume", file=sys.stderr)
        return INTERRUPTED
    except _Terminated:
        print("brittle: terminated; what a run folder holds is whole, go on with it by --resume", file=sys.stderr)
        return TERMINATED


@app.command
def demo(*, out: Path = Path("brittle-demo"), quiet: Annotated[bool, Flag] = False) -> int:
    """Train a small network on real digits, score its test points and write a report.

    Parameters
    ----------
    out
        Folder for the network, its test points, the run and the report.
    quiet
        Show no progress.
    """
    from brittle import demo as digits
    from brittle.scores import CATALOGUE
    from brittle.table import check_free

    check_free(out / "run")
    say(quiet, "training a small network on scikit-learn's digits")
    model, data = digits.prepare(out)
    code = score(
        str(model),
        data,
        out=out / "run",
        scores=tuple(CATALOGUE),
        sigma=digits.SIGMAS,
        draws=digits.DRAWS,
        effort="fast",
        quiet=quiet,
    )
    return code or report(out / "run", out=out / "report.html")


@app.command
def score(
    model: str,
    data: Path,
    *,
    out: Path,
    weights: Path | None = None,
    split: str | None = None,
    scores: Annotated[tuple[str, ...], Many] = ("moments", "softmax", "logit_margin"),
    sigma: Annotated[tuple[float, ...], Many] = (),
    radius: Annotated[tuple[float, ...], Many] = (),
    noise: str = "gaussian",
    draws: int | None = None,
    gradient_draws: int | None = None,
    clip: Annotated[bool, Flag] = False,
    classes: int | None = None,
    temperature: float | None = None,
    norm: Annotated[tuple[str, ...], Many] = (),
    attack: str | None = None,
    effort: str | None = None,
    certify: Annotated[bool, Flag] = False,
    unbounded: Annotated[bool, Flag] = False,
    laplacian_method: str | None = None,
    probes: int | None = None,
    columns: int | None = None,
    pseudo_margin: Path | None = None,
    head: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    confidence: float = 0.99,
    batch_size: str = "auto",
    device: str | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    mean: Annotated[tuple[float, ...], Many] = (),
    std: Annotated[tuple[float, ...], Many] = (),
    outputs: Literal["logits", "probs", "binary-logit"] = "logits",
    layout: Literal["nchw", "nhwc"] | None = None,
    scale_uint8: Annotated[bool, Flag] = False,
    expected_accuracy: float | None = None,
    allow_row_errors: Annotated[bool, Flag] = False,
    skip_doctor: Annotated[bool, Flag] = False,
    resume: Annotated[bool, Flag] = False,
    workers: int | None = None,
    as_worker: Annotated[bool, Parameter(show=False, negative=())] = False,
    quiet: Annotated[bool, Flag] = False,
) -> int:
    """Score every point of DATA by MODEL and write the run folder OUT.

    Parameters
    ----------
    model
        A torch.export archive (.pt2), or package.module:factory or ./file.py:factory, a function without arguments
        that returns the network.
    data
        A Parquet file or folder of images as Hugging Face writes them, a folder of images by class, an .npz file with
        x (or images) and y (or labels), or a folder of MNIST-style IDX files.
    out
        Folder for the run; it must not hold one yet, unless it is resumed.
    weights
        Weights for a factory's network, in safetensors.
    split
        Which part of the data, such as test.
    scores
        What to compute, by the names that `brittle list` shows.
    sigma
        Standard deviations of the noise, in pixel units; a tenth of the value range by default.
    radius
        Lengths of noise on the sphere, in pixel units, instead of --sigma and --noise.
    noise
        Noise family: gaussian, uniform, laplace, sphere or ball.
    draws
        Noisy copies per point and sigma for the scores that only sample (moments 100, monte_carlo 1000).
    gradient_draws
        Noisy copies for the scores that differentiate at each (mmse, mmse_mvs, mmse_margin: 20).
    clip
        Clip noisy copies to the bounds, for the scores that only sample.
    classes
        Competing classes that the linear scores keep (all up to 100 classes, the 20 nearest above).
    temperature
        Temperature of the softmax (1).
    norm
        Norms of the distances: l2 (the default), linf.
    attack
        What looks for the nearest other decision: best (the default) for the nearest of all attacks, or one by name.
    effort
        Budget of passes for it: fast, standard (the default) or thorough.
    certify
        Look for a certified lower bound of the distance as well.
    unbounded
        Look for the nearest other decision outside the bounds, too.
    laplacian_method
        How the Laplacian is found: auto (the default), gram, exact or probes.
    probes
        Random directions per point for it, where the network bends (32).
    columns
        Columns of the Hessian for the bound on the mean absolute change (64).
    pseudo_margin
        A file of `brittle pseudo-margin fit`, to score the points by.
    head
        Name of the last linear layer, for the scores that need features; found by default.
    limit
        Score the first points only.
    seed
        Seed of the noise.
    confidence
        Confidence of all intervals.
    batch_size
        Most rows in one pass through the network, or auto.
    device
        Where to compute, such as cuda.
    bounds
        Smallest and largest value of an input; everything is in these units.
    mean
        Subtracted from the input before the network, one number or one per channel.
    std
        What the difference is divided by, likewise.
    outputs
        What the network returns.
    layout
        Axis order of image arrays in .npz files (nchw).
    scale_uint8
        Map whole numbers 0..255 in .npz files to the bounds.
    expected_accuracy
        Stop when the accuracy on the first 1,000 labelled points is surely below.
    allow_row_errors
        Exit with 0 even where some points got no number; where more than 10 of the first 1,000 get none the run stops.
    skip_doctor
        Leave out the checks before the run; the record says so.
    resume
        Go on with the run in OUT, if there is one: what is there and whole is kept, and a finished run costs nothing.
    workers
        Processes that compute side by side, with one thread each; by default one process with all threads.
    as_worker
        What such a process is started with.
    quiet
        Show no progress.
    """
    from brittle.classifier import Classifier
    from brittle.data import open_points
    from brittle.progress import progress
    from brittle.pseudo_margin import PseudoMargin
    from brittle.run import execute, make_job
    from brittle.run.workers import Crew, claim_output, command_of, serve
    from brittle.scores import NoiseScore
    from brittle.scores.choose import choose
    from brittle.table import check_free, check_writable

    answers = claim_output() if as_worker else sys.stdout
    low, high = check_bounds(bounds)
    family = sphere_or(noise, sigma, radius)
    pick = partial(
        choose,
        scores,
        family=family,
        draws=draws,
        gradient_draws=gradient_draws,
        clip=clip,
        classes=classes,
        temperature=temperature,
        norms=norm,
        attack=attack,
        effort=effort,
        certify=certify,
        bounded=not unbounded,
        method=laplacian_method,
        probes=probes,
        columns=columns,
    )
    chosen = pick(sigmas=sigma or radius or (0.1 * (high - low),))
    learned = None if pseudo_margin is None else PseudoMargin.load(pseudo_margin)
    others = [] if learned is None else [learned.score]
    _check_used([*chosen, *others], sigma, family, head)
    if not as_worker:
        check_writable(out) if resume else check_free(out)
    if not (sigma or radius) and any(isinstance(score, NoiseScore) for score in chosen):
        say(quiet, f"sigma {0.1 * (high - low):g}, a tenth of the value range [{low:g}, {high:g}]")
    rows = whole_rows(batch_size)
    points = open_points(data, split=split, bounds=bounds, limit=limit, layout=layout, scale_uint8=scale_uint8)
    if radius:
        chosen = pick(sigmas=sigmas_of(radius, points))
    loaded = load(model, weights)
    if learned is not None:
        learned.check_model(loaded.provenance["state_sha256"])
    classifier = Classifier(
        loaded.module,
        bounds,
        mean or None,
        std or None,
        outputs=outputs,
        device=device,
        source=loaded.provenance,
        head=head,
    )
    job = make_job(classifier, points, [*chosen, *others], seed, rows, confidence)
    if as_worker:
        serve(job, out, sys.stdin, answers)
        return 0
    crew = None if workers is None else Crew(command_of(sys.argv[1:]), workers)
    with progress(quiet, sys.stderr) as advance:
        command = ["brittle", *sys.argv[1:]]
        record = execute(job, out, expected_accuracy, advance, command, skip_doctor=skip_doctor, crew=crew)
    return _conclude(record, out, allow_row_errors, quiet)


@app.command
def report(
    run_folder: Annotated[Path, Parameter(name="run")],
    *,
    out: Path | None = None,
    epsilon: str | None = None,
    against: Annotated[tuple[Path, ...], Many] = (),
) -> int:
    """Write the report of RUN, one HTML file, and print how the estimators and the margins compare.

    Where the run has a Laplacian, how well it predicts the sampled change and the flips is printed as well.

    Parameters
    ----------
    run_folder
        A folder that `brittle score` wrote.
    out
        The file to write; RUN/report.html by default.
    epsilon
        Size of the perturbation that the worst case is about, such as 8/255.
    against
        Other runs over the same points to compare with: of other models, or of the same one on corrupted copies.
    """
    from brittle.analysis import agreement, format_agreement, format_worst_case, margin_columns
    from brittle.analysis.columns import probability_columns
    from brittle.cli.printed import change_texts, comparison_texts, named
    from brittle.norms import parse_epsilon
    from brittle.report import worst_cases, write_report
    from brittle.table import read_table

    table = read_table(run_folder)
    if epsilon is not None and not margin_columns(table):
        raise UsageError("unused_option", "--epsilon is for runs with input_margin; this one has none")
    reach = None if epsilon is None else parse_epsilon(epsilon)
    others = named(against)
    path = write_report(table, out or run_folder / "report.html", reach, others)
    worst = [format_worst_case(frame) for frame in worst_cases(table, reach)]
    change = change_texts(table)
    average = [] if (worst or change) and not probability_columns(table) else [format_agreement(agreement(table))]
    for text in (*average, *worst, *change, *comparison_texts(table, others)):
        print(text)
    print(path)
    return 0


@app.command(name="list")
def list_scores() -> int:
    """Show the catalogue of scores: name, what it is, needs, cost, source."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    from brittle.scores import CATALOGUE

    grid = Grid("name", "what it is", "value", "passes per point", "source", box=box.SIMPLE_HEAD)
    for name, kind in CATALOGUE.items():
        grid.add_row(name, kind.title, kind.quantity, kind.cost, kind.reference)
    Console(width=None if sys.stdout.isatty() else 180).print(grid)
    return 0


def _check_used(scores: Sequence[Score], sigma: Sequence[float], noise: str, head: str | None) -> None:
    """Raise where an option would silently change nothing."""
    from brittle.scores import NoiseScore

    if (sigma or noise != "gaussian") and not any(isinstance(score, NoiseScore) for score in scores):
        raise UsageError("unused_option", "--sigma, --radius and --noise are for scores under noise; none was chosen")
    if head is not None and not any(need.uses_features for score in scores for need in score.needs):
        raise UsageError("unused_option", "--head is for scores that need features; none was chosen")


def _conclude(record: dict[str, Any], out: Path, allow_row_errors: bool, quiet: bool) -> int:
    from brittle.account import Account

    for warning in record["warnings"]:
        print(f"brittle: note: {warning['code']}: {warning['sentence']}", file=sys.stderr)
    account = Account.read(record["account"])
    accuracy = f"accuracy {account.correct / account.labelled:.1%}, " if account.labelled else ""
    done = f"{account.points} points, {accuracy}{account.passes:,} passes, {record['seconds']:.1f} s"
    say(quiet, f"{done}; next: brittle report {out}")
    if not account.failed:
        return 0
    print(f"brittle: {account.failed} of {account.points} points got no number; the first of them:", file=sys.stderr)
    for sentence in account.failures:
        print(f"brittle:   {printable(sentence)}", file=sys.stderr)
    return 0 if allow_row_errors else ROW_FAILURES
