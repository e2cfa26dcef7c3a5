"""Encoded images of several sizes, brought to one: resized, and cut out of the middle, as torchvision does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PIL import Image

Size = tuple[int, int]
"""Width and height in pixels, as Pillow has them."""

INTERPOLATIONS = tuple(one.name.lower() for one in Image.Resampling)
"""How pixels are computed from those of another size, by the names of Pillow; all but nearest with antialiasing."""

ROUNDINGS = ("even", "down")
"""Where the middle begins if it cannot lie in the middle: at the even one of two pixels, or at the upper left one."""


@dataclass(frozen=True)
class Fitting:
    """How an image is brought to the size that the model takes: first resized, then cut.

    The numbers are those of `torchvision.transforms.Resize` and `CenterCrop` on images of Pillow, bilinear with
    antialiasing by default; parts beyond an image are not made up, so one that is smaller than the crop cannot be cut.

    Attributes:
        resize: `(height, width)`, or the shorter side alone, `(side,)`, which keeps the shape; None leaves the size.
        crop: `(height, width)` of the middle that is kept; None keeps all.
        interpolation: one of `INTERPOLATIONS`; None is bilinear.
        rounding: one of `ROUNDINGS`, `even` as torchvision rounds, `down` as image processors of transformers; None is
            `even`.
    """

    resize: tuple[int, ...] | None = None
    crop: tuple[int, ...] | None = None
    interpolation: str | None = None
    rounding: str | None = None

    def resized(self, size: Size) -> Size:
        """The size of an image of `size` after it was resized."""
        if self.resize is None:
            return size
        if len(self.resize) == 2:
            return self.resize[1], self.resize[0]
        (side,) = self.resize
        width, height = size
        return (side, int(side * height / width)) if width <= height else (int(side * width / height), side)

    def size(self, size: Size) -> Size:
        """The size of an image of `size` after all."""
        return self.resized(size) if self.crop is None else (self.crop[1], self.crop[0])

    def holds(self, size: Size) -> bool:
        """Whether an image of `size` is large enough to be cut."""
        width, height = self.resized(size)
        return self.crop is None or (self.crop[0] <= height and self.crop[1] <= width)

    def apply(self, image: Image.Image) -> Image.Image:
        """An image that is large enough, after all."""
        if self.resized(image.size) != image.size:
            image = image.resize(self.resized(image.size), Image.Resampling[(self.interpolation or "bilinear").upper()])
        if self.crop is None:
            return image
        height, width = self.crop
        first = math.floor if self.rounding == "down" else round
        left, top = first((image.width - width) / 2.0), first((image.height - height) / 2.0)
        return image.crop((left, top, left + width, top + height))


UNFITTED = Fitting()
"""Leaves an image as it is."""
