"""Scores of one forward pass: one formula for the table, for a detector, and for a network that a detector is in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from torch import Tensor, nn

from brittle.estimate import FLIP_PROBABILITY, Direction, Estimate
from brittle.measure import Clean, Features, Forward, HeadInputs, Measurement
from brittle.scores.base import Score, clean_status, finish
from brittle.scores.evidence import no_interval

LARGEST = float.fromhex("0x1.fffffep+127")
"""The largest number of single precision, in which inputs and logits are."""

MOST_CLASSES = 2.0**63
"""More classes than any network has."""


MOST = 1e100
"""Larger than every distance between logits of single precision, also divided by that between rows of weights."""


@dataclass(frozen=True)
class OnePass:
    """What one forward pass shows of `B` points.

    Attributes:
        logits: `[B, C]`, single precision or better; a formula makes double precision of what it reads.
        features: what the last linear layer sees, `[B, d]`, or None where the formula does not read it.
        weight: of that layer, `[C, d]`, or None likewise.
    """

    logits: Tensor
    features: Tensor | None = None
    weight: Tensor | None = None

    @cached_property
    def top(self) -> tuple[Tensor, Tensor]:
        """The largest and the second largest logit, `[B]` each, double precision."""
        first, second = self.logits.topk(2, dim=1).values.double().unbind(1)
        return first, second

    @property
    def probabilities(self) -> Tensor:
        """Softmax of the logits, `[B, C]`, double precision."""
        return self.logits.double().softmax(dim=1)

    @property
    def features_and_weight(self) -> tuple[Tensor, Tensor]:
        """The features and the weight, for a formula that reads them."""
        assert self.features is not None
        assert self.weight is not None
        return self.features, self.weight


@dataclass(frozen=True)
class OnePassScore(Score):
    """A score whose value is a function of one forward pass.

    Class attributes:
        uses_features: whether the formula reads the features.
        least: no finite value is smaller.
        most: no finite value is larger.
    """

    cost: ClassVar[str] = "1"
    safer: ClassVar[Direction] = "higher"
    uses_features: ClassVar[bool] = False
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = MOST

    @abstractmethod
    def value(self, found: OnePass) -> Tensor:
        """The score of each point, `[B]`, float64.

        Only operations of PyTorch that do not ask for a number, so that a network with the formula in it can be
        exported.
        """

    def checked_value(self, found: OnePass) -> Tensor:
        """The same for a table, with the checks that a table needs, `[B]`."""
        return self.value(found)

    @property
    def network(self) -> nn.Module | None:
        """What `value` runs on one pass; it becomes a part of a network with the score built in."""
        return None

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        """How the points ended, `[B]`, from how their clean pass did and from their values."""
        return status

    def evidence(self, value: Tensor) -> Tensor | None:
        """What stands behind the values, `[B]`, where they are flip probabilities."""
        return None

    @property
    def needs(self) -> tuple[Forward | Features]:
        """The clean pass, with the features where the formula reads them."""
        return (Features(),) if self.uses_features else (Forward(),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The value of the formula: as a flip probability without an interval, else with one of no width."""
        found: Clean | HeadInputs = measured[self.needs[0]]
        if isinstance(found, HeadInputs):
            clean, one = found.clean, OnePass(found.clean.logits, found.features, found.weight)
        else:
            clean, one = found, OnePass(found.logits)
        value = self.checked_value(one).to(clean.logits.device)
        status = self.judge(clean_status(clean), value)
        low, high = no_interval(value) if self.quantity == FLIP_PROBABILITY else (value, value)
        return finish(value, low, high, status, found.passes, evidence=self.evidence(value))
