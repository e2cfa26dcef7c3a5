"""Points held in arrays: tensors and NumPy arrays in memory, and other tensors that a model takes with them."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.data.images import from_levels
from brittle.data.labels import answers_of, plain_array
from brittle.data.points import InputRows, ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import DataError, ParameterError
from brittle.model.bounds import BoundsLike
from brittle.model.inputs import ExtraInputs
from brittle.store.schemas import keeps


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
    extra_inputs: Mapping[str, Tensor | np.ndarray] | None = None,
    mask: str | Tensor | np.ndarray | None = None,
) -> ListedPoints:
    """Points in memory: copies of the arrays, which may be written over afterwards.

    Args:
        x: inputs `[N, *shape]`, floating point, in the declared units; they keep their device, and single precision or
            better.
        y: class index of each point, `[N]` or `[N, 1]`, whole numbers, or None.
        ids: id of each point, `[N]`, text or numbers; the row number by default.
        class_names: names of the classes in the order of their index.
        bounds: smallest and largest value of an input.
        layout: `nchw` or `nhwc` for image arrays; `nhwc` is transposed.
        scale_uint8: map whole numbers 0..255 (uint8) to the bounds.
        feature_names: name of each number of an input, in the order of its axes.
        targets: whether `y` holds several labels, `[N, L]`, 1 or 0, or numbers, `[N]` or `[N, R]`; `class_names` are
            then the names of the labels.
        extra_inputs: other tensors of the points, `[N, ...]` each, by the names of the model's arguments that take
            them, such as `attention_mask`. They do not vary.
        mask: which coordinates of the inputs vary: 1 or True where one does, for the first axes of an input, such as
            `[N, T]` for inputs `[N, T, E]`; or the name of one of `extra_inputs`. Noise, distances and gradients count
            these alone.

    Raises:
        DataError: the arrays are not of this form; the code says what is wrong.
        ParameterError: `bounds` or `layout` are not of this form.
    """
    reading = Reading(bounds=bounds, layout=layout, scale_uint8=scale_uint8, targets=targets)
    inputs = check_inputs(x, "x", reading).clone(memory_format=torch.contiguous_format)
    extra = extra_inputs_of(inputs, extra_inputs or {}, mask)
    return memory_points(inputs, y, ids, class_names, reading, feature_names, extra)


def memory_points(
    inputs: Tensor,
    y: Any,
    ids: Any,
    class_names: Sequence[str] | None,
    reading: Reading,
    feature_names: Any,
    extra: ExtraInputs | None = None,
) -> ListedPoints:
    """Return the points of inputs that were checked and that nobody else writes to; arguments as for `array_points`."""
    answers = answers_of(y, "y", len(inputs), reading.targets)
    answers |= {} if class_names is None else {"class_names": class_names}
    point_ids = text_ids(ids, "ids", len(inputs))
    header = (str(inputs.dtype), tuple(inputs.shape), answers.get("labels"), point_ids)
    digest = hashlib.sha256(repr(header).encode())
    if "targets" in answers:
        digest.update(answers["targets"].numpy().tobytes())
    for rows in inputs.split(1 << 12):
        digest.update(bytes_of(rows))
    facts: dict[str, Any] = feature_record(feature_names, "feature_names", inputs)
    if extra is not None:
        parts = dict(sorted(extra.tensors.items())) | ({} if extra.varies is None else {"varies": extra.varies})
        digest = hashlib.sha256(digest.hexdigest().encode())
        for name, tensor in parts.items():
            digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode() + bytes_of(tensor))
        facts |= {"extra_inputs": sorted(extra.tensors), "masked": extra.varies is not None}
    record = replace(reading, layout=None, scale_uint8=False).record(None, digest.hexdigest(), format="memory", **facts)
    read = partial(read_arrays, inputs, reading.bounds, extra)
    return reading.points(record, point_ids, read, **answers)


def read_arrays(inputs: Tensor, bounds: BoundsLike, extra: ExtraInputs | None, start: int, stop: int) -> InputRows:
    """Return some rows of `inputs`, with what else they have; uint8 is mapped to the bounds, half becomes single."""
    rows = inputs[start:stop]
    if rows.dtype == torch.uint8:
        rows = from_levels(rows, bounds)
    elif rows.element_size() < 4:
        rows = rows.float()
    return InputRows(rows, extra_inputs=extra and extra.only(torch.arange(start, stop)))


def check_inputs(x: Any, source: str, reading: Reading) -> Tensor:
    """Return inputs `[N, *shape]` as a tensor of floating point numbers, or of uint8 that is to be mapped."""
    inputs = as_tensor(x, source)
    check_input_form(tuple(inputs.shape), inputs.dtype, source, reading)
    return inputs.permute(0, 3, 1, 2).contiguous() if reading.layout == "nhwc" else inputs


def check_input_form(shape: tuple[int, ...], dtype: torch.dtype, source: str, reading: Reading) -> None:
    """Raise where a tensor of this shape and type cannot hold inputs, `[N, *shape]`."""
    advice = "expected floating point numbers, such as float32"
    if reading.scale_uint8 and dtype != torch.uint8:
        advice = "not uint8; leave out --scale-uint8 (scale_uint8=)"
    elif dtype == torch.uint8 and not reading.scale_uint8:
        advice = "use --scale-uint8 (scale_uint8=True of brittle.data.array_points) to map 0..255, or convert to float"
    elif dtype.is_floating_point or dtype == torch.uint8:
        advice = ""
    elif len(shape) == 1:
        advice += "; give (x, y), the inputs first"
    if advice:
        raise DataError("dtype", f"{source} has type {str(dtype).removeprefix('torch.')}; {advice}")
    if len(shape) < 2 or 0 in shape[1:]:
        raise DataError("shape", f"{source} has shape {shape}; expected (points, ...) with numbers in it")
    if reading.layout == "nhwc" and len(shape) != 4:
        raise DataError("layout", f"{source} has shape {shape}; nhwc needs 4 axes, leave out --layout (layout=)")
    if reading.layout is None and len(shape) == 4 and shape[3] in (1, 3, 4) and min(shape[1:3]) > 4:
        raise DataError(
            "layout",
            f"{source} has shape {shape}, which looks channels-last; use --layout nhwc (layout='nhwc'), "
            "or --layout nchw (layout='nchw') if the first axis after the points is the channels",
        )


def as_tensor(x: Any, source: str) -> Tensor:
    """Return a tensor or an array of numbers as a dense tensor, which may share its memory."""
    if isinstance(x, Tensor):
        if x.layout != torch.strided or x.is_nested or x.is_meta:
            kind = "meta" if x.is_meta else "nested" if x.is_nested else "sparse"
            raise DataError("dtype", f"{source} is a {kind} tensor; give a dense one, all of one shape (x.to_dense())")
        return x.detach()
    if not isinstance(x, np.ndarray):
        kind = "a generator" if isinstance(x, Iterator) else f"a {type(x).__name__}"
        raise DataError(
            "dtype",
            f"expected a tensor or a NumPy array, found that {source} is {kind}; give an array of all points, such as "
            "numpy.stack(x), the pair (x, y) of it and labels, or a torch.utils.data.Dataset",
        )
    array = plain_array(x, source)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise DataError("dtype", f"{source} has type {array.dtype}; expected numbers, such as float32")
    native = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(native if native.flags.writeable else native.copy())


def text_ids(ids: Any, source: str, count: int) -> Sequence[str]:
    """Ids as text; the row numbers where there are none."""
    if ids is None:
        return RowIds(count)
    texts = plain_array(ids, source).reshape(-1).tolist()
    if len(texts) != count:
        raise DataError("shape", f"{source} has {len(texts)} entries for {count} points; expected one id each")
    return tuple(map(str, texts))


def feature_record(names: Any, source: str, inputs: Tensor) -> dict[str, list[str]]:
    """Return the names of features for the record of a run: nothing without names, or where inputs are not kept."""
    if names is None:
        return {}
    array, numbers = np.asarray(names), math.prod(inputs.shape[1:])
    if array.size != numbers or array.dtype.kind != "U":
        fault = f"{source} holds {array.size} entries of type {array.dtype} for inputs of {numbers} numbers"
        raise DataError("columns", f"{fault}; expected the name of each as text")
    return {"feature_names": array.reshape(-1).tolist()} if keeps(inputs.shape[1:]) else {}


def extra_inputs_of(
    inputs: Tensor, extra_inputs: Mapping[str, Tensor | np.ndarray], mask: str | Tensor | np.ndarray | None
) -> ExtraInputs | None:
    """Return the other tensors of some points and which coordinates vary; None where there is neither."""
    tensors = {name: as_tensor(tensor, f"{name} (extra_inputs=)").clone() for name, tensor in extra_inputs.items()}
    for name, tensor in tensors.items():
        if not tensor.dim() or len(tensor) != len(inputs):
            fault = f"{name} (extra_inputs=) has shape {tuple(tensor.shape)} for {len(inputs)} points"
            raise DataError("shape", f"{fault}; give a row for each")
    if isinstance(mask, str):
        if mask not in tensors:
            names = ", ".join(tensors) or "none"
            raise ParameterError(f"mask names one of the tensors in extra_inputs; found {mask!r:.60}, there: {names}")
        mask = tensors[mask]
    if mask is None:
        return ExtraInputs(tensors=tensors) if tensors else None
    mask = as_tensor(mask, "the mask")
    if bool(mask.isnan().any()):
        raise DataError("mask", f"the mask holds {int(mask.isnan().sum())} NaN; give 1 or 0 for each number")
    varies = mask != 0
    if varies.dim() < 2 or varies.shape != inputs.shape[: varies.dim()]:
        shapes = f"{tuple(varies.shape)} for inputs of shape {tuple(inputs.shape)}"
        raise DataError("mask", f"the mask has shape {shapes}; give it the first axes of these")
    moving = varies.flatten(1).any(dim=1)
    if not bool(moving.all()):
        row = int((~moving).nonzero()[0])
        raise DataError("mask", f"the mask of row {row} holds no 1, so nothing of it can vary; leave the row out")
    return ExtraInputs(None, tensors, varies.view(*varies.shape, *[1] * (inputs.dim() - varies.dim())), inputs)


def bytes_of(tensor: Tensor) -> bytes:
    """Return the numbers of a tensor in the order of its axes."""
    return tensor.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
