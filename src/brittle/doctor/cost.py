"""What the run that was asked for would cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from brittle.doctor.settings import certified
from brittle.doctor.subject import Subject
from brittle.errors import BrittleError
from brittle.text import duration

TIMED, PROVED = 3, 4
"""Batches of which the fastest is taken for the time of one, and points whose certificates are timed."""


def check_cost(subject: Subject) -> Iterator[str]:
    """About how long the network takes, from timed batches and the passes that the scores need."""
    inputs = subject.inputs.clone().requires_grad_(subject.differentiates)
    forward, backward = min(_seconds(lambda: subject.logits_of(inputs)) for _ in range(TIMED)), 0.0
    if subject.differentiates:
        logits = subject.logits_of(inputs)
        try:
            backward = _seconds(lambda: subject.classifier.gradient(logits.amax(dim=1), inputs, keep=False))
        except BrittleError:
            backward = forward
    count, spent = len(subject.batch if subject.points is None else subject.points), subject.passes_per_point
    forward, backward = forward / len(inputs), backward / len(inputs)
    proofs, first = "", subject.inputs[:PROVED]
    if any(need.certifies for need in subject.needs):
        seconds = _seconds(lambda: torch.cat([one.radius for one in certified(subject, len(first))])) / len(first)
        proofs = f", certificates about {duration(count * seconds)} as {len(first)} points have it"
    yield (
        f"the network takes about {duration(count * (spent.forward * forward + spent.backward * backward))} for "
        f"{count:,} points ({spent.forward:,.0f} forward and {spent.backward:,.0f} backward passes a point, "
        f"{1e3 * forward:.2g} and {1e3 * backward:.2g} ms each){proofs}, reading the points about "
        f"{duration(count * subject.seconds_to_read)}; noise and searches add to that"
    )


def _seconds(take: Callable[[], Tensor]) -> float:
    started = time.perf_counter()
    float(take().detach().sum())  # a number that is read, so the device is done
    return time.perf_counter() - started
