"""What `brittle doctor` says besides the checks: of the first rows, of the model, and of what the run would cost.

Nothing here stops a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from brittle.doctor.checks import FAILED, NOTE, OK, Outcome
from brittle.doctor.data import about_accuracy, about_orientation, check_accuracy
from brittle.doctor.settings import try_at
from brittle.doctor.subject import Finding, Subject
from brittle.errors import BrittleError
from brittle.estimate import CONFIDENCE
from brittle.intervals import clopper_pearson
from brittle.measure import Certified, Nearest, Passes
from brittle.measure.base import by_stream
from brittle.text import duration

TIMED = 3
"""Batches of which the fastest is taken for the time of one."""

CERTIFIED, SEARCHED = 4, 32
"""Points whose certificates, and whose search, are timed together: one alone takes nearly as long as a batch."""


def look(
    subject: Subject, expected_accuracy: float | None = None, notes: tuple[Finding, ...] = ()
) -> Iterator[Outcome]:
    """One outcome a question, about all rows of the subject's batch; for a model that runs.

    Args:
        subject: what is looked at.
        expected_accuracy: fail where the accuracy is surely below, as a run does.
        notes: findings of the checks, one of which may explain the accuracy.
    """
    batch = subject.batch
    yield _outcome("rows", *_about_rows(subject))
    if batch.turned is not None and subject.points is not None:
        applied = subject.points.provenance.get("exif") == "apply"
        found = next(about_orientation(sum(batch.turned), len(batch), applied=applied), None)
        yield _outcome("images", f"none of {len(batch)} is turned by its EXIF data", found)
    if expected_accuracy is not None:
        try:
            check_accuracy(expected_accuracy, subject, notes)
        except BrittleError as error:
            yield Outcome("accuracy", FAILED, error.code, str(error.args[0]))
            return
    yield _outcome("accuracy", *_about_accuracy(subject))


def gather(subject: Subject) -> Iterator[tuple[str, str]]:
    """Name and sentence of everything else that is known; of what cannot be told, why."""
    for name, tell in FACTS.items():
        try:
            yield name, tell(subject)
        except BrittleError as error:
            yield name, f"unknown: {error}"


def _outcome(name: str, sentence: str, found: Finding | None) -> Outcome:
    return Outcome(name, NOTE, found.code, found.sentence) if found else Outcome(name, OK, None, sentence)


def _about_rows(subject: Subject) -> tuple[str, Finding | None]:
    """How many rows get class scores, and where some do not."""
    count, scored = len(subject.batch), subject.predictions.positions
    if len(scored) == count:
        return f"all of the first {count} get finite class scores", None
    first = subject.batch.rows[min(set(range(count)) - set(scored))]
    sentence = (
        f"{count - len(scored)} of the first {count} rows get no score, the first of them row {first}: they cannot be "
        f"read, or input or logits are NaN or infinite; a run stops at more than 10 of the first 1,000"
    )
    return "", Finding("rows_without_score", sentence)


def _about_accuracy(subject: Subject) -> tuple[str, Finding | None]:
    """Accuracy on the labelled points, with an interval, and what is suspicious about it."""
    correct, labelled = subject.predictions.right
    if not labelled:
        return "no labelled points were looked at", None
    low, high = clopper_pearson(correct, labelled, CONFIDENCE)
    interval = f"{float(low):.1%} to {float(high):.1%} at {CONFIDENCE:.0%}"
    chosen = ", which were chosen by their ids" if subject.chosen else ""
    sentence = f"{correct / labelled:.1%} of {labelled} labelled points ({interval}){chosen}"
    if not subject.decision.of_classes or subject.chosen:
        return sentence, None
    confusion, untrained = subject.predictions.confusion, subject.untrained
    return sentence, next(about_accuracy(correct, labelled, subject.classes, confusion, unweighted=untrained), None)


def _model(subject: Subject) -> str:
    model = subject.classifier.model
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    outputs = f"{subject.classes} classes" if subject.decision.has_classes else f"decision {subject.decision.label}"
    learned = sum(parameter.numel() for parameter in parameters)
    return f"{outputs}, {learned:,} parameters, logits of {subject.logits.dtype}, on {subject.classifier.device}"


def _shape(subject: Subject) -> str:
    found = subject.curved
    flat, kinks, count = int(found.flat.sum()), int(found.kink.sum()), len(found.flat)
    kind = "piecewise linear" if flat == count else "smooth, it bends" if flat == 0 else "of both kinds"
    return f"{kind} (no second derivative at {flat} of {count} points); a kink at {kinks} of {count} points"


def passes_per_point(subject: Subject) -> Passes:
    """What the chosen scores spend on a point, the clean pass included and certificates not: as measurements say."""
    spent = Passes(1, 0)
    for needs in by_stream(need for need in subject.needs if not isinstance(need, Certified)):
        spent += max((need.cost(subject) for need in needs), key=lambda each: each.total)
    return spent


def cost_of_run(subject: Subject) -> str:
    """Time of the network and memory, from one timed batch; `cost_of_certificates` says what these take."""
    spent = passes_per_point(subject)
    forward, backward, kept = _timed(subject)
    seconds = subject.total * (spent.forward * forward + spent.backward * backward)
    passes = f"{spent.forward:,.0f} forward and {spent.backward:,.0f} backward passes a point"
    model = subject.classifier.model
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    weights = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    memory = weights + kept + max((need.memory(len(subject.inputs), subject) for need in subject.needs), default=0)
    return (
        f"the network takes about {duration(seconds)} for {subject.total:,} points ({passes}, {1e3 * forward:.2g} and "
        f"{1e3 * backward:.2g} ms each in batches of {len(subject.inputs)}), to which reading, noise and searches add "
        f"their own; {memory / 2**20:,.0f} MiB for weights and one batch; an estimate"
    )


def _timed(subject: Subject) -> tuple[float, float, int]:
    """Seconds of a forward and of a backward pass of one row, and bytes that are kept for the backward pass."""
    classifier, inputs = subject.classifier, subject.inputs
    with torch.no_grad():
        forward = min(_clock(subject, lambda: subject.logits_of(inputs)) for _ in range(TIMED))
    if not subject.differentiates:
        return forward / len(inputs), 0.0, 0
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        differentiable = inputs.clone().requires_grad_(True)
        logits = subject.logits_of(differentiable)
    try:
        backward = _clock(subject, lambda: classifier.gradient(logits.amax(dim=1), differentiable, keep=False))
    except BrittleError:
        backward = forward
    return forward / len(inputs), backward / len(inputs), sum(kept.values())


def _clock(subject: Subject, call: Callable[[], object]) -> float:
    cuda = subject.classifier.device.type == "cuda"
    if cuda:
        torch.cuda.synchronize(subject.classifier.device)
    started = time.perf_counter()
    call()
    if cuda:
        torch.cuda.synchronize(subject.classifier.device)
    return time.perf_counter() - started


def cost_of_certificates(subject: Subject) -> str:
    """Time and passes of the certificates of a run, beside those of the search, both taken at some of its points."""
    return "; ".join(_certified(subject, need) for need in subject.needs if isinstance(need, Certified)) or "none"


def _certified(subject: Subject, need: Certified) -> str:
    alone, count = try_at(subject, need, 1), min(CERTIFIED, len(subject.inputs))
    if alone.unsupported is not None:
        return "none can be computed"
    several = try_at(subject, need, count)
    each = max(0.0, several.seconds - alone.seconds) / (count - 1) if count > 1 else alone.seconds
    once = max(0.0, alone.seconds - each)  # the network is traced anew for every batch
    seconds = subject.total * each + once * -(-subject.total // max(1, subject.rows // 2))
    search = next((one for one in subject.needs if isinstance(one, Nearest) and one.norm == need.norm), None)
    beside = ""
    if search is not None:
        looked = min(SEARCHED, len(subject.inputs))
        searched = try_at(subject, search, looked).seconds / looked
        beside = f", {several.seconds / count / searched:.2g} times as long as the search ({search.effort})"
    return (
        f"{need.norm}: about {duration(seconds)} for {subject.total:,} points on top of that ({several.passes:,.0f} "
        f"passes a point, {each:.2g} s and {once:.2g} s for each batch, at the first {count}){beside}; an estimate"
    )


FACTS: dict[str, Callable[[Subject], str]] = {
    "model": _model,
    "shape": _shape,
    "accuracy": lambda subject: _about_accuracy(subject)[0],
    "cost": cost_of_run,
    "certificates": cost_of_certificates,
}
"""What is told, in the order in which it is printed."""
