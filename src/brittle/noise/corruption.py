"""Corruptions of images with a random strength, up to the one that is named: rotation, shift, light, blur and more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.data.corruptions import CORRUPTIONS
from brittle.errors import ParameterError, UsageError
from brittle.estimate import Parameters
from brittle.model.bounds import check_bounds
from brittle.noise.transform import Transforming

WHITE = 255.0
"""The level that the upper bound of the values becomes; the lower one is 0."""

SLACK = 1e-4
"""How far an input may be beyond the bounds, as a share of their range."""

Image = NDArray[np.float64]
Draw = np.random.Generator


class RandomStrength(NamedTuple):
    """A way to corrupt an image by a random strength.

    Attributes:
        unit: of the strength, in words.
        explanation: what it does, for a report.
        change: an image `[H, W, C]` of levels from 0 to 255, the strength and a generator to an image, not yet clipped.
        most: the largest strength; a smallest one is above 0.
    """

    unit: str
    explanation: str
    change: Callable[[Image, float, Draw], NDArray[Any]]
    most: float = np.inf


def _rotation(image: Image, degrees: float, draw: Draw) -> Image:
    angle = draw.uniform(-degrees, degrees)
    return scipy.ndimage.rotate(image, angle, axes=(1, 0), reshape=False, order=1, mode="grid-constant", cval=0.0)


def _shift(image: Image, pixels: float, draw: Draw) -> Image:
    by = (*draw.uniform(-pixels, pixels, 2), 0.0)
    return scipy.ndimage.shift(image, by, order=1, mode="grid-constant", cval=0.0)


def _brightness(image: Image, most: float, draw: Draw) -> Image:
    """The value of hue, saturation and value is the largest channel; the others keep their ratio to it."""
    value = image.max(axis=2, keepdims=True)
    lighter = (value + WHITE * draw.uniform(-most, most)).clip(0.0, WHITE)
    return np.where(value > 0, image * (lighter / np.where(value > 0, value, 1.0)), lighter)


def _contrast(image: Image, most: float, draw: Draw) -> Image:
    mean = image.mean(axis=(0, 1))
    return mean + draw.uniform(1.0 - most, 1.0 + most) * (image - mean)


def _corrupted(kind: str, image: NDArray[Any], strength: Any, draw: Draw) -> NDArray[Any]:
    """The image as `brittle corrupt` makes it."""
    return CORRUPTIONS[kind].apply(image, strength, draw)


def _up_to(kind: str) -> Callable[[Image, float, Draw], NDArray[Any]]:
    return lambda image, most, draw: _corrupted(kind, image, draw.uniform(0.0, most), draw)


def _shot_noise(image: Image, variance: float, draw: Draw) -> NDArray[Any]:
    return _corrupted("shot_noise", image, 1.0 / draw.uniform(1e-9, variance), draw)


def _saturate(image: Image, most: float, draw: Draw) -> NDArray[Any]:
    return _corrupted("saturate", image, (draw.uniform(max(0.0, 1.0 - most), 1.0 + most), 0.0), draw)


def _jpeg_compression(image: Image, lost: float, draw: Draw) -> NDArray[Any]:
    quality = int(draw.integers(round(100 - lost), 100, endpoint=True))
    return _corrupted("jpeg_compression", _levels(image), quality, draw)


def _pixelate(image: Image, lost: float, draw: Draw) -> NDArray[Any]:
    return _corrupted("pixelate", _levels(image), draw.uniform(1.0 - lost, 1.0), draw)


def _levels(image: Image) -> NDArray[np.uint8]:
    return np.rint(image).clip(0, 255).astype(np.uint8)


KINDS = {
    "rotation": RandomStrength(
        "degrees", "Turned by a random angle, at most so many degrees either way", _rotation, 180.0),
    "shift": RandomStrength(
        "pixels", "Moved along both sides by a random length, at most so many pixels either way", _shift),
    "brightness": RandomStrength(
        "of the range", "Lighter or darker by a random share of the value range", _brightness, 1.0),
    "contrast": RandomStrength("of the contrast", "More or less contrast, by a random share of it", _contrast, 1.0),
    "gaussian_blur": RandomStrength(
        "pixels", "Blurred, with a random standard deviation in pixels", _up_to("gaussian_blur")),
    "gaussian_noise": RandomStrength(
        "of the range", "Normal noise with a random standard deviation, clipped to the range",
        _up_to("gaussian_noise")),
    "shot_noise": RandomStrength("per photon", "Poisson noise, of at least one photon over the level",
                                 _shot_noise, 1.0),
    "impulse_noise": RandomStrength(
        "of the pixels", "A random share of the numbers black or white", _up_to("impulse_noise"), 1.0),
    "saturate": RandomStrength("of the saturation", "Colours stronger or weaker by a random share", _saturate),
    "jpeg_compression": RandomStrength(
        "points of quality", "Compressed as JPEG, with a random quality", _jpeg_compression, 99.0),
    "pixelate": RandomStrength(
        "of the side", "Fewer pixels by a random share of the side, made large again", _pixelate, 0.99),
}  # fmt: skip
"""All kinds, by name."""


@dataclass(frozen=True, init=False)
class Corruption(Transforming):
    """Images corrupted with a random strength: rotated, moved, in another light, blurred, compressed.

    The strength of every copy is drawn uniformly up to the one that is named, either way where it has two ways. What
    comes into the image from beyond its edge is the lower bound; values stay inside the bounds. `gaussian_noise`,
    `gaussian_blur`, `impulse_noise`, `shot_noise`, `saturate`, `jpeg_compression` and `pixelate` are those of `brittle
    corrupt`; the last two round to 256 levels, the others do not.

    Attributes:
        sigma: the largest strength, in the unit of the kind (`brittle.noise.corruption.KINDS`).
        kind: one of `KINDS`, such as `rotation`.
        bounds: of the values of an input.

    Raises:
        UsageError: no kind is called so.
        ParameterError: the strength is out of range, or an input is no image `[C, H, W]` of 1 or 3 channels.
    """

    kind: str = field(init=False)
    bounds: tuple[float, float] = field(init=False)

    name: ClassVar[str] = "corruption"

    def __init__(self, kind: str, strength: float, bounds: tuple[float, float] = (0.0, 1.0)) -> None:
        """A corruption of up to `strength`, in the unit of the kind."""
        if kind not in KINDS:
            near = get_close_matches(str(kind), KINDS, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"no corruption is called {kind!r:.60}; {hint}there are {', '.join(KINDS)}")
        most = KINDS[kind].most
        if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0.0 < strength <= most:
            at_most = f" and at most {most:g}" if most < np.inf else ""
            raise ParameterError(
                f"the strength of {kind} is in {KINDS[kind].unit}, above 0{at_most}; found {strength!r:.40}"
            )
        self._set(sigma=strength, kind=kind, bounds=check_bounds(bounds))

    @property
    def unit(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return KINDS[self.kind].unit

    @property
    def explanation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return KINDS[self.kind].explanation

    @property
    def parameters(self) -> Parameters:
        own: Parameters = {"sigma": self.sigma, "unit": self.unit, "noise": self.kind}
        return own if self.bounds == (0.0, 1.0) else own | {"bounds": self.bounds}

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        low, high = self.bounds
        if x.dim() != 3 or x.shape[0] not in (1, 3):
            raise ParameterError(f"{self.kind} is for images [C, H, W] of 1 or 3 channels; found shape {list(x.shape)}")
        if self.kind == "saturate" and x.shape[0] == 1:
            raise ParameterError(f"{self.kind} changes colours only, and the images are grey")
        least, most = float(x.min()), float(x.max())
        if least < low - SLACK * (high - low) or most > high + SLACK * (high - low):
            raise ParameterError(
                f"{self.kind} has the bounds {low:g} and {high:g}, and an input goes from {least:g} to {most:g}; give "
                f"it the bounds of the values",
            )
        image = (x.permute(1, 2, 0).double().numpy() - low) * (WHITE / (high - low))
        changed = KINDS[self.kind].change(image, self.sigma, np.random.default_rng(generator.initial_seed()))
        levels = np.ascontiguousarray(changed, dtype=np.float64).clip(0.0, WHITE)
        return torch.from_numpy(levels * ((high - low) / WHITE) + low).permute(2, 0, 1).to(x.dtype)
