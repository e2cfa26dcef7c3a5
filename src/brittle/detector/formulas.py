"""The scores that a detector may read: one forward pass, larger is safer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from brittle.detector.ranges import LARGEST, MOST_CLASSES
from brittle.scores.feature_margin import feature_margin

MOST = 1e100
"""Larger than every distance between logits of single precision, also divided by that between rows of weights."""


@dataclass(frozen=True)
class Seen:
    """What one forward pass shows of `B` points.

    Attributes:
        logits: `[B, C]`, single precision or better; a formula makes double precision of what it reads.
        norm: of the input margins.
        features: what the last linear layer sees, `[B, d]`, or None where the formula does not read it.
        weight: of that layer, `[C, d]`, or None likewise.
        regressor: from features `[B, d]` to margins `[B]`, or None likewise.
    """

    logits: Tensor
    norm: str
    features: Tensor | None = None
    weight: Tensor | None = None
    regressor: Callable[[Tensor], Tensor] | None = None

    @cached_property
    def top(self) -> tuple[Tensor, Tensor]:
        """The largest and the second largest logit, `[B]` each, double precision."""
        first, second = self.logits.topk(2, dim=1).values.double().unbind(1)
        return first, second

    @property
    def probabilities(self) -> Tensor:
        """Softmax of the logits, `[B, C]`, double precision."""
        return self.logits.double().softmax(dim=1)


@dataclass(frozen=True)
class Formula:
    """How a score is computed from one pass, and how it is read from a run.

    Attributes:
        value: `[B]` of what was seen, double precision; larger where safer.
        uses_features: whether it reads the features.
        sign: -1 where the run table holds the negative of `value`.
        normed: whether the run table holds it under the norm as a parameter.
        least: no finite value is smaller.
        most: no finite value is larger.
    """

    value: Callable[[Seen], Tensor]
    uses_features: bool = False
    sign: float = 1.0
    normed: bool = False
    least: float = 0.0
    most: float = MOST

    def named(self, score: str) -> str:
        """The score of that name as a detector compares it with its threshold, such as `-entropy`."""
        return score if self.sign > 0 else f"-{score}"


def _logit_margin(seen: Seen) -> Tensor:
    first, second = seen.top
    return first - second


def _max_probability(seen: Seen) -> Tensor:
    return seen.probabilities.amax(dim=1)


def _probability_margin(seen: Seen) -> Tensor:
    first, second = seen.probabilities.topk(2, dim=1).values.unbind(1)
    return first - second


def _negative_entropy(seen: Seen) -> Tensor:
    return -torch.special.entr(seen.probabilities).sum(dim=1)


def _feature_margin(seen: Seen) -> Tensor:
    return feature_margin(seen.logits, _there(seen.weight), seen.norm)


def _pseudo_margin(seen: Seen) -> Tensor:
    return _there(seen.regressor)(_there(seen.features))


def _there(part: Any) -> Any:
    assert part is not None, "the formula reads what was not looked at"
    return part


PSEUDO_MARGIN = "pseudo_margin"
"""The score that is learned rather than computed."""

SCORES = {
    "logit_margin": Formula(_logit_margin, most=2.0 * LARGEST),
    "max_probability": Formula(_max_probability, least=1.0 / MOST_CLASSES, most=1.0),
    "probability_margin": Formula(_probability_margin, most=1.0),
    "entropy": Formula(_negative_entropy, sign=-1.0, least=-math.log(MOST_CLASSES), most=0.0),
    "feature_margin": Formula(_feature_margin, uses_features=True, normed=True),
    PSEUDO_MARGIN: Formula(_pseudo_margin, uses_features=True),
}
"""Every score that a detector may read, by the name that run tables use and with their values, bit for bit."""
