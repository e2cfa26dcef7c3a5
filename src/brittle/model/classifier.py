"""Logits of any model: inputs in declared units, evaluation mode, counted passes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from brittle.decisions import Decision
from brittle.decisions.kinds import as_decision
from brittle.errors import ModelError, ParameterError, first_line
from brittle.model.arrays import ArrayModel, Estimator, Fitted, Levels, as_model
from brittle.model.bounds import Bounds, BoundsLike
from brittle.model.evaluation_mode import check_mode, evaluating
from brittle.model.head import Head, check_head, find_head
from brittle.model.inputs import ExtraInputs, as_seen, channel_numbers, place
from brittle.model.outputs import OUTPUTS, check_decision, outputs_of, scores_of
from brittle.model.passes import NO_GRADIENT, NO_SECOND, SHAPE, derivative, one_sentence

Watcher = Callable[["Classifier", Tensor, Tensor, ExtraInputs | None], None]  # of what a pass reads
CLEAN_PASSES = 101  # number of clean passes of a random model; the class that wins most of them is the prediction


@dataclass
class PassLog:
    """A log of the passes of a classifier, shared by those that are made of it."""

    output_dtype: torch.dtype  # precision of the class scores as the model last returned them
    forward: int = 0  # rows that were sent
    backward: int = 0
    form: str | None = None  # form of that output
    head_agrees: bool = False  # whether the last linear layer was seen to give the logits


class Classifier:
    """A trained model with the declaration of its inputs.

    Inputs are given in the units of `bounds`; the model sees `(x - mean) / std`. Noise and distances are in them, too.

    Args:
        model: a module, or any callable, from `[B, *shape]` to class scores `[B, C]`, or to a mapping or an object
            that holds them as `logits`; or a fitted scikit-learn classifier (`brittle.model.arrays.Estimator`), which
            runs forward only.
        bounds: smallest and largest value of an input; or a pair of arrays, the smallest and the largest value of each
            feature, infinite where there is none; or "none", for inputs without a range.
        mean: subtracted from the input, one number or one per channel (axis 1), in input units.
        std: what the difference is divided by, likewise.
        outputs: what the model returns, one of `brittle.model.outputs.OUTPUTS`.
        device: where the model and its inputs are moved; where the model's parameters are by default.
        source: where the model comes from (JSON values), for the record of a run.
        head: name of the last linear layer, for the scores that need features; found where it is not named.
        decision: what is decided from the output, one of `brittle.decisions` or its word on the command line, such as
            `top:5`; by default the predicted class.
        perturb: name of the argument under which the model takes the input that varies, such as `inputs_embeds`, where
            points have several tensors; by default it is the first argument.
        arrays: what a function takes and returns, "torch" tensors or "numpy" arrays; one of arrays runs forward only.
        class_names: names of the classes in the order of the outputs, also for labels; for an estimator's own.
        random: whether the model draws random numbers in evaluation mode, as dropout that stays on does. The prediction
            is then the class that wins most of `CLEAN_PASSES` passes without noise, and scores only count.
        rules: what columns of an estimator may hold, `{"age": "whole 17..90", "gain": "0..", "sex": "fixed"}`, by
            their names, or places: noise and searches leave a `fixed` one as it is; the others are read as the nearest
            `whole` number, the nearest inside `LOW..HIGH`, so that of the columns `one-hot:GROUP` one is 1 and the
            others are 0, and none is larger than the one of `at-most:COLUMN`.

    Attributes:
        rules: what columns may hold, as they were given.
        names_are_sure: whether these were given, or the model was fitted on them: labels by other names are refused.
        class_values: the classes themselves, where the model knows them as whole numbers; else None.
        head_name: the last linear layer, where it was named.

    Raises:
        ParameterError: bounds that are not increasing, a std that is not positive, unknown outputs, arrays or decision,
            or a decision that is not taken from such outputs, or not what the model's own config says that it is for.
        ModelError: the model's parameters are on several devices, or some have no shape yet (lazy layers); or it is an
            estimator that is no fitted classifier, or nothing that can be called.
    """

    def __init__(
        self,
        model: Any,
        bounds: BoundsLike = (0.0, 1.0),
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        *,
        outputs: str = "logits",
        device: str | torch.device | None = None,
        source: Mapping[str, Any] | None = None,
        head: str | None = None,
        decision: Decision | str | None = None,
        arrays: str = "torch",
        perturb: str | None = None,
        class_names: Sequence[str] | None = None,
        random: bool = False,
        rules: Mapping[str, str] | None = None,
    ) -> None:
        if outputs not in OUTPUTS:
            raise ParameterError(f"outputs must be one of {', '.join(OUTPUTS)}; found {outputs!r}")
        decided = as_decision(decision)
        check_decision(decided, outputs, model)
        self.decision = decided.with_outputs(outputs)
        if random and not decided.of_classes:
            raise ParameterError(f"a random model is scored on its most frequent class alone; found {decided.label}")
        self.random = random
        self.model, self.rules = as_model(model, outputs, arrays, self.decision, rules), dict(rules or {})
        estimator = self.model if isinstance(self.model, Estimator) else None
        if class_names is not None and not (
            isinstance(class_names, list | tuple) and class_names and all(isinstance(name, str) for name in class_names)
        ):
            raise ParameterError(f"class_names must be a list of texts, one for each class; found {class_names!r:.80}")
        self.class_names = class_names if estimator is None or class_names is not None else estimator.class_names
        self.names_are_sure = self.class_names is not None
        self.class_values: tuple[int, ...] | None = None if estimator is None else estimator.class_values
        self.bounds = Bounds.of(bounds)
        self.mean = channel_numbers("mean", mean)
        self.std = channel_numbers("std", std)
        if self.std is not None and min(self.std) <= 0:
            raise ParameterError(f"every std must be positive; found {list(self.std)}")
        self.outputs = outputs
        self.source = dict(source or {})
        self.device, self.dtype = place(self.model, device)
        self._log = PassLog(self.dtype or torch.float32)
        self._watcher: Watcher | None = None
        self._undecided = False
        self.perturb = perturb
        self.head_name = head

    def __repr__(self) -> str:
        model = getattr(self.model, "__name__", type(self.model).__name__)
        bounds = self.bounds.pair or self.bounds
        return f"Classifier({model}, bounds={bounds}, outputs={self.outputs!r}, device='{self.device}')"

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes, in the order of the outputs; a label that the decision calls by one is looked up."""
        return self._class_names

    @class_names.setter
    def class_names(self, names: Sequence[str] | None) -> None:
        self._class_names = None if names is None else tuple(names)
        if names is not None:
            self.decision = self.decision.with_names(self._class_names)

    def __call__(self, inputs: Tensor, extra_inputs: ExtraInputs | None = None) -> Tensor:
        """Logits `[B, C]` of `inputs`, `[B, *shape]`, in single precision or better; counts `B` forward passes.

        With another decision than the predicted class they are its margins at `inputs` as logits,
        `[0, -m_1, .., -m_K]`, for which `extra_inputs` must say what was decided at the point that a row is a copy of.

        Raises:
            ModelError: the model fails on this batch, or what it returns are not class scores.
            ParameterError: nobody says what was decided.
        """
        outputs = self.read(inputs, extra_inputs)
        if self.decision.of_classes or self._undecided:
            return self.decision.numbers(outputs)
        if extra_inputs is None or extra_inputs.decided is None:
            raise ParameterError(
                f"the margins of the decision {self.decision.label} need what was decided there (clean.logits_of)"
            )
        return self.decision.as_logits(outputs, extra_inputs.decided)

    def read(self, inputs: Tensor, extra_inputs: ExtraInputs | None = None) -> Tensor:
        """Return what the decision reads, `[B, ...]`: logits `[B, C]` for the predicted class. Counts `B` passes."""
        return self._outputs(self._pass(self.model, inputs, extra_inputs), inputs, extra_inputs)

    @property
    def own_probability(self) -> bool:
        """Tell whether probabilities are no softmax of the logits but computed apart, as by estimators."""
        return isinstance(self.model, Estimator)

    @property
    def has_probability(self) -> bool:
        """Tell whether there is a probability of the decision."""
        if isinstance(self.model, Estimator):
            return self.decision.of_classes and self.model.has_probabilities
        return self.decision.has_probability and getattr(self.model, "has_probabilities", True)

    def log_probabilities(self, inputs: Tensor, extra_inputs: ExtraInputs | None = None) -> Tensor:
        """Logarithms of the probabilities of `inputs`, `[B, C]`, but for a constant; counts `B` forward passes. They
        are those of `predict_proba` of an estimator, and the logits of any other model."""
        if not isinstance(self.model, Estimator):
            return self(inputs, extra_inputs)
        return self._pass(self.model.log_probabilities, inputs, extra_inputs)

    def numbers(self, inputs: Tensor, extra_inputs: ExtraInputs | None = None) -> Tensor:
        """Return what `read` gives in the form of class scores, `[B, C]`; a single number follows a 0."""
        return self.decision.numbers(self.read(inputs, extra_inputs))

    def decide(self, inputs: Tensor, extra_inputs: ExtraInputs | None = None) -> tuple[Tensor, ExtraInputs | None]:
        """Logits of `inputs` as a call gives them, with the decision that is taken there; counts `B` forward passes. Of
        a random model `CLEAN_PASSES B` passes, and how many of these each class wins."""
        if self.random:
            won = torch.zeros(())
            for logits in (self.read(inputs, extra_inputs).detach() for _ in range(CLEAN_PASSES)):
                finite = logits.isfinite().all(dim=1, keepdim=True)
                won = won + one_hot(logits.argmax(dim=1), logits.shape[1]).where(finite, torch.nan)
            return won, extra_inputs
        outputs = self.read(inputs, extra_inputs)
        if self.decision.of_classes or self._undecided:
            return self.decision.numbers(outputs), extra_inputs
        decided = self.decision.decide(outputs.detach())
        logits = self.decision.as_logits(outputs, decided)
        self.decision.check_at_points(-logits[:, 1:])
        return logits, replace(extra_inputs or ExtraInputs(), decided=decided)

    def fixed(self, inputs: Tensor) -> Tensor | None:
        """Return the coordinates that rules hold fixed, `[*shape]`, for inputs `[B, *shape]`; None without any."""
        if not isinstance(self.model, Fitted):
            return None
        fixed = torch.from_numpy(self.model.rules(inputs[:1].numel()).fixed)
        return fixed.view(inputs.shape[1:]) if bool(fixed.any()) else None

    @property
    def clean_passes(self) -> int:
        """Passes of each point without noise."""
        return CLEAN_PASSES if self.random else 1

    def check_margins(self, purpose: str) -> None:
        """Raise where `purpose` cannot be had, because noisy copies can be counted and no more."""
        if self.random or not self.decision.has_margins:
            kind = "a random model" if self.random else f"the decision {self.decision.label}"
            raise ParameterError(f"{purpose} needs margins or probabilities, which {kind} lacks; use monte_carlo")

    @contextmanager
    def drawing(self, *key: object) -> Iterator[None]:
        """Make what a random model draws from PyTorch's own generators in the block follow from `key` alone."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else [], enabled=self.random):
            if self.random:
                torch.manual_seed(int.from_bytes(hashlib.sha256(ascii(key).encode()).digest()[:8]))
            yield

    def with_head(self, name: str | None) -> Classifier:
        """Return the same model and declaration with the last linear layer `name`, and its passes not counted."""
        return self._changed(head_name=name, _log=replace(self._log, forward=0, backward=0, head_agrees=False))

    @property
    def undecided(self) -> Classifier:
        """The same model, called for its numbers as they are, whatever is decided from them; itself where that is the
        predicted class. Its passes are not counted here."""
        if self.decision.of_classes:
            return self
        return self._changed(_undecided=True, _log=replace(self._log, forward=0, backward=0))

    def deciding(self, decision: Decision) -> Classifier:
        """Return the same model with another decision of the same output; its passes are counted here."""
        decided = decision if self.class_names is None else decision.with_names(self.class_names)
        return self._changed(decision=decided, _undecided=False)

    def reading(self, provenance: Mapping[str, Any]) -> Classifier:
        """Return the same model for points of this provenance: an estimator that was fitted on a frame is given
        categories in place of their codes. Its passes are counted here.

        Raises:
            DataError: its columns are others, or stand in another order.
        """
        if not isinstance(self.model, Fitted):
            return self
        self.model.check_columns(provenance.get("feature_names"))
        categories, names = provenance.get("categories") or {}, provenance.get("feature_names")
        if not categories and not names:
            return self
        levels = {name: Levels(**fields_of_levels) for name, fields_of_levels in categories.items()}
        return self._changed(model=self.model.reading(levels, names, provenance.get("dtypes") or {}))

    @property
    def reads_frames(self) -> bool:
        """True of an estimator that was fitted on a frame, and gets frames again."""
        return isinstance(self.model, Fitted) and self.model.feature_names is not None

    def look_up(self, names: Sequence[str] | None) -> Classifier:
        """Return the same model with the position of a label that the decision calls by its name: among the
        classifier's own names, or where it lacks these, those of the labels in the data. Its passes count here.

        Raises:
            ParameterError: there is no such label, or nobody names the labels.
        """
        return self._changed(decision=self.decision.with_names(self.class_names or names))

    def watched(self, watcher: Watcher) -> Classifier:
        """Return the same model with a watcher of its passes and of those of its copies, all counted here."""
        return self._changed(_watcher=watcher)

    def _changed(self, **fields: Any) -> Classifier:
        changed = copy(self)
        vars(changed).pop("head", None)  # it is found again
        vars(changed).update(fields)
        return changed

    @cached_property
    def head(self) -> Head:
        """The last linear layer.

        Raises:
            ModelError: the model has none, or none of the given name.
        """
        head = find_head(self.model, self.head_name)
        return head.for_two_classes() if self.outputs == "binary-logit" and len(head.weight) == 1 else head

    def observe(self, inputs: Tensor, extra_inputs: ExtraInputs | None = None) -> tuple[Tensor, Tensor]:
        """Logits `[B, C]` and features `[B, d]`, what the head sees, from one forward pass.

        Raises:
            ModelError: there is no head, the logits are not what it gives, or the model fails on this batch.
        """
        output, features = self._pass(self.head.observe, inputs, extra_inputs)
        logits, features = self._outputs(output, inputs, extra_inputs), features.clone()
        if not self._log.head_agrees:
            check_head(self.head, features, logits)
            self._log.head_agrees = bool(logits.isfinite().all())
        return logits, features

    def gradient(self, values: Tensor, inputs: Tensor, *, keep: bool, differentiable: bool = False) -> Tensor:
        """Gradient of each row's value, `[B]`, with respect to that row's input; counts `B` backward passes.

        Args:
            values: one number per row, computed from `inputs` row by row.
            inputs: `[B, *shape]`, with gradients enabled.
            keep: whether the graph is needed again.
            differentiable: whether the gradient itself is to be differentiated (`hessian_product`).

        Raises:
            ModelError: the model cannot be differentiated.
        """
        self.count(0, len(inputs))
        gradient = derivative(values, inputs, self.device, keep=keep, differentiable=differentiable)
        if gradient is None:
            raise ModelError("not_differentiable", self.forward_only or NO_GRADIENT)
        return gradient

    def hessian_product(self, gradient: Tensor, inputs: Tensor, along: Tensor, *, keep: bool) -> Tensor:
        """Second derivatives `H d` of each row's value along that row's direction; counts `B` backward passes.

        Exactly 0 where the gradient does not depend on the input, as in a linear network.

        Args:
            gradient: `[B, *shape]`, of `gradient(..., differentiable=True)`.
            inputs: what it was taken with respect to, `[B, *shape]`.
            along: the directions `d`, `[B, *shape]`.
            keep: whether the graph is needed again.

        Raises:
            ModelError: an operation of the model has no second derivative.
        """
        self.count(0, len(inputs))
        try:
            product = derivative((gradient * along).flatten(1).sum(dim=1), inputs, self.device, keep=keep)
        except ModelError as error:
            if error.code != "model_failed":
                raise
            reason = first_line(error.__cause__ or error)
            raise ModelError("not_differentiable", NO_SECOND.format(reason=reason)) from error
        return torch.zeros_like(inputs) if product is None else product

    @property
    def forward_only(self) -> str | None:
        """Reason why the model never has a gradient, in a sentence, where it runs outside PyTorch; else None."""
        reason = getattr(self.model, "forward_only", None)
        if isinstance(reason, str):
            return reason
        return NO_GRADIENT if isinstance(self.model, ArrayModel) else None

    @property
    def output_dtype(self) -> torch.dtype:
        """Precision of the class scores as the model last returned them."""
        return self._log.output_dtype

    @property
    def taken(self) -> str | None:
        """Part of the last output that the class scores were, such as `output.logits`; None for a tensor."""
        return self._log.form

    @property
    def forward_passes(self) -> int:
        """Rows sent forward through the model so far, or through its layers by a certificate."""
        return self._log.forward

    @property
    def backward_passes(self) -> int:
        """Rows sent backward through the model so far, or linear functions by a certificate."""
        return self._log.backward

    def count(self, forward: int, backward: int = 0) -> None:
        """Add passes that were made without the classifier, through the layers of the model."""
        self._log.forward += forward
        self._log.backward += backward

    @property
    def passes(self) -> int:
        """Rows sent forward or backward through the model so far."""
        return self._log.forward + self._log.backward

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Enter evaluation mode without parameter gradients inside the block; everything is as before afterwards.

        One thread measures at a time, and another waits here. Gradients can be taken with respect to inputs, in any
        mode that the caller has switched on (`no_grad`, `inference_mode`, `autocast`).

        Raises:
            ModelError: a module stays in training mode after `eval()`, or is put into it inside the block.
        """
        with evaluating(self.model, self.device):
            yield

    def _pass(self, call: Callable[..., Any], inputs: Tensor, extra_inputs: ExtraInputs | None) -> Any:
        """Return what `call` makes of `inputs` as the model sees them; counts `B` forward passes."""
        self.count(len(inputs))
        rows = as_seen(inputs.to(self.device, self.dtype or inputs.dtype), extra_inputs, self.mean, self.std)
        tensors = {} if extra_inputs is None else extra_inputs.tensors
        # Copies, because a model may write over its mask.
        extra = {name: tensor.to(self.device, copy=True) for name, tensor in tensors.items()}
        usual = self.model.advice if isinstance(self.model, Fitted) and self.model.feature_names else SHAPE
        with one_sentence("run on", inputs, self.device, usual):
            check_mode(self.model)
            output = call(rows, **extra) if self.perturb is None else call(**{self.perturb: rows}, **extra)
            check_mode(self.model)
        return output

    def _outputs(self, output: Any, inputs: Tensor, extra_inputs: ExtraInputs | None) -> Tensor:
        """Return what the decision reads; log the form and the precision of `output`, and tell the watcher."""
        classes = getattr(getattr(self.model, "config", None), "num_labels", None)
        scores, self._log.form = self.decision.extract(output, classes) or scores_of(output)
        outputs = outputs_of(scores, len(inputs), self.outputs, self.decision)
        self._log.output_dtype = scores.dtype if scores.is_floating_point() else torch.float32
        if self._watcher is not None:
            self._watcher(self, inputs, self.decision.numbers(outputs), extra_inputs)
        return outputs
