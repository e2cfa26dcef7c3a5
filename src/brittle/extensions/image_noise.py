"""Corruptions of images with a random strength up to a limit: rotation, shift, light, blur and more.

Most kinds are those of CIFAR-10-C (D. Hendrycks, T. Dietterich, Benchmarking neural network robustness to common
corruptions and perturbations, 2019, https://arxiv.org/abs/1903.12261). As these are for images of 32 x 32 pixels, the
length of a blur grows with the shorter side of larger images (times side / 32).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Parameters
from brittle.model.bounds import Bounds, check_bounds
from brittle.noise.named import NamedNoise, NoiseData
from brittle.noise.transform import Transforming
from brittle.user_code import unknown

WHITE = 255.0  # the level of the upper bound of the values; the lower bound has level 0
USUAL_SIDE = 32  # side of the images, in pixels, to which the length of a blur refers
SLACK = 1e-4  # largest excess of an input over the bounds, as a share of their range

Image = NDArray[np.float64]
Draw = np.random.Generator


class Effect(NamedTuple):
    """A corruption. `draw` draws the strength of a copy from the chosen strength, in `unit` and at most `largest`.
    `apply` maps levels `[H, W, C]` from 0 to 255 to levels that are not yet clipped."""

    unit: str
    explanation: str
    draw: Callable[[float, Draw], Any]
    apply: Callable[[Image, Any, Draw], NDArray[Any]]
    largest: float = np.inf


def _up_to(strength: float, draw: Draw) -> float:
    return draw.uniform(0.0, strength)


def _either_way(strength: float, draw: Draw) -> float:
    return draw.uniform(-strength, strength)


def _factor(strength: float, draw: Draw) -> float:
    return draw.uniform(max(0.0, 1.0 - strength), 1.0 + strength)


def _rotate(image: Image, degrees: float, draw: Draw) -> Image:
    return scipy.ndimage.rotate(image, degrees, axes=(1, 0), reshape=False, order=1, mode="grid-constant", cval=0.0)


def _shift(image: Image, pixels: NDArray[np.float64], draw: Draw) -> Image:
    return scipy.ndimage.shift(image, (*pixels, 0.0), order=1, mode="grid-constant", cval=0.0)


def _brighten(image: Image, added: float, draw: Draw) -> Image:
    """Add to the value (of hue, saturation, value), which is the largest channel; channels keep their ratio to it."""
    value = image.max(axis=2, keepdims=True)
    lighter = (value + WHITE * added).clip(0.0, WHITE)
    return np.where(value > 0, image * (lighter / np.where(value > 0, value, 1.0)), lighter)


def _contrast(image: Image, factor: float, draw: Draw) -> Image:
    mean = image.mean(axis=(0, 1))
    return mean + factor * (image - mean)


def _blur(image: Image, sigma: float, draw: Draw) -> Image:
    pixels = sigma * max(1.0, min(image.shape[:2]) / USUAL_SIDE)
    return scipy.ndimage.gaussian_filter(image, (pixels, pixels, 0), mode="nearest")


def _impulse_noise(image: Image, share: float, draw: Draw) -> Image:
    drawn = draw.random(image.shape)
    return np.where(drawn < share / 2, 0.0, np.where(drawn < share, WHITE, image))


def _saturate(image: Image, factor: float, draw: Draw) -> NDArray[Any]:
    """Multiply the saturation by `factor`, up to 1; hue and value stay, and grey pixels stay grey."""
    value = image.max(axis=2, keepdims=True)
    below = value - image
    saturation = below.max(axis=2, keepdims=True) / np.maximum(value, 1)
    target = np.minimum(factor * saturation, 1)
    return value - below * np.divide(target, saturation, out=np.ones_like(target), where=saturation > 0)


def _compress(image: Image, quality: int, draw: Draw) -> NDArray[np.uint8]:
    file = BytesIO()
    _picture(image).save(file, "JPEG", quality=quality)
    return np.asarray(PIL.Image.open(file)).reshape(image.shape)


def _pixelate(image: Image, share: float, draw: Draw) -> NDArray[np.uint8]:
    picture = _picture(image)
    width, height = (max(1, int(side * share)) for side in picture.size)
    small = picture.resize((width, height), PIL.Image.Resampling.BOX)
    return np.asarray(small.resize(picture.size, PIL.Image.Resampling.BOX)).reshape(image.shape)


def _picture(image: Image) -> PIL.Image.Image:
    levels = np.rint(image).clip(0, 255).astype(np.uint8)
    return PIL.Image.fromarray(np.ascontiguousarray(levels[..., 0] if image.shape[2] == 1 else levels))


KINDS = {
    "rotation": Effect(
        "degrees", "Turned by a random angle, at most so many degrees either way", _either_way, _rotate, 180.0),
    "shift": Effect(
        "pixels", "Moved along both sides by a random length, at most so many pixels either way",
        lambda strength, draw: draw.uniform(-strength, strength, 2), _shift),
    "brightness": Effect(
        "of the range", "Lighter or darker by a random share of the value range", _either_way, _brighten, 1.0),
    "contrast": Effect("of the contrast", "More or less contrast, by a random share of it", _factor, _contrast, 1.0),
    "gaussian_blur": Effect("pixels", "Blurred, with a random standard deviation in pixels", _up_to, _blur),
    "gaussian_noise": Effect(
        "of the range", "Normal noise with a random standard deviation, clipped to the range", _up_to,
        lambda image, sigma, draw: image + draw.normal(0.0, WHITE * sigma, image.shape)),
    "shot_noise": Effect(
        "per photon", "Poisson noise, of at least one photon over the level",
        lambda variance, draw: 1.0 / draw.uniform(1e-9, variance),
        lambda image, photons, draw: draw.poisson(image / WHITE * photons) * (WHITE / photons), 1.0),
    "impulse_noise": Effect(
        "of the pixels", "A random share of the numbers black or white", _up_to, _impulse_noise, 1.0),
    "saturate": Effect("of the saturation", "Colours stronger or weaker by a random share", _factor, _saturate),
    "jpeg_compression": Effect(
        "points of quality", "Compressed as JPEG, with a random quality",
        lambda lost, draw: int(draw.integers(round(100 - lost), 100, endpoint=True)), _compress, 99.0),
    "pixelate": Effect(
        "of the side", "Fewer pixels by a random share of the side, made large again",
        lambda lost, draw: draw.uniform(1.0 - lost, 1.0), _pixelate, 0.99),
}  # fmt: skip


@dataclass(frozen=True, init=False)
class Corruption(Transforming):
    """Corrupt images with a random strength: rotation, shift, light, blur, compression and more.

    The strength of every copy is drawn uniformly up to `sigma`, with both signs where the kind has two directions.
    Pixels from beyond the edge get the lower bound; values stay inside the bounds. `jpeg_compression` and `pixelate`
    round to 256 levels, the other kinds do not.

    Attributes:
        sigma: the largest strength, in the unit of the kind (`brittle.extensions.image_noise.KINDS`).
        kind: one of `KINDS`, such as `rotation`.
        bounds: bounds of the values of an input.

    Raises:
        UsageError: there is no such kind.
        ParameterError: the strength is out of range, or an input is not an image `[C, H, W]` of 1 or 3 channels.
    """

    kind: str = field(init=False)
    bounds: tuple[float, float] = field(init=False)

    name: ClassVar[str] = "corruption"

    def __init__(self, kind: str, strength: float, bounds: tuple[float, float] = (0.0, 1.0)) -> None:
        """Corrupt with up to `strength`, in the unit of the kind."""
        if kind not in KINDS:
            raise unknown("corruption", str(kind), [*KINDS])
        largest = KINDS[kind].largest
        if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0.0 < strength <= largest:
            at_most = f" and at most {largest:g}" if largest < np.inf else ""
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
        parameters: Parameters = {"sigma": self.sigma, "unit": self.unit, "noise": self.kind}
        return parameters if self.bounds == (0.0, 1.0) else parameters | {"bounds": self.bounds}

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        low, high = self.bounds
        if x.dim() != 3 or x.shape[0] not in (1, 3):
            raise ParameterError(f"{self.kind} is for images [C, H, W] of 1 or 3 channels; found shape {list(x.shape)}")
        if self.kind == "saturate" and x.shape[0] == 1:
            raise ParameterError(f"{self.kind} changes colours only, and the images are grey")
        lowest, highest = float(x.min()), float(x.max())
        if lowest < low - SLACK * (high - low) or highest > high + SLACK * (high - low):
            raise ParameterError(
                f"{self.kind} has the bounds {low:g} and {high:g}, and an input goes from {lowest:g} to {highest:g}; "
                f"give it the bounds of the values"
            )
        image = (x.permute(1, 2, 0).double().numpy() - low) * (WHITE / (high - low))
        kind, draw = KINDS[self.kind], np.random.default_rng(generator.initial_seed())
        changed = kind.apply(image, kind.draw(self.sigma, draw), draw)
        levels = np.ascontiguousarray(changed, dtype=np.float64).clip(0.0, WHITE)
        return torch.from_numpy(levels * ((high - low) / WHITE) + low).permute(2, 0, 1).to(x.dtype)


def _make(kind: str, levels: Sequence[float], data: NoiseData) -> list[Corruption]:
    return [Corruption(kind, level, check_bounds(Bounds.of(data.bounds))) for level in levels]


WORDS = {kind: NamedNoise(partial(_make, kind), 15.0 if kind == "rotation" else 1.0) for kind in KINDS}

ROTATION, SHIFT, BRIGHTNESS, CONTRAST = (WORDS[kind] for kind in ("rotation", "shift", "brightness", "contrast"))
GAUSSIAN_BLUR, GAUSSIAN_NOISE, SHOT_NOISE = (WORDS[kind] for kind in ("gaussian_blur", "gaussian_noise", "shot_noise"))
IMPULSE_NOISE, SATURATE = WORDS["impulse_noise"], WORDS["saturate"]
JPEG_COMPRESSION, PIXELATE = WORDS["jpeg_compression"], WORDS["pixelate"]
