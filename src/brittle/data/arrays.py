"""Points held in arrays: tensors and NumPy arrays in memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.data.beside import aside_of, with_aside
from brittle.data.images import from_levels
from brittle.data.listed import InputChunk, ListedPoints
from brittle.data.no_array import plain_array, what_to_give
from brittle.data.options import ReadingOptions
from brittle.errors import DataError, ParameterError
from brittle.model.bounds import BoundsLike
from brittle.store.inputs import keeps

LAYOUTS = ("nchw", "nhwc")
"""Axis orders of image arrays: channels first, which models see, and channels last."""

CHANNEL_COUNTS = (1, 3, 4)
LONGEST_CHANNELS = 4
"""An array `(N, H, W, C)` with `C` among these and `H`, `W` above that is taken for channels last."""

LARGEST_LABEL = 2.0**31
"""Beyond it a number is no class index."""

_CHUNK = 1 << 12


def array_points(
    x: Tensor | np.ndarray,
    y: Any = None,
    ids: Sequence[Any] | np.ndarray | Tensor | None = None,
    class_names: Sequence[str] | None = None,
    *,
    bounds: BoundsLike = (0.0, 1.0),
    layout: str | None = None,
    scale_uint8: bool = False,
    feature_names: Sequence[str] | np.ndarray | None = None,
    targets: bool = False,
    beside: Mapping[str, Tensor | np.ndarray] | None = None,
    mask: str | Tensor | np.ndarray | None = None,
) -> ListedPoints:
    """Points in memory: copies of the arrays, which may be written over afterwards.

    Args:
        x: inputs `[N, *shape]`, floating point, in the declared units; they keep their device, and their precision
            where it is single or better.
        y: class index of each point, `[N]` or `[N, 1]`, whole numbers, or None.
        ids: id of each point, `[N]`, text or numbers; the row number by default.
        class_names: names of the classes in the order of their index.
        bounds: smallest and largest value of an input.
        layout: `nchw` or `nhwc` for image arrays; `nhwc` is transposed.
        scale_uint8: map whole numbers 0..255 (uint8) to the bounds.
        feature_names: name of each number of an input, in the order of its axes; a run that keeps its inputs
            (`brittle.store.inputs`) keeps them.
        targets: whether `y` holds several labels, `[N, L]`, 1 where one holds and 0 where it does not, or numbers,
            `[N]` or `[N, R]`; `class_names` are then the names of the labels.
        beside: other tensors of the points, `[N, ...]` each, by the names of the model's arguments that take them, such
            as `attention_mask`. They do not vary.
        mask: which coordinates of the inputs vary, where some are padding or must stay as they are: 1 or True where one
            does, for the first axes of an input, such as `[N, T]` for inputs `[N, T, E]`; or the name of one of
            `beside`. Noise, distances and gradients count these alone.

    Returns:
        the points.

    Raises:
        DataError: the arrays are not of this form; the code says what is wrong.
        ParameterError: `bounds` or `layout` are not of this form.
    """
    options = ReadingOptions(bounds=bounds, layout=layout, scale_uint8=scale_uint8, targets=targets)
    inputs = check_inputs(x, "x", options).clone(memory_format=torch.contiguous_format)
    points = held_points(inputs, y, ids, class_names, options, feature_names)
    return with_aside(points, aside_of(inputs, beside or {}, mask))


def held_points(
    inputs: Tensor, y: Any, ids: Any, class_names: Sequence[str] | None, options: ReadingOptions, feature_names: Any
) -> ListedPoints:
    """The points of inputs that were checked and that nobody else writes to; arguments as for `array_points`."""
    right = right_answers(y, "y", len(inputs), options)
    named = text_ids(ids, "ids", len(inputs))
    provenance = _memory_provenance(inputs, right, named) | named_features(feature_names, "feature_names", inputs)
    return list_points(inputs, right, named, class_names, options, provenance)


def array_chunks(inputs: Tensor, size: int, start: int, bounds: BoundsLike) -> Iterator[InputChunk]:
    """The rows of `inputs` from `start`, `size` at a time; uint8 is mapped to the bounds, half precision to single."""
    for rows in inputs[start:].split(size):
        if rows.dtype == torch.uint8:
            yield InputChunk(from_levels(rows, bounds))
        else:
            yield InputChunk(rows.float() if rows.element_size() < 4 else rows)


def check_labels(labels: np.ndarray, where: str, count: int) -> tuple[int, ...]:
    """Class indices as a tuple, `[N]`, from whole numbers `[N]` or `[N, 1]`, also such as 1.0 and True.

    Raises:
        DataError: they are of another kind, or not `count`.
    """
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 2:
        raise DataError(
            "labels",
            f"{where} has shape {labels.shape}, which looks one-hot; give class indices: {where.split()[0]}.argmax(1). "
            f"If several labels may hold at once, use --decision multilabel (decision='multilabel')",
        )
    if labels.dtype.kind in "US" or (labels.dtype.kind == "O" and any(isinstance(one, str) for one in labels.flat)):
        raise DataError(
            "labels",
            f"{where} holds text such as {str(labels[0])!r:.40}; class indices are whole numbers: with names "
            f"the names of the model's outputs in their order, give [names.index(one) for one in {where.split()[0]}]",
        )
    if labels.dtype.kind not in "iufb":
        raise DataError(
            "labels",
            f"{where} has type {labels.dtype}; class indices are whole numbers: convert with .astype('int64')",
        )
    labels = _whole(labels, where)
    if labels.ndim != 1 or len(labels) != count:
        raise DataError("shape", f"{where} has shape {labels.shape} for {count} points; expected one label each")
    return tuple(labels.tolist())


def _whole(labels: np.ndarray, where: str) -> np.ndarray:
    """The same numbers as integers.

    Raises:
        DataError: one is no whole number, or too large for a class index.
    """
    odd = np.argwhere((labels != np.floor(labels)) | (np.abs(labels.astype(np.float64)) > LARGEST_LABEL))
    if len(odd):
        first = labels[tuple(odd[0])].item()
        raise DataError(
            "labels",
            f"{where} holds {number_text(first)} in row {odd[0][0]}; class indices are {index_range(first)}: give "
            "those, or, where the model predicts a number, use --decision within:T (decision='within:T'), T being the "
            "tolerance",
        )
    return labels.astype(np.int64)


def number_text(label: float) -> str:
    """A label in a message; a whole number with all its digits."""
    return str(label) if isinstance(label, int) else f"{label:g}"


def index_range(label: float) -> str:
    """What class indices are, in the words that say why this number is none."""
    return "whole numbers" if not abs(label) > LARGEST_LABEL else f"whole numbers up to {LARGEST_LABEL:,.0f}"


def list_points(
    inputs: Tensor,
    right: RightAnswers,
    ids: tuple[str, ...],
    class_names: Sequence[str] | None,
    options: ReadingOptions,
    provenance: dict[str, Any],
) -> ListedPoints:
    return ListedPoints(
        ids=ids,
        read=partial(array_chunks, inputs, bounds=options.bounds),
        bounds=options.bounds,
        provenance=provenance if right.targets is None else provenance | {"targets": right.targets.shape[1]},
        labels=right.labels,
        targets=right.targets,
        class_names=None if class_names is None else tuple(class_names),
    )


def check_inputs(x: Any, where: str, options: ReadingOptions) -> Tensor:
    """Inputs `[N, *shape]` as a tensor of floating point numbers, or of uint8 that is to be mapped."""
    if options.layout is not None and options.layout not in LAYOUTS:
        raise ParameterError(f"layout must be one of {', '.join(LAYOUTS)}; found {options.layout!r}")
    inputs = x.detach() if isinstance(x, Tensor) else _tensor(x, where)
    check_dense(inputs, where)
    _check_dtype(inputs, where, options.scale_uint8)
    if inputs.dim() < 2 or 0 in inputs.shape[1:]:
        raise DataError("shape", f"{where} has shape {tuple(inputs.shape)}; expected (points, ...) with numbers in it")
    if options.layout == "nhwc":
        if inputs.dim() != 4:
            shape = tuple(inputs.shape)
            raise DataError(
                "layout", f"{where} has shape {shape}; the layout nhwc needs 4 axes, leave out --layout (layout=)"
            )
        return inputs.permute(0, 3, 1, 2).contiguous()
    if options.layout is None and _channels_last(inputs):
        raise DataError(
            "layout",
            f"{where} has shape {tuple(inputs.shape)}, which looks channels-last; use --layout nhwc (layout='nhwc') to "
            f"transpose it, or --layout nchw (layout='nchw') if the first axis after the points is the channels",
        )
    return inputs


def check_dense(inputs: Tensor, where: str) -> None:
    """Raise unless a tensor holds every number, in one shape.

    Raises:
        DataError: it is sparse, nested, or on the device meta.
    """
    if inputs.layout != torch.strided or inputs.is_nested or inputs.is_meta:
        kind = "meta" if inputs.is_meta else "nested" if inputs.is_nested else "sparse"
        instead = "x.to_dense()" if kind == "sparse" else "one that holds numbers, all of one shape"
        raise DataError("dtype", f"{where} is a {kind} tensor; give {instead}")


def _channels_last(inputs: Tensor) -> bool:
    if inputs.dim() != 4:
        return False
    height, width, channels = inputs.shape[1:]
    return channels in CHANNEL_COUNTS and min(height, width) > LONGEST_CHANNELS


def _tensor(x: Any, where: str) -> Tensor:
    if not isinstance(x, np.ndarray):
        raise DataError("dtype", f"expected a tensor or a NumPy array, found that {where} is {what_to_give(x)}")
    if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
        raise DataError("dtype", f"{where} has type {x.dtype}; expected floating point numbers, such as float32")
    x = plain_array(x, where)
    native = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("="))
    return torch.from_numpy(native if native.flags.writeable else native.copy())


def _check_dtype(inputs: Tensor, where: str, scale_uint8: bool) -> None:
    name = str(inputs.dtype).removeprefix("torch.")
    if scale_uint8 and inputs.dtype != torch.uint8:
        raise DataError("dtype", f"{where} has type {name}, not uint8; leave out --scale-uint8 (scale_uint8=)")
    if inputs.dtype == torch.uint8 and not scale_uint8:
        raise DataError(
            "dtype",
            f"{where} has type uint8; use --scale-uint8 (scale_uint8=True) to map 0..255 to the bounds, or convert to "
            f"float",
        )
    if not (inputs.is_floating_point() or inputs.dtype == torch.uint8):
        swapped = "; give (x, y), the inputs first" if inputs.dim() == 1 and name.startswith("int") else ""
        raise DataError("dtype", f"{where} has type {name}; expected floating point numbers, such as float32{swapped}")


@dataclass(frozen=True)
class RightAnswers:
    """What is right for each point, where the data say it.

    Attributes:
        labels: class indices, `[N]`, or None.
        targets: several labels or numbers, `[N, R]`, float64, or None.
    """

    labels: tuple[int, ...] | None = None
    targets: Tensor | None = None

    def first(self, count: int | None) -> RightAnswers:
        """Those of the first `count` points; None is all."""
        labels, targets = self.labels, self.targets
        return RightAnswers(None if labels is None else labels[:count], None if targets is None else targets[:count])


def right_answers(y: Any, where: str, count: int, options: ReadingOptions) -> RightAnswers:
    """Labels `[N]` or, with `options.targets`, targets `[N]` or `[N, R]`, of an array or a tensor; or None.

    Raises:
        DataError: they are of another kind, or not `count`.
    """
    if y is None or not options.targets:
        return RightAnswers(optional_labels(y, where, count))
    found = plain_array(y, where)
    if found.dtype.kind not in "iufb" or found.ndim not in (1, 2) or len(found) != count:
        raise DataError(
            "labels",
            f"{where} has type {found.dtype} and shape {found.shape} for {count} points; expected numbers, one or one "
            f"row for each point",
        )
    numbers = found.reshape(count, -1).astype(np.float64)
    odd = np.argwhere(~np.isfinite(numbers))
    if len(odd):
        raise DataError("labels", f"{where} holds {numbers[tuple(odd[0])]} in row {odd[0][0]}; give every number")
    return RightAnswers(targets=torch.from_numpy(numbers))


def optional_labels(y: Any, where: str, count: int) -> tuple[int, ...] | None:
    if y is None:
        return None
    return check_labels(plain_array(y, where), where, count)


def text_ids(ids: Any, where: str, count: int) -> tuple[str, ...]:
    if ids is None:
        return tuple(str(row) for row in range(count))
    found = plain_array(ids, where).reshape(-1).tolist()
    if len(found) != count:
        raise DataError("shape", f"{where} has {len(found)} entries for {count} points; expected one id each")
    return tuple(str(own) for own in found)


def named_features(names: Any, where: str, inputs: Tensor) -> dict[str, list[str]]:
    """What the record of a run holds of the names of features: nothing where there are none, or inputs are not kept.

    Raises:
        DataError: they are no texts, or not as many as an input `inputs[0]` has numbers.
    """
    if names is None:
        return {}
    found, numbers = np.asarray(names), math.prod(inputs.shape[1:])
    if found.size != numbers or found.dtype.kind != "U":
        raise DataError(
            "columns",
            f"{where} holds {found.size} entries of type {found.dtype} for inputs of {numbers} numbers; expected the "
            f"name of each as text",
        )
    return {"feature_names": found.reshape(-1).tolist()} if keeps(inputs.shape[1:]) else {}


def _memory_provenance(inputs: Tensor, right: RightAnswers, ids: tuple[str, ...]) -> dict[str, Any]:
    digest = hashlib.sha256(repr((str(inputs.dtype), tuple(inputs.shape), right.labels, ids)).encode())
    if right.targets is not None:
        digest.update(right.targets.numpy().tobytes())
    for rows in inputs.split(_CHUNK):
        digest.update(rows.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return {
        "format": "memory",
        "path": None,
        "split": None,
        "sha256": digest.hexdigest(),
        "points": len(inputs),
        "limit": None,
    }
