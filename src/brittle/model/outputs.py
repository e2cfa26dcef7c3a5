"""Logits out of what a model returns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.decisions import Custom, Decision, MultiLabel, PredictedClass, SameTop, Within
from brittle.errors import ModelError, ParameterError

OUTPUTS = ("logits", "probs", "binary-logit")  # class scores, class probabilities, or one logit for class 1
ONE_NUMBER = (  # advice where a model returns one number for each input
    "for the logit of a two-class model use --outputs binary-logit (outputs='binary-logit'); for its probability p "
    "return [1 - p, p], for a class return a row with a 1 in its place, such as numpy.eye(classes)[label], and use "
    "--outputs probs (outputs='probs'); for a number that it predicts, --decision within:T (decision='within:T')"
)

LARGEST_PROBABILITY = 1 + 1e-2  # as those of a softmax in half precision are rounded


def outputs_of(scores: Tensor, rows: int, outputs: str, decision: Decision) -> Tensor:
    """Return what the decision reads, `[B, ...]`, in float32 or better, of memory of its own: logits for the class.
    Probabilities become what the decision compares: logits of each label, logarithms of those of classes."""
    if decision.of_classes:
        numbers = class_scores(scores, rows, outputs)
    else:
        if scores.dim() == 1 and len(scores) == rows and decision.one_number:
            scores = scores[:, None]
        if scores.dim() == 0 or len(scores) != rows:
            shape = list(scores.shape)
            raise ModelError("output_shape", f"{rows} inputs gave a result of shape {shape}; expected a row for each")
        decision.check(scores)
        numbers = widened(scores)
    if outputs != "probs":
        return numbers.clone()
    smallest, largest = float(numbers.detach().min()), float(numbers.detach().max())
    if smallest < 0 or largest > LARGEST_PROBABILITY:
        raise ModelError(
            "outputs",
            f"the outputs were declared as probabilities, but hold values from {smallest:.4g} to {largest:.4g}; leave "
            f"out --outputs probs (outputs='probs') if they are class scores",
        )
    logarithms = log_probabilities(numbers)
    return logarithms - log_probabilities(1 - numbers) if decision.of_odds else logarithms


def widened(scores: Tensor) -> Tensor:
    """Return scores in single precision or better."""
    return scores if scores.dtype in (torch.float32, torch.float64) else scores.float()


PROBLEMS: dict[str, tuple[tuple[type[Decision], ...], str]] = {  # by `problem_type` of Hugging Face
    "single_label_classification": ((PredictedClass, SameTop, Custom), "class"),
    "multi_label_classification": ((MultiLabel, Custom), "multilabel"),
    "regression": ((Within, Custom), "within:T"),
}


def check_decision(decision: Decision, outputs: str, model: Any = None) -> None:
    """Raise unless `decision` can be taken from what the user and the config of the model say that it returns."""
    problem = getattr(getattr(model, "config", None), "problem_type", None)
    fitting, written = PROBLEMS.get(str(problem), ((Decision,), ""))
    one_label = outputs == "binary-logit" and problem == "multi_label_classification"
    if not (one_label or isinstance(decision, fitting)):
        tolerance = ", with a tolerance T" if written.endswith("T") else ""
        raise ParameterError(
            f"config.json of the model says {problem}, and the decision is {decision.label}; use --decision {written} "
            f"(decision='{written}'){tolerance}"
        )
    if outputs not in decision.declared:
        raise ParameterError(
            f"the decision {decision.label} is not taken from outputs={outputs}; leave out --outputs (outputs=) where "
            f"the model returns no such numbers, else --decision (decision=)"
        )


def class_scores(scores: Tensor, rows: int, outputs: str) -> Tensor:
    """Return class scores `[B, C]` of two classes or more, in float32 or better; it can be exported."""
    if outputs == "binary-logit" and scores.numel() == rows:
        scores = scores.reshape(rows, 1)
    if scores.dim() != 2 or scores.shape[0] != rows:
        advice = f"; {ONE_NUMBER}" if scores.dim() == 1 and len(scores) == rows else ""
        if scores.dim() == 4:
            advice = "; for pixels say --decision masks:0.5 (decision='masks:0.5')"
        elif rows == 1 < scores.numel() and scores.dim() == 1:
            advice = "; write squeeze(dim) instead of squeeze() in the model"
        shapes = f"{list(scores.shape)}; expected [{rows}, classes]"
        raise ModelError("output_shape", f"{rows} inputs gave a result of shape {shapes}{advice}")
    if outputs == "binary-logit":
        if scores.shape[1] != 1:
            raise ModelError("output_shape", f"a model of one logit returns one column a row, found {scores.shape[1]}")
        scores = torch.cat((torch.zeros_like(scores), scores), dim=1)
    if scores.shape[1] < 2:
        raise ModelError("output_shape", f"the model returns 1 number per input, not 2 classes or more; {ONE_NUMBER}")
    return widened(scores)


def log_probabilities(scores: Tensor) -> Tensor:
    """Logarithms of probabilities; one that underflowed to 0 counts as the smallest number of its precision."""
    return scores.clamp_min(torch.finfo(scores.dtype).tiny).log()


def scores_of(output: Any) -> tuple[Tensor, str | None]:
    """Return the class scores in what a model returned, `logits` or `out`, and which part they are."""
    if isinstance(output, Tensor):
        scores, form = output, None
    elif isinstance(output, Mapping):
        name = "out" if "out" in output and "logits" not in output else "logits"
        scores, form = output.get(name), f'output["{name}"]'
    else:
        scores, form = getattr(output, "logits", None), "output.logits"
    if not isinstance(scores, Tensor):
        kind = f"mapping with the keys {list(output)}" if isinstance(output, Mapping) else type(output).__name__
        advice = "a tensor of class scores, or `logits` in a mapping or object, is needed: wrap the model in a function"
        if isinstance(output, np.ndarray):
            advice = "if it also takes NumPy arrays, say so: Classifier(model, arrays='numpy')"
        elif isinstance(output, list):
            advice = "for boxes around objects say --decision boxes:0.5 (decision='boxes:0.5')"
        raise ModelError("output_shape", f"the model returned a {kind}; {advice}")
    if scores.is_complex():
        raise ModelError("output_shape", "the model returned complex numbers; return real ones, such as output.abs()")
    scores = scores.dequantize() if scores.is_quantized else scores
    return scores if scores.layout == torch.strided else scores.to_dense(), form
