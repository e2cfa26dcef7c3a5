"""What a model takes where it does not take the data: another shape, another number of rows, fewer columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.data.points import Points
from brittle.decisions import Decision
from brittle.errors import BrittleError, DataError, ModelError
from brittle.model.aside import Aside
from brittle.model.classifier import Classifier

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

LABEL_NAME = re.compile(r"(label|target|class|y)s?(\W|_|\d|$)", re.IGNORECASE)
"""How a column is often called that holds what is right."""


def explained(
    error: BrittleError,
    classifier: Classifier,
    inputs: Tensor,
    aside: Aside | None,
    points: Points | None,
    decision: Decision,
) -> BrittleError:
    """`error`, which the model gave on `inputs` `[V, *shape]`, or one that names what it takes instead."""
    columns = labels_among_features(classifier, inputs, points, decision)
    if columns is not None:
        return columns
    count = len(inputs) if points is None else len(points)
    unbatched = error.code == "output_shape" and inputs.dim() == 3  # layers of images take one without points, too
    if error.code in WRONG_SHAPE or unbatched:
        for changed, advice in _other_forms(inputs, count):
            if changed.shape != inputs.shape and _runs(classifier, changed):
                found = f"the model takes inputs of shape {list(changed.shape)}, found {list(inputs.shape)}"
                return ModelError("layout", f"{found}; {advice}")
    if error.code not in WRONG_SIZE:
        return error
    named = [int(number) for number in re.findall(r"\d+", str(error.__cause__ or error))]
    for size in dict.fromkeys((*named, *USUAL)):
        possible = 0 < size <= MOST_NUMBERS // inputs[0].numel() and size != len(inputs)
        if possible and failure(classifier, inputs, aside, size) is None:
            only = is_only(classifier, inputs, aside, size)
            return fixed_batch(size, len(inputs), error) if only else error
    return error


def _runs(classifier: Classifier, inputs: Tensor) -> bool:
    """Whether the model takes these inputs and gives an output for each."""
    try:
        with torch.no_grad():
            return len(classifier(inputs)) == len(inputs)
    except BrittleError:
        return False


def failure(classifier: Classifier, inputs: Tensor, aside: Aside | None, size: int) -> ModelError | None:
    """The error of a batch of `size` of the inputs, some of them again where they are few, if it is one of its size."""
    rows = torch.arange(size) % len(inputs)
    try:
        with torch.no_grad():
            classifier(inputs[rows], aside and aside.only(rows))
    except ModelError as error:
        return error if error.code in WRONG_SIZE else None
    return None


def is_only(classifier: Classifier, inputs: Tensor, aside: Aside | None, size: int) -> bool:
    """Whether the model fails on one row more and one less than `size`, on half as many and on twice as many."""
    others = {size - 1, size + 1, size // 2, 2 * size} - {0}
    return all(failure(classifier, inputs, aside, other) is not None for other in others)


def fixed_batch(size: int, other: int, error: BrittleError) -> ModelError:
    """The error for a model that takes `size` rows alone, where a batch of `other` rows gave `error`."""
    reason = str(error.__cause__ or error.args[0]).strip().partition("\n")[0]
    return ModelError(
        "fixed_batch",
        f"the model takes batches of {size} rows and no others ({other} rows: {reason}); this number is written into "
        f"it: take that of the input, x.flatten(1) in place of x.view({size}, -1), and give buffers and first states "
        f"no axis of {size} rows",
    )


def labels_among_features(
    classifier: Classifier, inputs: Tensor, points: Points | None, decision: Decision
) -> DataError | None:
    """The error for rows `[V, D]` of a table of which the model takes fewer columns; None where that is not so.

    The columns that it does not take are named: those that are called as labels are, else those that hold 0 and 1
    alone, else the last ones.
    """
    known = {} if points is None else points.provenance
    if known.get("format") != "table" or known.get("label_column") is not None or inputs.dim() != 2:
        return None
    width = inputs.shape[1]
    most = min(MOST_LABELS if decision.targets else 1, width - 1)
    extra = next((count for count in range(most + 1) if _runs(classifier, inputs[:, : width - count])), 0)
    if not extra:
        return None
    names = [str(name) for name in known.get("feature_names") or range(width)]
    yes_no = ((inputs == 0) | (inputs == 1)).all(dim=0).tolist()
    called = [name for name in names if LABEL_NAME.match(name)]
    marked = [name for name, fits in zip(names, yes_no, strict=True) if fits]
    found = ",".join(next((each for each in (called, marked) if len(each) == extra), names[-extra:]))
    return DataError(
        "labels",
        f"the model takes {width - extra} numbers a row and {known['path']} has {width} columns of features, of which "
        f"{found} look like what is right for a row: name them with --label-column {found!r} (label_column={found!r})",
    )


def _other_forms(inputs: Tensor, count: int) -> Iterator[tuple[Tensor, str]]:
    """Other forms of the inputs, and what to do where the model takes them."""
    axes, shape = inputs.dim(), inputs.shape
    colours = "the model wants colours: use --mode RGB (mode='RGB') for image files, or give"
    if axes == 4:
        channels_last = "the data look channels-last: use --layout nhwc (layout='nhwc'), or give x.permute(0, 3, 1, 2)"
        wrapped = "the model wants channels last: wrap it in a module that begins with x = x.permute(0, 2, 3, 1)"
        grey = "the model wants grey images: use --mode L (mode='L') for image files, or give x.mean(1, keepdim=True)"
        yield inputs.permute(0, 3, 1, 2), channels_last
        yield inputs.permute(0, 2, 3, 1), wrapped
        yield inputs.mT, "height and width look swapped: give x.permute(0, 1, 3, 2)"
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
            if side > 1 and channels * side**2 == shape[1]:
                for form in ((channels, side, side), (side, side, channels), *[(side, side)] * (channels == 1)):
                    advice = f"the model wants images: give x.reshape(-1, {', '.join(map(str, form))}), if they lie so"
                    yield inputs.reshape(-1, *form), advice
    if axes == 3:
        yield inputs[:, None].expand(-1, 3, -1, -1), f"{colours} x[:, None].repeat(1, 3, 1, 1)"
        yield inputs.mT, "the two axes of a point look swapped: give x.permute(0, 2, 1)"
        yield inputs[..., None], "the model wants an axis of channels at the end: give x[..., None]"
    if axes > 2:
        flat = "the model takes rows of numbers: give x.reshape(len(x), -1), or begin it with torch.nn.Flatten()"
        yield inputs.flatten(1), flat
