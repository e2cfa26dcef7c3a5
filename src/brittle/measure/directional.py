"""Noisy gradients of the predicted probability along the noise: the first-derivative form of its smoothed Laplacian."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.measure.base import Measurement, check_draws, without_draws
from brittle.measure.forward import Clean
from brittle.measure.groups import noisy_chunks
from brittle.measure.sampling import doubt
from brittle.model.classifier import Classifier
from brittle.noise import Noise


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
class SampleGradient(Measurement):
    """`e^T grad p_t(x + e)` over noisy copies in antithetic pairs `(e, -e)`: one forward and one backward pass each.

    For normal noise of covariance `s^2 K`, Stein's identity gives `E[e^T grad p] = s^2 E[tr(K hess p)]`.

    Attributes:
        noise: the noise.
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
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Directional]:
        """Sums over the draws, read off at the budget of each need."""
        budgets = [need.draws for need in needs]
        total, squares = (torch.zeros(len(clean.ids), dtype=torch.float64, device=clean.logits.device) for _ in "ab")
        broken = torch.zeros_like(clean.predicted)
        done: dict[int, Directional] = {}
        for chunk in noisy_chunks(clean, needs[0].noise, "gradient", budgets):
            copies = chunk.inputs.requires_grad_(True)
            repeats = chunk.units * chunk.members
            logits = classifier(copies)
            rise = -doubt(logits.double(), clean.predicted.repeat_interleave(repeats))
            gradient = classifier.gradient(rise, copies, keep=False).flatten(1).double()
            noise = (copies.detach() - clean.inputs.repeat_interleave(repeats, dim=0)).flatten(1).double()
            along = chunk.unfold((gradient * noise).sum(dim=1))
            broken += chunk.unfold(~logits.isfinite().all(dim=1)).sum(dim=(1, 2))
            pair = along.mean(dim=2)
            total += pair.sum(dim=1)
            squares += pair.square().sum(dim=1)
            pairs = chunk.first + chunk.units
            if 2 * pairs in budgets:
                mean = total / pairs
                variance = (squares - pairs * mean.square()).clamp_min(0.0) / max(1, pairs - 1)
                passes = clean.passes + 4 * pairs
                done[2 * pairs] = Directional(mean, variance, pairs, broken.clone(), clean.tied, passes)
        return [done[budget] for budget in budgets]
