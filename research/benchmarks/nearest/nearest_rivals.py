"""Minimal-norm attacks of others, written from their papers; they share no code with the library's.

Each takes a network, images in [0, 1] `[B, *shape]`, their predicted classes `[B]`, a norm (`linf`, `l2`, `l1` or `l0`)
and a budget of passes for each image, forward and backward counted alike, and returns `[B, *shape]`: the nearest input
of another class on its path, or the image itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Network = Callable[[Tensor], Tensor]
Loss = Callable[[Tensor], Tensor]
Rival = Callable[[Network, Tensor, Tensor, str, int], Tensor]

ORDER = {"linf": math.inf, "l2": 2.0, "l1": 1.0, "l0": 0.0}
DUAL = {"linf": 1.0, "l2": 2.0, "l1": math.inf, "l0": math.inf}
TINY = 1e-12


@dataclass
class Nearest:
    """The nearest input seen so far for each image."""

    x: Tensor
    norm: str

    def __post_init__(self) -> None:
        self.points = self.x.clone()
        self.distance = torch.full((len(self.x),), math.inf)

    def keep(self, points: Tensor, flipped: Tensor) -> Tensor:
        """Keep flipped points that are nearer; return the distance of all `points`, `[B]`."""
        distance = length(points - self.x, ORDER[self.norm])
        nearer = flipped & (distance < self.distance)
        self.points = torch.where(tall(nearer, self.x), points, self.points)
        self.distance = torch.where(nearer, distance, self.distance)
        return distance


def length(x: Tensor, order: float) -> Tensor:
    """Return the norm of each row, `[B]`."""
    return torch.linalg.vector_norm(x.flatten(1), order, dim=1)


def tall(values: Tensor, like: Tensor) -> Tensor:
    """Return `[B]` as `[B, 1, ...]` with as many axes as `like`."""
    return values.view(-1, *[1] * (like.dim() - 1))


def cosine(start: float, end: float, step: int, steps: int) -> float:
    """Return a number from `start` to `end` along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * step / steps)) / 2


