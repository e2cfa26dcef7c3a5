"""The noise of points: the draws of a family from a generator of each point's own.

The draws of a point come from a generator keyed by (seed, purpose, point id), one draw after another, so they do not
depend on the batch, the order or the number of draws that are asked for later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from brittle.noise.base import Noise, at_one
from brittle.noise.families import OWN
from brittle.noise.promise import check_draw, check_finite, check_promise


class Stream:
    """The noise of a batch of points, one draw after another, each point from a generator of its own."""

    def __init__(self, noise: Noise, like: Tensor, ids: Sequence[str], seed: int, purpose: str) -> None:
        """Start the streams of the points `like`, `[B, *shape]`, with the ids `ids`.

        Raises:
            ParameterError: the draws of a family that is not of this file are not what a family promises.
        """
        if type(noise) not in OWN:
            check_promise(at_one(noise), like[0].numel(), like.device)
        self._noise = noise
        self._like = like
        self._generators = [_generator(seed, purpose, point, like.device) for point in ids]

    def draw(self, count: int) -> Tensor:
        """The next `count` draws of each point, `[B, count, *shape]`, in the dtype of the inputs.

        Raises:
            ParameterError: a draw has another size than the inputs, or holds NaN or infinite values.
        """
        shape = self._like.shape[1:]
        size = shape.numel()
        draws = torch.empty(len(self._generators), count, size, dtype=self._like.dtype, device=self._like.device)
        for point, generator in enumerate(self._generators):
            for number in range(count):
                draws[point, number] = check_draw(self._noise, self._noise.draw(generator, size), size)
        check_finite(self._noise, draws)
        return draws.mul_(self._noise.sigma).view(len(self._generators), count, *shape)

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with the points at the positions `rows` alone; the next draws of each are what they would have been."""
        self._like = self._like[list(rows)]
        self._generators = [self._generators[row] for row in rows]


def _generator(seed: int, purpose: str, point: str, device: torch.device) -> torch.Generator:
    key = hashlib.blake2b(f"{seed}\n{purpose}\n{point}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(key, "big") >> 1)
