"""Decisions on classes, on several labels and on numbers, and every decision by its name on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision, check_count, numbers, only_or_all
from brittle.decisions.function_code import code_digest
from brittle.errors import ModelError, ParameterError, listed
from brittle.estimate import Parameters
from brittle.registry import Registry, missing

Compare = Callable[[Tensor, Tensor], Tensor]
"""A function from outputs `[N, ...]` and outputs at the points `[N, ...]`, row by row, to margins `[N, K]` or `[N]`;
True and False count as 1 and -1."""


@dataclass(frozen=True)
class Custom(Decision):
    """A custom decision: `compare(output, output at the point)` is positive while "it is the same".

    Examples are the overlap of two masks minus one half, or the gap between the first two of a ranking. Scores of
    sampled copies use the sign alone. Scores with gradients differentiate the function, so it must consist of
    operations that PyTorch differentiates; a step has no gradient, and `brittle doctor` reports it.

    Attributes:
        compare: maps `[N, ...]` and `[N, ...]`, row by row, to `[N]` or `[N, K]`: all positive, or True, while it
            holds. It must hold for an output compared with itself.
        name_of: the name in tables and reports; by default the function's.

    Raises:
        ParameterError: `compare` is not a function.

    Example:
        >>> import torch, brittle
        >>> def overlap(mask, mask_at_point):
        ...     now, before = (pixels.flatten(1) > 0 for pixels in (mask, mask_at_point))
        ...     return ((now & before).sum(1) / (now | before).sum(1)).nan_to_num(1.0) - 0.5
        >>> network = torch.nn.Conv2d(1, 1, 3, padding=1)
        >>> classifier = brittle.Classifier(network, decision=brittle.decisions.Custom(overlap))
        >>> estimate = brittle.scores.MonteCarlo(sigma=0.1, draws=20)(classifier, torch.rand(2, 1, 8, 8))
        >>> bool(((0 <= estimate.value) & (estimate.value <= 1)).all())
        True
    """

    compare: Compare
    name_of: str | None = None

    name: ClassVar[str] = "custom"
    explanation: ClassVar[str] = "what a function of the user's compares"
    one_number: ClassVar[bool] = True
    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.compare):
            raise ParameterError(f"Custom takes a function of two outputs; found {self.compare!r:.60}")

    @property
    def label(self) -> str:
        return f"{self.name}:{self.name_of or getattr(self.compare, '__name__', type(self.compare).__name__)}"

    @property
    def parameters(self) -> Parameters:
        return {"function": self.label.partition(":")[2], "code": code_digest(self.compare)}

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return the margins of the function, `[N, K]`; raise a `ModelError` unless they are a row for each output."""
        margins = self.compare(outputs.clone(), decided.clone())  # the function may work in place
        if isinstance(margins, Tensor) and margins.dim() == 1:
            margins = margins[:, None]
        shape = list(margins.shape) if isinstance(margins, Tensor) else []
        if len(shape) != 2 or shape[0] != len(outputs) or not shape[1] or margins.is_complex():
            description = f"a tensor of shape {shape}" if isinstance(margins, Tensor) else type(margins).__name__
            raise ModelError(
                "output_shape",
                f"the function of the decision {self.label} gave {description} for {len(outputs)} outputs; expected "
                f"margins [{len(outputs)}] or [{len(outputs)}, K], positive while the decision holds",
            )
        if margins.dtype == torch.bool:
            return torch.where(margins, 1.0, -1.0)
        return margins.clone() if margins.is_floating_point() else margins.double()

    def check_at_points(self, margins: Tensor) -> None:
        broken = (margins < 0).any(dim=1)
        if bool(broken.any()):
            value = float(margins.detach().amin(dim=1)[broken][0])
            fault = f"gave {value:.4g} for an output compared with itself, where every margin must be positive"
            raise ModelError("decision", f"the function of the decision {self.label} {fault}")

    def check(self, outputs: Tensor) -> None:
        """Accept any tensor with a row for each input."""


