"""Other inputs than the points: random ones, noisy copies, the points in another order; the same ones every time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from brittle.model.bounds import Bounds
from brittle.scores import NoiseScore, Score

SIGMA_SHARE = 0.1
"""Noise of the noisy copies that are looked at, as a share of the range, where no score says what noise."""


def random_inputs(like: Tensor, count: int, bounds: Bounds, values: tuple[float, float] = (0.0, 1.0)) -> Tensor:
    """`count` inputs of the shape of `like` `[V, *shape]`, uniform in these shares of `bounds` (`Bounds.closed`)."""
    return bounds.closed(like).sample((count, *like.shape[1:]), like, values)


def blended(inputs: Tensor, bounds: Bounds, share: float) -> Tensor:
    """`inputs` `[V, *shape]` with a share of uniform noise blended in, in single precision or better.

    They stay inside the bounds, and leave kinks at the ends of these.
    """
    like = inputs if inputs.dtype.itemsize >= 4 else inputs.float()
    noise = torch.rand(like.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    low, high = bounds.closed(like).ends(noise)
    return (1 - share) * like + share * (noise * (high - low) + low).to(like)


def noisy_copies(inputs: Tensor, bounds: Bounds, scores: Sequence[Score]) -> Tensor:
    """A noisy copy of each of `inputs` `[V, *shape]`, with normal noise of the largest sigma of `scores` in pixels.

    Inside the bounds, with a tenth of their range for sigma, where no score sends anything beyond them; without bounds
    the range is that of the inputs.
    """
    low, high = bounds.closed(inputs).ends(inputs)
    noisy = [score for score in scores if isinstance(score, NoiseScore) and score.noise.in_pixels]
    sigma = max((score.noise.sigma for score in noisy), default=SIGMA_SHARE * (high - low))
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(inputs.shape, generator=generator, dtype=torch.float32)
    copies = inputs + sigma * noise.to(inputs)
    beyond = any(not getattr(score, "clip", False) for score in noisy)
    return copies if beyond else bounds.clip(copies)


def other_order(like: Tensor, seed: int) -> Tensor:
    """Another order of the rows of `like`, `[V]`, on its device."""
    count = len(like)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    same = bool((order == torch.arange(count)).all())
    return (order.flip(0) if same else order).to(like.device)
