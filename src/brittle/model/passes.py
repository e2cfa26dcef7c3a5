"""Passes forward and backward through a model, what it raises in one sentence, and outputs kept for other decisions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ModelError
from brittle.model.evaluation_mode import quiet
from brittle.model.inputs import ExtraInputs

MOST_ROWS = 2**20
"""Inputs of one batch whose outputs are kept at most; what comes later is computed anew."""

Read = Callable[[Tensor, ExtraInputs | None], Tensor]
"""From inputs `[N, *shape]`, and what they have beside them, to outputs `[N, ...]`."""


class PassMemory:
    """Outputs of a network by the bytes of their inputs, so that no input is sent forward twice."""

    def __init__(self) -> None:
        self._known: dict[bytes, Tensor] = {}

    def outputs(self, read: Read, inputs: Tensor, extra_inputs: ExtraInputs | None, *, recall: bool) -> Tensor:
        """What `read` returns for `inputs` `[N, *shape]`, `[N, ...]`; with `recall` only what is new goes through it.

        Where gradients are recorded all inputs go, because the graph is wanted.
        """
        digests = _digests(inputs, extra_inputs)
        recall = recall and not (torch.is_grad_enabled() and inputs.requires_grad)
        new = [row for row, digest in enumerate(digests) if not recall or digest not in self._known]
        if len(new) == len(digests):
            outputs = read(inputs, extra_inputs)
            self._keep(digests, outputs)
            return outputs
        found = {}
        if new:
            rows = torch.tensor(new, device=inputs.device)
            outputs = read(inputs[rows], extra_inputs and extra_inputs.only(rows))
            self._keep([digests[row] for row in new], outputs)
            found = dict(zip(new, outputs, strict=True))
        return torch.stack([found[row] if row in found else self._known[digest] for row, digest in enumerate(digests)])

    def _keep(self, digests: list[bytes], outputs: Tensor) -> None:
        if len(self._known) + len(digests) <= MOST_ROWS:
            for digest, output in zip(digests, outputs.detach().clone(), strict=True):
                self._known.setdefault(digest, output)


def _digests(inputs: Tensor, extra_inputs: ExtraInputs | None) -> list[bytes]:
    """A digest of each input with what it has beside it, `[N]`."""
    parts = [inputs if extra_inputs is None else extra_inputs.kept(inputs)]
    parts += [] if extra_inputs is None else [extra_inputs.tensors[name] for name in sorted(extra_inputs.tensors)]
    rows = [part.detach().cpu().reshape(len(part), -1).contiguous().view(torch.uint8).numpy() for part in parts]
    return [hashlib.blake2b(b"".join(map(bytes, row)), digest_size=16).digest() for row in zip(*rows, strict=True)]


WITHOUT_GRADIENT = "use scores without gradients (shrinkage, monte_carlo, softmax)"
NO_GRADIENT = (
    "the model's output does not depend on its input through operations that PyTorch can differentiate; "
    + WITHOUT_GRADIENT
)
NO_SECOND = (
    "an operation of the model has a gradient, but no second derivatives ({reason}); use scores without them "
    "(probability_change, or laplacian by the method gram)"
)
NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory")
"""What PyTorch says, in a plain `RuntimeError`, where the memory of a CPU runs out."""

LOOKED_UP = ("index out of range in self", "Class values must be")
"""What PyTorch says, of `Embedding` and `one_hot`, where a number is no category."""

NO_CATEGORY = (
    "a number that it looks up is none of its categories: take noise that leaves categories alone (--noise per-feature "
    "--sigma 0.1, with --categories NAMES to name them; brittle.noise.PerFeature), as all scores of that run do then, "
    "or noise that swaps them (--noise swap:0.1)"
)


def called(call: Callable[..., Any], rows: Tensor, extra_inputs: ExtraInputs | None, perturb: str | None) -> Any:
    """The output for rows as the model sees them, with the other tensors of each; `perturb` names their argument.

    Those are copies, because a model may write over its mask.
    """
    others = (
        {}
        if extra_inputs is None
        else {name: one.to(rows.device, copy=True) for name, one in extra_inputs.tensors.items()}
    )
    return call(rows, **others) if perturb is None else call(**{perturb: rows}, **others)


def gradient_of(
    values: Tensor, inputs: Tensor, device: torch.device, *, keep: bool, differentiable: bool
) -> Tensor | None:
    """Gradient of each row's value; None where it does not depend on the input. Arguments as `Classifier.gradient`."""
    gradient = _derivative("differentiated at", values, inputs, device, keep or differentiable, differentiable)
    if gradient is not None and differentiable and _differentiates_once(gradient):
        raise ModelError("not_differentiable", NO_SECOND.format(reason="it is marked as differentiable once"))
    return gradient


