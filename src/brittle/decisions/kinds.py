"""Decisions between classes and about numbers, and every decision by the words of the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision, alone, check_count, numbers
from brittle.decisions.function_code import code_digest
from brittle.decisions.labels import MultiLabel
from brittle.errors import ModelError, ParameterError
from brittle.estimate import Parameters
from brittle.registry import Registry, missing

Compare = Callable[[Tensor, Tensor], Tensor]
"""From what the model returns `[N, ...]` and what it returned at the point `[N, ...]`, row by row, to margins `[N, K]`
or `[N]`; True and False count as 1 and -1."""


@dataclass(frozen=True)
class Custom(Decision):
    """Whatever a function says: `compare(output, output at the point)` is positive while "it is the same".

    Such as the overlap of two masks minus one half, or how far apart the first two of a ranking are. Scores of sampled
    copies ask for the sign alone. Scores with gradients differentiate the function, so it must be made of operations
    that PyTorch differentiates; a step has no gradient, and `brittle doctor` says so.

    Attributes:
        compare: from `[N, ...]` and `[N, ...]`, row by row, to `[N]` or `[N, K]`: all positive, or True, while it
            holds. An output compared with itself holds.
        name_of: what tables and reports call it; the function's name by default.

    Raises:
        ParameterError: `compare` is no function.

    Example:
        >>> import torch, brittle
        >>> def overlap(mask, mask_at_point):
        ...     own, there = (each > 0 for each in (mask_at_point.flatten(1), mask.flatten(1)))
        ...     return ((own & there).sum(1) / (own | there).sum(1)).nan_to_num(1.0) - 0.5
        >>> network = torch.nn.Conv2d(1, 1, 3, padding=1)
        >>> classifier = brittle.Classifier(network, decision=brittle.decisions.Custom(overlap))
        >>> found = brittle.scores.MonteCarlo(sigma=0.1, draws=20)(classifier, torch.rand(2, 1, 8, 8))
        >>> bool(((0 <= found.value) & (found.value <= 1)).all())
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
            raise ParameterError(
                f"Custom takes a function of two outputs that gives margins; found {self.compare!r:.60}"
            )

    @property
    def label(self) -> str:
        return f"{self.name}:{self.name_of or getattr(self.compare, '__name__', type(self.compare).__name__)}"

    @property
    def parameters(self) -> Parameters:
        return {"function": self.label.partition(":")[2], "code": code_digest(self.compare)}

    def decide(self, outputs: Tensor) -> Tensor:
        """The output at the point, `[B, ...]`."""
        return outputs

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """What the function gives, `[N, K]`; a `ModelError` where that is not a row of numbers for each output."""
        found = self.compare(outputs.clone(), decided.clone())  # it may work in place, here and in the next call
        if isinstance(found, Tensor) and found.dim() == 1:
            found = found[:, None]
        fine = isinstance(found, Tensor) and found.dim() == 2 and len(found) == len(outputs) and found.shape[1] > 0
        if not fine or found.is_complex():
            seen = f"a tensor of shape {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise ModelError(
                "output_shape",
                f"the function of the decision {self.label} gave {seen} for {len(outputs)} outputs; expected margins "
                f"[{len(outputs)}] or [{len(outputs)}, K], positive while the decision holds",
            )
        if found.dtype == torch.bool:
            return torch.where(found, 1.0, -1.0)
        return found.clone() if found.is_floating_point() else found.double()

    def check_taken(self, margins: Tensor) -> None:
        broken = (margins < 0).any(dim=1)
        if bool(broken.any()):
            raise ModelError(
                "decision",
                f"the function of the decision {self.label} gave {float(margins.detach().amin(dim=1)[broken][0]):.4g} "
                f"for an output compared with itself; there the decision holds, so every margin must be positive",
            )

    def described(self, decided: Tensor) -> list[str]:
        return [""] * len(decided)

    def check(self, outputs: Tensor) -> None:
        """Any tensor with a row for each input can be compared."""


