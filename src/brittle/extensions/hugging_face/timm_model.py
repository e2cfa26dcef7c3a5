"""Networks of timm, by name or from a folder, with weights from a local file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import nn

from brittle.errors import ModelError, UsageError, first_line
from brittle.extensions.hugging_face.description import CONFIG, WEIGHTS, digest_of, names, numbers, read_description
from brittle.model.loading.load import Declared
from brittle.model.loading.weights import load_weights, rows_of
from brittle.user_code import import_package

PREFIX = "timm:"  # prefix of a network's name: `timm:resnet18`


def is_timm(folder: Path) -> bool:
    """Return whether timm wrote the description in a folder."""
    return isinstance(read_description(folder / CONFIG).get("architecture"), str)


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
    return module, Declared(numbers(description.get("mean")), numbers(description.get("std")))


def load_timm(folder: Path) -> tuple[nn.Module, Declared, str]:
    """Load the network in a folder that timm wrote; return it with the declarations of its files and their digest."""
    config, path = read_description(folder / CONFIG), folder / WEIGHTS
    if not path.is_file():
        raise ModelError("weights", f"{folder} holds no {WEIGHTS}, the only supported form of weights")
    options = dict(config.get("model_args") or {})
    if isinstance(config.get("num_classes"), int):
        options["num_classes"] = config["num_classes"]
    module = _create(str(folder), str(config["architecture"]), options)
    load_weights(module, path)
    description = _describe(module) | dict(config.get("pretrained_cfg") or {})
    mean, std = numbers(description.get("mean")), numbers(description.get("std"))
    return module, Declared(mean, std, names(config.get("label_names"))), digest_of([folder / CONFIG, path])


def pretrained_description(spec: str) -> dict[str, Any] | None:
    """Return the description of a network's inputs without building it: from its folder, or from timm by its name."""
    if not spec.startswith(PREFIX):
        pretrained = read_description(Path(spec) / CONFIG).get("pretrained_cfg")
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
