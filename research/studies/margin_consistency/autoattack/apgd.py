"""Auto-PGD: projected gradient ascent whose step halves where it does not pay.

Source: F. Croce, M. Hein, Reliable evaluation of adversarial robustness with an ensemble of diverse parameter-free
attacks (ICML 2020, https://arxiv.org/abs/2003.01690), algorithm 1 and section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

MOMENTUM, PAYING = 0.75, 0.75
"""Share of a step that is new, and of the steps between two checkpoints that must raise the loss."""

Loss = Callable[[Tensor], Tensor]
"""Function from logits `[B, C]` to numbers to be maximised, `[B]`."""


def cross_entropies(y: Tensor) -> Loss:
    """Return the cross-entropy of each point."""
    return lambda logits: cross_entropy(logits, y, reduction="none")


def ratios_to(y: Tensor, target: Tensor) -> Loss:
    """`-(z_y - z_t) / (z_(1) - (z_(3) + z_(4)) / 2)`; with fewer than four classes the difference alone."""

    def loss(logits: Tensor) -> Tensor:
        difference = logits.gather(1, target[:, None])[:, 0] - logits.gather(1, y[:, None])[:, 0]
        if logits.shape[1] < 4:
            return difference
        largest = logits.sort(dim=1, descending=True).values
        return difference / (largest[:, 0] - (largest[:, 2] + largest[:, 3]) / 2 + 1e-12)

    return loss


def checkpoints(steps: int) -> list[int]:
    """Return the steps after which the step size is checked."""
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return [math.ceil(share * steps) for share in shares[1:] if share <= 1]


def climb(network: nn.Module, x: Tensor, loss: Loss, epsilon: float, steps: int, generator: torch.Generator) -> Tensor:
    """Return the inputs of largest loss on the path in the ball and [0, 1], from a random start, `[B, *shape]`."""
    low, high = (x - epsilon).clamp_min(0), (x + epsilon).clamp_max(1)

    def inside(point: Tensor) -> Tensor:
        return point.maximum(low).minimum(high)

    def valued(point: Tensor) -> tuple[Tensor, Tensor]:
        point = point.detach().requires_grad_()
        value = loss(network(point))
        return value.detach(), torch.autograd.grad(value.sum(), point)[0]

    def wide(flags: Tensor) -> Tensor:
        return flags.view(-1, *[1] * (x.dim() - 1))

    noise = 2 * torch.rand(x.shape, generator=generator) - 1
    here = inside(x + epsilon * noise / wide(noise.abs().flatten(1).amax(1)))
    value, slope = valued(here)
    best, highest, best_slope, before = here.clone(), value.clone(), slope.clone(), here
    step = torch.full((len(x),), 2 * epsilon)
    raised, halved, at_checkpoint = torch.zeros(len(x)), torch.zeros(len(x), dtype=torch.bool), highest.clone()
    last, looked = 0, set(checkpoints(steps))
    for done in range(1, steps + 1):
        new = inside(here + wide(step) * slope.sign())
        share = MOMENTUM if done > 1 else 1.0
        moved = inside(here + share * (new - here) + (1 - share) * (here - before))
        before, here = here, moved
        old = value
        value, slope = valued(here)
        raised += value > old
        better = value > highest
        best, best_slope = torch.where(wide(better), here, best), torch.where(wide(better), slope, best_slope)
        highest = highest.maximum(value)
        if done in looked:
            stuck = (raised < PAYING * (done - last)) | (~halved & (highest <= at_checkpoint))
            step = torch.where(stuck, step / 2, step)
            here, slope = torch.where(wide(stuck), best, here), torch.where(wide(stuck), best_slope, slope)
            before, value = torch.where(wide(stuck), best, before), torch.where(stuck, highest, value)
            raised, halved, at_checkpoint, last = torch.zeros(len(x)), stuck, highest.clone(), done
    return best
