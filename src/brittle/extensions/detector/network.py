"""The score that a detector reads, by name, and a network with the detector built in."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeGuard, TypeVar

import torch
from torch import Tensor, fx, nn

from brittle.data.arrays import as_tensor
from brittle.data.reading import Reading
from brittle.data.tables import read_frame
from brittle.errors import DataError, ModelError, ParameterError, UnknownNameError, first_line, listed
from brittle.extensions.detector.pseudo_margin import PseudoMargin, PseudoMarginScore
from brittle.model.arrays import COLUMNS_SHOWN, Estimator
from brittle.model.bounds import check_bounds
from brittle.model.classifier import Classifier
from brittle.model.head import Head, check_head, find_head
from brittle.model.inputs import normalise
from brittle.model.outputs import LARGEST_PROBABILITY, class_scores, log_probabilities, scores_of
from brittle.model.passes import FAILURES
from brittle.scores import Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.one_pass import LARGEST_FLOAT, OnePass, OnePassScore

PSEUDO_MARGIN = PseudoMarginScore.name
"""Name of the learned score."""

Numbers = TypeVar("Numbers", bound=Any)


def _readable(kind: type[Score]) -> TypeGuard[type[OnePassScore]]:
    """Return whether a score has a formula of one pass, and a safer direction."""
    return issubclass(kind, OnePassScore) and kind.safer in ("higher", "lower")


READINGS = {kind.name: kind for kind in (*CATALOGUE.values(), PseudoMarginScore) if _readable(kind)}
"""The scores of brittle that a detector can read, by name."""


def kind_of(score: str) -> type[OnePassScore]:
    """Return the class of a score that a detector can read, one of `READINGS`.

    Raises:
        UnknownNameError: no such score has this name.
    """
    kind = READINGS.get(str(score))
    if kind is not None:
        return kind
    near = get_close_matches(str(score), READINGS, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnknownNameError(
        f"a detector reads a score of one pass with a safer direction, one of {', '.join(READINGS)}; found "
        f"{score!r:.60}{hint}"
    )


def orient(kind: type[OnePassScore], values: Numbers) -> Numbers:
    """Return `values` of a score with the sign that makes larger safer."""
    return -values if kind.safer == "lower" else values


def score_of(score: str, norm: Any = None, pseudo_margin: PseudoMargin | None = None) -> OnePassScore:
    """Return the score for `brittle.score` and for a network with the detector built in, None its default norm."""
    if not isinstance(pseudo_margin, PseudoMargin | None):
        kind = type(pseudo_margin).__name__
        raise ParameterError(f"expected a brittle.PseudoMargin, found {kind}; PseudoMargin.load reads it from its file")
    if (score == PSEUDO_MARGIN) != (pseudo_margin is not None):
        reason = "needs the file of the one that computed it" if pseudo_margin is None else "reads no pseudo-margin"
        raise ParameterError(f"a detector of the score {score} {reason}: --pseudo-margin FILE (pseudo_margin=)")
    if pseudo_margin is not None:
        return pseudo_margin.score
    kind = kind_of(score)
    has_norm = norm is not None and "norm" in {field.name for field in fields(kind)}
    return kind(**({"norm": norm} if has_norm else {}))


class DetectorNetwork(nn.Module):
    """Map inputs `[B, *shape]`, in the declared units, to `(logits, score, brittle)`, `[B, C]`, `[B]` and `[B]`.

    `score` is in double precision, `brittle` holds booleans: True unless the input lies in the declared bounds, all
    logits are finite, a single logit is the largest, and the score is a finite number that reaches the threshold.
    The network runs once; it is the network of the classifier, in evaluation mode. A pass raises a `ModelError` if
    somebody has put it back into training mode. Without preprocessing the network gets the inputs of the caller: a
    network that works in place on its input does so here too.

    If the score reads features, the first pass checks that the last linear layer gives the logits, and raises a
    `ModelError` if it does not. Such a network must have run once before it is exported or compiled.

    It can be exported with a free batch dimension (`torch.export.export(wrapped, (x,), dynamic_shapes=...,
    strict=False)`), and the exported program flags the same points.
    """

    def __init__(self, classifier: Classifier, score: OnePassScore, threshold: float) -> None:
        super().__init__()
        head = find_head(classifier.model, classifier.head_name) if score.uses_features else None
        exported = isinstance(classifier.model, fx.GraphModule)
        self.network: Any = head.observe if head is not None and exported else classifier.model
        self.regressor = score.network
        self._head_agrees = head is None
        self._head = None if head is None else head.name
        inside = dict(self.network.named_modules()) if isinstance(self.network, nn.Module) else {}
        if head is not None and not exported and head.name not in inside:
            self._head = ""  # the network itself
        self._weight, self._bias = (head.weight, head.bias) if head is not None and exported else (None, None)
        self._score, self._threshold = score, threshold
        self._classifier = classifier
        bounds = classifier.bounds
        if not bounds.none:
            check_bounds(bounds)
        self._least, self._most = (-LARGEST_FLOAT, LARGEST_FLOAT) if bounds.none else bounds.allowed(torch.empty(0))
        self._dtype, self._outputs = classifier.dtype, classifier.outputs
        self._scaled = bool(classifier.mean or classifier.std)
        self._channels = max(len(classifier.mean or ()), len(classifier.std or ()), 1)
        dtype = classifier.dtype or torch.float32
        for name, numbers, neutral in (("mean", classifier.mean, 0.0), ("std", classifier.std, 1.0)):
            values = torch.tensor(numbers or (neutral,), dtype=dtype, device=classifier.device)
            self.register_buffer(name, values, persistent=False)
        self.eval()
        self._modes = [module for module in self.modules() if not getattr(module, "training", True)]  # some have none

    mean: Tensor
    std: Tensor

    def train(self, mode: bool = True) -> DetectorNetwork:
        """Enter evaluation mode, the only mode.

        Raises:
            ModelError: `mode` asks for training.
        """
        if mode:
            raise ModelError("train_mode", "a detector was fitted in evaluation mode, the only mode that it has")
        self.training = False
        for part in self.children():
            if not isinstance(part, fx.GraphModule):  # an exported program refuses to change its mode
                part.eval()
        return self

    def forward(self, inputs: Any) -> tuple[Any, Any, Any]:
        """Return logits, score and flag per input of `[B, *shape]`: tensors.

        An estimator takes NumPy arrays, too, or, if it was fitted on a frame, frames alone, read as `brittle.score`
        reads them, and gives arrays for both. A row that is not finite in single precision is flagged without logits.

        Raises:
            ModelError: the output is not one row of logits per input, the network is in training mode, or an estimator
                fails on the inputs.
            DataError: an estimator is given no numbers, or other columns than it was fitted on.
            ParameterError: `inputs` is no tensor, or has no batch axis.
        """
        if not isinstance(self.network, Estimator):
            return self._run(inputs, self.network)
        logits, score, flags = self._run_estimator(*self._read(inputs))
        return (logits, score, flags) if isinstance(inputs, Tensor) else (logits.numpy(), score.numpy(), flags.numpy())

    def _read(self, inputs: Any) -> tuple[Tensor, Any]:
        """Return the inputs of an estimator, `[B, *shape]`, in double precision, and the estimator for their codes."""
        subject, framed = self._classifier, hasattr(inputs, "columns")
        if subject.reads_frames and not framed:
            name, columns = self.network.__name__, listed(self.network.feature_names, COLUMNS_SHOWN)
            raise DataError(
                "columns",
                f"{name} was fitted on a frame, and an array does not name its columns; give a frame with the columns "
                f"{columns}",
            )
        if not framed:
            return as_tensor(inputs, "the input").double(), self.network
        if not len(inputs):
            return torch.empty(0, 1, dtype=torch.float64), self.network
        points = read_frame(inputs, None, Reading(levels=subject.reads_frames))
        return points.read(0, len(points)).inputs.double(), subject.reading(points.source).model

    def _run_estimator(self, rows: Tensor, model: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Run finite rows; rows that are not finite, which estimators refuse, get NaN and the flag."""
        self._check_shape(rows)
        finite = rows.flatten(1).float().isfinite().all(dim=1)
        logits = rows.new_full((len(rows), len(model.class_names)), torch.nan)
        score, brittle = rows.new_full((len(rows),), torch.nan), torch.ones(len(rows), dtype=torch.bool)
        if bool(finite.any()):
            try:
                logits[finite], score[finite], brittle[finite] = self._run(rows[finite], model)
            except FAILURES as error:
                problem = f"{model.__name__} cannot be run on inputs of shape {list(rows.shape)}: {first_line(error)}"
                raise ModelError("model_failed", f"{problem}; give rows as it was fitted on") from error
        return logits, score, brittle

    def _check_shape(self, inputs: Any) -> None:
        if not isinstance(inputs, Tensor) or inputs.dim() < 2 or self._channels not in (1, inputs.shape[1]):
            expected = "[B, *shape]" if self._channels == 1 else f"[B, {self._channels}, ...]"
            actual = f"shape {list(inputs.shape)}" if isinstance(inputs, Tensor) else type(inputs).__name__
            raise ParameterError(f"a tensor {expected} is needed; found {actual}; give one input alone as inputs[None]")

    def _run(self, inputs: Tensor, network: Any) -> tuple[Tensor, Tensor, Tensor]:
        self._check_shape(inputs)
        if any(module.training for module in self._modes):
            raise ModelError(
                "train_mode",
                "the network was put into training mode, in which it gives other scores; call its eval(), or wrap a "
                "copy (copy.deepcopy)",
            )
        flat = inputs.flatten(1)  # before the network, which may work in place
        inside = (flat.amin(dim=1) >= self._least) & (flat.amax(dim=1) <= self._most)
        total = (flat - flat).sum(dim=1)  # in onnxruntime, it alone shows NaN in a row
        values = inputs if inputs.dtype == self._dtype else inputs.to(self._dtype or inputs.dtype)
        values = normalise(values, self.mean, self.std) if self._scaled else values
        output, features, head = self._observe(network, values)
        logits = self._logits(output, inputs.shape[0])
        if head is not None and features is not None and not self._head_agrees:
            self._check_head(head, features, logits)
        reads_probability = isinstance(network, Estimator) and self._score.serves == "probability"
        logs = network.log_probabilities(values) if reads_probability else None
        one_pass = OnePass(logits, features, None if head is None else head.weight, logs)
        score = orient(type(self._score), self._score.value(one_pass))
        largest, second_largest = one_pass.top
        # NaN where an input, a logit or the score is NaN or infinite, and no score reaches NaN. A sum takes few
        # kernels, which small networks notice, and no sum of single precision logits overflows in double precision.
        total = total + logits.sum(dim=1, dtype=torch.float64) + score
        reaches, tied = score >= total - total + self._threshold, largest <= second_largest
        return logits, score, ~(reaches & inside) | tied

    def _observe(self, network: Any, values: Tensor) -> tuple[Any, Tensor | None, Head | None]:
        """Return the output of the network, and the features and the last layer if the score reads them."""
        if self._head is None:
            return network(values), None, None
        if self._weight is not None:
            output, features = network(values)
            head = Head(self._head, self._weight, self._bias, network)
        else:
            head = find_head(network, self._head)
            output, features = head.observe(values)
        one_logit = self._outputs == "binary-logit" and len(head.weight) == 1
        return output, features, head.for_two_classes() if one_logit else head

    def _check_head(self, head: Head, features: Tensor, logits: Tensor) -> None:
        """Raise unless the last linear layer gives the logits; repeated until a batch has finite logits."""
        if torch.compiler.is_compiling():
            raise ModelError(
                "no_head",
                f"the first pass checks that the layer {head.name!r} gives the logits; run the network once before it "
                f"is exported or compiled",
            )
        check_head(head, features, logits)
        self._head_agrees = bool(logits.isfinite().all())

    def _logits(self, output: Any, rows: int) -> Tensor:
        """Return logits `[B, C]`, as `Classifier` does; NaN where a declared probability is no probability."""
        scores = class_scores(scores_of(output)[0], rows, self._outputs)
        if self._outputs != "probs":
            return scores
        return torch.where((scores >= 0) & (scores <= LARGEST_PROBABILITY), log_probabilities(scores), torch.nan)
