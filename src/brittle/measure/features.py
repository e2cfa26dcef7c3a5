"""Results of the clean pass without any further pass: logits, and the input of the last linear layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.measure.base import Measurement, NetworkTraits, Passes
from brittle.measure.forward import Clean
from brittle.model.classifier import Classifier


@dataclass(frozen=True)
class Forward(Measurement):
    """The clean forward pass; it is there before any other measurement is taken. With `probabilities` the
    log-probabilities of an estimator are in it, which take another pass."""

    probabilities: bool = False

    differentiates = False

    def cost(self, network: NetworkTraits) -> Passes:
        return Passes(int(self.probabilities and network.own_probability))

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Clean]:
        if needs[0].probabilities and classifier.own_probability:
            clean = replace(clean.with_probabilities(classifier), passes=clean.passes + 1)
        return [clean for _ in needs]


@dataclass(frozen=True)
class HeadInputs:
    """Input of the last linear layer of the network at each point, and that layer. Features `h`, `[B, d]`, and the
    weight `W` of the logits `W h + b`, `[C, d]`, are in double precision."""

    clean: Clean
    features: Tensor
    weight: Tensor
    passes: int


@dataclass(frozen=True)
class Features(Measurement):
    """The features of the clean pass; they cost nothing beside it, where it kept them."""

    differentiates = False
    uses_features = True

    def cost(self, network: NetworkTraits) -> Passes:
        """Nothing beyond it."""
        return Passes(0)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[HeadInputs]:
        """Return the features that the clean pass kept, or those of a pass of its own."""
        features, passes = clean.features, clean.passes
        if features is None:
            passes += 1
            with torch.no_grad():
                features = classifier.observe(clean.inputs, clean.extra_inputs)[1]
        weight = classifier.head.weight.detach().double()
        head_inputs = HeadInputs(clean, features.detach().double(), weight, passes)
        return [head_inputs for _ in needs]
