"""What every decision is: margins that are all positive while it holds.

The decision is taken at the point `x`, from what the model returns there. At another input `x'` it still holds where
every one of its margins `m_1 .. m_K` is positive. Scores of the average case estimate `P(all m_k > 0)` under noise,
those of the worst case look for the nearest `x'` with a margin below 0. A margin of exactly 0 is a tie.

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
    """What a model decides.

    A decision of your own is `brittle.decisions.Custom`, with a function.

    Class attributes:
        name: what the command line and the record of a run call it.
        explanation: what is decided, in a few words that a report shows: "the prediction is ...".
        of_classes: whether it is the predicted class, of which the model's class scores are read as they are.
        has_classes: whether the labels of data that are classes say something of it.
        one_number: whether a model may return one number a row, `[B]`.
        level: whether the nearest margin is the same at every point, so that it says nothing of one.
        targets: whether what is right for a point is no class, but several labels or numbers.
        linear: whether its margins are linear functions of the outputs, but for a constant, so that bounds on these
            bound them (`linear_margins`).
        has_margins: whether scores may read its margins; else only whether it holds, which counting asks for.
        declared: the words of `outputs` from which it can be taken.
        of_odds: whether each declared probability stands for itself, so that its logit is `log p - log(1 - p)`.
        may_be_empty: whether the same outputs everywhere, all 0, may be right.
        form: the axes of an output of one input.
    """

    name: ClassVar[str]
    explanation: ClassVar[str]
    of_classes: ClassVar[bool] = False
    has_classes: ClassVar[bool] = False
    one_number: ClassVar[bool] = False
    linear: ClassVar[bool] = True
    level: ClassVar[bool] = False
    targets: ClassVar[bool] = False
    has_margins: ClassVar[bool] = True
    form: ClassVar[tuple[str, ...]] = ("numbers",)
    declared: ClassVar[tuple[str, ...]] = ("logits",)
    of_odds: ClassVar[bool] = False
    may_be_empty: ClassVar[bool] = False

    @classmethod
    def parse(cls, text: str) -> Decision:
        """Make the decision of the words `name:text` on the command line; a ValueError where `text` is none."""
        if text:
            raise ValueError(text)
        return cls()

    @property
    def has_probability(self) -> bool:
        """Whether the softmax of `[0, -m]` is a network's own probability that the decision is right."""
        return self.of_classes

    @abstractmethod
    def decide(self, outputs: Tensor) -> Tensor:
        """What is kept of a decision, a row for each of `outputs` `[B, ...]`."""

    @abstractmethod
    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """The margins `[N, K]` at `outputs` `[N, ...]` of what was `decided`, a row for each of them."""

    @abstractmethod
    def described(self, decided: Tensor) -> list[str]:
        """What was decided, in words, for each row of `decided`."""

    def extract(self, output: Any, classes: int | None) -> tuple[Tensor, str] | None:
        """Take what it reads from what a model returned, and the name of that part, where these are no class scores;
        else None. `classes` is the number of classes in the model's own config."""
        return None

    def describe_copies(self, margins: Sequence[float]) -> list[str] | None:
        """Describe in words the mean margin of the noisy copies of each point; None where it means nothing."""
        return None

    def numbers(self, outputs: Tensor) -> Tensor:
        """`outputs` `[B, ...]` as if they were class scores, `[B, C]`, by which they are compared with one another."""
        return as_numbers(outputs)

    def named(self, names: Sequence[str] | None) -> Decision:
        """The same, with what it calls by a name of one of `names`, those of the outputs, by its position."""
        return self

    def taken_from(self, outputs: str) -> Decision:
        """The same, told what the model is declared to return, one of `brittle.model.outputs.OUTPUTS`."""
        return self

    def codes(self, decided: Tensor) -> list[int | None]:
        """What was decided as a number that `code_names` names, for each row; None where it is no such number."""
        return [None] * len(decided)

    def target_codes(self, targets: Tensor) -> list[int | None]:
        """What is right as such a number, for each row of `targets` `[B, R]`."""
        return [None] * len(targets)

    def target_words(self, targets: Tensor) -> list[str]:
        """What is right, in words, for each row of `targets`."""
        return [numbers(row) for row in targets.tolist()]

    def classes_of(self, logits: Tensor, decided: Tensor | None) -> int | None:
        """How many classes a label may be of; None where labels are no classes."""
        return None

    def code_names(self, names: Sequence[str] | None, outputs: int) -> Sequence[str] | None:
        """Names of the numbers of `codes`, from those of a model's `outputs`; None where there are none."""
        return names

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        """Whether what was decided is what the data say, for each row; None where they say nothing of it.

        They say `labels`, a class index of each row `[B]`, or `targets`, several labels or numbers of each `[B, R]`.
        """
        return [None] * len(decided)

    @property
    def parameters(self) -> Parameters:
        """Its fields, as the record of a run holds them; those of their default left out."""
        own = [(one, getattr(self, one.name)) for one in fields(self) if one.compare]
        return {one.name: value for one, value in own if value != one.default}

    @property
    def label(self) -> str:
        """The decision as the command line writes it, such as `top:5`."""
        return self.name

    def as_logits(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """The margins as logits, `[0, -m_1, .., -m_K]`, `[N, 1 + K]`."""
        margins = self.margins(outputs, decided)
        return torch.cat((torch.zeros_like(margins[:, :1]), -margins), dim=1)

    def linear_margins(self, decided: Tensor, outputs: int) -> tuple[Tensor, Tensor]:
        """Weights `W` `[N, K, L]` and constants `b` `[N, K]` of the margins `W z + b` of `L` outputs, if `linear`."""
        known = decided.double() if decided.is_floating_point() else decided
        with torch.enable_grad():
            start = torch.zeros(len(decided), outputs, dtype=torch.float64, device=decided.device, requires_grad=True)
            margins = self.margins(start, known)
            weights = [torch.autograd.grad(column.sum(), start, retain_graph=True)[0] for column in margins.unbind(1)]
        return torch.stack(weights, dim=1), margins.detach()

    def check_taken(self, margins: Tensor) -> None:  # noqa: B027
        """Raise where the `margins` `[B, K]` at the points themselves cannot be; only a function of a user's can."""

    def check(self, outputs: Tensor) -> None:
        """Raise a `ModelError` unless this can be decided from `outputs` `[B, ...]`."""
        if outputs.dim() != 1 + len(self.form):
            raise ModelError(
                "output_shape",
                f"{len(outputs)} inputs gave a result of shape {list(outputs.shape)}; the decision {self.label} needs "
                f"[{len(outputs)}, {', '.join(self.form)}]",
            )


def numbers(values: Any) -> str:
    """Numbers in a few digits, with commas."""
    return ", ".join(f"{value:.4g}" for value in values)


def alone(given: Sequence[float]) -> float | tuple[float, ...]:
    """The only one of some numbers, or all of them."""
    values = tuple(map(float, given))
    return values[0] if len(values) == 1 else values


def check_count(targets: Tensor, outputs: int) -> None:
    """Raise a `ModelError` unless data hold as many labels or numbers of each point, `[B, R]`, as the model returns."""
    if targets.shape[1] != outputs:
        raise ModelError(
            "output_shape",
            f"the data hold {targets.shape[1]} labels or numbers of each point, and the model returns {outputs}; give "
            f"one column for each output, in its order (--label-column A,B or y of shape [N, {outputs}])",
        )


def as_numbers(outputs: Tensor) -> Tensor:
    """What a model returns, `[N, ...]`, as if it were class scores, `[N, C]`; one number stands beside a 0."""
    flat = outputs.flatten(1)
    return flat if flat.shape[1] > 1 else torch.cat((torch.zeros_like(flat), flat), dim=1)
