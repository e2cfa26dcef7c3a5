"""Networks of timm, by name or out of a folder, with weights from a local file."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
from torch import nn

from brittle.errors import ArtefactError, ModelError, UsageError
from brittle.model.loading.declared import CONFIG, WEIGHTS, Declared, digest_of, numbers, read_description
from brittle.model.loading.weights import load_weights

PREFIX = "timm:"
"""What a network is named by: `timm:resnet18`."""


def is_timm(folder: Path) -> bool:
    """Whether the description in a folder is one that timm wrote."""
    return isinstance(read_description(folder / CONFIG).get("architecture"), str)


def build_timm(spec: str, weights: Path | None) -> tuple[nn.Module, Declared]:
    """The network that `timm:NAME` stands for, with as many classes as the weights have; they are not loaded yet.

    Raises:
        UsageError: there are no weights, which would otherwise be downloaded or random.
        ModelError: timm is not installed, or knows no such network.
    """
    if weights is None:
        raise UsageError(f"{spec} has no weights yet; give them with --weights FILE.safetensors")
    timm = _timm(spec)
    module = _created(timm, spec, spec.removeprefix(PREFIX), {})
    known = _described(module)
    classifier = known.get("classifier")
    classes = _rows_of(weights, f"{classifier}.weight") if isinstance(classifier, str) else None
    if classes is not None and classes != getattr(module, "num_classes", classes):
        module = _created(timm, spec, spec.removeprefix(PREFIX), {"num_classes": classes})
    return module, _declared(known, None)


def load_timm(folder: Path) -> tuple[nn.Module, Declared, str]:
    """The network in a folder that timm wrote, with what its files declare and their digest.

    Raises:
        ArtefactError: the weights are no sound `.safetensors` file.
        ModelError: timm is not installed or does not know the network, or its weights do not fit.
    """
    config = read_description(folder / CONFIG)
    path = folder / WEIGHTS
    if not path.is_file():
        raise ModelError("weights", f"{folder} holds no {WEIGHTS}, the only form of weights that is read")
    options = {key: value for key, value in dict(config.get("model_args") or {}).items() if isinstance(key, str)}
    if isinstance(config.get("num_classes"), int):
        options["num_classes"] = config["num_classes"]
    module = _created(_timm(str(folder)), str(folder), str(config["architecture"]), options)
    load_weights(module, path)
    described = _described(module) | dict(config.get("pretrained_cfg") or {})
    return module, _declared(described, config.get("label_names")), digest_of([folder / CONFIG, path])


def pretrained_description(spec: str) -> dict[str, Any] | None:
    """What is known of a network's inputs without building it: by a folder, or by timm where a name is all there is."""
    if not spec.startswith(PREFIX):
        found = read_description(Path(spec) / CONFIG).get("pretrained_cfg")
        return dict(found) if isinstance(found, Mapping) else None
    known = getattr(_timm(spec), "get_pretrained_cfg", lambda name: None)(spec.removeprefix(PREFIX))
    return None if known is None else known.to_dict()


def _timm(spec: str) -> Any:
    try:
        return importlib.import_module("timm")
    except (ImportError, RuntimeError) as error:  # torchvision for another PyTorch raises a RuntimeError
        raise ModelError(
            "not_installed",
            f"{spec} needs timm and the torchvision that fits PyTorch, which cannot be imported ({error}); install "
            f"both, or export the network to FILE.pt2 where they are",
        ) from error


def _created(timm: Any, spec: str, name: str, options: Mapping[str, Any]) -> nn.Module:
    try:
        return timm.create_model(name, pretrained=False, **options).eval()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError("model_file", f"timm {timm.__version__} cannot build {spec}: {reason}") from error


def _described(module: nn.Module) -> dict[str, Any]:
    """What timm knows of a network."""
    for name in ("pretrained_cfg", "default_cfg"):
        found = getattr(module, name, None)
        if isinstance(found, Mapping):
            return dict(found)
    return {}


def _rows_of(path: Path, name: str) -> int | None:
    """The first size of one tensor in a `.safetensors` file; None where there is no such tensor."""
    if path.suffix != ".safetensors" or not path.is_file():
        return None  # loading them says what is wrong
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return file.get_slice(name).get_shape()[0] if name in file.keys() else None  # noqa: SIM118
    except (safetensors.SafetensorError, IndexError) as error:
        raise ArtefactError("file_refused", f"{path} is not a sound .safetensors file: {error}") from error


def _declared(known: Mapping[str, Any], names: Any) -> Declared:
    size = known.get("input_size")
    sides = tuple(size[-2:]) if isinstance(size, list | tuple) and len(size) == 3 else None
    named = names if isinstance(names, list) and all(isinstance(name, str) and name for name in names) else None
    unique = named is not None and len(set(named)) == len(named)
    return Declared(
        numbers(known.get("mean")),
        numbers(known.get("std")),
        (int(sides[0]), int(sides[1])) if sides is not None else None,
        tuple(named) if named is not None and unique else None,
    )
