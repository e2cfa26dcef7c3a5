"""How images become inputs, as the folder of a model declares it: resized, cut out of the middle, and by what rule.

The rules are those of the image processors of transformers (`image_processing_*.py`) and of `timm.data` for evaluation
(`resolve_data_config`, `transforms_imagenet_eval`).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brittle.model.loading.hugging_face import placed, processor_options
from brittle.model.loading.timm_model import PREFIX, is_timm, pretrained_description

CODES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
"""The interpolations of Pillow by the numbers that image processors keep."""

INTERPOLATIONS = tuple(CODES.values())
"""How pixels are computed from those of another size, by the names of Pillow."""

ROUNDINGS = ("even", "down")
"""Where the middle begins if it cannot lie in the middle: at the even one of two pixels, or at the upper left one."""

KNOWN = (
    "ViT", "DeiT", "Beit", "Pvt", "Siglip", "CLIP", "Bit", "MobileNetV1", "MobileNetV2", "EfficientNet",
)  # fmt: skip
"""The image processors whose rules are known, by their names without `ImageProcessor`."""


@dataclass(frozen=True)
class ImageSteps:
    """What is done to an image, in this order, in the words of `brittle.data.Reading`.

    `resize` is `(height, width)`, or `(side,)` for the shorter side, which keeps the shape; `center_crop` the middle
    that is kept. None leaves the size, and is bilinear interpolation. Crops are rounded `even` as torchvision rounds,
    None as well, or `down` as image processors of transformers.
    """

    resize: tuple[int, ...] | None = None
    center_crop: tuple[int, ...] | None = None
    interpolation: str | None = None
    crop_rounding: str | None = None

    @property
    def words(self) -> str:
        parts = []
        if self.resize is not None:
            sides = " x ".join(map(str, self.resize)) + (" (the shorter side)" if len(self.resize) == 1 else "")
            parts.append(f"resized to {sides}, {self.interpolation}")
        if self.center_crop is not None:
            parts.append(f"the middle {self.center_crop[0]} x {self.center_crop[1]} kept")
        return ", ".join(parts) or "neither resized nor cut"


UNCHANGED = ImageSteps()


def declared_steps(model: str) -> ImageSteps | str | None:
    """What the folder of a model does to images; a reason where it does something else; None where it says nothing.
    Only descriptions are read: no network is built."""
    folder = placed(model)[1]
    if model.startswith(PREFIX) or is_timm(folder):
        known = pretrained_description(os.fspath(folder))
        return None if known is None else timm_steps(known)
    processor = processor_options(folder)
    return transformers_steps(processor) if processor else None


def timm_steps(known: Mapping[str, Any]) -> ImageSteps | str | None:
    """What `timm.data` does to images for evaluation by `pretrained_cfg`: the shorter side, or both, are brought to the
    size over `crop_pct`, rounded down, of which the middle is kept."""
    size, share = known.get("input_size"), known.get("crop_pct") or 0.875
    mode, method = known.get("crop_mode") or "center", known.get("interpolation") or "bicubic"
    if not isinstance(size, list | tuple) or len(size) != 3:
        return None
    height, width = size[1:]
    whole = all(isinstance(one, int) and one > 0 for one in (height, width))
    known_mode = mode == "squash" or (mode == "center" and height == width)
    if not whole or not isinstance(share, int | float) or share <= 0 or not known_mode or method not in INTERPOLATIONS:
        return f"{mode!s:.20} to {height!r:.20} x {width!r:.20}, crop_pct {share!r:.20}, interpolation {method!s:.20}"
    sides = (height,) if mode == "center" else (height, width)
    return ImageSteps(tuple(math.floor(side / share) for side in sides), (height, width), method, "even")


def transformers_steps(processor: Mapping[str, Any]) -> ImageSteps | str:
    """What an image processor of transformers with these options does to images."""
    name = re.sub(r"ImageProcessor(Pil|Fast)?$", "", str(processor.get("image_processor_type")))
    if name not in KNOWN:
        return f"image processor {name:.40}"
    resizes, method = processor.get("do_resize"), CODES.get(processor.get("resample", -1))
    size, crop = _sides(processor.get("size")), _sides(processor.get("crop_size"))
    if resizes and (not size or method is None):
        return f"size {processor.get('size')!s:.60}, resample {processor.get('resample')!s:.20}"
    steps = ImageSteps(size, None, method) if resizes else UNCHANGED
    if not processor.get("do_center_crop"):
        return steps
    if len(crop) != 2 or processor.get("do_pad"):
        return f"crop_size {processor.get('crop_size')!s:.60}"
    found = steps.resize or crop
    if any(side < least for side, least in zip(found * 2 if len(found) == 1 else found, crop, strict=True)):
        return f"the middle {crop[0]} x {crop[1]} of smaller images, with a border of zeros"
    return ImageSteps(steps.resize, (crop[0], crop[1]), steps.interpolation, "down")


def _sides(size: Any) -> tuple[int, ...]:
    """Height and width, or the shorter side, of a size as image processors have it; empty where it is neither, or where
    one is no number of pixels."""
    keys = next((keys for keys in (("height", "width"), ("shortest_edge",)) if set(size or ()) == set(keys)), ())
    found = tuple(size[key] for key in keys)
    return found if all(type(side) is int and side > 0 for side in found) else ()
