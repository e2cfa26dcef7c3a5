"""The command that examines a model, data and settings, and scores nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from brittle.bounds import check_bounds
from brittle.cli.common import Flag, Many, load, sphere_or, whole_rows
from brittle.errors import BrittleError, UsageError

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.doctor import Outcome, Subject
    from brittle.models import LoadedModel

FAILED = 3
"""Exit code where a check failed."""

PAGE = "docs/doctor.md"
"""Where every code is explained."""


def doctor(
    model: str,
    data: Path,
    *,
    weights: Path | None = None,
    split: str | None = None,
    scores: Annotated[tuple[str, ...], Many] = ("moments", "softmax", "logit_margin"),
    sigma: Annotated[tuple[float, ...], Many] = (),
    noise: str = "gaussian",
    draws: int | None = None,
    gradient_draws: int | None = None,
    classes: int | None = None,
    norm: Annotated[tuple[str, ...], Many] = (),
    effort: str | None = None,
    head: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    batch_size: str = "auto",
    device: str | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    mean: Annotated[tuple[float, ...], Many] = (),
    std: Annotated[tuple[float, ...], Many] = (),
    outputs: Literal["logits", "probs", "binary-logit"] = "logits",
    layout: Literal["nchw", "nhwc"] | None = None,
    scale_uint8: Annotated[bool, Flag] = False,
    planted: Annotated[bool, Flag] = False,
) -> int:
    """Examine MODEL, DATA and settings as `brittle score` does before it scores, and print what is known of them.

    All checks that can be made are made, whatever the others find. Exits with 0 where none failed, with 3 otherwise.

    Parameters
    ----------
    model
        As for `brittle score`.
    data
        As for `brittle score`.
    weights
        Weights for a factory's network, in safetensors.
    split
        Which part of the data, such as test.
    scores
        What is to be computed: some checks depend on it.
    sigma
        Standard deviations of the noise, in pixel units; a tenth of the value range by default.
    noise
        Noise family: gaussian, uniform, laplace, sphere or ball.
    draws
        Noisy copies per point and sigma for the scores that only sample.
    gradient_draws
        Noisy copies for the scores that differentiate at each.
    classes
        Competing classes that the linear scores keep.
    norm
        Norms of the distances.
    effort
        Budget of passes for the search for the nearest other decision.
    head
        Name of the last linear layer, for the scores that need features.
    limit
        Look at the first points only.
    seed
        Seed of the noise.
    batch_size
        Most rows in one pass through the network, or auto.
    device
        Where to compute, such as cuda.
    bounds
        Smallest and largest value of an input.
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
    planted
        Plant decision boundaries at known distances around some points, and check that the chosen scores see them.
    """
    from brittle.classifier import Classifier
    from brittle.data import open_points
    from brittle.doctor import GUARD_ROWS, Outcome, Subject
    from brittle.measure.forward import default_rows
    from brittle.scores.choose import choose

    low, high = check_bounds(bounds)
    pick = partial(choose, scores, family=sphere_or(noise, sigma, ()), draws=draws, gradient_draws=gradient_draws)
    chosen = pick(classes=classes, norms=norm, effort=effort, sigmas=sigma or (0.1 * (high - low),))
    rows = whole_rows(batch_size)
    lost: list[Outcome] = []
    opened: Points | None = None
    loaded: LoadedModel | None = None
    try:
        opened = open_points(data, split=split, bounds=bounds, limit=limit, layout=layout, scale_uint8=scale_uint8)
    except BrittleError as error:
        lost.append(_lost("data", error))
    try:
        loaded = load(model, weights)
        declared = (bounds, mean or None, std or None)
        classifier = Classifier(loaded.module, *declared, outputs=outputs, device=device, head=head)
    except BrittleError as error:
        lost.append(_lost("model", error))
        _print([*_opened(opened, data), *lost])
        return FAILED
    if opened is None:
        _print([Outcome("model", "ok", None, f"{model} is read, its weights are finite"), *lost])
        return FAILED
    batch = next(iter(opened.batches(GUARD_ROWS)))
    own = rows or default_rows(batch.inputs, classifier.device)
    subject = Subject(classifier, batch, opened.labels, chosen, seed, own, opened)
    print(f"brittle doctor: {model} on {data}, for {', '.join(dict.fromkeys(scores))}")
    with classifier.evaluating():
        return _examine(subject, planted)


def _examine(subject: Subject, planted: bool) -> int:
    """Make the checks, gather the facts and plant boundaries where that is asked for; print all; the exit code."""
    from brittle.doctor import Outcome, run_all
    from brittle.doctor.facts import accuracy, gather

    outcomes = run_all(subject)
    forward, backward = subject.classifier.forward_passes, subject.classifier.backward_passes
    runs = all(outcome.state != "failed" for outcome in outcomes if outcome.name in ("forward", "finite"))
    if runs:
        said, suspicious = accuracy(subject)
        finding = suspicious and Outcome("accuracy", "note", suspicious.code, suspicious.sentence)
        outcomes.append(finding or Outcome("accuracy", "ok", None, said))
    _print(outcomes)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if runs:
        print("\nfacts")
        for fact in gather(subject):
            print(f"  {fact.name:<15}{fact.sentence}")
        count = len(subject.inputs)
        print(
            f"  {'checks':<15}{forward:,} forward and {backward:,} backward passes of one point, {forward / count:.1f} "
            f"and {backward / count:.1f} times the {count} points looked at"
        )
    wrong = _planted(subject) if planted and runs and not failed else 0
    notes = sum(outcome.state == "note" for outcome in outcomes)
    print(f"\n{len(failed)} failed, {notes} noted" + (f", {wrong} planted boundaries missed" if planted else ""))
    if planted and (failed or not runs):
        print("brittle: no boundaries were planted, because checks failed", file=sys.stderr)
    return FAILED if failed or wrong else 0


def _planted(subject: Subject) -> int:
    """Plant boundaries and print what the scores made of them; how many were missed."""
    from brittle.doctor.planted import plant

    print("\nplanted boundaries: found, against what must be found")
    wrong = 0
    for seen in plant(subject):
        state = "ok" if seen.right else "failed"
        wrong += not seen.right
        exact = seen.low == seen.high
        span = f"{seen.found:.4g}" if exact else f"{seen.found:.4g} ({seen.low:.4g} to {seen.high:.4g})"
        print(
            f"  {state:<8}{seen.score}, row {seen.row}: planted {seen.planted:.4g}, found {span}, right is "
            f"{max(seen.least, 0):.4g} to {seen.most:.4g}{'' if seen.status == 'ok' else f', {seen.status}'}"
        )
    return wrong


def _opened(points: Points | None, data: Path) -> list[Outcome]:
    from brittle.doctor import Outcome

    return [] if points is None else [Outcome("data", "ok", None, f"{len(points):,} points in {data}")]


def _lost(name: str, error: BrittleError) -> Outcome:
    """The outcome for what could not be opened; misuse of the command line is raised."""
    from brittle.doctor import Outcome

    if isinstance(error, UsageError):
        raise error
    return Outcome(name, "failed", error.code, str(error.args[0]))


def _print(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        where = f" [{PAGE}#{outcome.code}]" if outcome.code else ""
        code = f"{outcome.code}: " if outcome.code else ""
        print(f"  {outcome.state:<8}{outcome.name:<15}{code}{outcome.sentence}{where}")
