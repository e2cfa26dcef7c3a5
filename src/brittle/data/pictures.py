"""Images of Pillow as inputs: what data sets of torchvision give where they have no transform."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from brittle.data.exif import DECODER_ERRORS
from brittle.data.images import DECLARED, MAX_PIXELS, from_levels
from brittle.data.options import ReadingOptions
from brittle.errors import DataError


class Pictures:
    """Makes inputs of images of Pillow, all in the mode of the first unless one is asked for.

    Args:
        options: `bounds`, `mode` and what brings images to one size, as for encoded images.
    """

    def __init__(self, options: ReadingOptions) -> None:
        self._bounds = options.bounds
        self._fitting = options.fitting
        self._mode = options.mode

    def tensor(self, image: Image.Image, where: str) -> Tensor:
        """An image as an input `[channels, height, width]`, float32, its levels 0..255 mapped to the bounds.

        Raises:
            DataError: its mode is not read, or it is too large, or too small to be cut.
        """
        if image.mode not in DECLARED:
            modes = ", ".join(DECLARED)
            raise DataError("dataset", f"{where} is an image of mode {image.mode}; {modes} are converted")
        width, height = self._fitting.resized(image.size)
        if max(width * height, image.width * image.height) > MAX_PIXELS or not self._fitting.holds(image.size):
            raise DataError(
                "shape",
                f"{where} has {width} x {height} pixels{'' if self._fitting.resize is None else ' once resized'}, too "
                f"few for the crop or more than {MAX_PIXELS:,}; use resize= first, or another center_crop=",
            )
        self._mode = self._mode or DECLARED[image.mode]
        try:
            frames = getattr(image, "n_frames", 1)
            if frames > 1:
                raise DataError("dataset", f"{where} is an image of {frames} frames; give one: image.copy()")
            upright = image.convert("RGBA") if image.mode == "P" else image  # some palettes have transparent colours
            levels = torch.from_numpy(np.array(self._fitting.apply(upright.convert(self._mode))))
        except DECODER_ERRORS as error:
            said = f"{type(error).__name__}: {error}"
            raise DataError("dataset", f"{where} is an image that cannot be decoded: {said}") from error
        pixels = levels.unsqueeze(0) if levels.dim() == 2 else levels.permute(2, 0, 1).contiguous()
        return from_levels(pixels, self._bounds)


def is_list_of_images(data: object) -> TypeGuard[list[Any]]:
    """Whether it is a list of images of Pillow, or of pairs of one and its label."""
    return isinstance(data, list) and bool(data) and all(map(_begins_with_image, data))


def _begins_with_image(item: object) -> bool:
    return isinstance(item[0] if isinstance(item, tuple) and item else item, Image.Image)
