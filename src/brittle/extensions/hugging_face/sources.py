"""Folders of models, models of the Hub and networks of timm by name; and how they prepare images.

The rules of size, crop of the middle, interpolation and rounding are those of the image processors of transformers
(`image_processing_*.py`) and of `timm.data` for evaluation (`resolve_data_config`, `transforms_imagenet_eval`).
"""

import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import nn

from brittle.data.images import INTERPOLATIONS, UNCHANGED, ImageSteps, pixels_of
from brittle.errors import ModelError, UsageError, first_line
from brittle.extensions.hugging_face import hugging_face as hub
from brittle.model.loading.load import Declared, LoadedModel, Source, network_advice
from brittle.model.loading.weights import load_weights, rows_of
from brittle.user_code import import_package

PREFIX = "timm:"  # prefix of a network's name: `timm:resnet18`


def is_timm(folder: Path) -> bool:
    """Return whether timm wrote the description in a folder."""
    return isinstance(hub.read_description(folder / hub.CONFIG).get("architecture"), str)


def build_timm(spec: str, weights: Path | None) -> tuple[nn.Module, Declared]:
    """Build the network `timm:NAME` with as many classes as the weights have, without loading them."""
    if weights is None:
        raise UsageError(f"{spec} has no weights yet; give them with --weights FILE")
    name = spec.removeprefix(PREFIX)
    module = _create(spec, name, {})
    description = _describe(module)
    classes = rows_of(weights, f"{description.get('classifier')}.weight")
    if classes is not None and classes != getattr(module, "num_classes", classes):
        module = _create(spec, name, {"num_classes": classes})
    return module, Declared(hub.numbers(description.get("mean")), hub.numbers(description.get("std")))


def load_timm(folder: Path) -> tuple[nn.Module, Declared, str]:
    """Load the network in a folder that timm wrote; return it with the declarations of its files and their digest."""
    config, path = hub.read_description(folder / hub.CONFIG), folder / hub.WEIGHTS
    if not path.is_file():
        raise ModelError("weights", f"{folder} holds no {hub.WEIGHTS}, the only supported form of weights")
    options = dict(config.get("model_args") or {})
    if isinstance(config.get("num_classes"), int):
        options["num_classes"] = config["num_classes"]
    module = _create(str(folder), str(config["architecture"]), options)
    load_weights(module, path)
    description = _describe(module) | dict(config.get("pretrained_cfg") or {})
    mean, std = hub.numbers(description.get("mean")), hub.numbers(description.get("std"))
    return module, Declared(mean, std, hub.names(config.get("label_names"))), hub.digest_of([folder / hub.CONFIG, path])


def pretrained_description(spec: str) -> dict[str, Any] | None:
    """Return the description of a network's inputs without building it: from its folder, or from timm by its name."""
    if not spec.startswith(PREFIX):
        pretrained = hub.read_description(Path(spec) / hub.CONFIG).get("pretrained_cfg")
        return dict(pretrained) if isinstance(pretrained, Mapping) else None
    config = getattr(_timm(spec), "get_pretrained_cfg", lambda name: None)(spec.removeprefix(PREFIX))
    return None if config is None else config.to_dict()


def evaluation_pixels(spec: str, description: Mapping[str, Any], image: Image.Image) -> np.ndarray:
    """Return the levels, 0 to 255, of an image after timm's transform for evaluation, `[C, H, W]`."""
    data = _timm(spec).data
    plain = {**description, "mean": (0.0,) * 3, "std": (1.0,) * 3}
    try:
        pixels = data.create_transform(**data.resolve_data_config(pretrained_cfg=plain))(image)
    except Exception as error:
        raise ModelError("model_file", f"timm cannot prepare images for {spec}: {first_line(error)}") from error
    return np.rint(255 * np.asarray(pixels))


def _timm(spec: str) -> Any:
    return import_package("timm", spec, "install it and the torchvision that fits PyTorch, or export the network there")


def _create(spec: str, name: str, options: Mapping[str, Any]) -> nn.Module:
    timm = _timm(spec)
    try:
        return timm.create_model(name, pretrained=False, **options).eval()
    except Exception as error:
        raise ModelError("model_file", f"timm {timm.__version__} cannot build {spec}: {first_line(error)}") from error


def _describe(module: nn.Module) -> dict[str, Any]:
    descriptions = (getattr(module, name, None) for name in ("pretrained_cfg", "default_cfg"))
    return dict(next((description for description in descriptions if isinstance(description, Mapping)), {}))


CODES = dict(enumerate(INTERPOLATIONS))  # the interpolations of Pillow by the numbers in image processors
SMALLEST = 32  # shortest side, at least, of the images that test a processor's steps


def declared_steps(model: str) -> ImageSteps | str | None:
    """Return the steps that the folder of a model declares for images; a reason where they are not supported; None
    where it declares none. Only descriptions are read: no network is built.

    The steps are checked on some images against timm, or the image processor of transformers.
    """
    folder = hub.locate(model)[1]
    if model.startswith(PREFIX) or is_timm(folder):
        spec = os.fspath(folder)
        description = pretrained_description(spec)
        if description is None:
            return None
        steps, name, prepare = timm_steps(description), "timm", partial(evaluation_pixels, spec, description)
    else:
        processor = hub.image_processor(folder)
        if processor is None:
            return None
        steps, name = transformers_steps(processor.to_dict()), type(processor).__name__
        prepare = partial(hub.run_processor, processor, do_rescale=False, do_normalize=False)
    if not isinstance(steps, ImageSteps):
        return steps
    try:
        return steps if _is_same(prepare, steps) else f"{name} gives other pixels than images {steps.words}"
    except ModelError as error:
        return str(error.args[0])


