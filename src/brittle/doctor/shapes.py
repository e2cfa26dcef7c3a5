"""What a model takes where it does not take the data: another shape, another number of rows, fewer columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.doctor.subject import Subject
from brittle.errors import BrittleError, DataError, ModelError

FEW = 4
"""At most so many rows are taken for one image without a batch axis: its channels."""

WRONG_SHAPE, WRONG_SIZE = ("model_failed", "input_shape", "parameter"), ("model_failed", "output_shape")
"""Codes that inputs of another layout, and batches of the wrong size, end with."""

USUAL = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 250, 256, 500, 512, 1000, 1024)
"""Numbers of rows that people write into a network, tried where it does not take the first batch."""

MOST_NUMBERS = 2**24
"""Numbers that a batch may hold which is tried for its size."""

MOST_LABELS = 64
"""Columns that are at most taken for labels."""


def explained(error: BrittleError, subject: Subject) -> BrittleError:
    """`error`, which the model gave on the points, or one that names what it takes instead."""
    inputs, points = subject.inputs, subject.points
    known = subject.provenance
    if known.get("format") == "table" and known.get("label_column") is None and inputs.dim() == 2:
        width = inputs.shape[1]
        most = min(MOST_LABELS if subject.decision.targets else 1, width - 1)
        extra = next((count for count in range(1, most + 1) if _runs(subject, inputs[:, : width - count])), 0)
        if extra:
            return DataError(
                "labels",
                f"the model takes {width - extra} numbers a row and {known['path']} has {width} columns of features: "
                f"name {'that' if extra == 1 else f'the {extra}'} of what is right for a row with --label-column NAME "
                f"(label_column='NAME'), several with commas between them",
            )
    unbatched = error.code == "output_shape" and inputs.dim() == 3  # layers of images take one without points, too
    if error.code in WRONG_SHAPE or unbatched:
        for changed, advice in _other_forms(inputs, len(inputs) if points is None else len(points)):
            if changed.shape != inputs.shape and _runs(subject, changed):
                found = f"the model takes inputs of shape {list(changed.shape)}, found {list(inputs.shape)}"
                return ModelError("layout", f"{found}; {advice}")
    if error.code in WRONG_SIZE:
        named = [int(number) for number in re.findall(r"\d+", str(error.__cause__ or error))]
        for size in dict.fromkeys((*named, *USUAL)):
            possible = 0 < size <= MOST_NUMBERS // inputs[0].numel() and size != len(inputs)
            if possible and not _fails(subject, size):
                return fixed_batch(size, len(inputs), error) if is_only(subject, size) else error
    return error


def _runs(subject: Subject, inputs: Tensor) -> bool:
    """Whether the model takes these inputs and gives an output for each."""
    try:
        with torch.no_grad():
            return len(subject.classifier(inputs)) == len(inputs)
    except BrittleError:
        return False


def _fails(subject: Subject, size: int) -> bool:
    """Whether the model fails on so many of the points, some of them again where they are few, by their number."""
    try:
        subject.logits_of(subject.inputs[torch.arange(size) % len(subject.inputs)])
    except ModelError as error:
        return error.code in WRONG_SIZE
    return False


def is_only(subject: Subject, size: int) -> bool:
    """Whether the model fails on one row more and one less than `size`, on half as many and on twice as many."""
    return all(_fails(subject, other) for other in {size - 1, size + 1, size // 2, 2 * size} - {0})


def fixed_batch(size: int, other: int, error: BrittleError) -> ModelError:
    """The error for a model that takes `size` rows alone, where a batch of `other` rows gave `error`."""
    reason = str(error.__cause__ or error.args[0]).strip().partition("\n")[0]
    return ModelError(
        "fixed_batch",
        f"the model takes batches of {size} rows and no others ({other} rows: {reason}); this number is written into "
        f"it: take that of the input, x.flatten(1) in place of x.view({size}, -1), and give buffers and first states "
        f"no axis of {size} rows",
    )


def _other_forms(inputs: Tensor, count: int) -> Iterator[tuple[Tensor, str]]:
    """Other forms of the inputs, and what to do where the model takes them."""
    axes, shape = inputs.dim(), inputs.shape
    colours = "the model wants colours: use --mode RGB (mode='RGB') for image files, or give"
    if axes == 4:
        channels_last = "the data look channels-last: use --layout nhwc (layout='nhwc'), or give x.permute(0, 3, 1, 2)"
        grey = "the model wants grey images: use --mode L (mode='L') for image files, or give x.mean(1, keepdim=True)"
        yield inputs.permute(0, 3, 1, 2), channels_last
        yield (
            inputs.permute(0, 2, 3, 1),
            "the model wants channels last: wrap it in a module that begins with x = x.permute(0, 2, 3, 1)",
        )
        if shape[1] == 1:
            yield inputs[:, 0], "the model takes grey images without an axis of channels: give x[:, 0]"
            yield inputs.expand(-1, 3, -1, -1), f"{colours} x.repeat(1, 3, 1, 1)"
        if shape[1] == 3:
            yield inputs.mean(dim=1, keepdim=True), grey
    if axes == 3:
        yield inputs[:, None], "give each grey image an axis of channels: x[:, None]"
    if axes in (2, 3) and count == len(inputs) and (axes == 2 or count <= FEW):
        yield inputs[None], "the data seem to be one input without an axis of points: give x[None], and one label"
    if axes == 2:
        for channels in (1, 3):  # square images, grey or of three channels
            side = math.isqrt(shape[1] // channels)
            form = (channels, side, side)
            if side > 1 and channels * side**2 == shape[1]:
                yield inputs.reshape(-1, *form), f"the model wants images: give x.reshape{(-1, *form)}, if they lie so"
    if axes == 3:
        yield inputs[:, None].expand(-1, 3, -1, -1), f"{colours} x[:, None].repeat(1, 3, 1, 1)"
        yield inputs.mT, "the two axes of a point look swapped: give x.permute(0, 2, 1)"
    if axes > 2:
        flat = "the model takes rows of numbers: give x.reshape(len(x), -1), or begin it with torch.nn.Flatten()"
        yield inputs.flatten(1), flat