@dataclass(frozen=True)
class PredictedClass(Decision):
    """The class with the largest score: margins `z_t - z_j`, `j != t`. The default; every score applies to it.

    For a model that returns one logit `z` (`outputs="binary-logit"`) it is the sign, with the margin `z` or `-z`.
    """

    name: ClassVar[str] = "class"
    explanation: ClassVar[str] = "the predicted class"
    of_classes: ClassVar[bool] = True
    has_classes: ClassVar[bool] = True
    declared: ClassVar[tuple[str, ...]] = ("logits", "binary-logit", "probs")

    def decide(self, outputs: Tensor) -> Tensor:
        """Return the predicted class, `[B, 1]`; the first one wins ties."""
        return outputs.argmax(dim=1, keepdim=True)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return `z_t - z_j` for every other class `j`, `[N, C - 1]`."""
        rivals = torch.arange(outputs.shape[1] - 1, device=outputs.device)
        rivals = rivals + (rivals >= decided)
        return outputs.gather(1, decided) - outputs.gather(1, rivals)

    def classes_of(self, logits: Tensor, decided: Tensor | None) -> int | None:
        return logits.shape[1]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        return [None] * len(decided) if labels is None else (decided[:, 0] == labels.to(decided)).tolist()

    def described(self, decided: Tensor) -> list[str]:
        return [str(index) for index in decided[:, 0].tolist()]


@dataclass(frozen=True)
class SameTop(Decision):
    """The same `count` classes score highest, in any order: `z_a - z_b`, `a` inside, `b` outside.

    Attributes:
        count: number of classes, at least 1.

    Raises:
        ParameterError: the count is below 1.
    """

    count: int = 5

    name: ClassVar[str] = "top"
    explanation: ClassVar[str] = "which few classes score highest"
    has_classes: ClassVar[bool] = True
    declared: ClassVar[tuple[str, ...]] = ("logits", "probs")

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise ParameterError(f"top:K needs a whole number K of at least 1; found {self.count!r:.40}")

    @classmethod
    def parse(cls, text: str) -> SameTop:
        return cls(int(text)) if text else cls()

    @property
    def label(self) -> str:
        return f"top:{self.count}"

    def decide(self, outputs: Tensor) -> Tensor:
        """Return the classes in the order of their scores, the highest first, `[B, C]`."""
        return outputs.argsort(dim=1, descending=True, stable=True)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return `z_a - z_b` for every `a` of the highest and every other `b`, `[N, count (C - count)]`."""
        ordered = outputs.gather(1, decided)
        inside, outside = ordered[:, : self.count, None], ordered[:, None, self.count :]
        return (inside - outside).flatten(1)

    def codes(self, decided: Tensor) -> list[int | None]:
        return decided[:, 0].tolist()

    def classes_of(self, logits: Tensor, decided: Tensor | None) -> int | None:
        return None if decided is None else decided.shape[1]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        if labels is None:
            return [None] * len(decided)
        return (decided[:, : self.count] == labels[:, None].to(decided)).any(dim=1).tolist()

    def described(self, decided: Tensor) -> list[str]:
        return [", ".join(map(str, row)) for row in decided[:, : self.count].tolist()]

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        if outputs.shape[1] <= self.count:
            needed = f"more than {self.count} classes; the model has {outputs.shape[1]}"
            raise ModelError("output_shape", f"the decision {self.label} needs {needed}")


