"""A shape that the model takes, where it does not take that of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy

import torch
from torch import Tensor

from brittle.errors import BrittleError, ModelError
from brittle.model.classifier import Classifier

FEW = 4
"""At most so many rows are taken for one image without a batch axis: its channels."""

_GIVE = "; give inputs of the shape"
"""Where the general advice of `model_failed` begins, in place of which a found shape is named."""


def with_shape(error: ModelError, classifier: Classifier, inputs: Tensor, count: int) -> ModelError:
    """`error`, which running the model on `inputs` gave, with the shape that it takes instead, if one is found.

    Args:
        error: what was raised.
        classifier: the model, in evaluation mode.
        inputs: `[V, *shape]`.
        count: how many points the data have.
    """
    unbatched = error.code == "output_shape" and inputs.dim() == 3  # layers of images take one without points, too
    if error.code != "model_failed" and not unbatched:
        return error
    for changed, advice in _others(inputs, count):
        if _runs(classifier, changed):
            said = str(error.args[0]).partition(_GIVE)[0]
            return ModelError(error.code, f"{said}; it runs on {list(changed.shape)}, so {advice}")
    return error


def _runs(classifier: Classifier, inputs: Tensor) -> bool:
    try:
        with torch.no_grad():
            return len(copy(classifier)(inputs)) == len(inputs)
    except BrittleError:
        return False


def _others(inputs: Tensor, count: int) -> Iterator[tuple[Tensor, str]]:
    """Other forms of the inputs, and what to do where the model takes them."""
    if inputs.dim() == 4:
        yield (
            inputs.permute(0, 3, 1, 2),
            "the data look channels-last: use --layout nhwc (layout='nhwc'), or give x.permute(0, 3, 1, 2)",
        )
        yield (
            inputs.permute(0, 2, 3, 1),
            "the model wants channels last: wrap it in a module whose forward begins with x = x.permute(0, 2, 3, 1)",
        )
        yield from _other_channels(inputs)
    if inputs.dim() == 3:
        yield inputs[:, None], "give each grey image an axis of channels: x[:, None]"
    if inputs.dim() in (2, 3) and count == len(inputs) and (inputs.dim() == 2 or count <= FEW):
        yield inputs[None], "the data seem to be one input without an axis of points: give x[None], and one label"
    if inputs.dim() == 2:
        yield from _images(inputs)
    if inputs.dim() > 2:
        yield (
            inputs.flatten(1),
            "the model takes rows of numbers: give x.reshape(len(x), -1), or begin it with torch.nn.Flatten()",
        )


def _other_channels(inputs: Tensor) -> Iterator[tuple[Tensor, str]]:
    """Grey images as colours, and colours as grey ones."""
    if inputs.shape[1] == 1:
        yield (
            inputs.expand(-1, 3, -1, -1),
            "the model wants colours: use --mode RGB (mode='RGB') for image files, or give x.repeat(1, 3, 1, 1)",
        )
    if inputs.shape[1] == 3:
        yield (
            inputs.mean(dim=1, keepdim=True),
            "the model wants grey images: use --mode L (mode='L') for image files, or give x.mean(1, keepdim=True)",
        )


def _images(inputs: Tensor) -> Iterator[tuple[Tensor, str]]:
    """Rows of numbers as square images."""
    for channels in (1, 3):
        side = math.isqrt(inputs.shape[1] // channels)
        if side > 1 and channels * side * side == inputs.shape[1]:
            shape = (channels, side, side)
            advice = f"the model wants images: give x.reshape(-1, {', '.join(map(str, shape))}), if they lie so"
            yield inputs.reshape(-1, *shape), advice
