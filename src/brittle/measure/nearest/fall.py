"""Whether gradients explain how the margin falls on the way to the input that was found."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.nearest.search import Search

PARTS = 8
"""Parts of the way at first, all of one length."""

UNEXPLAINED = 0.25
"""Gradients that leave a larger share of the fall unexplained mislead."""

EXPLAINED = 0.1
"""Where parts were cut, the share that has to be left for a point to be cut no more."""

CUTS, AT_ONCE = 96, 4
"""How often the parts of a point are cut at most, and how many of them between two looks at what is left."""

SHORTEST = 2.0**-14
"""A part this long is not cut: inputs in single precision hardly differ inside it, and what it does not explain is a
jump."""


def unexplained(search: Search, rows: Tensor) -> Tensor:
    """Share of the fall of the margin that its gradients do not explain, `[R]`, float64; 0 where nothing was found.

    `|m(x) - m(x') + int_0^1 grad m(x + u (x' - x)) . (x' - x) du| / |m(x) - m(x')|`, `m = z_t - z_j` with `j` the class
    at the input `x'` that was found; the integral by the midpoint rule. It is 0 for the gradients of a function that
    has them almost everywhere and does not jump, whatever its shape; 1 where gradients vanish on the way. Steps, such
    as rounding, and gradients that were detached or made up leave the rest.

    Where the first parts leave more than `UNEXPLAINED`, the margin may fall in a narrow place between their middles: it
    is known at both ends of each part, so the parts whose own fall is explained worst are cut in two, again and again,
    which comes to a kink or a ridge in a few cuts and never gets rid of a jump.

    Source: Sundararajan, Taly and Yan, Axiomatic attribution for deep networks (ICML 2017), section 3 (the integral of
    the gradients is the difference of the values).

    Args:
        search: after its attacks.
        rows: indices of points, `[R]`.
    """
    share = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    left = search.best.distance[rows].isfinite().nonzero()[:, 0]
    ways = _Ways(search, rows[left], search.best.points[rows[left]], search.best.predicted[rows[left]])
    middles = (torch.arange(PARTS, dtype=torch.float64, device=rows.device) + 0.5) / PARTS
    margin, slope = ways.at(torch.cat([middles.new_tensor([0, 1]), middles]).expand(len(left), -1))
    fall = margin[:, 0] - margin[:, 1]
    share[left] = _share(fall, fall + slope[:, 2:].mean(dim=1))
    doubtful = share[left] > UNEXPLAINED
    left, ways = left[doubtful], ways.of(doubtful)
    parts = ways.whole()
    for _ in range(CUTS // AT_ONCE):
        if not len(left):
            break
        parts = ways.cut(parts)
        _, length, high, low, _, slope = parts
        share[left] = _share((high - low).sum(dim=1), (high - low + slope * length).sum(dim=1))
        doubtful = share[left] > EXPLAINED
        left, ways, parts = left[doubtful], ways.of(doubtful), parts[:, doubtful]
    return share


def _share(fall: Tensor, missed: Tensor) -> Tensor:
    return (missed.abs() / fall.abs().clamp_min(torch.finfo(fall.dtype).tiny)).nan_to_num()


@dataclass(frozen=True)
class _Ways:
    """The straight ways from the points `rows` to `ends`, `[R, n]`, where the classes `targets` win."""

    search: Search
    rows: Tensor
    ends: Tensor
    targets: Tensor

    def of(self, which: Tensor) -> _Ways:
        """Those of `which`, `[R]`, alone."""
        return _Ways(self.search, self.rows[which], self.ends[which], self.targets[which])

    def at(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """The margin and its derivative after `shares` of the way, `[R, K]`: `[R, K]` each."""
        each_way = (self.rows, self.ends, self.targets)
        rows, ends, targets = (each.repeat_interleave(shares.shape[1], dim=0) for each in each_way)
        way = ends - self.search.origin[rows]
        points = self.search.origin[rows] + shares.flatten().to(way)[:, None] * way
        response = self.search.differentiate(rows, points, targets)
        slope = (response.gradient * way).sum(dim=1, dtype=torch.float64)
        return response.margin.view_as(shares), slope.view_as(shares)

    def whole(self) -> Tensor:
        """The first parts of each way, `[6, R, PARTS]`."""
        edges = torch.linspace(0, 1, PARTS + 1, dtype=torch.float64, device=self.rows.device)
        edges = edges.expand(len(self.rows), -1)
        margin, _ = self.at(edges)
        length = torch.full_like(edges[:, 1:], 1 / PARTS)
        return self.parts(edges[:, :-1], length, margin[:, :-1], margin[:, 1:])

    def parts(self, start: Tensor, length: Tensor, high: Tensor, low: Tensor) -> Tensor:
        """Parts by where they begin and how long they are, as shares of the way, the margin where they begin, where
        they end and in their middle, and its derivative there, `[6, R, P]`."""
        return torch.stack([start, length, high, low, *self.at(start + length / 2)])

    def cut(self, parts: Tensor) -> Tensor:
        """`parts` with those `AT_ONCE` of each way cut in two whose fall is explained worst, `[6, R, P + AT_ONCE]`."""
        _, length, high, low, _, slope = parts
        missed = (high - low + slope * length).abs().nan_to_num() * (length > SHORTEST)
        order = missed.argsort(dim=1, descending=True, stable=True).expand(len(parts), -1, -1)
        kept, worst = parts.gather(2, order[..., AT_ONCE:]), parts.gather(2, order[..., :AT_ONCE])
        start, length, high, low, middle, _ = worst
        half = length / 2
        first, second = (start, half, high, middle), (start + half, half, middle, low)
        return torch.cat(
            [kept, self.parts(*(torch.cat(pair, dim=1) for pair in zip(first, second, strict=True)))], dim=2
        )
