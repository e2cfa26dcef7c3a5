"""Base class of decisions: margins that are all positive while the decision holds.

The outputs of the model at the point `x` fix the decision. At another input `x'` it still holds where all its margins
`m_1 .. m_K` are positive. Scores of the average case estimate `P(all m_k > 0)` under noise, scores of the worst case
look for the nearest `x'` with a margin below 0. A margin of exactly 0 is a tie.

Measurements read the margins as logits `[0, -m_1, .., -m_K]`: the first of these classes wins while the decision holds,
and the difference of its logit from another is that margin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ModelError
from brittle.estimate import Parameters


@dataclass(frozen=True)
class Decision(ABC):
    """A decision of a model. A custom decision is `brittle.decisions.Custom`, with a function."""

    name: ClassVar[str]  # on the command line and in the record of a run
    explanation: ClassVar[str]  # in a few words, for a report: "the prediction is ..."
    of_classes: ClassVar[bool] = False  # the predicted class, so that the model's class scores are read unchanged
    has_classes: ClassVar[bool] = False  # labels that are classes tell if it is right
    one_number: ClassVar[bool] = False  # a model may return one number a row, `[B]`
    linear: ClassVar[bool] = True  # margins are linear in the outputs, up to a constant (`linear_margins`)
    level: ClassVar[bool] = False  # the nearest margin is the same at every point
    targets: ClassVar[bool] = False  # the truth of a point is several labels or numbers
    has_margins: ClassVar[bool] = True  # otherwise only their sign, which counting needs
    form: ClassVar[tuple[str, ...]] = ("numbers",)  # axes of the output of one input
    declared: ClassVar[tuple[str, ...]] = ("logits",)  # words of `outputs`
    of_odds: ClassVar[bool] = False  # declared probabilities are independent: a logit is `log p - log(1 - p)`
    may_be_empty: ClassVar[bool] = False  # outputs that are 0 everywhere may be right

    @classmethod
    def parse(cls, text: str) -> Decision:
        """Make the decision of `name:text` on the command line; raise ValueError where `text` does not fit."""
        if text:
            raise ValueError(text)
        return cls()

    @property
    def has_probability(self) -> bool:
        """True where the softmax of `[0, -m]` is a network's own probability that the decision is right."""
        return self.of_classes

    def decide(self, outputs: Tensor) -> Tensor:
        """Return the decided values, a row for each of `outputs` `[B, ...]`; by default these themselves."""
        return outputs

    @abstractmethod
    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return the margins `[N, K]` at `outputs` `[N, ...]` of the `decided` values, a row for each of them."""

    def described(self, decided: Tensor) -> list[str]:
        """Describe each row of `decided` in words; by default in none."""
        return [""] * len(decided)

    def extract(self, output: Any, classes: int | None) -> tuple[Tensor, str] | None:
        """Extract the outputs from a model's result and that part's name; None to read them as class scores."""
        return None

    def describe_copies(self, margins: Sequence[float]) -> list[str] | None:
        """Describe the mean margin of the noisy copies of each point in words; None where it has no meaning."""
        return None

    def numbers(self, outputs: Tensor) -> Tensor:
        """Return `outputs` `[B, ...]` in the shape of class scores, `[B, C]`, for comparisons of outputs."""
        return as_numbers(outputs)

    def with_names(self, names: Sequence[str] | None) -> Decision:
        """Return the decision with each name of an output, one of `names`, replaced by its position."""
        return self

    def with_outputs(self, outputs: str) -> Decision:
        """Return the decision for the declared `outputs`, one of `brittle.model.outputs.OUTPUTS`."""
        return self

    def codes(self, decided: Tensor) -> list[int | None]:
        """Return a number for each row that `code_names` names; None where the decision is not such a number."""
        return [None] * len(decided)

    def target_codes(self, targets: Tensor) -> list[int | None]:
        """Return the number of the truth for each row of `targets` `[B, R]`."""
        return [None] * len(targets)

    def target_words(self, targets: Tensor) -> list[str]:
        """Describe the truth of each row of `targets` in words."""
        return [numbers(row) for row in targets.tolist()]

    def classes_of(self, logits: Tensor, decided: Tensor | None) -> int | None:
        """Return the number of classes of a label; None where labels are not classes."""
        return None

    def code_names(self, names: Sequence[str] | None, outputs: int) -> Sequence[str] | None:
        """Return names of the numbers of `codes`, from those of a model's `outputs`; None without names."""
        return names

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        """Return for each row whether the decision agrees with its label `[B]` or targets `[B, R]`; None without."""
        return [None] * len(decided)

    @property
    def parameters(self) -> Parameters:
        """The fields in the record of a run, without those at their default."""
        values = [(field, getattr(self, field.name)) for field in fields(self) if field.compare]
        return {field.name: value for field, value in values if value != field.default}

    @property
    def label(self) -> str:
        """The decision on the command line, such as `top:5`."""
        return self.name

    def as_logits(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return the margins as logits, `[0, -m_1, .., -m_K]`, `[N, 1 + K]`."""
        margins = self.margins(outputs, decided)
        return torch.cat((torch.zeros_like(margins[:, :1]), -margins), dim=1)

    def linear_margins(self, decided: Tensor, outputs: int) -> tuple[Tensor, Tensor]:
        """Return `W` `[N, K, L]` and `b` `[N, K]` of the margins `W z + b` of `L` outputs `z`, if `linear`."""
        reference = decided.double() if decided.is_floating_point() else decided
        with torch.enable_grad():
            start = torch.zeros(len(decided), outputs, dtype=torch.float64, device=decided.device, requires_grad=True)
            margins = self.margins(start, reference)
            weights = [torch.autograd.grad(column.sum(), start, retain_graph=True)[0] for column in margins.unbind(1)]
        return torch.stack(weights, dim=1), margins.detach()

    def check_at_points(self, margins: Tensor) -> None:  # noqa: B027
        """Raise where `margins` `[B, K]` at the points themselves are negative; those of a function may be."""

    def check(self, outputs: Tensor) -> None:
        """Raise a `ModelError` unless the decision can read `outputs` `[B, ...]`."""
        if outputs.dim() != 1 + len(self.form):
            shapes = f"{list(outputs.shape)}; the decision {self.label} needs [{len(outputs)}, {', '.join(self.form)}]"
            raise ModelError("output_shape", f"{len(outputs)} inputs gave a result of shape {shapes}")


def numbers(values: Any) -> str:
    """Format numbers in a few digits, with commas."""
    return ", ".join(f"{value:.4g}" for value in values)


def only_or_all(entries: Sequence[float]) -> float | tuple[float, ...]:
    """Return the only number, or all numbers as a tuple."""
    values = tuple(map(float, entries))
    return values[0] if len(values) == 1 else values


def check_count(targets: Tensor, outputs: int) -> None:
    """Raise a `ModelError` unless each point has as many labels or numbers, `[B, R]`, as the model has outputs."""
    if targets.shape[1] != outputs:
        raise ModelError(
            "output_shape",
            f"the data hold {targets.shape[1]} labels or numbers of each point, and the model returns {outputs}; give "
            f"one column for each output, in its order (--label-column A,B or y of shape [N, {outputs}])",
        )


def as_numbers(outputs: Tensor) -> Tensor:
    """Return outputs `[N, ...]` in the shape of class scores, `[N, C]`; a single number gets a 0 beside it."""
    flat = outputs.flatten(1)
    return flat if flat.shape[1] > 1 else torch.cat((torch.zeros_like(flat), flat), dim=1)
