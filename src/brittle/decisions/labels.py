"""Several labels at once, each of which holds or does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision, alone, check_count
from brittle.errors import ModelError, ParameterError, listed

MOST_NAMED = 10
"""With at most this many labels, every set of them is one of the classes that tables and reports show."""


@dataclass(frozen=True)
class MultiLabel(Decision):
    """Which labels hold: margins `s_j (z_j - t_j)` with the sign `s_j` that it has at the point.

    `z_j` is the logit of label `j`, `log p - log(1 - p)` where the model returns its probability `p`; `t_j` is that of
    its threshold.

    Attributes:
        threshold: above which a label holds, one number or one for each label, in the units of the declared outputs: a
            logit, or with `outputs="probs"` a probability. None is the logit 0, the probability of one half.
        only: one label, to ask for it alone, by its position from 0 or by its name; None asks whether all labels stay
            as they are. One label has a probability, so the scores of the expected change serve it as well. A name is
            looked up among the `class_names` of the classifier or of the data.
        of_probabilities: whether the declared outputs are probabilities; a classifier sets it.

    Raises:
        ParameterError: a threshold is no finite number, or as a probability not between 0 and 1; or the position is
            negative.
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
            given = self.threshold if isinstance(self.threshold, Sequence) else (self.threshold,)
            low, high = (0.0, 1.0) if self.of_probabilities else (-math.inf, math.inf)
            if not given or not all(isinstance(each, int | float) and low < each < high for each in given):
                raise ParameterError(
                    f"every threshold must be a number between {low:g} and {high:g}; found {self.threshold!r:.60}"
                )
            object.__setattr__(self, "threshold", alone(given))
        named = isinstance(self.only, str) and self.only != ""
        if self.only is not None and not named and (type(self.only) is not int or self.only < 0):
            raise ParameterError(
                f"a label is asked for by its position from 0, or by its name; found {self.only!r:.40}"
            )

    @property
    def label(self) -> str:
        return self.name if self.only is None else f"{self.name}:{self.only}"

    @property
    def has_probability(self) -> bool:
        return self.only is not None and self._cut == 0.0

    def named(self, names: Sequence[str] | None) -> MultiLabel:
        if not isinstance(self.only, str):
            return self
        if self.only not in (names or ()):
            known = listed([f"{name!r:.40}" for name in names or ()])
            raise ParameterError(
                f"there is no label {self.only!r:.60} among [{known}]; "
                f"name them (--class-names FILE, classifier.class_names = [...]), or say a position: {self.name}:0"
            )
        return replace(self, only=tuple(names or ()).index(self.only))

    def taken_from(self, outputs: str) -> MultiLabel:
        return replace(self, of_probabilities=outputs == "probs")

    @property
    def _place(self) -> int | None:
        """The position of the one label; None for all."""
        own = self.named(None)
        assert not isinstance(own.only, str)
        return own.only

    @property
    def _cut(self) -> float | tuple[float, ...]:
        """The thresholds as logits."""
        if self.threshold is None or not self.of_probabilities:
            return self.threshold or 0.0
        given = self.threshold if isinstance(self.threshold, tuple) else (self.threshold,)
        return alone([math.log(each) - math.log1p(-each) for each in given])

    def decide(self, outputs: Tensor) -> Tensor:
        """Signs `[B, L]`: 1 where a label holds, -1 where it does not; a logit at the threshold holds."""
        above = self._above(outputs)
        return torch.where(above >= 0, 1.0, -1.0).to(above)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """`s_j (z_j - t_j)`, `[N, L]`, or of the one label, `[N, 1]`."""
        return self._above(outputs) * decided

    def described(self, decided: Tensor) -> list[str]:
        if self.only is not None:
            return ["holds" if own > 0 else "does not hold" for own in decided[:, 0].tolist()]
        return [", ".join(str(at) for at, own in enumerate(row) if own > 0) or "none" for row in decided.tolist()]

    def codes(self, decided: Tensor) -> list[int | None]:
        if decided.shape[1] > MOST_NAMED:
            return [None] * len(decided)
        bits = 2 ** torch.arange(decided.shape[1], device=decided.device)
        return ((decided > 0) * bits).sum(dim=1).tolist()

    def target_codes(self, targets: Tensor) -> list[int | None]:
        return self.codes(self._asked(targets) - 0.5)

    def target_words(self, targets: Tensor) -> list[str]:
        return self.described(self._asked(targets) - 0.5)

    def code_names(self, names: Sequence[str] | None, outputs: int) -> Sequence[str] | None:
        own = list(names) if names is not None and len(names) == outputs else [f"label {at}" for at in range(outputs)]
        if (one := self._place) is not None:
            return (f"not {own[one]}", own[one])
        if outputs > MOST_NAMED:
            return None
        sets = range(2**outputs)
        return [" + ".join(name for at, name in enumerate(own) if code >> at & 1) or "none" for code in sets]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        if targets is None:
            return super().right(decided, labels, targets)
        check_count(targets, decided.shape[1] if self._place is None else max(targets.shape[1], self._place + 1))
        return ((decided > 0) == (self._asked(targets) > 0.5).to(decided.device)).all(dim=1).tolist()

    def _asked(self, targets: Tensor) -> Tensor:
        return targets if (one := self._place) is None else targets[:, one : one + 1]

    def _above(self, outputs: Tensor) -> Tensor:
        above = outputs - outputs.new_tensor(self._cut)
        return above if (one := self._place) is None else above[:, one : one + 1]

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        labels = outputs.shape[1]
        if isinstance(self.threshold, tuple) and len(self.threshold) != labels:
            raise ModelError(
                "output_shape", f"{len(self.threshold)} thresholds were given; the model returns {labels} labels"
            )
        if (one := self._place) is not None and one >= labels:
            raise ModelError("output_shape", f"label {one} was asked for; the model returns {labels}, numbered from 0")