@dataclass(frozen=True)
class Within(Decision):
    """Every number that the model returns stays within a tolerance: `tol - (f - f(x))` and `tol + (f - f(x))`.

    Attributes:
        tolerance: positive, one for all outputs or one for each, in the units of the output.

    Raises:
        ParameterError: a tolerance is not a positive finite number.
    """

    tolerance: float | tuple[float, ...]

    name: ClassVar[str] = "within"
    explanation: ClassVar[str] = "a number within a tolerance"
    one_number: ClassVar[bool] = True
    level: ClassVar[bool] = True
    targets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        tolerances = self.tolerance if isinstance(self.tolerance, tuple | list) else (self.tolerance,)
        if not tolerances or not all(isinstance(t, int | float) and math.isfinite(t) and t > 0 for t in tolerances):
            raise ParameterError(f"a tolerance is a positive finite number, as in within:0.1; found {self.tolerance!r}")
        object.__setattr__(self, "tolerance", only_or_all(tolerances))

    @classmethod
    def parse(cls, text: str) -> Within:
        return cls(tuple(float(part) for part in text.split(",")))

    @property
    def label(self) -> str:
        tolerances = self.tolerance if isinstance(self.tolerance, tuple) else (self.tolerance,)
        return f"{self.name}:{','.join(f'{tolerance:g}' for tolerance in tolerances)}"

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return the distances of each number from both ends of its tolerance, `[N, 2 R]`."""
        moved, tolerance = outputs - decided, outputs.new_tensor(self.tolerance)
        return torch.cat((tolerance - moved, tolerance + moved), dim=1)

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        if targets is None:
            return [None] * len(decided)
        check_count(targets, decided.shape[1])
        off = (decided.double() - targets.to(decided.device)).abs()
        return (off <= off.new_tensor(self.tolerance)).all(dim=1).tolist()

    def described(self, decided: Tensor) -> list[str]:
        return [numbers(row) for row in decided.tolist()]

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        if isinstance(self.tolerance, tuple) and len(self.tolerance) != outputs.shape[1]:
            counts = f"{len(self.tolerance)} tolerances were given; the model returns {outputs.shape[1]} numbers"
            raise ModelError("output_shape", counts)


MOST_NAMED = 10  # most labels whose sets count as classes in tables and reports


@dataclass(frozen=True)
class MultiLabel(Decision):
    """The set of labels that hold: margins `s_j (z_j - t_j)` with the sign `s_j` at the point.

    `z_j` is the logit of label `j`, `log p - log(1 - p)` if the model returns its probability `p`; `t_j` is the logit
    of its threshold.

    Attributes:
        threshold: value above which a label holds, one number or one for each label, in the units of the declared
            outputs: a logit, or with `outputs="probs"` a probability. None is the logit 0, the probability one half.
        only: position from 0 or name of a single label to decide on; None decides on all labels. A single label has a
            probability, so the scores of the expected change apply as well. Names are looked up in the `class_names` of
            the classifier or of the data.
        of_probabilities: whether the declared outputs are probabilities; a classifier sets it.

    Raises:
        ParameterError: a threshold is not a finite number, or not a probability; or the position is negative.
    """

    threshold: float | tuple[float, ...] | None = None
    only: int | str | None = None
    of_probabilities: bool = field(default=False, repr=False, compare=False)

    name: ClassVar[str] = "multilabel"
    explanation: ClassVar[str] = "which labels hold"
    targets: ClassVar[bool] = True
    declared: ClassVar[tuple[str, ...]] = ("logits", "probs")
    of_odds: ClassVar[bool] = True

    @classmethod
    def parse(cls, text: str) -> MultiLabel:
        return cls(only=int(text) if text.removeprefix("-").isdecimal() else text or None)

    def __post_init__(self) -> None:
        if self.threshold is not None:
            thresholds = self.threshold if isinstance(self.threshold, Sequence) else (self.threshold,)
            low, high = (0.0, 1.0) if self.of_probabilities else (-math.inf, math.inf)
            if not thresholds or not all(isinstance(t, int | float) and low < t < high for t in thresholds):
                raise ParameterError(
                    f"thresholds are numbers between {low:g} and {high:g}; found {self.threshold!r:.60}"
                )
            object.__setattr__(self, "threshold", only_or_all(thresholds))
        has_name = isinstance(self.only, str) and self.only != ""
        if self.only is not None and not has_name and (type(self.only) is not int or self.only < 0):
            raise ParameterError(f"a label is asked for by its position from 0, or its name; found {self.only!r:.40}")

    @property
    def label(self) -> str:
        return self.name if self.only is None else f"{self.name}:{self.only}"

    @property
    def has_probability(self) -> bool:
        return self.only is not None and self._logit_thresholds == 0.0

    def with_names(self, names: Sequence[str] | None) -> MultiLabel:
        if not isinstance(self.only, str):
            return self
        if self.only not in (names or ()):
            choices = listed([f"{name!r:.40}" for name in names or ()])
            raise ParameterError(
                f"there is no label {self.only!r:.60} among [{choices}]; name them (--class-names, class_names=), "
                f"or give a position: {self.name}:0"
            )
        return replace(self, only=tuple(names or ()).index(self.only))

    def with_outputs(self, outputs: str) -> MultiLabel:
        return replace(self, of_probabilities=outputs == "probs")

    @property
    def _place(self) -> int | None:
        """The position of the single label; None for all."""
        resolved = self.with_names(None)
        assert not isinstance(resolved.only, str)
        return resolved.only

    @property
    def _logit_thresholds(self) -> float | tuple[float, ...]:
        """The thresholds as logits."""
        if self.threshold is None or not self.of_probabilities:
            return self.threshold or 0.0
        thresholds = self.threshold if isinstance(self.threshold, tuple) else (self.threshold,)
        return only_or_all([math.log(threshold) - math.log1p(-threshold) for threshold in thresholds])

    def decide(self, outputs: Tensor) -> Tensor:
        """Return signs `[B, L]`: 1 where a label holds, -1 where it does not; a logit at the threshold holds."""
        above = self._excess(outputs)
        return torch.where(above >= 0, 1.0, -1.0).to(above)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return `s_j (z_j - t_j)`, `[N, L]`, or `[N, 1]` for a single label."""
        return self._excess(outputs) * decided

    def described(self, decided: Tensor) -> list[str]:
        if self.only is not None:
            return ["holds" if sign > 0 else "does not hold" for sign in decided[:, 0].tolist()]
        return [", ".join(str(at) for at, sign in enumerate(row) if sign > 0) or "none" for row in decided.tolist()]

    def codes(self, decided: Tensor) -> list[int | None]:
        if decided.shape[1] > MOST_NAMED:
            return [None] * len(decided)
        bits = 2 ** torch.arange(decided.shape[1], device=decided.device)
        return ((decided > 0) * bits).sum(dim=1).tolist()

    def target_codes(self, targets: Tensor) -> list[int | None]:
        return self.codes(self._select(targets) - 0.5)

    def target_words(self, targets: Tensor) -> list[str]:
        return self.described(self._select(targets) - 0.5)

    def code_names(self, names: Sequence[str] | None, outputs: int) -> Sequence[str] | None:
        has_names = names is not None and len(names) == outputs
        label_names = list(names or ()) if has_names else [f"label {place}" for place in range(outputs)]
        if (place := self._place) is not None:
            return (f"not {label_names[place]}", label_names[place])
        if outputs > MOST_NAMED:
            return None
        sets = range(2**outputs)
        return [" + ".join(name for at, name in enumerate(label_names) if code >> at & 1) or "none" for code in sets]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        if targets is None:
            return super().right(decided, labels, targets)
        check_count(targets, decided.shape[1] if self._place is None else max(targets.shape[1], self._place + 1))
        return ((decided > 0) == (self._select(targets) > 0.5).to(decided.device)).all(dim=1).tolist()

    def _select(self, targets: Tensor) -> Tensor:
        return targets if (place := self._place) is None else targets[:, place : place + 1]

    def _excess(self, outputs: Tensor) -> Tensor:
        above = outputs - outputs.new_tensor(self._logit_thresholds)
        return above if (place := self._place) is None else above[:, place : place + 1]

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        labels = outputs.shape[1]
        if isinstance(self.threshold, tuple) and len(self.threshold) != labels:
            counts = f"{len(self.threshold)} thresholds were given; the model returns {labels} labels"
            raise ModelError("output_shape", counts)
        if (place := self._place) is not None and place >= labels:
            raise ModelError("output_shape", f"label {place} was asked for; the model returns {labels}, counted from 0")


