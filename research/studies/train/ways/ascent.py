"""Adversarial examples while a network is trained: projected gradient ascent in an Linf ball."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Return the network is in evaluation mode meanwhile, so that no statistics of batches move."""
    mode = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(mode)


def ascend(
    network: nn.Module, x: Tensor, start: Tensor, epsilon: float, steps: int, loss: Callable[[Tensor], Tensor]
) -> Tensor:
    """`x'` with `||x' - x||_inf <= epsilon` and pixels in [0, 1] at which `loss(network(x'))` is large.

    `x' <- clip(x' + 2.5 epsilon / steps sign(grad loss))`, so many times, from `start`. Short and without restarts: it
    is for training. How near the nearest adversarial example is, the library's own searches say.

    Source: Madry et al., Towards deep learning models resistant to adversarial attacks (ICLR 2018), section 2.1.

    Args:
        start: `[B, C, H, W]`; it is brought into the ball.
        loss: of the logits `[B, K]`; a sum over images or a mean, of which the sign alone counts.
    """
    low, high = (x - epsilon).clamp_min(0), (x + epsilon).clamp_max(1)
    moved = torch.minimum(torch.maximum(start, low), high).detach()
    with evaluating(network), torch.enable_grad():
        for _ in range(steps):
            moved.requires_grad_(True)
            (slope,) = torch.autograd.grad(loss(network(moved)), moved)
            stepped = moved.detach() + 2.5 * epsilon / steps * slope.sign()
            moved = torch.minimum(torch.maximum(stepped, low), high)
    return moved


def anywhere(x: Tensor, epsilon: float) -> Tensor:
    """Return a start for each image, uniform in the ball."""
    return x + epsilon * (2 * torch.rand_like(x) - 1)


def ascend_loss(network: nn.Module, x: Tensor, y: Tensor, epsilon: float, steps: int) -> Tensor:
    """PGD on the cross-entropy from a uniform start, `[B, C, H, W]`."""

    def loss(logits: Tensor) -> Tensor:
        return cross_entropy(logits, y, reduction="sum")

    return ascend(network, x, anywhere(x, epsilon), epsilon, steps, loss)
