"""Square Attack: random squares of the largest change, kept where the margin falls.

Source: M. Andriushchenko, F. Croce, N. Flammarion, M. Hein, Square Attack: a query-efficient black-box adversarial
attack via random search (ECCV 2020, https://arxiv.org/abs/1912.00049), algorithms 1 and 2, for Linf.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from studies.margin_consistency.descent import margins_of

SHARE = 0.8
"""Share of the pixels that the first square covers."""

HALVED = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)
"""Queries, of 10,000, after which the squares have half the pixels."""


@torch.no_grad()
def search_squares(
    network: nn.Module, x: Tensor, y: Tensor, epsilon: float, queries: int, generator: torch.Generator
) -> Tensor:
    """Return the inputs with the smallest margins that were found, `[B, C, H, W]`."""
    channels, height, width = x.shape[1:]
    best = (x + epsilon * _signs((len(x), channels, 1, width), generator)).clamp(0, 1)
    lowest = margins_of(network(best), y)
    for query in range(1, queries):
        open_ = (lowest > 0).nonzero()[:, 0]
        if not len(open_):
            break
        side = side_of(query / queries, height, width)
        moved, clean = best[open_], x[open_]
        rows = torch.randint(height - side + 1, (len(open_),), generator=generator)
        columns = torch.randint(width - side + 1, (len(open_),), generator=generator)
        square = (
            _within(torch.arange(height), rows, side)[:, None, :, None]
            & _within(torch.arange(width), columns, side)[:, None, None, :]
        )
        changed = (clean + epsilon * _signs((len(open_), channels, 1, 1), generator)).clamp(0, 1)
        moved = torch.where(square, changed, moved)
        margin = margins_of(network(moved), y[open_])
        better = margin < lowest[open_]
        best[open_[better]], lowest[open_[better]] = moved[better], margin[better]
    return best


def side_of(share: float, height: int, width: int) -> int:
    """Return the side of a square after this share of the queries."""
    halvings = sum(10_000 * share > after for after in HALVED)
    return min(max(1, round((SHARE / 2**halvings * height * width) ** 0.5)), height, width)


def _signs(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return 2.0 * torch.randint(2, shape, generator=generator) - 1


def _within(places: Tensor, start: Tensor, side: int) -> Tensor:
    return (places >= start[:, None]) & (places < start[:, None] + side)
