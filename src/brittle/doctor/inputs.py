"""Other inputs than the points: random ones, noisy copies, the points in another order; the same ones every time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from brittle.model.bounds import Bounds
from brittle.noise import Gaussian, Stream
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


def resampled(inputs: Tensor, count: int, values: tuple[float, float]) -> Tensor:
    """`count` inputs of the shape of `inputs` `[V, *shape]`, each coordinate that of a random one of them.

    The values of a coordinate are taken from these shares of its values in order, so that they all occur.
    """
    generator = torch.Generator().manual_seed(0)
    shares = torch.rand(count, *inputs.shape[1:], generator=generator, dtype=torch.float64).to(inputs.device)
    place = ((shares * (values[1] - values[0]) + values[0]) * len(inputs)).long().clamp_max(len(inputs) - 1)
    return inputs.sort(dim=0).values.gather(0, place)


def noisy_copies(
    inputs: Tensor, bounds: Bounds, scores: Sequence[Score], seed: int = 0, varies: Tensor | None = None
) -> Tensor:
    """A noisy copy of each of `inputs` `[V, *shape]`, with the noise of `scores` of the largest sigma, in pixels first.

    Inside the bounds where no score sends anything beyond them. Where there is no noise to draw it is normal, with a
    tenth of the range of each coordinate for sigma; without bounds that is the range of the inputs.
    """
    noisy = [score for score in scores if isinstance(score, NoiseScore) and score.noise.has_draws]
    ids = [f"doctor {row}" for row in range(len(inputs))]
    if not noisy:
        low, high = bounds.closed(inputs).ends(inputs)
        sigma = SIGMA_SHARE * (high - low)
        return bounds.clip(inputs + sigma * Stream(Gaussian(1.0), inputs, ids, seed, "doctor", varies).draw(1)[:, 0])
    noise = max((score.noise for score in noisy), key=lambda noise: (noise.in_pixels, noise.sigma))
    copies = Stream(noise, inputs, ids, seed, "doctor", varies).copies(1)[:, 0, 0]
    return copies if any(not getattr(score, "clip", False) for score in noisy) else bounds.clip(copies)


def other_order(like: Tensor, seed: int) -> Tensor:
    """Another order of the rows of `like`, `[V]`, on its device."""
    count = len(like)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    same = bool((order == torch.arange(count)).all())
    return (order.flip(0) if same else order).to(like.device)
