"""What the run that was asked for would cost: an estimate from one timed batch and the passes of the measurements."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from brittle.doctor.durations import duration
from brittle.doctor.gradients import differentiates
from brittle.doctor.subject import Subject
from brittle.errors import BrittleError
from brittle.measure import Certified, Passes
from brittle.measure.base import by_stream

TIMED = 3
"""Batches of which the fastest is taken for the time of one."""


def passes_per_point(subject: Subject) -> Passes:
    """What the chosen scores spend on a point, the clean pass included and certificates not: as measurements say."""
    spent = Passes(1, 0)
    for needs in by_stream(need for need in subject.needs if not isinstance(need, Certified)):
        spent += max((need.cost(subject) for need in needs), key=lambda each: each.total)
    return spent


def cost_of_run(subject: Subject) -> str:
    """Time of the network and memory, from one timed batch; `cost_of_certificates` says what these take."""
    total = len(subject.points) if subject.points is not None else len(subject.batch)
    spent = passes_per_point(subject)
    forward, backward, kept = _timed(subject)
    seconds = total * (spent.forward * forward + spent.backward * backward)
    passes = f"{spent.forward:,.0f} forward and {spent.backward:,.0f} backward passes a point"
    held = max((need.memory(len(subject.inputs), subject) for need in subject.needs), default=0)
    memory = _weights(subject) + kept + held
    return (
        f"the network takes about {duration(seconds)} for {total:,} points ({passes}, {1e3 * forward:.2g} and "
        f"{1e3 * backward:.2g} ms each in batches of {len(subject.inputs)}), to which reading, noise and searches add "
        f"their own; {memory / 2**20:,.0f} MiB for weights and one batch; an estimate"
    )


def _timed(subject: Subject) -> tuple[float, float, int]:
    """Seconds of a forward and of a backward pass of one row, and bytes that are kept for the backward pass."""
    classifier, inputs = subject.classifier, subject.inputs
    with torch.no_grad():
        forward = min(_clock(subject, lambda: subject.logits_of(inputs)) for _ in range(TIMED))
    if not differentiates(subject):
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


def _weights(subject: Subject) -> int:
    model = subject.classifier.model
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
