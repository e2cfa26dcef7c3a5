"""A plain projected gradient descent on the margin of a class, with no code of the library."""

from __future__ import annotations

import torch
from torch import Tensor, nn

NEARER = 0.95
"""Share of the distance found within which something nearer is looked for."""

REACH = 2.5
"""Radii that all steps together are long."""


def margins_of(logits: Tensor, classes: Tensor) -> Tensor:
    """`z_c - max_{j != c} z_j`, `[B]`: positive where `c` is predicted."""
    logit = logits.gather(1, classes[:, None])
    return (logit - logits.scatter(1, classes[:, None], -torch.inf).amax(1, keepdim=True))[:, 0]


def withstands(
    network: nn.Module, x: Tensor, classes: Tensor, radius: Tensor, norm: str, steps: int, starts: int, seed: int
) -> Tensor:
    r"""Return whether no input of another class was found within `radius` of each point and [0, 1], `[B]`.

    $$x_{k+1} = P\bigl(x_k - s\, u(\nabla m_c(x_k))\bigr), \qquad m_c = z_c - \max_{j \ne c} z_j,$$

    `u` the sign of the gradient in Linf and the gradient over its length in L2, `P` the projection on the ball and then
    on [0, 1], `s` equal shares of `REACH` radii. The first start is the point, the others are drawn in its ball.
    """
    safe = margins_of(network(x).detach(), classes) > 0
    generator = torch.Generator().manual_seed(seed)
    for start in range(starts):
        open_ = safe.nonzero()[:, 0]
        noise = 2 * torch.rand(x.shape, generator=generator) - 1  # of all points, so that none depends on the others
        away = radius.view(-1, *[1] * (x.dim() - 1)).to(x.dtype)
        candidates = x.clone() if start == 0 else _project(x + away * noise, x, away, norm)
        for _ in range(steps):
            if not len(open_):
                break
            here = candidates[open_].requires_grad_()
            (slope,) = torch.autograd.grad(margins_of(network(here), classes[open_]).sum(), here)
            step = REACH / steps * away[open_] * _unit(slope, norm)
            candidates[open_] = _project(here.detach() - step, x[open_], away[open_], norm)
            with torch.no_grad():
                held = margins_of(network(candidates[open_]), classes[open_]) > 0
            safe[open_[~held]] = False
            open_ = open_[held]
    return safe


def _unit(slope: Tensor, norm: str) -> Tensor:
    return slope.sign() if norm == "linf" else slope / _length(slope).clamp_min(1e-30)


def _length(change: Tensor) -> Tensor:
    return change.flatten(1).norm(dim=1).view(-1, *[1] * (change.dim() - 1))


def _project(moved: Tensor, x: Tensor, radius: Tensor, norm: str) -> Tensor:
    change = moved - x
    if norm == "linf":
        change = change.maximum(-radius).minimum(radius)
    else:
        change = change * (radius / _length(change).clamp_min(1e-30)).clamp_max(1)
    return (x + change).clamp(0, 1)
