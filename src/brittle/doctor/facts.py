"""What else is known of a model after the checks, and what the run that was asked for would cost.

Nothing here stops a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import nn

from brittle.doctor.certificates import cost_of_certificates
from brittle.doctor.cost import cost_of_run
from brittle.doctor.first_rows import accuracy
from brittle.doctor.rounding import largest_difference
from brittle.doctor.subject import Subject
from brittle.errors import BrittleError


@dataclass(frozen=True)
class Fact:
    """One thing that is known.

    Attributes:
        name: what it is about.
        sentence: what was found.
    """

    name: str
    sentence: str


def gather(subject: Subject) -> Iterator[Fact]:
    """Everything that is known; what cannot be found out says why."""
    for name, find in FACTS:
        try:
            yield Fact(name, find(subject))
        except BrittleError as error:
            yield Fact(name, f"not found out: {error}")


def _shape(subject: Subject) -> str:
    found = subject.curved
    flat, kinks, count = int(found.flat.sum()), int(found.kink.sum()), len(found.flat)
    kind = "piecewise linear" if flat == count else "smooth, it bends" if flat == 0 else "of both kinds"
    said = f"{kind} (no second derivative at {flat} of {count} points)"
    return f"{said}; a kink at {kinks} of {count} points"


def _repeats(subject: Subject) -> str:
    worst = max(largest_difference(subject.logits, again) for again in subject.repeats[1:])
    said = "the same bytes" if worst == 0 else f"equal up to {worst:.3g} in the logits"
    return f"{len(subject.repeats)} passes of {len(subject.inputs)} points are {said}"


def _units(subject: Subject) -> str:
    bounds, inputs = subject.classifier.bounds, subject.inputs
    span = f"{float(inputs.min()):.4g} to {float(inputs.max()):.4g}"
    if bounds.pair is None:
        return f"values from {span}, declared bounds: {bounds}, shape {list(inputs.shape[1:])}"
    low, high = bounds.pair
    small = f"sigma 0.1 of the range is {0.1 * (high - low):g} in these units"
    return f"values from {span} in the declared units [{low:g}, {high:g}], shape {list(inputs.shape[1:])}; {small}"


def _size(subject: Subject) -> str:
    model = subject.classifier.model
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    kinds = sorted({str(parameter.dtype).removeprefix("torch.") for parameter in parameters})
    said = f"{sum(parameter.numel() for parameter in parameters):,} parameters ({', '.join(kinds) or 'no type'})"
    logits = str(subject.classifier.output_dtype).removeprefix("torch.")
    outputs = (
        f"{subject.logits.shape[1]} classes" if subject.decision.has_classes else f"decision {subject.decision.label}"
    )
    return f"{outputs}, {said}, logits {logits}, on {subject.classifier.device}"


FACTS: tuple[tuple[str, Callable[[Subject], str]], ...] = (
    ("model", _size),
    ("values", _units),
    ("shape", _shape),
    ("repeats", _repeats),
    ("accuracy", accuracy),
    ("cost", cost_of_run),
    ("certificates", cost_of_certificates),
)
"""What is found out, in the order in which it is printed."""
