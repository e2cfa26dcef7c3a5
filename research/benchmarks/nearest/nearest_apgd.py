"""APGD of AutoAttack, written from its paper, with a search for the smallest radius at which it succeeds."""

from __future__ import annotations

import math

import torch
from nearest_rivals import (
    DUAL,
    ORDER,
    TINY,
    Loss,
    Nearest,
    Network,
    cross_entropy,
    into_ball,
    length,
    margin,
    slope,
    tall,
)  # fmt: skip
from torch import Tensor

STEPS = {"shortest": 10, "longest": 100}
ROUNDING = 1e-3
"""Share of the radius by which an iterate on the edge of its ball may be outside."""

CUTS = 8
"""Forward passes at the end, which halve the distance from the image to the nearest input found."""


def apgd(network: Network, x: Tensor, labels: Tensor, norm: str, passes: int) -> Tensor:
    """Bisect the radius of each image; at each radius run APGD on the cross-entropy, then on the DLR loss.

    The radius begins at twice that of the linearised boundary and doubles until something is found. A run has a
    twentieth of all steps, at least 10 and at most 100.
    """
    best = Nearest(x, norm)
    steps = min(max(passes // 40, STEPS["shortest"]), STEPS["longest"])
    rounds = max(1, math.ceil((passes - 2 - CUTS) / (4 * (steps + 1))))
    values, gradient, _ = slope(margin(labels), network, x)
    lower = torch.zeros(len(x))
    radius = 2 * values / length(gradient, DUAL[norm]).clamp_min(TINY)
    for _ in range(rounds):
        for loss in (cross_entropy(labels), dlr(labels)):
            run(network, x, labels, loss, radius, norm, steps, best)
        failed = best.distance > radius * (1 + ROUNDING)
        lower = torch.where(failed, torch.maximum(lower, radius), lower)
        has_point = best.distance.isfinite()
        radius = torch.where(has_point, (lower.minimum(best.distance) + best.distance) / 2, 2 * radius)
    return cut(network, x, labels, best).points


def dlr(labels: Tensor) -> Loss:
    """Return the difference of logits ratio, section 4 of the paper: `-(z_y - max_other z) / (z_1 - z_3)`, sorted."""

    def loss(logits: Tensor) -> Tensor:
        ranked = logits.sort(dim=1, descending=True).values
        third = min(2, logits.shape[1] - 1)
        return -margin(labels)(logits) / (ranked[:, 0] - ranked[:, third] + TINY)

    return loss


def run(
    network: Network, x: Tensor, labels: Tensor, loss: Loss, radius: Tensor, norm: str, steps: int, best: Nearest
) -> None:
    """Run APGD (Croce and Hein, ICML 2020, algorithm 1) in the ball of each image; `best` gets every iterate."""

    def look(points: Tensor) -> tuple[Tensor, Tensor]:
        values, gradient, logits = slope(loss, network, points)
        best.keep(points, logits.argmax(dim=1) != labels)
        return values, gradient

    def inside(points: Tensor) -> Tensor:
        return (x + into_ball(points - x, radius, norm)).clamp(0, 1)

    generator = torch.Generator().manual_seed(0)
    start = 2 * torch.rand(x.shape, generator=generator) - 1
    point = inside(x + tall(radius / length(start, ORDER[norm]), x) * start)
    value, gradient = look(point)
    top, top_point, top_gradient = value, point, gradient
    size, previous = 2 * radius, point
    checks = checkpoints(steps)
    rises, size_then, top_then, last = torch.zeros(len(x)), size, top, 0
    for step in range(steps):
        moved = inside(point + tall(size, x) * uphill(gradient, norm))
        if step:
            moved = inside(point + 0.75 * (moved - point) + 0.25 * (point - previous))
        previous, point, before = point, moved, value
        value, gradient = look(point)
        rises = rises + (value > before)
        higher = value > top
        top = torch.where(higher, value, top)
        top_point = torch.where(tall(higher, x), point, top_point)
        top_gradient = torch.where(tall(higher, x), gradient, top_gradient)
        if step + 1 in checks:
            stalled = (rises < 0.75 * (step + 1 - last)) | ((size == size_then) & (top == top_then))
            size_then, top_then, last = size, top, step + 1
            size = torch.where(stalled, size / 2, size)
            point = torch.where(tall(stalled, x), top_point, point)
            gradient = torch.where(tall(stalled, x), top_gradient, gradient)
            value = torch.where(stalled, top, value)
            rises = torch.zeros_like(rises)


def uphill(gradient: Tensor, norm: str) -> Tensor:
    """Return the steepest step of length one."""
    return gradient.sign() if norm == "linf" else gradient / tall(length(gradient, 2).clamp_min(TINY), gradient)


def checkpoints(steps: int) -> set[int]:
    """Return steps that check the step size: `p_0 = 0`, `p_1 = 0.22`, `p_j+1 = p_j + max(p_j - p_j-1 - 0.03, 0.06)`."""
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return {math.ceil(share * steps) for share in shares[1:] if share <= 1}


def cut(network: Network, x: Tensor, labels: Tensor, best: Nearest) -> Nearest:
    """Halve the distance from the image to the nearest input, as long as the class is another."""
    end, low, high = best.points, torch.zeros(len(x)), torch.ones(len(x))
    for _ in range(CUTS):
        middle = (low + high) / 2
        points = x + tall(middle, x) * (end - x)
        with torch.no_grad():
            flipped = network(points).argmax(dim=1) != labels
        best.keep(points, flipped)
        low, high = torch.where(flipped, low, middle), torch.where(flipped, middle, high)
    return best
