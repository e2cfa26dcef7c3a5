"""Noisy gradients of the predicted probability along the noise: the first-derivative form of its smoothed Laplacian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.measure.base import NetworkTraits, Passes
from brittle.measure.forward import Clean
from brittle.measure.groups import NoiseChunk, NoisyPasses
from brittle.measure.sample_sums import doubt
from brittle.model.classifier import Classifier


@dataclass(frozen=True)
class Directional:
    """What the gradients of `p_t` at noisy copies show along the noise, over antithetic pairs.

    Attributes:
        mean: mean of `e^T grad p_t(x + e)`, `[B]`, float64.
        variance: its variance between pairs, `[B]`.
        pairs: number of pairs.
        nonfinite: copies with NaN or infinite logits, `[B]`.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network per point, the clean one included.
    """

    mean: Tensor
    variance: Tensor
    pairs: int
    nonfinite: Tensor
    tied: Tensor
    passes: int


@dataclass(frozen=True)
class SampleGradient(NoisyPasses[Directional]):
    """`e^T grad p_t(x + e)` over noisy copies in antithetic pairs `(e, -e)`: one forward and one backward pass each.

    For normal noise of covariance `s^2 K`, Stein's identity gives `E[e^T grad p] = s^2 E[tr(K hess p)]`.

    Attributes:
        noise: the noise.
        draws: number of noisy copies, even.
    """

    purpose: ClassVar[str] = "gradient"

    def cost(self, network: NetworkTraits) -> Passes:
        """A forward and a backward pass a copy."""
        return Passes(self.draws, self.draws)

    def sums(self, classifier: Classifier, clean: Clean) -> DirectionalSums:
        """Of the derivatives along the noise."""
        return DirectionalSums.start(classifier, clean)


@dataclass
class DirectionalSums:
    """Running sums over pairs of the derivative along the noise, each `[B]`.

    Attributes:
        classifier: whose gradients.
        clean: the points.
        total: of the averages of the pairs.
        squares: of their squares.
        nonfinite: copies with NaN or infinite logits.
    """

    classifier: Classifier
    clean: Clean
    total: Tensor
    squares: Tensor
    nonfinite: Tensor

    @classmethod
    def start(cls, classifier: Classifier, clean: Clean) -> DirectionalSums:
        """No pairs yet."""
        none = torch.zeros(len(clean.ids), dtype=torch.float64, device=clean.logits.device)
        return cls(classifier, clean, none, none.clone(), torch.zeros_like(clean.predicted))

    def add(self, chunk: NoiseChunk) -> None:
        """Differentiate at the copies of some pairs."""
        copies, repeats = chunk.inputs.requires_grad_(True), chunk.units * chunk.members
        logits = self.clean.logits_of(self.classifier, copies, chunk.rows)
        rise = -doubt(logits.double(), self.clean.predicted.repeat_interleave(repeats))
        gradient = self.classifier.gradient(rise, copies, keep=False).flatten(1).double()
        noise = (copies.detach() - self.clean.inputs.repeat_interleave(repeats, dim=0)).flatten(1).double()
        self.nonfinite += chunk.unfold(~logits.isfinite().all(dim=1)).sum(dim=(1, 2))
        pair = chunk.unfold((gradient * noise).sum(dim=1)).mean(dim=2)
        self.total += pair.sum(dim=1)
        self.squares += pair.square().sum(dim=1)

    def read(self, units: int) -> Directional:
        """Mean and variance over the pairs so far."""
        mean = self.total / units
        variance = (self.squares - units * mean.square()).clamp_min(0.0) / max(1, units - 1)
        passes = self.clean.passes + 4 * units
        return Directional(mean, variance, units, self.nonfinite.clone(), self.clean.tied, passes)
