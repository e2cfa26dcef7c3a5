"""What else is known of a model after the checks, and what the run that was asked for would cost.

Nothing here stops a run. Times are estimates: those of one batch, times the passes that the scores need.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from brittle.doctor.first_rows import accuracy
from brittle.doctor.gradients import differentiates
from brittle.doctor.rounding import largest_difference
from brittle.doctor.subject import Subject
from brittle.errors import BrittleError
from brittle.measure import (
    Certified,
    Curvature,
    Features,
    Forward,
    HessianColumns,
    Linearize,
    Measurement,
    Nearest,
    NearestMargin,
    Sample,
    SampleGradient,
)
from brittle.measure.forward import Clean
from brittle.measure.linearize import JACOBIAN_NUMBERS

CURVED_AT = 8
"""Points at which it is found out whether the network bends."""

TIMED = 3
"""Batches of which the fastest is taken for the time of one."""

SEARCHED = {"fast": (160, 190), "standard": (1040, 1250), "thorough": (4850, 6700)}
"""Passes per point of the search for the nearest input, in Linf and L2, as docs/attacks.md measured them."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@dataclass(frozen=True)
class Fact:
    """One thing that is known.

    Attributes:
        name: what it is about.
        sentence: what was seen.
    """

    name: str
    sentence: str


@dataclass(frozen=True)
class Passes:
    """Passes through the network of one point.

    Attributes:
        forward: forward.
        backward: backward.
    """

    forward: float
    backward: float

    def __add__(self, other: Passes) -> Passes:
        return Passes(self.forward + other.forward, self.backward + other.backward)


def gather(subject: Subject) -> Iterator[Fact]:
    """Everything that is known; what cannot be found out says why."""
    for name, find in FACTS:
        try:
            yield Fact(name, find(subject))
        except BrittleError as error:
            yield Fact(name, f"not found out: {error}")


def passes_per_point(subject: Subject) -> Passes:
    """What the chosen scores spend on a point, the clean pass included: exact for sampling, else as measured before."""
    spent = Passes(1, 0)
    for needs in subject.streams.values():
        spent += max((_spent(need, subject) for need in needs), key=lambda each: each.forward + each.backward)
    return spent


def _spent(need: Measurement, subject: Subject) -> Passes:
    classes = subject.logits.shape[1]
    if isinstance(need, Forward | Features):
        return Passes(0, 0)
    if isinstance(need, Sample):
        return Passes(need.draws, 0)
    if isinstance(need, NearestMargin | SampleGradient):
        return Passes(need.draws, need.draws)
    if isinstance(need, Linearize):
        kept = min(classes, (need.classes or (classes if classes <= 100 else 20)) + 1)
        return Passes(need.draws or 0, (need.draws or 1) * kept)
    if isinstance(need, Curvature):
        bent = need.probes if need.method == "probes" or not _flat(subject) else 0
        return Passes(2, 4 + bent)
    if isinstance(need, HessianColumns):
        return Passes(1, 1 + need.columns)
    if isinstance(need, Nearest):
        total = SEARCHED[need.effort][need.norm == "l2"]
        return Passes(total / 2, total / 2)
    if isinstance(need, Certified):
        return Passes(12, 12 * classes)
    return Passes(0, 0)


def _flat(subject: Subject) -> bool:
    """Whether the network bends at none of a few points; an error counts as bending."""
    try:
        return "piecewise linear" in _shape(subject)
    except BrittleError:
        return False


def _shape(subject: Subject) -> str:
    classifier = subject.classifier
    inputs = subject.inputs[:CURVED_AT]
    ids = tuple(f"doctor {row}" for row in range(len(inputs)))
    with torch.no_grad():
        clean = Clean(inputs, ids, subject.seed, classifier(inputs), subject.rows)
    found = Curvature(probes=2)(classifier, clean)
    flat, kinks, count = int(found.flat.sum()), int(found.kink.sum()), len(inputs)
    kind = "piecewise linear" if flat == count else "smooth, it bends" if flat == 0 else "of both kinds"
    said = f"{kind} (no second derivative at {flat} of {count} points)"
    return f"{said}; a kink at {kinks} of {count} points"


def _repeats(subject: Subject) -> str:
    worst = max(largest_difference(subject.logits, again) for again in subject.repeats[1:])
    said = "the same bytes" if worst == 0 else f"equal up to {worst:.3g} in the logits"
    return f"{len(subject.repeats)} passes of {len(subject.inputs)} points are {said}"


def _units(subject: Subject) -> str:
    low, high = subject.classifier.bounds
    inputs, wide = subject.inputs, high - low
    seen = f"{float(inputs.min()):.4g} to {float(inputs.max()):.4g}"
    small = f"sigma 0.1 of the range is {0.1 * wide:g} in these units"
    return f"values from {seen} in the declared units [{low:g}, {high:g}], shape {list(inputs.shape[1:])}; {small}"


def _size(subject: Subject) -> str:
    model = subject.classifier.model
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    kinds = sorted({str(parameter.dtype).removeprefix("torch.") for parameter in parameters})
    said = f"{sum(parameter.numel() for parameter in parameters):,} parameters ({', '.join(kinds) or 'no type'})"
    logits = str(subject.classifier.output_dtype).removeprefix("torch.")
    return f"{subject.logits.shape[1]} classes, {said}, logits {logits}, on {subject.classifier.device}"


def _cost(subject: Subject) -> str:
    """Time and memory of the run, from one timed batch."""
    total = len(subject.points) if subject.points is not None else len(subject.batch)
    spent = passes_per_point(subject)
    forward, backward, kept = _timed(subject)
    seconds = total * (spent.forward * forward + spent.backward * backward)
    passes = f"{spent.forward:,.0f} forward and {spent.backward:,.0f} backward passes a point"
    jacobian = 0
    if any(isinstance(need, Linearize) for need in subject.needs):
        own = len(subject.inputs) * subject.logits.shape[1] * subject.inputs[0].numel()
        jacobian = 4 * min(JACOBIAN_NUMBERS, own)
    memory = _weights(subject) + kept + jacobian
    return (
        f"about {_duration(seconds)} for {total:,} points ({passes}, {1e3 * forward:.2g} and {1e3 * backward:.2g} ms "
        f"each in batches of {len(subject.inputs)}), {memory / 2**20:,.0f} MiB for weights and one batch; an estimate"
    )


def _timed(subject: Subject) -> tuple[float, float, int]:
    """Seconds of a forward and of a backward pass of one row, and bytes that are kept for the backward pass."""
    classifier, inputs = subject.classifier, subject.inputs
    with torch.no_grad():
        forward = min(_clock(subject, lambda: classifier(inputs)) for _ in range(TIMED))
    if not differentiates(subject):
        return forward / len(inputs), 0.0, 0
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        differentiable = inputs.clone().requires_grad_(True)
        logits = classifier(differentiable)
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


def _weights(subject: Subject) -> int:
    model = subject.classifier.model
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "an unknown time"
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.2g} s"


FACTS: tuple[tuple[str, Callable[[Subject], str]], ...] = (
    ("model", _size),
    ("values", _units),
    ("shape", _shape),
    ("repeats", _repeats),
    ("accuracy", accuracy),
    ("cost", _cost),
)
"""What is found out, in the order in which it is told."""
