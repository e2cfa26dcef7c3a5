"""Derivatives of a model, and what it raises in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from brittle.errors import BrittleError, ModelError, first_line
from brittle.model.evaluation_mode import quiet

FAILURES = (RuntimeError, ValueError, TypeError, AssertionError, LookupError, ArithmeticError, AttributeError)
"""Exceptions that a model raises where it, or its input, is wrong."""

WITHOUT_GRADIENT = "use scores without gradients (shrinkage, monte_carlo, softmax)"
NO_GRADIENT = (
    "the model's output does not depend on its input through operations that PyTorch can differentiate; "
    + WITHOUT_GRADIENT
)
NO_SECOND = (
    "an operation of the model has a gradient, but no second derivatives ({reason}); use scores without them "
    "(probability_change, or laplacian by the method gram)"
)
NO_MEMORY = (  # words of general errors of PyTorch where memory runs out
    "DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory", "backend out of memory",
    "CUDA error: out of memory", "_STATUS_ALLOC_FAILED",
)  # fmt: skip

NO_CATEGORY = (
    "a number that it looks up is none of its categories: take noise that leaves categories alone (--noise "
    "per-feature, with --categories NAMES to name them) or swaps them (--noise swap:0.1)"
)
ADVICE = {  # by words in the sentence of PyTorch
    "index out of range in self": NO_CATEGORY,
    "Class values must be": NO_CATEGORY,
    "Inference tensors cannot be saved for backward": "its weights were created under torch.inference_mode(); build or "
    "load it outside of that, or give a copy made outside (copy.deepcopy(model))",
}

SHAPE = "give inputs of the shape that it takes (images: --resize SIDE), or wrap it in a module that reshapes them"
"""Advice where nothing else is known."""


def ran_out(error: BaseException) -> bool:
    """Return whether memory ran out, of the device or of this machine."""
    if isinstance(error, ModelError):
        return error.code == "out_of_memory"
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(words in str(error) for words in NO_MEMORY)


def derivative(
    values: Tensor, inputs: Tensor, device: torch.device, *, keep: bool, differentiable: bool = False
) -> Tensor | None:
    """Return the gradient of each row's value, `[B]`, by `inputs`, as `Classifier.gradient`; None without any."""
    if not values.requires_grad:
        return None
    # Seeds that require gradients make operations that differentiate once show up in the graph of the gradient.
    seeds = torch.ones_like(values, requires_grad=differentiable)
    with one_sentence("differentiated at", inputs, device):
        # Of one number: to hand over the seeds themselves would import SymPy, a third of a second in every process.
        total = torch.dot(values, seeds)
        gradient = torch.autograd.grad(
            total, inputs, retain_graph=keep or differentiable, create_graph=differentiable, allow_unused=True
        )[0]
    if gradient is not None and differentiable and _differentiates_once(gradient):
        raise ModelError("not_differentiable", NO_SECOND.format(reason="it is marked as differentiable once"))
    return gradient


def _differentiates_once(gradient: Tensor) -> bool:
    """Return whether an operation that PyTorch differentiates only once cut the graph behind a gradient."""
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
def one_sentence(action: str, inputs: Tensor, device: torch.device, usual: str = SHAPE) -> Iterator[None]:
    """Turn an error of a model inside the block into a `ModelError`; `action` is as "run on", `usual` the advice."""
    try:
        with quiet():
            yield
    except BrittleError:
        raise
    except Exception as error:
        reason = first_line(error)
        if ran_out(error):
            fewer = max(1, len(inputs) // 4)  # a quarter is worth a try, because memory was nearly full before
            advice = f"try --batch-size {fewer} (batch_size={fewer})"
            if len(inputs) == 1:
                advice = "give smaller inputs, free memory, or compute on another device (--device)"
            sentence = f"out of memory: {len(inputs)} rows do not fit on {device}; {advice}"
            raise ModelError("out_of_memory", sentence) from error
        advice = next((advice for words, advice in ADVICE.items() if words in reason), usual)
        raise ModelError(
            "model_failed",
            f"the model cannot be {action} inputs of shape {list(inputs.shape)}: {type(error).__name__}: {reason}; "
            f"{advice}",
        ) from error
