"""Check that gradients explain how the margin falls on the way to the nearest input."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.nearest.search import Search

PARTS = 8  # parts of the way at first, all of one length
UNEXPLAINED = 0.1  # gradients that leave a larger share of the fall unexplained mislead
ROUNDING = 1  # units in the last place of the largest class score by which the fall of a part may be missed
EXPLAINED = 0.02  # a point with at most this share left is cut no more

CUTS, AT_ONCE = 96, 4  # cuts of the parts of a point at most, and between two looks at the remainder
SHORTEST = 2.0**-14  # a part that is not cut: inputs in single precision hardly differ inside it, so it is a jump


def unexplained(search: Search, rows: Tensor) -> Tensor:
    """Share of the fall of the margin that its gradients do not explain, `[R]`, float64; 0 where nothing was found.

    `sum_i |m(x_i) - m(x_i+1) + int grad m . dx| / |m(x) - m(x')|` over parts `x_i` to `x_i+1` of the straight way from
    the point `x` to the input `x'` that was found, `m = z_t - z_j` with `j` the class there; the integral over a part
    by the midpoint rule. As parts get shorter it comes to 0 for the gradients of a function that does not jump; to 1
    where gradients vanish on the way; and to as much as 2 where the function goes by steps, as where rounding has a
    made-up gradient. The parts whose own fall is explained worst are cut in two, while more than `EXPLAINED` is left:
    that comes to a kink or a ridge in a few cuts, and never gets rid of a jump.

    Source: Sundararajan, Taly and Yan, Axiomatic attribution for deep networks (ICML 2017), section 3 (the integral of
    the gradients is the difference of the values).
    """
    share = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    remaining = search.best.distance[rows].isfinite().nonzero()[:, 0]
    lines = _Ways(search, rows[remaining], search.best.points[rows[remaining]], search.best.predicted[rows[remaining]])
    parts = lines.whole()
    for _ in range(CUTS // AT_ONCE):
        share[remaining] = lines.share(parts)
        doubtful = share[remaining] > EXPLAINED
        remaining, lines, parts = remaining[doubtful], lines.of(doubtful), parts[:, doubtful]
        if not len(remaining):
            return share
        parts = lines.cut(parts)
    share[remaining] = lines.share(parts)
    return share


@dataclass(frozen=True)
class _Ways:
    """The straight ways from the points `rows` to `ends`, `[R, n]`, where the classes `targets` win."""

    search: Search
    rows: Tensor
    ends: Tensor
    targets: Tensor

    def of(self, which: Tensor) -> _Ways:
        return _Ways(self.search, self.rows[which], self.ends[which], self.targets[which])

    def at(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """Return the margin and its derivative after `shares` of the way, `[R, K]`: `[R, K]` each."""
        each_way = (self.rows, self.ends, self.targets)
        rows, ends, targets = (tensor.repeat_interleave(shares.shape[1], dim=0) for tensor in each_way)
        direction = ends - self.search.origin[rows]
        points = self.search.origin[rows] + shares.flatten().to(direction)[:, None] * direction
        response = self.search.differentiate(rows, points, targets)
        slope = (response.gradient * direction).sum(dim=1, dtype=torch.float64)
        return response.margin.view_as(shares), slope.view_as(shares)

    def share(self, parts: Tensor) -> Tensor:
        """Share of the fall that the parts leave unexplained, one by one or in sum, `[R]`."""
        _, length, high, low, _, slope = parts
        fall = (high - low).sum(dim=1)
        in_sum = self._missed(fall[:, None], (slope * length).sum(dim=1, keepdim=True))[:, 0]
        one_by_one = self._missed(high - low, slope * length).sum(dim=1)
        missed = torch.maximum(in_sum, one_by_one)
        return (missed / fall.abs().clamp_min(torch.finfo(fall.dtype).tiny)).nan_to_num()

    def _missed(self, fall: Tensor, rise: Tensor) -> Tensor:
        rounding = ROUNDING * self.search.rounding[self.rows, None]
        return ((fall + rise).abs() - rounding).clamp_min(0).nan_to_num()

    def whole(self) -> Tensor:
        """Return the first parts of each way, `[6, R, PARTS]`."""
        edges = torch.linspace(0, 1, PARTS + 1, dtype=torch.float64, device=self.rows.device)
        edges = edges.expand(len(self.rows), -1)
        margin, _ = self.at(edges)
        length = torch.full_like(edges[:, 1:], 1 / PARTS)
        return self.parts(edges[:, :-1], length, margin[:, :-1], margin[:, 1:])

    def parts(self, start: Tensor, length: Tensor, high: Tensor, low: Tensor) -> Tensor:
        """Stack starts and lengths, in ways, margins at start, end and middle, and the slope there, `[6, R, P]`."""
        return torch.stack([start, length, high, low, *self.at(start + length / 2)])

    def cut(self, parts: Tensor) -> Tensor:
        """`parts` with those `AT_ONCE` of each way cut in two whose fall is explained worst, `[6, R, P + AT_ONCE]`."""
        _, length, high, low, _, slope = parts
        missed = self._missed(high - low, slope * length) * (length > SHORTEST)
        order = missed.argsort(dim=1, descending=True, stable=True).expand(len(parts), -1, -1)
        settled, worst = parts.gather(2, order[..., AT_ONCE:]), parts.gather(2, order[..., :AT_ONCE])
        start, length, high, low, middle, _ = worst
        half = length / 2
        lower_half, upper_half = (start, half, high, middle), (start + half, half, middle, low)
        return torch.cat(
            [settled, self.parts(*(torch.cat(pair, dim=1) for pair in zip(lower_half, upper_half, strict=True)))], dim=2
        )