def hessian_product_of(gradient: Tensor, inputs: Tensor, along: Tensor, device: torch.device, *, keep: bool) -> Tensor:
    """Second derivatives of each row's value along a direction. Arguments as `Classifier.hessian_product`."""
    slope = (gradient * along).flatten(1).sum(dim=1)
    try:
        product = _derivative("differentiated twice at", slope, inputs, device, keep, False)
    except ModelError as error:
        if error.code != "model_failed":
            raise
        reason = str(error.__cause__).partition("\n")[0].rstrip(".")
        raise ModelError("not_differentiable", NO_SECOND.format(reason=reason)) from error
    return torch.zeros_like(inputs) if product is None else product


def _derivative(
    what: str, values: Tensor, inputs: Tensor, device: torch.device, keep: bool, differentiable: bool
) -> Tensor | None:
    if not values.requires_grad:
        return None
    # Seeds that require gradients make operations that differentiate once show up in the graph of the gradient.
    seeds = torch.ones_like(values, requires_grad=differentiable)
    with quiet(), failures_in_one_sentence(what, inputs, device):
        # Of one number: to hand over the seeds themselves would import SymPy, a third of a second in every process.
        total = torch.dot(values, seeds)
        return torch.autograd.grad(total, inputs, retain_graph=keep, create_graph=differentiable, allow_unused=True)[0]


def _differentiates_once(gradient: Tensor) -> bool:
    """Whether the graph behind a gradient was cut by an operation that PyTorch differentiates once only.

    Derivatives of such a gradient would lack that operation's part without an error.
    """
    waiting, visited = [gradient.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in visited:
            continue
        if node.name().endswith("autograd::Error"):
            return True
        visited.add(node)
        waiting += [after for after, _ in node.next_functions]
    return False


@contextmanager
def failures_in_one_sentence(what: str, inputs: Tensor, device: torch.device) -> Iterator[None]:
    """Turn an error that a model raises inside the block into a `ModelError` of one sentence.

    Args:
        what: what was done to the inputs, such as "run on".
        inputs: of the model.
        device: where it is.
    """
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise _out_of_memory(len(inputs), device) from error
    except (RuntimeError, ValueError, TypeError, AssertionError, LookupError, ArithmeticError, AttributeError) as error:
        reason = str(error).strip().partition("\n")[0]
        if any(words in reason for words in NO_MEMORY):
            raise _out_of_memory(len(inputs), device) from error
        if reason.startswith("Inference tensors cannot be saved for backward"):
            raise ModelError(
                "weights",
                "the model's weights were created under torch.inference_mode(), so PyTorch cannot differentiate it; "
                "build or load it outside of that, or give a copy made outside (copy.deepcopy(model))",
            ) from error
        advice = "give inputs of the shape that it takes, or wrap it in a module that reshapes them"
        raise ModelError(
            "model_failed",
            f"the model cannot be {what} inputs of shape {list(inputs.shape)}: {type(error).__name__}: {reason}; "
            f"{NO_CATEGORY if any(words in reason for words in LOOKED_UP) else advice}",
        ) from error


def _out_of_memory(rows: int, device: torch.device) -> ModelError:
    """The error for rows that do not fit; a quarter of them is worth a try, because memory was nearly full before."""
    fewer = max(1, rows // 4)
    advice = (
        "not even one row fits, so give smaller inputs, free memory, or compute on another device (--device)"
        if rows == 1
        else f"try --batch-size {fewer} (batch_size={fewer})"
    )
    return ModelError("out_of_memory", f"out of memory: {rows} rows do not fit on {device}; {advice}")
