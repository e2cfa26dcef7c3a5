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

FAILURES = ("model_failed", "input_shape", "mean", "std")
"""What inputs of another layout end with: the model does not take them, or mean and std are not of their channels."""


def with_shape(error: BrittleError, classifier: Classifier, inputs: Tensor, count: int) -> BrittleError:
    """`error`, which running the model on `inputs` gave, or one that names the shape that it takes instead.

    Args:
        error: what was raised.
        classifier: the model, in evaluation mode.
        inputs: `[V, *shape]`.
        count: how many points the data have.
    """
    unbatched = error.code == "output_shape" and inputs.dim() == 3  # layers of images take one without points, too
    if error.code not in FAILURES and not unbatched:
        return error
    for changed, advice in _others(inputs, count):
        if runs(classifier, changed):
            return ModelError(
                "layout",
                f"the model takes inputs of shape {list(changed.shape)}, found {list(inputs.shape)}; {advice}",
            )
    return error


def runs(classifier: Classifier, inputs: Tensor) -> bool:
    """Whether the model takes these inputs and gives an output for each; the passes are not counted."""
    try:
        with torch.no_grad():
            return len(copy(classifier)(inputs)) == len(inputs)
    except BrittleError:
        return False


def _others(inputs: Tensor, count: int) -> Iterator[tuple[Tensor, str]]:
    """Other forms of the inputs, and what to do where the model takes them."""
    if inputs.dim() == 4:
        yield from _other_axes(inputs)
        yield from _other_channels(inputs)
    if inputs.dim() == 3:
        yield inputs[:, None], "give each grey image an axis of channels: x[:, None]"
    if inputs.dim() in (2, 3) and count == len(inputs) and (inputs.dim() == 2 or count <= FEW):
        yield inputs[None], "the data seem to be one input without an axis of points: give x[None], and one label"
    if inputs.dim() == 2:
        yield from _images(inputs)
    if inputs.dim() == 3:
        yield from _three_axes(inputs)
    if inputs.dim() > 2:
        yield (
            inputs.flatten(1),
            "the model takes rows of numbers: give x.reshape(len(x), -1), or begin it with torch.nn.Flatten()",
        )


def _other_axes(inputs: Tensor) -> Iterator[tuple[Tensor, str]]:
    """Images whose axes stand in another order."""
    yield (
        inputs.permute(0, 3, 1, 2),
        "the data look channels-last: use --layout nhwc (layout='nhwc'), or give x.permute(0, 3, 1, 2)",
    )
    yield (
        inputs.permute(0, 2, 3, 1),
        "the model wants channels last: wrap it in a module whose forward begins with x = x.permute(0, 2, 3, 1)",
    )
    if inputs.shape[2] != inputs.shape[3]:
        yield inputs.mT, "height and width look swapped: give x.permute(0, 1, 3, 2)"
    if inputs.shape[1] == 1:
        yield inputs[:, 0], "the model takes grey images without an axis of channels: give x[:, 0]"


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


def _three_axes(inputs: Tensor) -> Iterator[tuple[Tensor, str]]:
    """Grey images without an axis of channels, or series, `[V, M, N]`, in other forms."""
    yield (
        inputs[:, None].expand(-1, 3, -1, -1),
        "the model wants colours and an axis of channels: give x[:, None].repeat(1, 3, 1, 1)",
    )
    if inputs.shape[1] != inputs.shape[2]:
        yield inputs.mT, "the two axes of a point look swapped: give x.permute(0, 2, 1)"
    yield inputs[..., None], "the model wants an axis of channels at the end: give x[..., None]"


def _images(inputs: Tensor) -> Iterator[tuple[Tensor, str]]:
    """Rows of numbers as square images."""
    for channels in (1, 3):
        side = math.isqrt(inputs.shape[1] // channels)
        if side > 1 and channels * side * side == inputs.shape[1]:
            first, last, none = (channels, side, side), (side, side, channels), (side, side)
            for shape in (first, last, none) if channels == 1 else (first, last):
                advice = f"the model wants images: give x.reshape(-1, {', '.join(map(str, shape))}), if they lie so"
                yield inputs.reshape(-1, *shape), advice
