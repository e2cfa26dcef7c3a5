"""FAB: steps across the linearised boundary to one other class, drawn towards the point.

Source: F. Croce, M. Hein, Minimally distorted adversarial examples with a fast adaptive boundary attack (ICML 2020,
https://arxiv.org/abs/1907.02044), algorithm 1; the form with a target as in AutoAttack.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

MOST, OVER, BACK = 0.1, 1.05, 0.9
"""Largest share of a step from the point, overshoot over the boundary, and share of the distance to an adversarial
example after the step back."""


HALVINGS = 12
"""Halvings of the distance to the nearest input, at the end."""


def fab_margins(network: nn.Module, x: Tensor, classes: Tensor, steps: int) -> Tensor:
    """Distances in Linf to the nearest input of another class that FAB finds, aimed at each of them, `[B]`.

    Infinite where it finds none. At the end the boundary is sought between each point and what was found for it, as in
    section 3.4 of the source.
    """
    with torch.no_grad():
        order = network(x).scatter(1, classes[:, None], -torch.inf).argsort(dim=1, descending=True)[:, :-1]
    margins = torch.full((len(x),), torch.inf)
    for target in order.unbind(1):
        moved = nearest_across(network, x, classes, target, torch.inf, steps)
        low, high = torch.zeros(len(x)), torch.ones(len(x))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            across_here = crosses(network, x, moved, middle, classes)
            low, high = torch.where(across_here, low, middle), torch.where(across_here, middle, high)
        length = high * (moved - x).flatten(1).abs().amax(1)
        margins = torch.where(crosses(network, x, moved, high, classes), margins.minimum(length), margins)
    return margins


@torch.no_grad()
def crosses(network: nn.Module, x: Tensor, moved: Tensor, share: Tensor, classes: Tensor) -> Tensor:
    """Return whether the input at a share of the distance to another input is of another class, `[B]`."""
    return network(x + share.view(-1, *[1] * (x.dim() - 1)) * (moved - x)).argmax(1) != classes


def nearest_across(network: nn.Module, x: Tensor, y: Tensor, target: Tensor, epsilon: float, steps: int) -> Tensor:
    """Return the nearest input of another class found, `[B, *shape]`; the point itself without one in the ball."""
    flat = x.flatten(1)
    here, best, nearest = flat.clone(), flat.clone(), torch.full((len(x),), torch.inf)
    for _ in range(steps):
        point = here.view(x.shape).detach().requires_grad_()
        logits = network(point)
        gap = logits.gather(1, y[:, None])[:, 0] - logits.gather(1, target[:, None])[:, 0]
        (slope,) = torch.autograd.grad(gap.sum(), point)
        slope, gap = slope.flatten(1), gap.detach()
        offset = gap - (slope * here).sum(1)  # on the boundary slope . z + offset = 0
        ahead = across(here, slope, offset) - here
        anchor = across(flat, slope, offset) - flat
        lengths = [change.abs().amax(1) for change in (ahead, anchor)]
        share = (lengths[0] / (lengths[0] + lengths[1]).clamp_min(1e-12)).clamp(0, MOST)[:, None]
        here = ((here + OVER * ahead) * (1 - share) + (flat + OVER * anchor) * share).clamp(0, 1).detach()
        with torch.no_grad():
            crossed = network(here.view(x.shape)).argmax(1) != y
        length = (here - flat).abs().amax(1)
        nearer = crossed & (length < nearest)
        best, nearest = torch.where(nearer[:, None], here, best), torch.where(nearer, length, nearest)
        here = torch.where(crossed[:, None], flat + BACK * (here - flat), here)
    return torch.where((nearest <= epsilon)[:, None], best, flat).view(x.shape)


def across(points: Tensor, slope: Tensor, offset: Tensor) -> Tensor:
    """Return the nearest `z` in Linf and [0, 1] with `slope . z + offset = 0`, `[B, n]`, or nearest to that.

    Each coordinate moves the same way `t` against the sign of the value, or as far as [0, 1] lets it. The change of the
    value is concave in `t` and linear between the ends of the coordinates, which are sorted.
    """
    value = (slope * points).sum(1) + offset
    direction = -torch.sign(value)[:, None] * slope.sign()
    room = torch.where(direction > 0, 1 - points, points).masked_fill(direction == 0, 0.0)
    ends, order = room.sort(dim=1)
    weights = slope.abs().gather(1, order).masked_fill(ends == 0, 0.0)
    moving = weights.sum(1, keepdim=True) - weights.cumsum(1) + weights  # that still move up to each end
    widths = torch.diff(ends, dim=1, prepend=torch.zeros_like(ends[:, :1]))
    reached = (moving * widths).cumsum(1)
    distance = value.abs()[:, None]
    last = (reached < distance).sum(1).clamp_max(ends.shape[1] - 1)[:, None]
    short = reached.gather(1, last) - distance
    length = ends.gather(1, last) - short.clamp_min(0) / moving.gather(1, last).clamp_min(1e-12)
    return points + direction * room.minimum(length.clamp_min(0))
