"""How images become inputs, as the folder of a model declares it: resized, cut out of the middle, and by what rule.

The rules are those of the image processors of transformers (`image_processing_*.py`) and of `timm.data` for evaluation
(`resolve_data_config`, `transforms_imagenet_eval`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brittle.model.loading.declared import CONFIG, read_description
from brittle.model.loading.hugging_face import PREPROCESSOR
from brittle.model.loading.timm_model import PREFIX, is_timm, pretrained_description

CODES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
"""The interpolations of Pillow by the numbers that image processors keep."""

SQUASHED = 384
"""From this size on, the image processor of ConvNeXt brings images to a square and cuts nothing."""


@dataclass(frozen=True)
class ImageSteps:
    """What is done to an image, in this order, in the words of `brittle.data.open_points`.

    Attributes:
        resize: `(height, width)`, or `(side,)` for the shorter side, or None.
        center_crop: `(height, width)` of the middle that is kept, or None.
        interpolation: how it is resized, or None where it is not.
        crop_rounding: `even` or `down`, or None where nothing is cut.
    """

    resize: tuple[int, ...] | None = None
    center_crop: tuple[int, int] | None = None
    interpolation: str | None = None
    crop_rounding: str | None = None

    @property
    def words(self) -> str:
        """What is done, in words."""
        parts = []
        if self.resize is not None:
            sides = " x ".join(map(str, self.resize)) + (" (the shorter side)" if len(self.resize) == 1 else "")
            parts.append(f"resized to {sides}, {self.interpolation}")
        if self.center_crop is not None:
            parts.append(f"the middle {self.center_crop[0]} x {self.center_crop[1]} kept")
        return ", ".join(parts) or "neither resized nor cut"


@dataclass(frozen=True)
class _Processor:
    """What an image processor of transformers does where its file does not say.

    Attributes:
        models: that have it, for files that do not name their image processor.
        size: height and width, or the shorter side.
        crop: height and width that it cuts out, or None.
        interpolation: a key of `CODES`.
        square: whether a size that is one number is that of a square.
        cuts: whether it cuts at all.
    """

    models: tuple[str, ...]
    size: tuple[int, ...]
    crop: int | None = None
    interpolation: int = 3
    square: bool = False
    cuts: bool = False


PROCESSORS = {
    "ViT": _Processor(
        ("vit", "swin", "swinv2", "swiftformer", "dinat", "vit_msn", "ijepa"), (224, 224), interpolation=2, square=True
    ),
    "DeiT": _Processor(("deit",), (256, 256), 224, square=True, cuts=True),
    "Beit": _Processor(("beit", "data2vec-vision"), (224, 224), 224, square=True),
    "Pvt": _Processor(("pvt", "pvt_v2"), (224, 224), square=True),
    "Siglip": _Processor(("siglip",), (224, 224)),
    "CLIP": _Processor(("clip",), (224,), 224, cuts=True),
    "Bit": _Processor(("bit", "dinov2", "focalnet", "hiera"), (224,), 224, cuts=True),
    "MobileNetV1": _Processor(("mobilenet_v1",), (256,), 224, interpolation=2, cuts=True),
    "MobileNetV2": _Processor(("mobilenet_v2",), (256,), 224, interpolation=2, cuts=True),
    "EfficientNet": _Processor(("efficientnet",), (346, 346), 289, square=True),
    "ConvNext": _Processor(("convnext", "convnextv2", "cvt", "resnet", "regnet"), (SQUASHED,)),
    "Levit": _Processor(("levit",), (224,), 224, cuts=True),
}
"""The image processors whose rules are known, by their names without `ImageProcessor`."""


def declared_steps(model: str) -> ImageSteps | str | None:
    """What the folder of a model does to images; a reason where it does something else; None where it says nothing.

    Only descriptions are read: no network is built.

    Args:
        model: what a command line names as the model.
    """
    folder = Path(model)
    if model.startswith(PREFIX) or is_timm(folder):
        known = pretrained_description(model)
        return None if known is None else timm_steps(known)
    processor = read_description(folder / PREPROCESSOR)
    return transformers_steps(processor, read_description(folder / CONFIG)) if processor else None


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
    if not whole or not isinstance(share, int | float) or share <= 0 or not known_mode or method not in CODES.values():
        return f"{mode!s:.20} to {height!r:.20} x {width!r:.20}, crop_pct {share!r:.20}, interpolation {method!s:.20}"
    sides = (height,) if mode == "center" else (height, width)
    return ImageSteps(tuple(math.floor(side / share) for side in sides), (height, width), method, "even")


def transformers_steps(processor: Mapping[str, Any], config: Mapping[str, Any]) -> ImageSteps | str:
    """What the image processor of transformers does to images, which `preprocessor_config.json` describes."""
    name = _name(processor, config)
    defaults = PROCESSORS.get(name)
    if defaults is None:
        return f"image processor {name:.40}"
    size = _size(processor.get("size"), defaults.size, defaults.square)
    crop = _size(processor.get("crop_size"), (defaults.crop,) * 2 if defaults.crop else (), square=True)
    method = CODES.get(processor.get("resample", defaults.interpolation))
    resizes, cuts = _flag(processor, "do_resize", True), _flag(processor, "do_center_crop", defaults.cuts)
    if resizes and (size is None or method is None):
        return f"size {processor.get('size')!r:.60}, resample {processor.get('resample')!r:.20}"
    steps = _resized(name, size, method, processor.get("crop_pct")) if resizes and size and method else ImageSteps()
    if not cuts or isinstance(steps, str):
        return steps
    if crop is None or len(crop) != 2 or steps.center_crop is not None or processor.get("do_pad"):
        return f"crop_size {processor.get('crop_size')!r:.60}"
    sides = steps.resize or crop
    if any(side < least for side, least in zip(sides * 2 if len(sides) == 1 else sides, crop, strict=True)):
        return f"the middle {crop[0]} x {crop[1]} of smaller images, with a border of zeros"
    return ImageSteps(steps.resize, crop, steps.interpolation, "down")


def _resized(name: str, size: tuple[int, ...], method: str, share: Any) -> ImageSteps | str:
    """How images are resized; the processor of ConvNeXt cuts them, too."""
    if name == "Levit" and len(size) == 1:
        return ImageSteps((int((256 / 224) * size[0]),), None, method)
    if name != "ConvNext":
        return ImageSteps(size, None, method)
    share = 224 / 256 if share is None else share
    if len(size) != 1 or not isinstance(share, int | float) or not 0 < share <= 1:
        return f"size {size}, crop_pct {share!r:.20}"
    side = size[0]
    if side >= SQUASHED:
        return ImageSteps((side, side), None, method)
    return ImageSteps((int(side / share),), (side, side), method, "down")


def _name(processor: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The name of the image processor without its ending; that of the model where the file names none."""
    named = processor.get("image_processor_type") or processor.get("feature_extractor_type")
    if isinstance(named, str):
        for ending in ("Fast", "Pil", "ImageProcessor", "FeatureExtractor"):
            named = named.removesuffix(ending)
        return named
    model = config.get("model_type")
    return next((name for name, one in PROCESSORS.items() if model in one.models), f"of {model}")


def _flag(processor: Mapping[str, Any], name: str, usual: bool) -> bool:
    found = processor.get(name)
    return usual if found is None else bool(found)


def _size(found: Any, usual: tuple[int, ...], square: bool) -> tuple[int, ...] | None:
    """Height and width, or the shorter side; None where it is neither."""
    if found is None:
        return usual
    if isinstance(found, Mapping):
        keys = ("shortest_edge",) if set(found) == {"shortest_edge"} else ("height", "width")
        sides: tuple[Any, ...] = tuple(found.get(key) for key in keys)
    else:
        sides = tuple(found) if isinstance(found, list | tuple) else (found, found) if square else (found,)
    whole = all(isinstance(side, int) and not isinstance(side, bool) and side > 0 for side in sides)
    return sides if whole and len(sides) in (1, 2) else None
