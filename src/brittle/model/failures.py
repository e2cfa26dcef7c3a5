"""What a model raises, and what it cannot do, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from brittle.errors import ModelError
from brittle.model.quiet import without_last_words

WITHOUT_GRADIENT = "use scores without gradients (shrinkage, monte_carlo, softmax)"
NO_GRADIENT = (
    "the model's output does not depend on its input through operations that PyTorch can differentiate; "
    + WITHOUT_GRADIENT
)
NO_SECOND = "an operation of the model has a gradient, but no second derivatives"
NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory")
"""What PyTorch says, in a plain `RuntimeError`, where the memory of a CPU runs out."""

LOOKED_UP = ("index out of range in self", "Class values must be")
"""What PyTorch says, of `Embedding` and `one_hot`, where a number is no category."""

NO_CATEGORY = (
    "a number that it looks up is none of its categories: take noise that leaves categories alone (--noise per-feature "
    "--sigma 0.1, with --categories NAMES to name them; brittle.noise.PerFeature), as all scores of that run do then, "
    "or noise that swaps them (--noise swap:0.1)"
)

WITHOUT_SECOND = "use scores without them (probability_change, or laplacian by the method gram)"


@contextmanager
def failures_in_one_sentence(what: str, inputs: Tensor, device: torch.device) -> Iterator[None]:
    """Turn an error that a model raises inside the block into a `ModelError` of one sentence, and print nothing of it.

    Args:
        what: what was done to the inputs, such as "run on".
        inputs: of the model.
        device: where it is.

    Raises:
        ModelError: the model raised something.
    """
    try:
        with without_last_words():
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
    if rows == 1:
        advice = "not even one row fits, so give smaller inputs, free memory, or compute on another device (--device)"
    else:
        fewer = max(1, rows // 4)
        advice = f"try --batch-size {fewer} (batch_size={fewer})"
    return ModelError("out_of_memory", f"out of memory: {rows} rows do not fit on {device}; {advice}")


def differentiates_once(gradient: Tensor) -> bool:
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
