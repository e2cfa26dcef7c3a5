"""A network that says more than its logits in one pass, and the one with a surrogate of `p_robust` built in."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections import ChainMap
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from brittle.data import Batch, Points
from brittle.data.arrays import as_tensor
from brittle.data.points import readable
from brittle.data.reading import Reading
from brittle.data.tables import read_frame
from brittle.errors import DataError, ModelError, ParameterError, first_line, listed, warn
from brittle.extensions.detector.conformal import FLOOR
from brittle.extensions.detector.passes import features_of, numbers_of
from brittle.extensions.detector.regressor import Recipe, Regressor
from brittle.model.arrays import COLUMNS_SHOWN, Estimator
from brittle.model.bounds import check_bounds
from brittle.model.classifier import Classifier
from brittle.model.head import Head, check_head, find_head
from brittle.model.inputs import normalise
from brittle.model.outputs import LARGEST_PROBABILITY, class_scores, log_probabilities, scores_of
from brittle.model.passes import FAILURES, one_sentence
from brittle.scores.one_pass import LARGEST_FLOAT, OnePass


def with_head(classifier: Classifier, name: str | None) -> Classifier:
    """Return the classifier with the last linear layer `name` of the fit, or None to search for it.

    Raises:
        ModelError: the layer is missing, or the classifier names another one.
    """
    head_name, declared_name = find_head(classifier.model, name).name, classifier.head_name
    if declared_name not in (None, head_name):
        raise ModelError(
            "no_head",
            f"the features of the fit are those of the layer {head_name!r}; the classifier names {declared_name!r}; "
            f"leave the name out (head=)",
        )
    return classifier if declared_name == name else classifier.with_head(name)


class PassNetwork(nn.Module):
    """Map inputs `[B, *shape]`, in the declared units, to logits `[B, C]` and two numbers of a row that follow.

    The network runs once; it is the network of the classifier, in evaluation mode. A pass raises a `ModelError` if
    somebody has put it back into training mode. Without preprocessing the network gets the inputs of the caller: a
    network that works in place on its input does so here too.

    If the features are read, the first pass checks that the last linear layer gives the logits, and raises a
    `ModelError` if it does not. Such a network must have run once before it is exported or compiled.

    It can be exported with a free batch dimension (`torch.export.export(wrapped, (x,), dynamic_shapes=...,
    strict=False)`), and the exported program gives the same numbers.
    """

    _reads_probability = _reads_rows = False

    def __init__(self, classifier: Classifier, uses_features: bool, regressor: nn.Module | None) -> None:
        super().__init__()
        head = find_head(classifier.model, classifier.head_name) if uses_features else None
        exported = isinstance(classifier.model, fx.GraphModule)
        self.network: Any = head.observe if head is not None and exported else classifier.model
        self.regressor = regressor
        self._head_agrees = head is None
        self._head = None if head is None else head.name
        inside = dict(self.network.named_modules()) if isinstance(self.network, nn.Module) else {}
        if head is not None and not exported and head.name not in inside:
            self._head = ""  # the network itself
        self._weight, self._bias = (head.weight, head.bias) if head is not None and exported else (None, None)
        self._classifier = classifier
        bounds = classifier.bounds
        if not bounds.none:
            check_bounds(bounds)
        self._unbounded = bounds.none
        ends = (-LARGEST_FLOAT, LARGEST_FLOAT) if bounds.none else bounds.allowed(torch.empty(0))
        for name, end in zip(("zero", "least", "most"), (0.0, *ends), strict=True):  # a number costs a kernel a pass
            self.register_buffer(name, torch.tensor(end, dtype=torch.float64, device=classifier.device), False)
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
    zero: Tensor
    least: Tensor
    most: Tensor

    def train(self, mode: bool = True) -> PassNetwork:
        """Enter evaluation mode, the only mode.

        Raises:
            ModelError: `mode` asks for training.
        """
        if mode:
            raise ModelError("train_mode", "the network was measured in evaluation mode, the only mode that it has")
        self.training = False
        for part in self.children():
            if not isinstance(part, fx.GraphModule):  # an exported program refuses to change its mode
                part.eval()
        return self

    def forward(self, inputs: Any) -> tuple[Any, Any, Any]:
        """Return logits and the two numbers per input of `[B, *shape]`: tensors.

        An estimator takes NumPy arrays, too, or, if it was fitted on a frame, frames alone, read as `brittle.score`
        reads them, and gives arrays for both. A row that is not finite in single precision has no logits, and fails; so
        does one that the estimator refuses, such as one of an unknown category, with a warning.

        Raises:
            ModelError: the output is not one row of logits per input, the network is in training mode, or an estimator
                fails on all inputs.
            DataError: an estimator is given no numbers, or other columns than it was fitted on.
            ParameterError: `inputs` is no tensor, or has no batch axis.
        """
        if not isinstance(self.network, Estimator):
            return self._run(inputs, self.network)
        results = self._run_estimator(*self._read(inputs))
        first, second, third = results if isinstance(inputs, Tensor) else [part.numpy() for part in results]
        return first, second, third

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
        """Run finite rows; rows that are not finite, and those that the estimator refuses, get NaN and fail."""
        self._check_shape(rows)
        places = rows.flatten(1).float().isfinite().all(dim=1).nonzero()[:, 0]
        results = rows.new_full((len(rows), len(model.class_names)), torch.nan), *self._failed(rows)
        faults = self._fill(results, rows, places, model)
        if faults:
            row, error = next(iter(faults.items()))
            reason = (
                f"{model.__name__} cannot be run on {len(faults)} of {len(rows)} rows of shape {list(rows.shape[1:])}, "
                f"such as row {row}: {first_line(error)}; give rows as it was fitted on"
            )
            if len(faults) == len(places):
                raise ModelError("model_failed", reason) from error
            warn("model_failed", reason)
        return results

    def _fill(self, results: Sequence[Tensor], rows: Tensor, places: Tensor, model: Any) -> dict[int, Exception]:
        """Write the results of the rows at `places`, all at once or else one by one; return the faults of rows."""
        if not len(places):
            return {}
        try:
            values = self._run(rows[places], model)
        except FAILURES as error:
            if len(places) == 1:
                return {int(places): error}
            parts = [self._fill(results, rows, place, model) for place in places.split(1)]
            return dict(ChainMap(*parts[::-1]))
        for part, numbers in zip(results, values, strict=True):
            part[places] = numbers
        return {}

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
        # Before the network, which may work in place.
        flat, rows = inputs.flatten(1), inputs.clone() if self._reads_rows and inputs.dim() == 2 else None
        inside = (flat.amin(1, keepdim=True) >= self.least) & (self.most >= flat.amax(1, keepdim=True))
        total = (flat - flat if self._unbounded else flat).sum(1, keepdim=True)  # it alone shows NaN in onnxruntime
        values = inputs if inputs.dtype == self._dtype else inputs.to(self._dtype or inputs.dtype)
        values = normalise(values, self.mean, self.std) if self._scaled else values
        output, features, head = self._observe(network, values)
        logits = self._logits(output, inputs.shape[0])
        if head is not None and features is not None and not self._head_agrees:
            self._check_head(head, features, logits)
        if self._reads_rows:
            features = logits if rows is None else features_of(numbers_of(network, rows), logits)
        reads_probability = isinstance(network, Estimator) and self._reads_probability
        logs = network.log_probabilities(values) if reads_probability else None
        one_pass = OnePass(logits, features, None if head is None else head.weight, logs)
        return logits, *self._conclude(one_pass, inside, total)

    @abstractmethod
    def _conclude(self, one_pass: OnePass, inside: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """Return the two numbers of each row from its pass, whether its inputs are in the bounds, `[B, 1]`, and a
        number that is NaN or infinite where one of these is, `[B, 1]`. So may the logits be."""

    @abstractmethod
    def _failed(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the two numbers of rows that fail."""

    def _observe(self, network: Any, values: Tensor) -> tuple[Any, Tensor | None, Head | None]:
        """Return the output of the network, and the features and the last layer if the score reads them."""
        if self._head is None:
            # The guards of an exported program are in its graph. Its hooks see whether it is given one tensor, and take
            # as long as a small network.
            has_guards = isinstance(network, fx.GraphModule) and hasattr(network, "_guards_fn")
            return (network.forward if has_guards else network)(values), None, None
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