DECISIONS: Mapping[str, type[Decision]] = Registry(  # by their names on the command line
    "decision", {kind.name: kind for kind in (PredictedClass, MultiLabel, SameTop, Within)}, Decision
)


def as_decision(decision: Decision | str | None) -> Decision:
    """Return a decision from itself or from its text, such as `top:5`; None is the predicted class.

    Raises:
        ParameterError: it is neither a decision nor the text of one.
    """
    if decision is None or isinstance(decision, Decision):
        return decision or PredictedClass()
    name, _, text = str(decision).partition(":")
    if name in DECISIONS:
        try:
            return DECISIONS[name].parse(text)
        except ParameterError:
            raise
        except (ValueError, TypeError) as error:
            raise _refusal(decision) from error
    if sentence := missing("decision", name):
        raise ParameterError(f"{name} {sentence}")
    raise _refusal(decision)


def _refusal(decision: object) -> ParameterError:
    """Return the error for a text that is not a decision."""
    return ParameterError(
        f"a decision is one of class, multilabel, multilabel:J (one label, counted from 0, or its name), "
        f"top:K, within:T (such as within:0.1), masks:T, boxes:T (overlaps, such as 0.5) or boxes:T,S (S a score), or "
        f"in Python one of brittle.decisions; found {decision!r:.60}"
    )
