"""The nearest margin and its gradient, averaged over noise: one backward pass a draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.measure.base import NetworkTraits, Passes
from brittle.measure.chunks import NoiseChunk, NoisyPasses, add_in_turn
from brittle.measure.forward import Clean
from brittle.measure.gradient_variance import GradientGrams
from brittle.measure.linearization import contract, shape_at
from brittle.measure.noisy_margins import Votes, VoteSums
from brittle.model.classifier import Classifier
from brittle.noise import Noise


@dataclass(frozen=True)
class SmoothedMargin:
    """The linearisation of one function, the nearest margin `h = z_t - max_{j != t} z_j`, over noise.

    Attributes:
        margin: mean of `h` over the draws, `[B]`, float64.
        variance: `g K g^T` with `g` the mean gradient of `h`, `[B]`, float64.
        quadratic_variance: `[B]`, float64, with which `s^2 quadratic_variance` is the variance of an `h` that is
            quadratic in the noise (`brittle.measure.gradient_variance`).
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network per point, forward and backward.
        draws: noisy copies that were averaged.
        votes: how the noisy copies voted.
        classes: number of classes.
    """

    margin: Tensor
    variance: Tensor
    quadratic_variance: Tensor
    tied: Tensor
    passes: int
    draws: int
    votes: Votes
    classes: int


@dataclass(frozen=True)
class NearestMargin(NoisyPasses[SmoothedMargin]):
    """Mean and mean gradient of the nearest margin over `draws` noisy copies in antithetic pairs.

    Attributes:
        noise: the noise to average over.
        draws: number of noisy copies, even.
    """

    purpose: ClassVar[str] = "nearest_margin"

    def cost(self, network: NetworkTraits) -> Passes:
        """A forward and a backward pass a copy."""
        return Passes(self.draws, self.draws)

    def sums(self, classifier: Classifier, clean: Clean) -> NearestMarginSums:
        """Of the margin, its gradient, and what both show."""
        return NearestMarginSums.start(classifier, clean, self.noise)


@dataclass
class NearestMarginSums:
    """Running sums over pairs of the nearest margin `h` and its gradient.

    Attributes:
        classifier: whose margin.
        clean: the points.
        shape: what decides the covariance that the gradients are contracted with; None for the identity.
        margins: averages of `h` over the pairs, `[B]`, float64.
        gradients: of its gradient, `[B, 1, n]`.
        grams: squared lengths of single gradients.
        votes: how the copies vote.
    """

    classifier: Classifier
    clean: Clean
    shape: Noise | None
    margins: Tensor
    gradients: Tensor
    grams: GradientGrams
    votes: VoteSums

    @classmethod
    def start(cls, classifier: Classifier, clean: Clean, noise: Noise) -> NearestMarginSums:
        """No pairs yet."""
        points, device = len(clean.ids), clean.inputs.device
        return cls(
            classifier,
            clean,
            shape_at(noise.shape, clean),
            margins=torch.zeros(points, dtype=torch.float64, device=device),
            gradients=clean.inputs.new_zeros(points, 1, clean.inputs[0].numel()),
            grams=GradientGrams.start(points, 1, shape_at(noise.shape, clean), device),
            votes=VoteSums.start(clean, 2),
        )

    def add(self, chunk: NoiseChunk) -> None:
        """Differentiate at the copies of some pairs."""
        inputs, clean = chunk.inputs.requires_grad_(True), self.clean
        logits = clean.logits_of(self.classifier, inputs, chunk.rows)
        self.votes.add(chunk.unfold(logits.detach().double()))
        margin = nearest_margin(logits, clean.predicted.repeat_interleave(chunk.units * chunk.members))
        gradient = self.classifier.gradient(margin, inputs, keep=False)
        add_in_turn(self.margins, chunk.unfold(margin.detach().double()).mean(2))
        by_unit = chunk.unfold(gradient.flatten(1)[:, None])
        add_in_turn(self.gradients, by_unit.mean(2))
        self.grams.add(by_unit)

    def read(self, units: int) -> SmoothedMargin:
        """Means over all pairs so far."""
        gram = contract(self.gradients / units, self.shape)
        return SmoothedMargin(
            margin=self.margins / units,
            variance=gram[:, 0, 0],
            quadratic_variance=self.grams.read(gram, units)[:, 0, 0],
            tied=self.clean.tied,
            passes=self.clean.passes + 4 * units,
            draws=2 * units,
            votes=self.votes.read(units),
            classes=self.clean.logits.shape[1],
        )


def nearest_margin(logits: Tensor, predicted: Tensor) -> Tensor:
    """`z_t - max_{j != t} z_j` for each row, `[B]`."""
    own = logits.gather(1, predicted[:, None])[:, 0]
    return own - logits.scatter(1, predicted[:, None], -torch.inf).amax(dim=1)