def _is_same(prepare: Callable[[Image.Image], np.ndarray], steps: ImageSteps) -> bool:
    """Return whether random images of four sizes get the levels that `prepare` gives them, `[C, H, W]`."""
    draw = np.random.default_rng(0)
    side = max(*(steps.center_crop or (1,)), *(steps.resize or (1,)), SMALLEST)
    small = side // 2 + 3 if steps.resize else side
    for size in ((side, side), (side + 17, side + 40), (2 * side + 31, side + 5), (small, small + 7)):
        image = Image.fromarray(draw.integers(0, 256, (*size, 3), dtype=np.uint8))
        if not np.array_equal(prepare(image), pixels_of(image, "RGB", steps).numpy()):
            return False
    return True


def timm_steps(description: Mapping[str, Any]) -> ImageSteps | str | None:
    """Return the steps of `timm.data` for evaluation by `pretrained_cfg`.

    The shorter side, or both, are resized to the size over `crop_pct`, rounded down; then the middle is cropped.
    """
    size, share = description.get("input_size"), description.get("crop_pct") or 0.875
    mode, method = description.get("crop_mode") or "center", description.get("interpolation") or "bicubic"
    if not isinstance(size, list | tuple) or len(size) != 3:
        return None
    height, width = size[1:]
    has_sides = all(isinstance(side, int) and side > 0 for side in (height, width))
    is_supported = (mode == "squash" or (mode == "center" and height == width)) and method in INTERPOLATIONS
    if not has_sides or not isinstance(share, int | float) or share <= 0 or not is_supported:
        return f"{mode!s:.20} to {height!r:.20} x {width!r:.20}, crop_pct {share!r:.20}, interpolation {method!s:.20}"
    sides = (height,) if mode == "center" else (height, width)
    return ImageSteps(tuple(math.floor(side / share) for side in sides), (height, width), method, "even")


def transformers_steps(processor: Mapping[str, Any]) -> ImageSteps | str:
    """Return the steps of an image processor of transformers with these options."""
    resizes, method = processor.get("do_resize"), CODES.get(processor.get("resample", -1))
    size, crop = _sides(processor.get("size")), _sides(processor.get("crop_size"))
    if resizes and (not size or method is None):
        return f"size {processor.get('size')!s:.60}, resample {processor.get('resample')!s:.20}"
    steps = ImageSteps(size, None, method) if resizes else UNCHANGED
    if not processor.get("do_center_crop"):
        return steps
    if len(crop) != 2 or processor.get("do_pad"):
        return f"crop_size {processor.get('crop_size')!s:.60}"
    sides = steps.resize or crop
    if any(side < crop_side for side, crop_side in zip(sides * 2 if len(sides) == 1 else sides, crop, strict=True)):
        return f"the middle {crop[0]} x {crop[1]} of smaller images, with a border of zeros"
    return ImageSteps(steps.resize, (crop[0], crop[1]), steps.interpolation, "down")


def _sides(size: Any) -> tuple[int, ...]:
    """Return height and width, or the shorter side, from a processor's size; empty where it is neither, in pixels."""
    names: set[Any] = set(size) if isinstance(size, Mapping) else set()  # old versions leave a number as it is
    keys = next((keys for keys in (("height", "width"), ("shortest_edge",)) if names == set(keys)), ())
    lengths = tuple(size[key] for key in keys)
    return lengths if all(type(side) is int and side > 0 for side in lengths) else ()


def _find(name: str) -> tuple[str, Path]:
    recorded, folder = hub.locate(name)
    if not hub.is_hugging_face(folder):
        raise UsageError(
            f"{name} is a folder without {hub.CONFIG}; a model of Hugging Face has one, and DATA comes second; "
            f"{network_advice()}"
        )
    return recorded, folder


def _load_folder(name: str, _: Path | None) -> LoadedModel:
    recorded, folder = _find(name)
    form, load = ("timm", load_timm) if is_timm(folder) else ("transformers", hub.load_hugging_face)
    module, declared, digest = load(folder)
    facts = {"spec": recorded, "format": form, "file": os.fspath(folder), "sha256": digest}
    return LoadedModel(module, facts, declared)


def _load_timm(name: str, weights: Path | None) -> LoadedModel:
    module, declared = build_timm(name, weights)
    return LoadedModel(module, {"format": "timm"}, declared)


FOLDER = Source(_load_folder, _find, reads_texts=hub.reads_texts, image_steps=declared_steps)
"""Folders as transformers and timm write them, and models of the Hub, `hf:OWNER/NAME`, `hf:OWNER/NAME@REVISION`."""

TIMM = Source(_load_timm, lambda _: None, takes_weights=True, image_steps=declared_steps)
