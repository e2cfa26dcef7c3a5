"""Does the model give the same logits for the same input, after and beside other inputs?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from copy import copy

import torch
from torch import Tensor, nn

from brittle.doctor.finding import Finding
from brittle.doctor.rounding import allowed_again, excess, largest_difference
from brittle.doctor.subject import NOW, OTHERS, REPEATS, Subject
from brittle.errors import ModelError, listed
from brittle.model.loading.weights import check_weights as check_finite_weights
from brittle.model.loading.weights import dense

NAMED = 3
"""Tensors that a message names."""


def check_weights(subject: Subject) -> Iterator[Finding | str]:
    """Weights and buffers are finite, and of single precision or better."""
    model = subject.classifier.model
    if not isinstance(model, nn.Module):
        yield "a function: its weights cannot be checked"
        return
    check_finite_weights(model, "the model")
    learned, kept = (sum(tensor.numel() for tensor in tensors) for tensors in (model.parameters(), model.buffers()))
    yield f"{learned:,} parameters{f' and {kept:,} numbers in buffers' if kept else ''} are finite"


def check_precision(subject: Subject) -> Iterator[Finding | str]:
    """Weights and logits are of single precision or better."""
    kinds = {subject.classifier.dtype, subject.classifier.output_dtype} - {None}
    names = sorted(str(kind).removeprefix("torch.") for kind in kinds)
    narrow = [str(kind).removeprefix("torch.") for kind in kinds if kind is not None and kind.itemsize < 4]
    if narrow:
        yield Finding(
            "low_precision",
            f"the model computes in {', '.join(sorted(narrow))}, so its logits are rounded to about "
            f"{subject.precision:.1g} of their size; sums are taken in single precision or better, score in float32 to "
            f"tell small margins apart",
        )
    yield ", ".join(names)


def check_mode(subject: Subject) -> Iterator[Finding | str]:
    """The model was in evaluation mode."""
    if subject.classifier.was_training:
        yield Finding("train_mode", "the model was in training mode; it was scored in evaluation mode and put back")
    yield "evaluation mode"


def check_input_kept(subject: Subject) -> Iterator[Finding | str]:
    """The forward pass leaves its input as it was."""
    overwritten = subject.first_pass.overwritten
    if overwritten:
        yield Finding(
            "mutates_input",
            f"the model overwrote {overwritten} of the {subject.inputs.numel()} numbers of its input; it is given a "
            f"copy, so no score changes, but in your own code write out of place (relu(x) instead of relu_(x))",
        )
    yield "the input was left as it was"


def check_state_kept(subject: Subject) -> Iterator[Finding | str]:
    """Forward passes leave weights and buffers as they were."""
    model = subject.classifier.model
    if not isinstance(model, nn.Module):
        yield "a function: its state cannot be checked"
        return
    _ = subject.logits  # what a model sets up in its first pass is no change
    before = _digests(model)
    passes = len(subject.repeats) - 1
    after = _digests(model)
    changed = [name for name, old in before.items() if after.get(name) != old]
    if changed:
        raise ModelError(
            "mutates_state",
            f"{listed(changed, NAMED)} of the model changed in {passes} forward passes, so a score would "
            f"depend on what was scored before; keep forward() from writing to weights and buffers (statistics "
            f"belong into training mode)",
        )
    yield f"{len(before)} tensors unchanged after {passes} passes"


def check_repeatable(subject: Subject) -> Iterator[Finding | str]:
    """The same rows give the same logits every time."""
    explained = allowed_again(subject.logits, subject.precision)
    for again in subject.repeats[1:]:
        found = excess(subject.classifier, subject.inputs, subject.logits, again, explained, subject.aside)
        if found is not None:
            raise ModelError(
                "nondeterministic_model",
                f"{REPEATS} passes of the same {len(subject.inputs)} rows differ by up to {found}; switch off dropout "
                f"and other randomness (before an export: model.eval()), and let forward() not count or average",
            )
    worst = max(largest_difference(subject.logits, again) for again in subject.repeats[1:])
    yield f"{REPEATS} passes differ by at most {worst:.3g} in the logits"


def check_history(subject: Subject) -> Iterator[Finding | str]:
    """A copy of the model that saw other inputs first gives the same logits."""
    model = subject.untouched
    if isinstance(model, str):
        yield model
        return
    twin = copy(subject.classifier)
    twin.model = model
    with torch.no_grad():
        twin(*subject.others_with_tensors())
        logits = twin(subject.inputs, subject.aside)
    subject.classifier.forward_passes = twin.forward_passes
    subject.check_same("in a copy of the model that saw other inputs first", logits)
    yield f"{OTHERS} other inputs first change nothing"


def check_end(subject: Subject) -> Iterator[Finding | str]:
    """The first points give the same logits at the end of the checks."""
    logits = subject.check_same(NOW)
    yield f"they differ by at most {largest_difference(subject.logits, logits):.3g} in the logits"


def _digests(model: nn.Module) -> dict[str, bytes]:
    """A digest of every parameter and buffer, by name."""
    return {name: _digest(tensor) for name, tensor in [*model.named_parameters(), *model.named_buffers()]}


def _digest(tensor: Tensor) -> bytes:
    content = dense(tensor).contiguous().reshape(-1).view(torch.uint8).numpy()
    return hashlib.blake2b(content.tobytes(), digest_size=16).digest()
