"""FAB: project on the linearised decision boundary, step by step, drawn towards the point itself."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.search import Found, Response, Search

OVERSHOOT, BACKWARD, MOST_BIAS = 0.05, 0.9, 0.1
"""The paper's eta - 1, beta and alpha_max."""

LEAST_OVERSHOOT = 5e-4
"""The last step goes this share beyond the boundary: what lies beyond is lost where the box bends the perturbation."""

SHORTEST = 0.5
"""The least share of a perturbation that is left where the linearised boundary is still nearer."""

TINY = 1e-30


def fab(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Fast adaptive boundary attack, targeted at the competitors of smallest linearised distance.

    With `p(y)` the projection of `y` inside the box on the boundary as it is linearised at `x`:
    `x <- (1 - a) (x + e (p(x) - x)) + a (x0 + e (p(x0) - x0))`, `a` the distance of `x` from `p(x)` as a share of the
    sum of both, at most 0.1, and `e` the overshoot, which falls from the paper's 1.05 towards 1. Where `x` has another
    prediction, `x0 + b (x - x0)` takes its place, `b` the share at which the linearised boundary is crossed, between
    0.5 and the paper's 0.9. One linearisation serves for all of it, so a step costs a forward and a backward pass.

    Exact for linear models. It starts at the point itself, without what other attacks have found.

    Source: Croce and Hein, Minimally distorted adversarial examples with a fast adaptive boundary attack (ICML 2020),
    section 2 and algorithm 1.
    """
    rows, rivals, _ = search.rivals(rows, effort.refine_targets)
    points = search.origin[rows]
    for number in range(effort.fab_steps):
        response = search.differentiate(rows, points, rivals)
        overshoot = OVERSHOOT * (LEAST_OVERSHOOT / OVERSHOOT) ** (number / effort.fab_steps)
        points = _step(search, search.origin[rows], response, 1 + overshoot)
    search.look(rows, points)
    search.bisect(found, effort.halvings)


def _step(search: Search, origin: Tensor, response: Response, overshoot: float) -> Tensor:
    length = search.norm.length(response.points - origin)
    crossed = 1 + response.margin / (search.norm.dual(response.gradient) * length).clamp_min(TINY)
    share = crossed.nan_to_num(BACKWARD).clamp(SHORTEST, BACKWARD)
    back = torch.lerp(origin, response.points, share.to(origin)[:, None])
    start = torch.where(response.flipped[:, None], back, response.points)
    near, far = onto_boundary(search, response, start), onto_boundary(search, response, origin)
    apart, away = search.norm.length(near - start), search.norm.length(far - origin)
    bias = (apart / (apart + away).clamp_min(TINY)).clamp_max(MOST_BIAS)
    return torch.lerp(torch.lerp(start, near, overshoot), torch.lerp(origin, far, overshoot), bias.to(start)[:, None])


def onto_boundary(search: Search, response: Response, points: Tensor) -> Tensor:
    """`points` projected inside the box on the boundary, linearised where the response was taken: `[R, n]`."""
    margin = response.margin + (response.gradient * (points - response.points)).sum(dim=1, dtype=torch.float64)
    return search.norm.onto_plane(points, response.gradient, margin.nan_to_num(), *search.bounds.ends(points))
