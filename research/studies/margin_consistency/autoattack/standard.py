"""The four attacks one after the other, each on the points that those before left standing."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from studies.margin_consistency.autoattack.apgd import climb, cross_entropies, ratios_to
from studies.margin_consistency.autoattack.fab import nearest_across
from studies.margin_consistency.autoattack.squares import search_squares

TARGETS = 9
"""Other classes that are aimed at, those with the largest outputs first."""


def stands(network: nn.Module, x: Tensor, y: Tensor, epsilon: float, steps: int, queries: int, seed: int) -> Tensor:
    """Which points are predicted right and stay so under every attack within `epsilon` in Linf and [0, 1], `[B]`.

    Source: F. Croce, M. Hein, Reliable evaluation of adversarial robustness with an ensemble of diverse parameter-free
    attacks (ICML 2020, https://arxiv.org/abs/2003.01690), section 5: APGD on the cross-entropy, APGD on the difference
    of logits ratio for nine targets, FAB for nine targets, Square Attack; a restart each.

    Args:
        x: points `[B, *shape]` in [0, 1].
        y: their classes `[B]`.
        steps: of APGD and of FAB, for each target; 100 in the paper.
        queries: of Square Attack; 5,000 in the paper.
    """
    with torch.no_grad():
        logits = network(x)
    standing = logits.argmax(1) == y
    order = logits.scatter(1, y[:, None], -torch.inf).argsort(dim=1, descending=True)[:, :-1]
    generator = torch.Generator().manual_seed(seed)
    for kind, place in kinds(order.shape[1]):
        open_ = standing.nonzero()[:, 0]
        if not len(open_):
            break
        points, labels, target = x[open_], y[open_], order[open_, place]
        if kind == "apgd-ce":
            moved = climb(network, points, cross_entropies(labels), epsilon, steps, generator)
        elif kind == "apgd-t":
            moved = climb(network, points, ratios_to(labels, target), epsilon, steps, generator)
        elif kind == "fab-t":
            moved = nearest_across(network, points, labels, target, epsilon, steps)
        else:
            moved = search_squares(network, points, labels, epsilon, queries, generator)
        standing[open_[_broken(network, points, labels, moved, epsilon)]] = False
    return standing


def kinds(count: int) -> Iterator[tuple[str, int]]:
    """Return the attacks in their order, each with the place of the class that it aims at among so many others."""
    yield "apgd-ce", 0
    for kind in ("apgd-t", "fab-t"):
        yield from ((kind, place) for place in range(min(TARGETS, count)))
    yield "square", 0


@torch.no_grad()
def _broken(network: nn.Module, x: Tensor, y: Tensor, moved: Tensor, epsilon: float) -> Tensor:
    """Return whether an attack's input lies in the ball, but for rounding, and is of another class."""
    inside = ((moved - x).abs() <= epsilon + 1e-6) & (moved >= 0) & (moved <= 1)
    return inside.flatten(1).all(1) & (network(moved).argmax(1) != y)
