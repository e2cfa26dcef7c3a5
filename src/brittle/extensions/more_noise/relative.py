"""Normal noise relative to the point: to its root mean square, or to its power in decibels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.noise.base import Action, Noise, at_one, identity
from brittle.noise.named import NamedNoise


@dataclass(frozen=True)
class Relative(Noise):
    """Independent normal coordinates with the standard deviation `sigma rms(x)`, `rms(x)^2 = mean_i x_i^2`.

    The noise scales with each point, as embeddings of tokens or waveforms need it. A point of zeros has none. All
    scores of the average case apply to it; scores of derivatives alone (`change_bound`) do not.

    Attributes:
        sigma: standard deviation of a coordinate, as a share of the root mean square of the point's coordinates.
    """

    name: ClassVar[str] = "relative"
    explanation: ClassVar[str] = "Normal, with a share of the root mean square of the point's own values"
    normal: ClassVar[bool] = True
    unit: ClassVar[str] = "of the rms"
    covariance = identity  # of the draws before they are scaled at each point

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float32, device=generator.device)

    def scales(self, inputs: Tensor, varies: Tensor | None = None) -> Tensor:
        """Return the root mean square of each point `[B, *shape]` over the coordinates that vary, `[B]`, float64."""
        squares = inputs.detach().double().square()
        if varies is None:
            return squares.flatten(1).mean(dim=1).sqrt()
        weights = varies.expand_as(squares).to(squares).flatten(1)
        return ((squares.flatten(1) * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1)).sqrt()

    def covariance_at(self, inputs: Tensor, varies: Tensor | None = None) -> Action:
        """Return the action `rms(x_b)^2 v` on the vectors of each point, over the coordinates that vary."""
        squares = self.scales(inputs, varies).square()
        return lambda vectors: vectors * squares.to(vectors).view(-1, *[1] * (vectors.dim() - 1))

    @property
    def shape(self) -> Noise:
        """The family at `sigma = 1`: the point determines `K`."""
        return at_one(self)


@dataclass(frozen=True, init=False)
class Decibels(Relative):
    """White normal noise at a signal-to-noise ratio in decibels of each point's own power.

    `10 log10(mean_i x_i^2 / s^2) = level`, so the standard deviation of a coordinate is `10^(-level / 20) rms(x)`:
    a tenth of the root mean square at 20 dB, all of it at 0 dB.

    Attributes:
        sigma: `10^(-level / 20)`.

    Raises:
        ParameterError: the level is not a number from -300 to 300.
    """

    name: ClassVar[str] = "decibels"
    explanation: ClassVar[str] = "White normal noise, so many decibels below the power of the point itself"
    unit: ClassVar[str] = "dB"

    def __init__(self, level: float) -> None:
        """Set the noise `level` decibels below the power of the point."""
        if isinstance(level, bool) or not isinstance(level, int | float) or not abs(level) <= 300.0:
            raise ParameterError(f"a level in decibels is a number from -300 to 300; found {level!r:.40}")
        object.__setattr__(self, "sigma", 10.0 ** (-level / 20.0))
        self.__post_init__()

    @property
    def level(self) -> float:
        """The signal-to-noise ratio in decibels."""
        return -20.0 * math.log10(self.sigma)


RELATIVE = NamedNoise(
    lambda shares, data: list(map(Relative, shares)), 0.5, sigma="root mean squares of each point", above=0.0
)
DECIBELS = NamedNoise(lambda levels, data: list(map(Decibels, levels)), 20.0)
"""The words of `--noise` for both families."""