@dataclass(frozen=True)
class PredictedClass(Decision):
    """The class with the largest score: margins `z_t - z_j`, `j != t`. The default; every score serves it.

    Of a model that returns one logit `z` (`outputs="binary-logit"`) it is the sign, with the margin `z` or `-z`.
    """

    name: ClassVar[str] = "class"
    explanation: ClassVar[str] = "the predicted class"
    of_classes: ClassVar[bool] = True
    has_classes: ClassVar[bool] = True
    declared: ClassVar[tuple[str, ...]] = ("logits", "binary-logit", "probs")

    def decide(self, outputs: Tensor) -> Tensor:
        """The predicted class, `[B, 1]`; the first of several with the largest score."""
        return outputs.argmax(dim=1, keepdim=True)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """`z_t - z_j` for every other class `j`, `[N, C - 1]`."""
        others = torch.arange(outputs.shape[1] - 1, device=outputs.device)
        others = others + (others >= decided)
        return outputs.gather(1, decided) - outputs.gather(1, others)

    def classes_of(self, logits: Tensor, decided: Tensor | None) -> int | None:
        return logits.shape[1]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        return [None] * len(decided) if labels is None else (decided[:, 0] == labels.to(decided)).tolist()

    def described(self, decided: Tensor) -> list[str]:
        return [str(own) for own in decided[:, 0].tolist()]


@dataclass(frozen=True)
class SameTop(Decision):
    """The same `count` classes score highest, in any order: `z_a - z_b`, `a` inside, `b` outside.

    Attributes:
        count: how many, at least 1.

    Raises:
        ParameterError: fewer than 1.
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
        """The classes in the order of their scores, the `count` highest first, `[B, C]`."""
        return outputs.argsort(dim=1, descending=True, stable=True)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """`z_a - z_b` for every `a` of the highest and every `b` of the others, `[N, count (C - count)]`."""
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
            raise ModelError(
                "output_shape",
                f"the decision {self.label} needs more than {self.count} classes; the model has {outputs.shape[1]}",
            )


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
        given = self.tolerance if isinstance(self.tolerance, tuple | list) else (self.tolerance,)
        fine = all(isinstance(each, int | float) and math.isfinite(each) and each > 0 for each in given)
        if not given or not fine:
            raise ParameterError(
                f"a tolerance must be a positive finite number, as in within:0.1; found {self.tolerance!r}"
            )
        object.__setattr__(self, "tolerance", alone(given))

    @classmethod
    def parse(cls, text: str) -> Within:
        return cls(tuple(float(part) for part in text.split(",")))

    @property
    def label(self) -> str:
        own = self.tolerance if isinstance(self.tolerance, tuple) else (self.tolerance,)
        return f"{self.name}:{','.join(f'{each:g}' for each in own)}"

    def decide(self, outputs: Tensor) -> Tensor:
        """The numbers at the point, `[B, R]`."""
        return outputs

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """How far each number is from either end of its tolerance, `[N, 2 R]`."""
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
            raise ModelError(
                "output_shape",
                f"{len(self.tolerance)} tolerances were given; the model returns {outputs.shape[1]} numbers",
            )


DECISIONS: Mapping[str, type[Decision]] = Registry(
    "decision", {kind.name: kind for kind in (PredictedClass, MultiLabel, SameTop, Within)}, Decision
)
"""Every decision by the first word that the command line has for it."""


def as_decision(given: Decision | str | None) -> Decision:
    """A decision from itself or from its word, such as `top:5`; None is the predicted class.

    Raises:
        ParameterError: it is neither.
    """
    if given is None or isinstance(given, Decision):
        return given or PredictedClass()
    name, _, text = str(given).partition(":")
    if name in DECISIONS:
        try:
            return DECISIONS[name].parse(text)
        except ParameterError:
            raise
        except (ValueError, TypeError) as error:
            raise _refusal(given) from error
    if sentence := missing("decision", name):
        raise ParameterError(f"{name} {sentence}")
    raise _refusal(given)


def _refusal(given: object) -> ParameterError:
    """The error for words that name no decision."""
    return ParameterError(
        f"a decision is one of class, multilabel, multilabel:J (one label, counted from 0, or its name), "
        f"top:K, within:T (such as within:0.1), masks:T, boxes:T (overlaps, such as 0.5) or boxes:T,S (S a score), or "
        f"in Python one of brittle.decisions; found {given!r:.60}"
    )
