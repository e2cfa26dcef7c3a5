"""The noise of points: the draws of a family from a generator of each point's own.

The draws of a point come from a generator keyed by (seed, purpose, point id), one draw after another, so they do not
depend on the batch, the order or the number of draws that are asked for later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from brittle.noise.base import Noise, at_one, no_mirror
from brittle.noise.families import FAMILIES, OWN
from brittle.noise.promise import check_draw, check_finite, check_promise
from brittle.noise.relative import Decibels, Relative
from brittle.noise.tables import PerFeature
from brittle.noise.transform import Transforming, check_keyed, transformed

ANEW = tuple(FAMILIES.values())
"""Families whose every draw is a tensor of its own, so that those of a point can be put side by side at once.

The function of another family may write each draw over the one before.
"""


class Stream:
    """The noise of a batch of points, one draw after another, each point from a generator of its own."""

    def __init__(
        self,
        noise: Noise,
        like: Tensor,
        ids: Sequence[str],
        seed: int,
        purpose: str,
        varies: Tensor | None = None,
    ) -> None:
        """Start the streams of the points `like`, `[B, *shape]`, with the ids `ids`.

        `varies`, `[B, *shape]` or with axes of size 1 at the end, says which coordinates have noise; None is all. A
        family to which all coordinates are alike draws for these alone, as if there were no others.

        Raises:
            ParameterError: the draws of a family that is not of this file are not what a family promises.
        """
        self._noise = noise
        self._like = like
        self._varies = varies
        self._keys = [(seed, purpose, point) for point in ids]
        self._drawn = 0
        if isinstance(noise, Transforming):
            self._generators = []
            if len(like):
                check_keyed(noise, like[0], lambda: self._single(0, 0))
            return
        if type(noise) not in (*OWN, Relative, Decibels, PerFeature):
            check_promise(at_one(noise), like[0].numel(), like.device)
        self._generators = [_generator(*key, like.device) for key in self._keys]

    def copies(self, count: int, signs: tuple[int, ...] = (1,)) -> Tensor:
        """The next `count` noisy copies of each point, once for each of `signs`, `[B, count, len(signs), *shape]`.

        A copy is `x + e`, and `x - e` where the sign is -1, with `e` the next draw; of noise that is not added it is
        what the noise makes of the point.

        Raises:
            ParameterError: noise that is not symmetric is asked for mirror images; otherwise as `draw`, and
                `brittle.noise.transform.transformed`.
        """
        if -1 in signs and not self._noise.is_symmetric:
            raise no_mirror(self._noise, "a measurement")
        if not isinstance(self._noise, Transforming):
            half = self.draw(count)
            signed = torch.stack([half if sign > 0 else -half for sign in signs], dim=2)
            return self._like[:, None, None] + signed
        numbers = range(self._drawn, self._drawn + count)
        self._drawn += count
        made = [
            transformed(self._noise, point, [self._single(row, number) for number in numbers])
            for row, point in enumerate(self._like)
        ]
        shape = (len(made), count, 1, *self._like.shape[1:])
        if not made:
            return self._like.new_empty(shape)
        copies = torch.stack(made).view(shape)
        if self._varies is None:
            return copies
        return torch.where(self._varies[:, None, None], copies, self._like[:, None, None])

    def _single(self, row: int, number: int) -> torch.Generator:
        """The generator of one copy of one point under noise that is not added."""
        seed, purpose, point = self._keys[row]
        return _generator(seed, purpose, f"{point}\n{number}", torch.device("cpu"))

    def draw(self, count: int) -> Tensor:
        """The next `count` draws of each point, `[B, count, *shape]`, in the dtype of the inputs.

        Raises:
            ParameterError: a draw has another size than the inputs, or holds NaN or infinite values.
        """
        shape = self._like.shape[1:]
        size = shape.numel()
        if not self._noise.added:
            self._noise.draw(torch.Generator(), size)  # says that there is none
        draws = torch.zeros(len(self._generators), count, size, dtype=self._like.dtype, device=self._like.device)
        for point, generator in enumerate(self._generators):
            some = self._places(point)
            own = size if some is None else len(some)
            drawn = (check_draw(self._noise, self._noise.draw(generator, own), own) for _ in range(count))
            if some is None and count and type(self._noise) in ANEW:
                torch.stack(list(drawn), out=draws[point])
                continue
            for number, one in enumerate(drawn):
                if some is None:
                    draws[point, number] = one
                else:
                    draws[point, number, some] = one.to(draws)
        check_finite(self._noise, draws)
        scales = self._noise.scales(self._like, self._varies)
        if scales is not None:
            draws.mul_(scales.to(draws)[:, None, None])
        draws = draws.mul_(self._noise.sigma).view(len(self._generators), count, *shape)
        return draws if self._varies is None else draws * self._varies[:, None]

    def skip(self, count: int) -> None:
        """Pass over the next `count` draws of each point, as if they had been drawn."""
        self._drawn += count
        size = self._like.shape[1:].numel()
        for point, generator in enumerate(self._generators):
            some = self._places(point)
            for _ in range(count):
                self._noise.draw(generator, size if some is None else len(some))

    def _places(self, point: int) -> Tensor | None:
        """Places of the coordinates of a point that vary, where the family draws for these alone; None for all.

        It does where all coordinates are alike to it, so that padding changes no draw.
        """
        if self._varies is None or not self._noise.alike:
            return None
        return self._varies[point].expand(self._like.shape[1:]).flatten().nonzero().flatten()

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with the points at the positions `rows` alone; the next draws of each are what they would have been."""
        self._like = self._like[list(rows)]
        self._varies = None if self._varies is None else self._varies[list(rows)]
        self._keys = [self._keys[row] for row in rows]
        self._generators = [self._generators[row] for row in rows] if self._generators else []


def _generator(seed: int, purpose: str, point: str, device: torch.device) -> torch.Generator:
    key = hashlib.blake2b(f"{seed}\n{purpose}\n{point}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(key, "big") >> 1)
