"""Networks of timm, by name or out of a folder, with weights from a local file."""

from __future__ import annotations

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

PREFIX = "timm:"
"""What a network is named by: `timm:resnet18`."""


def is_timm(folder: Path) -> bool:
    """Whether the description in a folder is one that timm wrote."""
    return isinstance(read_description(folder / CONFIG).get("architecture"), str)


def build_timm(spec: str, weights: Path | None) -> tuple[nn.Module, Declared]:
    """The network that `timm:NAME` stands for, with as many classes as the weights have; they are not loaded yet."""
    if weights is None:
        raise UsageError(f"{spec} has no weights yet; give them with --weights FILE")
    name = spec.removeprefix(PREFIX)
    module = _create(spec, name, {})
    known = _described(module)
    classes = rows_of(weights, f"{known.get('classifier')}.weight")
    if classes is not None and classes != getattr(module, "num_classes", classes):
        module = _create(spec, name, {"num_classes": classes})
    return module, Declared(numbers(known.get("mean")), numbers(known.get("std")))


def load_timm(folder: Path) -> tuple[nn.Module, Declared, str]:
    """The network in a folder that timm wrote, with what its files declare and their digest."""
    config, path = read_description(folder / CONFIG), folder / WEIGHTS
    if not path.is_file():
        raise ModelError("weights", f"{folder} holds no {WEIGHTS}, the only form of weights that is read")
    options = dict(config.get("model_args") or {})
    if isinstance(config.get("num_classes"), int):
        options["num_classes"] = config["num_classes"]
    module = _create(str(folder), str(config["architecture"]), options)
    load_weights(module, path)
    described = _described(module) | dict(config.get("pretrained_cfg") or {})
    mean, std = numbers(described.get("mean")), numbers(described.get("std"))
    return module, Declared(mean, std, names(config.get("label_names"))), digest_of([folder / CONFIG, path])


def pretrained_description(spec: str) -> dict[str, Any] | None:
    """What is known of a network's inputs without building it: by a folder, or by timm where a name is all there is."""
    if not spec.startswith(PREFIX):
        found = read_description(Path(spec) / CONFIG).get("pretrained_cfg")
        return dict(found) if isinstance(found, Mapping) else None
    known = getattr(_timm(spec), "get_pretrained_cfg", lambda name: None)(spec.removeprefix(PREFIX))
    return None if known is None else known.to_dict()


def evaluation_pixels(spec: str, description: Mapping[str, Any], image: Image.Image) -> np.ndarray:
    """Return the levels, 0 to 255, that timm's transform for evaluation makes of an image, `[C, H, W]`."""
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


def _described(module: nn.Module) -> dict[str, Any]:
    """What timm knows of a network."""
    known = (getattr(module, name, None) for name in ("pretrained_cfg", "default_cfg"))
    return dict(next((one for one in known if isinstance(one, Mapping)), {}))