class SurrogateNetwork(PassNetwork):
    """Map inputs `[B, *shape]`, in the declared units, to `(logits, p_robust, bound)`, `[B, C]`, `[B, K]`, `[B, K]`.

    Both probabilities are in double precision; `p_robust` is NaN where a logit or a feature is not finite. The bound is
    0 unless the input lies in the declared bounds, all logits are finite, and a single logit is the largest;
    so `bound < limit` flags what a detector would. What `PassNetwork` says of passes and exports holds here.
    """

    slopes: Tensor
    shifts: Tensor

    def __init__(self, classifier: Classifier, recipe: Recipe, regressor: Regressor, quantiles: Tensor) -> None:
        super().__init__(classifier, recipe.uses_features, copy.deepcopy(regressor).to(classifier.device))
        self._reads_rows = recipe.reads_logits and recipe.form == "head"
        self.register_buffer("slopes", quantiles.to(self.mean.device).clamp_max(LARGEST_FLOAT))
        self.register_buffer("shifts", (1.0 + FLOOR) * (1.0 - self.slopes))

    def observe(self, points: Points, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits, probabilities and bounds of points of a data set; those that cannot be read fail."""
        inputs, network = batch.inputs.to(self.mean.device), self.network
        if isinstance(network, Estimator):
            results = self._run_estimator(inputs.double(), self._classifier.reading(points.provenance).model)
        else:
            with one_sentence("run on", inputs, inputs.device):
                results = self._run(inputs, network)
        for part, values in zip(results[1:], self._failed(inputs), strict=True):
            part[~readable(batch)] = values[~readable(batch)]
        return results

    def _conclude(self, one_pass: OnePass, inside: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        regressor: Any = self.regressor
        inputs, biases = regressor.read(one_pass.features, one_pass.logits)
        total = total.to(inputs.dtype) + inputs.sum(dim=1, keepdim=True)
        doubt = total - total  # NaN unless all are finite
        p_robust = regressor.shares(inputs, biases, doubt)
        slopes, shifts = self.slopes, self.shifts
        if len(slopes) > 1:
            classes = one_pass.logits.argmax(dim=1).clamp_max(len(slopes) - 1)
            slopes, shifts = slopes[classes], shifts[classes]
        bounds = (p_robust * slopes + shifts).relu()  # `conformal.bound`
        is_clear = inside & (inputs.narrow(1, inputs.shape[1] - regressor.nearest, 1) > doubt)  # no tie
        return p_robust, torch.where(is_clear, bounds, self.zero)

    def _failed(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        p_robust = rows.new_full((len(rows), self.slopes.shape[1]), torch.nan, dtype=torch.float64)
        return p_robust, torch.zeros_like(p_robust)