def slope(loss: Loss, network: Network, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss of each image `[B]`, its gradient, and the logits `[B, C]`: a pass forward and one backward."""
    points = points.detach().requires_grad_(True)
    logits = network(points)
    values = loss(logits)
    (gradient,) = torch.autograd.grad(values.sum(), points)
    return values.detach(), gradient, logits.detach()


def margin(labels: Tensor, targets: Tensor | None = None) -> Loss:
    """Return the logit of the label less that of the target, or of the greatest other."""

    def loss(logits: Tensor) -> Tensor:
        rival = logits.scatter(1, labels[:, None], -math.inf).amax(dim=1) if targets is None else at(logits, targets)
        return at(logits, labels) - rival

    return loss


def cross_entropy(labels: Tensor) -> Loss:
    """Return the loss of training, to be raised."""
    return lambda logits: torch.nn.functional.cross_entropy(logits, labels, reduction="none")


def at(logits: Tensor, classes: Tensor) -> Tensor:
    """Return one logit of each row."""
    return logits.gather(1, classes[:, None])[:, 0]


def fmn(network: Network, x: Tensor, labels: Tensor, norm: str, passes: int, rate: float = 1.0) -> Tensor:
    """Run the fast minimum-norm attack (Pintor et al., NeurIPS 2021, algorithm 1), untargeted, once."""
    return fmn_run(network, x, labels, None, norm, math.ceil(passes / 2), rate).points


def fmn_wide(network: Network, x: Tensor, labels: Tensor, norm: str, passes: int) -> Tensor:
    """Run the same with steps that begin ten times as long."""
    return fmn(network, x, labels, norm, passes, rate=10.0)


def fmn_targets(network: Network, x: Tensor, labels: Tensor, norm: str, passes: int) -> Tensor:
    """Run the same towards each of the classes with the greatest other logits, a hundred steps or more for each."""
    with torch.no_grad():
        order = network(x).scatter(1, labels[:, None], -math.inf).argsort(dim=1, descending=True)
    steps = math.ceil(passes / 2)
    runs = min(max(1, steps // 100), order.shape[1] - 1)
    best = Nearest(x, norm)
    for number in range(runs):
        nearest = fmn_run(network, x, labels, order[:, number], norm, math.ceil(steps / runs), 1.0)
        best.keep(nearest.points, nearest.distance.isfinite())
    return best.points


def fmn_run(
    network: Network, x: Tensor, labels: Tensor, targets: Tensor | None, norm: str, steps: int, rate: float
) -> Nearest:
    """Change radius and perturbation in turn: the radius to the linearised boundary, then by a share that falls.

    Until something is found the radius grows by that share at least. The paper takes the linearised boundary alone,
    which in the box [0, 1] can be neared for ever without being crossed: on MNIST in L2 most runs then find nothing.
    """
    best, delta = Nearest(x, norm), torch.zeros_like(x)
    epsilon = torch.full((len(x),), math.inf)
    widest = length(torch.maximum(x, 1 - x), ORDER[norm])
    loss = margin(labels, targets)
    for step in range(steps):
        share = cosine(0.05, 0.001, step, steps)
        values, gradient, logits = slope(loss, network, x + delta)
        flipped = logits.argmax(dim=1) != labels
        distance = best.keep(x + delta, flipped)
        boundary = distance + values.abs() / length(gradient, DUAL[norm]).clamp_min(TINY)
        grown = torch.where(epsilon.isfinite(), epsilon * (1 + share), 0)
        outside = torch.where(best.distance.isfinite(), grown, torch.maximum(boundary, grown))
        inside = torch.minimum(epsilon * (1 - share), best.distance)
        if norm == "l0":
            inside = torch.minimum(inside, torch.minimum(epsilon, best.distance) - 1).floor()
            outside = torch.where(
                best.distance.isfinite(), torch.minimum(grown.ceil(), best.distance - 1), outside.ceil()
            )
        epsilon = torch.minimum(torch.where(flipped, inside, outside), widest)
        size = cosine(rate, rate / 100, step, steps)
        delta = delta - size * gradient / tall(length(gradient, 2).clamp_min(TINY), x)
        delta = (x + into_ball(delta, epsilon, norm)).clamp(0, 1) - x
    return best


def into_ball(delta: Tensor, epsilon: Tensor, norm: str) -> Tensor:
    """Return the nearest perturbation of at most `epsilon`."""
    radius = tall(epsilon, delta)
    if norm == "linf":
        return torch.minimum(torch.maximum(delta, -radius), radius)
    if norm == "l1":
        return into_l1_ball(delta.flatten(1), epsilon).view_as(delta)
    if norm == "l0":
        ranks = delta.flatten(1).abs().argsort(dim=1, descending=True).argsort(dim=1).view_as(delta)
        return torch.where(ranks < radius, delta, 0)
    return delta * (radius / tall(length(delta, 2).clamp_min(TINY), delta)).clamp_max(1)


def into_l1_ball(delta: Tensor, epsilon: Tensor) -> Tensor:
    """Soft-threshold at the level, found by bisection, at which the sum of the sizes is `epsilon`, `[B, n]`."""
    sizes = delta.abs()
    lower, upper = torch.zeros(len(delta), 1), sizes.amax(dim=1, keepdim=True)
    for _ in range(40):
        middle = (lower + upper) / 2
        outside = (sizes - middle).clamp_min(0).sum(dim=1, keepdim=True) > epsilon[:, None]
        lower, upper = torch.where(outside, middle, lower), torch.where(outside, upper, middle)
    inside = sizes.sum(dim=1, keepdim=True) <= epsilon[:, None]
    return torch.where(inside, delta, delta.sign() * (sizes - upper).clamp_min(0))


def sigma_zero(network: Network, x: Tensor, labels: Tensor, norm: str, passes: int) -> Tensor:
    """Run sigma-zero (Cina et al., ICLR 2025, algorithm 1) with its parameters and Adam: L0 only."""
    if norm != "l0":
        raise ValueError(f"sigma-zero knows l0 only; found {norm!r}")
    best, steps = Nearest(x, norm), math.ceil(passes / 2)
    delta = torch.zeros_like(x, requires_grad=True)
    adam = torch.optim.Adam([delta], lr=1.0)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps, eta_min=0.1)
    threshold = torch.full_like(tall(best.distance, x), 0.3)
    for _ in range(steps):
        values, gradient, logits = slope(margin(labels), network, x + delta.detach())
        flipped = tall(logits.argmax(dim=1) != labels, x)
        best.keep(x + delta.detach(), flipped.flatten())
        now = delta.detach()
        count = 2e-3 * now / (now.square() + 1e-3).square() / x[0].numel()
        total = torch.where(tall(values > 0, x), gradient, 0) + count
        delta.grad = total / tall(length(total, math.inf).clamp_min(TINY), x)
        adam.step()
        falling.step()
        moving = 0.01 * falling.get_last_lr()[0]
        with torch.no_grad():
            delta.copy_((x + delta).clamp(0, 1) - x)
            threshold = (threshold + torch.where(flipped, moving, -moving)).clamp(0, 1)
            delta[delta.abs() < threshold] = 0
    return best.points


def ddn(network: Network, x: Tensor, labels: Tensor, norm: str, passes: int) -> Tensor:
    """Run decoupled direction and norm (Rony et al., CVPR 2019, algorithm 1): L2 only, without rounding of pixels."""
    if norm != "l2":
        raise ValueError(f"DDN knows l2 only; found {norm!r}")
    best, delta = Nearest(x, norm), torch.zeros_like(x)
    epsilon, widest = torch.ones(len(x)), length(torch.maximum(x, 1 - x), 2)
    steps = math.ceil(passes / 2)
    for step in range(steps):
        _, gradient, logits = slope(cross_entropy(labels), network, x + delta)
        flipped = logits.argmax(dim=1) != labels
        best.keep(x + delta, flipped)
        size = length(gradient, 2)
        # where the loss is zero to the last digit there is no direction: a random one, as the authors take
        random = torch.randn(x.shape, generator=torch.Generator().manual_seed(step))
        gradient = torch.where(tall(size > 0, x), gradient, random)
        delta = delta + cosine(1.0, 0.01, step, steps) * gradient / tall(length(gradient, 2).clamp_min(TINY), x)
        epsilon = torch.minimum(epsilon * torch.where(flipped, 0.95, 1.05), widest)
        delta = delta * tall(epsilon / length(delta, 2).clamp_min(TINY), x)
        delta = (x + delta).clamp(0, 1) - x
    return best.points
