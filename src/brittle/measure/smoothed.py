"""The linearisation averaged over noise: sums of logits and Jacobians, read off at every budget."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.chunks import NoiseChunk, add_in_turn
from brittle.measure.forward import Clean
from brittle.measure.gradient_variance import GradientGrams
from brittle.measure.linearization import Linearization, contract, shape_at
from brittle.measure.noisy_margins import VoteSums
from brittle.model.classifier import Classifier
from brittle.noise import Noise


@dataclass
class LinearSums:
    """Running sums over units of noise.

    Attributes:
        classifier: what is linearised.
        clean: the points.
        kept: the classes whose gradients are taken, `[B, M]`, in class order.
        shape: what decides the covariance that the Jacobians are contracted with; None for the identity.
        members: draws in a unit, 2 or 1.
        logits: `[B, C]`, float64.
        jacobian: `[B, M, n]`.
        grams: of the Jacobians at single copies.
        votes: how the copies vote.
    """

    classifier: Classifier
    clean: Clean
    kept: Tensor
    shape: Noise | None
    members: int
    logits: Tensor
    jacobian: Tensor
    grams: GradientGrams
    votes: VoteSums

    @classmethod
    def start(cls, classifier: Classifier, clean: Clean, kept: Tensor, shape: Noise | None, members: int) -> LinearSums:
        """No units yet."""
        points, classes = kept.shape
        shape = shape_at(shape, clean)
        return cls(
            classifier,
            clean,
            kept,
            shape,
            members,
            logits=torch.zeros_like(clean.logits, dtype=torch.float64),
            jacobian=clean.inputs.new_zeros(points, classes, clean.inputs[0].numel()),
            grams=GradientGrams.start(points, classes, shape, clean.inputs.device),
            votes=VoteSums.start(clean, members),
        )

    def add(self, chunk: NoiseChunk) -> None:
        """Differentiate at the copies of some units."""
        inputs, clean, kept = chunk.inputs.requires_grad_(True), self.clean, self.kept
        values = clean.logits_of(self.classifier, inputs, chunk.rows)
        exact = chunk.unfold(values.detach().double())
        add_in_turn(self.logits, exact.sum(2))
        self.votes.add(exact)
        count = kept.shape[1]
        copies = kept.repeat_interleave(chunk.units * chunk.members, dim=0)
        gradients = inputs.new_empty(len(inputs), count, inputs[0].numel())
        for number in range(count):
            chosen = values.gather(1, copies[:, number : number + 1])[:, 0]
            gradients[:, number] = self.classifier.gradient(chosen, inputs, keep=number + 1 < count).flatten(1)
        by_unit = chunk.unfold(gradients)
        add_in_turn(self.jacobian, by_unit.sum(2))
        self.grams.add(by_unit)

    def read(self, units: int) -> Linearization:
        """Means over all units so far."""
        clean, draws = self.clean, units * self.members
        gram, votes = contract(self.jacobian / draws, self.shape), self.votes.read(units)
        return Linearization(
            logits=self.logits / draws,
            gram=gram,
            classes=self.kept,
            predicted=clean.predicted,
            tied=clean.tied,
            passes=clean.passes + draws * (1 + self.kept.shape[1]),
            draws=draws,
            nonfinite=votes.nonfinite,
            dimension=clean.inputs[0].numel(),
            quadratic_gram=self.grams.read(gram, units),
            votes=votes,
        )
