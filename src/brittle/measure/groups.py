"""How draws are dealt out to groups, so that leaving one group out says how sure the rest is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.noise import Noise, Stream

GROUPS = 8
"""Draws are dealt to this many groups in turn."""


@dataclass(frozen=True)
class Chunk:
    """Some units of noise for each point of a batch.

    A unit is an antithetic pair `(e, -e)`, or a single draw.

    Attributes:
        inputs: noisy copies, `[B * units * members, *shape]`, in this order.
        first: number of the first unit.
        units: how many units there are.
        members: draws in a unit, 2 or 1.
    """

    inputs: Tensor
    first: int
    units: int
    members: int

    @property
    def groups(self) -> Tensor:
        """The group of each unit, `[units]`."""
        return torch.arange(self.first, self.first + self.units, device=self.inputs.device) % GROUPS

    def unfold(self, values: Tensor) -> Tensor:
        """`values`, one row per copy, as `[B, units, members, *rest]`."""
        return values.view(-1, self.units, self.members, *values.shape[1:])


def noisy_chunks(
    clean: Clean, noise: Noise, purpose: str, budgets: Sequence[int], antithetic: bool = True
) -> Iterator[Chunk]:
    """Noisy copies of the points up to the largest budget of draws, in chunks that end at every budget."""
    members = 2 if antithetic else 1
    stream = Stream(noise, clean.inputs, clean.ids, clean.seed, purpose)
    most = max(1, clean.rows // (len(clean.inputs) * members))
    first = 0
    for end in sorted({budget // members for budget in budgets}):
        while first < end:
            units = min(most, end - first)
            half = stream.draw(units)
            signed = torch.stack((half, -half), dim=2) if antithetic else half.unsqueeze(2)
            copies = clean.inputs[:, None, None] + signed
            yield Chunk(copies.flatten(0, 2), first, units, members)
            first += units


def offsets(chunk: Chunk, inputs: Tensor) -> Tensor:
    """The noise of each copy of a chunk around the points `inputs` `[B, *shape]`, `[copies, n]`."""
    points = inputs.flatten(1).repeat_interleave(chunk.units * chunk.members, dim=0)
    return chunk.inputs.detach().flatten(1) - points


def along(gradient: Tensor, noise: Tensor) -> Tensor:
    """Each copy's gradient `[copies, *shape]` times its noise `[copies, n]`, `[copies]`, float64."""
    return (gradient.flatten(1) * noise).sum(dim=1, dtype=torch.float64)


def group_counts(units: int) -> Tensor:
    """Units in each group after `units` of them, `[GROUPS]`."""
    return torch.bincount(torch.arange(units) % GROUPS, minlength=GROUPS)


def leave_one_out_weights(units: int) -> Tensor:
    """Weights of the group sums in the mean over all units, then in the means without one group each.

    `[1 + G, GROUPS]`, float64, with `G` the number of groups that hold units; a row per mean. With a single group no
    mean without it exists, and `G` is 0.
    """
    counts = group_counts(units).double()
    filled = counts.nonzero().flatten()
    means = [torch.full((GROUPS,), 1.0 / units, dtype=torch.float64)]
    for group in filled if len(filled) > 1 else []:
        weights = torch.full((GROUPS,), float(1.0 / (units - counts[group])), dtype=torch.float64)
        weights[group] = 0.0
        means.append(weights)
    return torch.stack(means)
