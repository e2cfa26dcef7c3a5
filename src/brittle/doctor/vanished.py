"""Where no margin has a gradient: is the network dead there, or are gradients cut off?

Dead units and saturated outputs have no gradient because the output stays the same nearby; where it changes again, a
gradient comes back. `round`, `sign`, `no_grad` and `detach` have none where the output changes, either.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.doctor.subject import Subject
from brittle.doctor.variants import blended
from brittle.errors import ModelError

NEAR, FAR = 2e-3, 0.3
"""Shares of uniform noise that are blended in, to see whether the output changes nearby, or at all."""

SIGNAL = 8.0
"""Changes of a margin count when they are so many times what rounding explains."""

ROUNDING = 4.0
"""Units in the last place of the larger of two logits by which rounding changes the margin between them."""

ZERO_SHARE = 0.05
"""Share of the rows whose gradients may vanish without a word."""

MOST_DEAD = 0.5
"""Share of the rows that may be dead: of a network that is dead in more of them, estimates by gradients say little."""


@dataclass(frozen=True)
class Vanished:
    """Rows where the gradients of all margins are 0.

    Attributes:
        rows: how many rows have finite logits.
        zero: in how many of these all gradients vanish.
        hidden: by how much the margins change in those where no gradient says so, `[H]`: the output changes when noise
            is blended in, the prediction stays, and there is no gradient there, either.
    """

    rows: int
    zero: int
    hidden: Tensor

    @property
    def masked(self) -> bool:
        """Whether gradients are cut off in more rows than a kink or two explain."""
        return len(self.hidden) > ZERO_SHARE * self.rows

    @property
    def few(self) -> bool:
        """Whether so few gradients vanish that nothing need be said."""
        return self.zero <= ZERO_SHARE * self.rows


def find_vanished(subject: Subject) -> Vanished:
    """The rows without gradients; where they are more than a few, the output is looked at nearby and farther away."""
    logits, zero = _without_gradient(subject, subject.inputs)
    sound = logits.isfinite().all(dim=1)
    zero &= sound
    found = Vanished(int(sound.sum()), int(zero.sum()), logits.new_zeros(0))
    if found.few:
        return found
    hidden = torch.zeros_like(logits[:, 0], dtype=torch.float64)
    for share in (NEAR, FAR):
        there, still = _without_gradient(subject, blended(subject.inputs, subject.classifier.bounds, share))
        hidden = torch.maximum(hidden, torch.where(zero & still, _change(subject, logits, there), 0.0))
    return Vanished(found.rows, found.zero, hidden[hidden > 0])


def _without_gradient(subject: Subject, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits `[V, C]` of `inputs`, and where no margin between them has a gradient, `[V]`."""
    inputs = inputs.clone().requires_grad_(True)
    logits = subject.logits_of(inputs)
    # Random weights that add up to 0: the sum has no gradient only where no margin has one.
    weights = torch.randn(logits.shape[1], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = (weights - weights.mean()).to(logits)
    try:
        gradient = subject.classifier.gradient(logits @ weights, inputs, keep=False)
    except ModelError as error:
        if error.code != "not_differentiable":
            raise
        gradient = torch.zeros_like(inputs)
    return logits.detach(), (gradient == 0).flatten(1).all(dim=1)


def _change(subject: Subject, logits: Tensor, there: Tensor) -> Tensor:
    """The largest clear change of a margin between two places, `[V]`; 0 where there is none or the prediction does."""
    own = logits.argmax(dim=1, keepdim=True)
    here, other = (part.gather(1, own) - part for part in (logits, there))
    change = (here - other).double().abs()
    sizes = logits.double().abs()
    clear = change > SIGNAL * ROUNDING * subject.precision * torch.maximum(sizes, sizes.gather(1, own))
    clear &= there.argmax(dim=1, keepdim=True) == own
    return torch.where(clear, change, 0.0).amax(dim=1)
