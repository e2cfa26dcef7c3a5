"""The nearest margin and its gradient, averaged over noise: one backward pass a draw."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.measure.base import Measurement, check_draws, without_draws
from brittle.measure.forward import Clean
from brittle.measure.groups import GROUPS, along, leave_one_out_weights, noisy_chunks, offsets
from brittle.measure.linearize import contract
from brittle.measure.noisy_margins import Spread, SpreadSums, Votes, VoteSums, parts
from brittle.model.classifier import Classifier
from brittle.noise import Noise


@dataclass(frozen=True)
class SmoothedMargin:
    """The linearisation of one function, the nearest margin `h = z_t - max_{j != t} z_j`, over noise.

    Attributes:
        margin: mean of `h` over the draws, `[B]`, float64.
        variance: `g K g^T` with `g` the mean gradient of `h`, `[B]`, float64.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network per point, forward and backward.
        draws: noisy copies that were averaged.
        without_group: both without one group of draws each, `([B, G], [B, G])`, or None with one group only.
        votes: how the noisy copies voted.
        spread: mean and variance of `h` over them, `[B, 1]` each; None where there is one pair only.
        bend: mean square of what `h` at a noisy copy misses of its own tangent there, taken back to the point,
            `[B, 1]`.
        classes: number of classes.
    """

    margin: Tensor
    variance: Tensor
    tied: Tensor
    passes: int
    draws: int
    without_group: tuple[Tensor, Tensor] | None
    votes: Votes
    spread: Spread | None
    bend: Tensor
    classes: int


@dataclass(frozen=True)
class NearestMargin(Measurement):
    """Mean and mean gradient of the nearest margin over `draws` noisy copies in antithetic pairs.

    Attributes:
        noise: the noise to average over.
        draws: number of noisy copies, even.
    """

    noise: Noise
    draws: int

    def __post_init__(self) -> None:
        check_draws(self.draws)

    @property
    def stream(self) -> Hashable:
        """All budgets of one noise share their passes."""
        return without_draws(self)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[SmoothedMargin]:
        """Sums by group, read off at the budget of each need."""
        noise, budgets = needs[0].noise, [need.draws for need in needs]
        margins = torch.zeros(len(clean.ids), GROUPS, dtype=torch.float64, device=clean.inputs.device)
        gradients = clean.inputs.new_zeros(len(clean.ids), GROUPS, clean.inputs[0].numel())
        votes, powers = VoteSums.start(clean, 2), SpreadSums.start(len(clean.ids), 1, clean.inputs.device)
        origin = nearest_margin(clean.logits.double(), clean.predicted).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)[
            :, None
        ]
        bend = torch.zeros_like(origin)
        done: dict[int, SmoothedMargin] = {}
        for chunk in noisy_chunks(clean, noise, "nearest_margin", budgets):
            inputs = chunk.inputs.requires_grad_(True)
            logits = classifier(inputs)
            votes.add(chunk.unfold(logits.detach().double()))
            margin = nearest_margin(logits, clean.predicted.repeat_interleave(chunk.units * chunk.members))
            gradient = classifier.gradient(margin, inputs, keep=False)
            exact = chunk.unfold(margin.detach().double())
            margins.index_add_(1, chunk.groups, exact.mean(2))
            powers.add(*parts(exact[..., None] - origin[:, None, None]))
            missed = exact - origin[:, None] - chunk.unfold(along(gradient, offsets(chunk, clean.inputs)))
            bend = bend + missed.square().sum((1, 2))[:, None]
            gradients.index_add_(1, chunk.groups, chunk.unfold(gradient.flatten(1)).mean(2))
            units = chunk.first + chunk.units
            if 2 * units in budgets:
                spread = powers.read(units, origin) if units > 1 else None
                shown = (votes.read(units), spread, bend / (2 * units))
                done[2 * units] = _summary(margins, gradients, units, noise, clean, *shown)
        return [done[budget] for budget in budgets]


def nearest_margin(logits: Tensor, predicted: Tensor) -> Tensor:
    """`z_t - max_{j != t} z_j` for each row, `[B]`."""
    own = logits.gather(1, predicted[:, None])[:, 0]
    return own - logits.scatter(1, predicted[:, None], -torch.inf).amax(dim=1)


def _summary(
    margins: Tensor,
    gradients: Tensor,
    units: int,
    noise: Noise,
    clean: Clean,
    votes: Votes,
    spread: Spread | None,
    bend: Tensor,
) -> SmoothedMargin:
    weights = leave_one_out_weights(units).to(margins.device)
    means = margins @ weights.mT
    crossed = contract(gradients, noise.shape)
    variances = torch.einsum("ag,bgh,ah->ba", weights, crossed, weights)
    rest = (means[:, 1:], variances[:, 1:]) if len(weights) > 1 else None
    passes, classes = clean.passes + 4 * units, clean.logits.shape[1]
    shown = (votes, spread, bend, classes)
    return SmoothedMargin(means[:, 0], variances[:, 0], clean.tied, passes, 2 * units, rest, *shown)
