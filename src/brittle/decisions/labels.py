"""Several labels at once, each of which holds or does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision, alone
from brittle.errors import ModelError, ParameterError

MOST_NAMED = 10
"""With at most this many labels, every set of them is one of the classes that tables and reports show."""


@dataclass(frozen=True)
class MultiLabel(Decision):
    """Which labels hold: margins `s_j (z_j - threshold_j)` with the sign `s_j` that it has at the point.

    Attributes:
        threshold: above which a label holds, one number or one for each label, in logits: 0 is a probability of one
            half.
        only: the position of one label, to ask for it alone; None asks whether all labels stay as they are. One label
            has a probability, so the scores of the expected change serve it as well.

    Raises:
        ParameterError: a threshold is no finite number, or the position is negative.
    """

    threshold: float | tuple[float, ...] = 0.0
    only: int | None = None

    name: ClassVar[str] = "multilabel"
    explanation: ClassVar[str] = "which labels hold"
    targets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given = self.threshold if isinstance(self.threshold, Sequence) else (self.threshold,)
        if not given or not all(isinstance(each, int | float) and abs(each) < torch.inf for each in given):
            raise ParameterError("decision", f"every threshold must be a finite number; found {self.threshold!r:.60}")
        object.__setattr__(self, "threshold", alone(given))
        if self.only is not None and (type(self.only) is not int or self.only < 0):
            raise ParameterError("decision", f"a label is asked for by its position from 0; found {self.only!r:.40}")

    @property
    def label(self) -> str:
        """`multilabel`, or such as `multilabel:3` for one label alone."""
        return self.name if self.only is None else f"{self.name}:{self.only}"

    @property
    def has_probability(self) -> bool:
        """For one label, whose probability is the sigmoid of its margin."""
        return self.only is not None and self.threshold == 0.0

    def decide(self, outputs: Tensor) -> Tensor:
        """Signs `[B, L]`: 1 where a label holds, -1 where it does not; a logit at the threshold holds."""
        above = self._above(outputs)
        return torch.where(above >= 0, 1.0, -1.0).to(above)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """`s_j (z_j - threshold_j)`, `[N, L]`, or of the one label, `[N, 1]`."""
        return self._above(outputs) * decided

    def described(self, decided: Tensor) -> list[str]:
        """The positions of the labels that hold; of one label whether it holds."""
        if self.only is not None:
            return ["holds" if own > 0 else "does not hold" for own in decided[:, 0].tolist()]
        return [", ".join(str(at) for at, own in enumerate(row) if own > 0) or "none" for row in decided.tolist()]

    def codes(self, decided: Tensor) -> list[int | None]:
        """The labels that hold as the bits of a number, label 0 the lowest; None for more than `MOST_NAMED` labels."""
        if decided.shape[1] > MOST_NAMED:
            return [None] * len(decided)
        bits = 2 ** torch.arange(decided.shape[1], device=decided.device)
        return ((decided > 0) * bits).sum(dim=1).tolist()

    def target_codes(self, targets: Tensor) -> list[int | None]:
        """The labels that hold, as such a number."""
        return self.codes(self._asked(targets) - 0.5)

    def target_words(self, targets: Tensor) -> list[str]:
        """The positions of the labels that hold; of one label whether it holds."""
        return self.described(self._asked(targets) - 0.5)

    def code_names(self, names: Sequence[str] | None, outputs: int) -> Sequence[str] | None:
        """The labels that hold, such as `beach + sunset`, or `none`."""
        own = list(names) if names is not None and len(names) == outputs else [f"label {at}" for at in range(outputs)]
        if self.only is not None:
            return (f"not {own[self.only]}", own[self.only])
        if outputs > MOST_NAMED:
            return None
        sets = range(2**outputs)
        return [" + ".join(name for at, name in enumerate(own) if code >> at & 1) or "none" for code in sets]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        """Whether all labels, or the one, are as the data say."""
        if targets is None:
            return super().right(decided, labels, targets)
        return ((decided > 0) == (self._asked(targets) > 0.5).to(decided.device)).all(dim=1).tolist()

    def _asked(self, targets: Tensor) -> Tensor:
        return targets if self.only is None else targets[:, self.only : self.only + 1]

    def _above(self, outputs: Tensor) -> Tensor:
        above = outputs - outputs.new_tensor(self.threshold)
        return above if self.only is None else above[:, self.only : self.only + 1]

    def check(self, outputs: Tensor) -> None:
        """Raise unless there is a column for each label that is named.

        Raises:
            ModelError: there is not.
        """
        super().check(outputs)
        labels = outputs.shape[1]
        if isinstance(self.threshold, tuple) and len(self.threshold) != labels:
            raise ModelError(
                "num_classes", f"{len(self.threshold)} thresholds were given; the model returns {labels} labels"
            )
        if self.only is not None and self.only >= labels:
            raise ModelError(
                "num_classes", f"label {self.only} was asked for; the model returns {labels}, numbered from 0"
            )
