"""Decision on several labels at once, each of which holds or does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision, check_count, only_or_all
from brittle.errors import ModelError, ParameterError, listed

MOST_NAMED = 10
"""Most labels whose sets count as classes in tables and reports."""


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
                    f"every threshold must be a number between {low:g} and {high:g}; found {self.threshold!r:.60}"
                )
            object.__setattr__(self, "threshold", only_or_all(thresholds))
        has_name = isinstance(self.only, str) and self.only != ""
        if self.only is not None and not has_name and (type(self.only) is not int or self.only < 0):
            raise ParameterError(
                f"a label is asked for by its position from 0, or by its name; found {self.only!r:.40}"
            )

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
                f"there is no label {self.only!r:.60} among [{choices}]; "
                f"name them (--class-names FILE, classifier.class_names = [...]), or give a position: {self.name}:0"
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
            raise ModelError(
                "output_shape", f"{len(self.threshold)} thresholds were given; the model returns {labels} labels"
            )
        if (place := self._place) is not None and place >= labels:
            raise ModelError("output_shape", f"label {place} was asked for; the model returns {labels}, counted from 0")
