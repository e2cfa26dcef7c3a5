"""The file of a pseudo-margin: weights, recipe and points as safetensors, read without running anything."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

import brittle.store.files.writing
from brittle.detector.pseudo_margin.learned import Recipe, Regressor, blank
from brittle.errors import ArtefactError, ModelError, ParameterError
from brittle.store.files.strict_json import FormatProblem, dump, parse

MOST_BYTES = 2**28
"""Size of the largest file that is read."""


SUFFIX = ".safetensors"
"""What the name of a file must end in."""


def write(path: str | os.PathLike[str], recipe: Recipe, regressor: Regressor, points: Sequence[str]) -> Path:
    """Write weights, recipe and points to the `.safetensors` file `path`, and give that path."""
    path = Path(path)
    if path.suffix != SUFFIX:
        raise ParameterError(f"the file must end in {SUFFIX}; found {path.name!r}")
    weights = {name: tensor.contiguous() for name, tensor in regressor.state_dict().items()}
    ids = json.dumps(list(points)).encode()
    weights["points"] = torch.from_numpy(np.frombuffer(ids, np.uint8).copy())
    brittle.store.files.writing.write(path, safetensors.torch.save(weights, {"recipe": dump(recipe)}))
    return path


def read(path: str | os.PathLike[str]) -> tuple[Recipe, Regressor, tuple[str, ...]]:
    """Recipe, regressor and points of a file; nothing in it is run."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ModelError("other_model", f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return _decode(content)
    except (FormatProblem, safetensors.SafetensorError) as error:
        raise ArtefactError("file_refused", f"{path} is not a pseudo-margin: {error}; train it again") from error


def _decode(content: bytes) -> tuple[Recipe, Regressor, tuple[str, ...]]:
    """Recipe, regressor and points in the bytes of a file."""
    if len(content) > MOST_BYTES:
        raise FormatProblem(f"it has more than {MOST_BYTES:,} bytes")
    try:
        weights = safetensors.torch.load(content)
    except (LookupError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise FormatProblem(f"it holds types or shapes that PyTorch does not know ({reason})") from error
    recipe = parse(Recipe, _metadata(content).get("recipe", ""))
    _check_shapes(recipe, weights)
    points = _ids(weights.pop("points").numpy().tobytes())
    try:
        recipe.check_learned(len(points))
    except ParameterError as error:
        raise FormatProblem(str(error)) from error
    if points and recipe.data is None:
        raise FormatProblem("it does not say which data its points are of")
    regressor = blank(recipe)
    regressor.load_state_dict(weights)
    return recipe, regressor.requires_grad_(False).eval(), points


def _ids(content: bytes) -> tuple[str, ...]:
    """The ids in a JSON list."""
    try:
        found = json.loads(content.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise FormatProblem("the ids of its points are not JSON") from error
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise FormatProblem("the ids of its points are not a list of strings")
    return tuple(found)


def _metadata(content: bytes) -> dict[str, str]:
    """The metadata of a safetensors file that was found sound: a JSON header after its length in 8 bytes."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]).get("__metadata__") or {}


def _check_shapes(recipe: Recipe, weights: Mapping[str, Tensor]) -> None:
    """Raise unless `weights` are those of the network that `recipe` describes."""
    with torch.device("meta"):
        largest = max(recipe.width * recipe.features, recipe.classes * max(recipe.features, recipe.classes))
        sound = recipe.layers <= len(weights) and largest <= MOST_BYTES
        network = (recipe.features, recipe.classes, recipe.layers, recipe.width)
        expected = Regressor(*network).state_dict() if sound else {}
    shapes = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in expected.items()}
    found = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in weights.items() if name != "points"}
    if found != shapes:
        differing = sorted(name for name in found | shapes if found.get(name) != shapes.get(name))
        raise FormatProblem(f"its weights are not those of its recipe: {', '.join(differing[:5])!r:.200}")
    if "points" not in weights or weights["points"].dtype != torch.uint8 or weights["points"].dim() != 1:
        raise FormatProblem("it does not say which points it was trained on")
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise FormatProblem(f"{name} holds NaN or infinite values")
    if not bool((weights["std"] > 0).all()):
        raise FormatProblem("std holds values that are not positive")
    lengths = weights["lengths"]
    if not bool((lengths >= 0).all()) or bool(lengths.diagonal().any()) or not torch.allclose(lengths, lengths.mT):
        raise FormatProblem("lengths holds values that are no distances between the classes")
    if float(weights["scale"]) != recipe.scale:
        raise FormatProblem(f"its scale {float(weights['scale'])} is not that of its recipe, {recipe.scale}")
