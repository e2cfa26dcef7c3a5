"""The operators of ONNX graphs that are known here, in one table, as operations of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from brittle.model.loading import onnx_layers as layers
from brittle.model.loading.onnx_layers import Call, NotConverted

TYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    16: torch.bfloat16,
}
"""Types by their numbers in ONNX."""

ALL = tuple(range(8))


@dataclass(frozen=True)
class Operator:
    """What computes one kind of node.

    Attributes:
        function: from a `Call` and its inputs, None where one is left out, to its output or outputs.
        numbers: places of the inputs that are taken as lists of numbers (shapes, axes), not as tensors.
        on_sizes: the same on NumPy arrays, for what is computed from shapes alone; None: that is done with tensors.
    """

    function: Callable[..., Any]
    numbers: tuple[int, ...] = ()
    on_sizes: Callable[..., Any] | None = None


def _plain(function: Callable[..., Any], on_sizes: Callable[..., Any] | None = None) -> Operator:
    """An operator without attributes."""
    sized = None if on_sizes is None else (lambda call, *values: on_sizes(*values))
    return Operator(lambda call, *values: function(*values), on_sizes=sized)


def _folded(function: Callable[[Any, Any], Any], on_sizes: Callable[[Any, Any], Any] | None = None) -> Operator:
    """An operator of two inputs that takes any number of them."""
    sized = None if on_sizes is None else (lambda *values: reduce(on_sizes, values))
    return _plain(lambda *values: reduce(function, values), sized)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    whole = not (a.is_floating_point() or b.is_floating_point())
    return torch.div(a, b, rounding_mode="trunc" if whole else None)


def _divide_sizes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a // b if a.dtype.kind in "iuO" and b.dtype.kind in "iuO" else np.divide(a, b)


def _power(call: Call, x: Tensor, exponent: Tensor) -> Tensor:
    return x.pow(float(exponent)) if exponent.numel() == 1 and exponent.dim() <= x.dim() else x.pow(exponent)


def _clip(call: Call, x: Tensor, low: list[float] | None = None, high: list[float] | None = None) -> Tensor:
    least, most = (call.get(name) if one is None else one[0] for name, one in (("min", low), ("max", high)))
    return x if least is None and most is None else x.clamp(least, most)


def _gelu(call: Call, x: Tensor) -> Tensor:
    return functional.gelu(x, approximate=call.get("approximate", "none"))


def _prelu(call: Call, x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x < 0, slope * x, x)


def _cast(call: Call, x: Tensor) -> Tensor:
    if call.get("to") not in TYPES:
        raise NotConverted(f"its Cast makes a type (number {call.get('to')}) that is no number")
    return x.to(TYPES[call.get("to")])


def _cast_sizes(call: Call, x: np.ndarray) -> np.ndarray:
    whole = call.get("to") in (6, 7)
    return x if whole and x.dtype == object else x.astype(np.int64 if whole else np.float64)


def _reshape(call: Call, x: Tensor, shape: list[int]) -> Tensor:
    taken = bool(call.get("allowzero", 0))
    return x.reshape([x.shape[at] if size == 0 and not taken else size for at, size in enumerate(shape)])


def _flatten(call: Call, x: Tensor) -> Tensor:
    axis = call.get("axis", 1)
    axis += x.dim() if axis < 0 else 0
    return x.flatten(axis) if axis == 1 and x.dim() > 1 else x.reshape(prod(x.shape[:axis]), -1)


def _transpose(call: Call, x: Tensor) -> Tensor:
    return x.permute(*call.get("perm", range(x.dim())[::-1]))


def _squeeze(call: Call, x: Any, axes: list[int] | None = None) -> Any:
    axes = call.get("axes") if axes is None else axes
    axes = [at for at, size in enumerate(x.shape) if size == 1] if axes is None else [at % x.ndim for at in axes]
    return x.reshape([size for at, size in enumerate(x.shape) if at not in axes])


def _unsqueeze(call: Call, x: Any, axes: list[int] | None = None) -> Any:
    axes = call.get("axes") if axes is None else axes
    whole = x.ndim + len(axes or ())
    added = {at % whole for at in axes or ()}
    sizes = iter(x.shape)
    return x.reshape([1 if at in added else next(sizes) for at in range(whole)])


def _concat(call: Call, *parts: Tensor) -> Tensor:
    return torch.cat(parts, dim=call.get("axis", 1))


def _slices(call: Call, rank: int, given: Sequence[list[int] | None]) -> list[tuple[int, int, int, int]]:
    """Axis, start, end and step of each slice."""
    starts, ends, axes, steps = [*given, None, None, None, None][:4]
    starts, ends = starts or call.get("starts", []), ends or call.get("ends", [])
    axes = axes or call.get("axes") or list(range(len(starts)))
    steps = steps or [1] * len(axes)
    return [(axis % rank, *rest) for axis, rest in zip(axes, zip(starts, ends, steps, strict=True), strict=True)]


def _slice(call: Call, x: Tensor, *given: list[int] | None) -> Tensor:
    for axis, start, end, step in _slices(call, x.dim(), given):
        if step == 1:
            x = x[(slice(None),) * axis + (slice(start, end),)]
        else:
            places = torch.arange(*slice(start, end, step).indices(x.shape[axis]), device=x.device)
            x = x.index_select(axis, places)
    return x


def _slice_sizes(call: Call, x: np.ndarray, *given: np.ndarray | None) -> np.ndarray:
    for axis, start, end, step in _slices(call, x.ndim, [None if one is None else one.tolist() for one in given]):
        x = x[(slice(None),) * axis + (slice(start, end, step),)]
    return x


def _gather(call: Call, x: Tensor, places: Tensor) -> Tensor:
    axis = call.get("axis", 0) % x.dim()
    places = torch.where(places < 0, places + x.shape[axis], places)
    taken = x.index_select(axis, places.reshape(-1))
    return taken.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


def _gather_elements(call: Call, x: Tensor, places: Tensor) -> Tensor:
    axis = call.get("axis", 0)
    return x.gather(axis, torch.where(places < 0, places + x.shape[axis], places))


def _shape(call: Call, x: Any) -> np.ndarray:
    """The sizes as an array, of objects where a network is traced and they are no plain numbers."""
    sizes = list(x.shape)[call.get("start", 0) : call.get("end")]
    return np.array(sizes, np.int64 if all(type(size) is int for size in sizes) else object)


def _constant_of_shape(call: Call, shape: list[int]) -> Tensor:
    value = np.asarray(call.get("value", np.zeros(1, np.float32))).reshape(-1)
    kind = torch.from_numpy(value).dtype
    return torch.full([int(size) for size in shape], value[0].item(), dtype=kind, device=call.device)


def _constants_of_sizes(call: Call, shape: np.ndarray) -> np.ndarray:
    value = np.asarray(call.get("value", np.zeros(1, np.float32))).reshape(-1)
    return np.full([int(size) for size in shape.tolist()], value[0])


def _expand(call: Call, x: Tensor, shape: list[int]) -> Tensor:
    own = [1] * (len(shape) - x.dim()) + list(x.shape)
    wanted = [1] * (x.dim() - len(shape)) + list(shape)
    return x.expand([size if new == 1 else new for size, new in zip(own, wanted, strict=True)])


def _pad(
    call: Call, x: Tensor, pads: list[int] | None = None, value: list[float] | None = None, axes: Any = None
) -> Tensor:
    pads = list(pads or call.get("pads"))
    axes = [axis % x.dim() for axis in axes] if axes else list(range(x.dim()))
    number = float(value[0]) if value else call.get("value", 0.0)
    ends = [0] * 2 * x.dim()
    for at, axis in enumerate(axes):
        ends[2 * (x.dim() - 1 - axis)], ends[2 * (x.dim() - 1 - axis) + 1] = pads[at], pads[at + len(axes)]
    mode = str(call.get("mode", "constant"))
    if mode == "constant":
        return functional.pad(x, ends, value=number)
    if any(ends[2 * (x.dim() - 2) :]):
        raise NotConverted(f"its Pad repeats rows or channels ({mode})")
    return functional.pad(x, ends[: 2 * (x.dim() - 2)], mode={"edge": "replicate", "wrap": "circular"}.get(mode, mode))


def _split(call: Call, x: Tensor, sizes: list[int] | None = None) -> tuple[Tensor, ...]:
    axis = call.get("axis", 0)
    sizes = sizes or call.get("split")
    return x.split(sizes or -(-x.shape[axis] // call.outputs), dim=axis)


def _reduced(function: Callable[[Tensor, tuple[int, ...], bool], Tensor]) -> Operator:
    """An operator over axes: an attribute, since opset 13 or 18 an input."""

    def compute(call: Call, x: Tensor, axes: list[int] | None = None) -> Tensor:
        axes = axes or call.get("axes")
        if not axes and call.get("noop_with_empty_axes", 0):
            return x
        return function(x, tuple(axes or range(x.dim())), bool(call.get("keepdims", 1)))

    return Operator(compute, (1,))


def _product(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    for axis in sorted((one % x.dim() for one in axes), reverse=True):
        x = x.prod(axis, keepdim=keep)
    return x


def _depth_to_space(call: Call, x: Tensor) -> Tensor:
    size, (rows, channels, height, width) = call.get("blocksize"), x.shape
    less = channels // size**2
    if call.get("mode", "DCR") == "CRD":
        return functional.pixel_shuffle(x, size)
    blocks = x.reshape(rows, size, size, less, height, width).permute(0, 3, 4, 1, 5, 2)
    return blocks.reshape(rows, less, height * size, width * size)


def _space_to_depth(call: Call, x: Tensor) -> Tensor:
    size, (rows, channels, height, width) = call.get("blocksize"), x.shape
    blocks = x.reshape(rows, channels, height // size, size, width // size, size).permute(0, 3, 5, 1, 2, 4)
    return blocks.reshape(rows, channels * size**2, height // size, width // size)


def _triangle(call: Call, x: Tensor, diagonal: list[int] | None = None) -> Tensor:
    return (torch.triu if call.get("upper", 1) else torch.tril)(x, int(diagonal[0]) if diagonal else 0)


def _identity(call: Call, x: Any, *_: Any) -> Any:
    return x


def _dropout(call: Call, x: Any, *_: Any) -> Any:
    if call.outputs > 1:
        raise NotConverted("its Dropout returns a mask besides values")
    return x


OPERATORS: dict[str, Operator] = {
    # Products, convolutions, pools and normalisations
    "Gemm": Operator(layers.gemm),
    "MatMul": _plain(torch.matmul),
    "Einsum": Operator(lambda call, *values: torch.einsum(call.get("equation"), *values)),
    "Conv": Operator(layers.convolution),
    "MaxPool": Operator(layers.max_pool),
    "AveragePool": Operator(layers.average_pool),
    "GlobalAveragePool": Operator(layers.global_average_pool),
    "GlobalMaxPool": Operator(layers.global_max_pool),
    "BatchNormalization": Operator(layers.batch_normalization),
    "InstanceNormalization": Operator(layers.instance_normalization),
    "LayerNormalization": Operator(layers.layer_normalization),
    "GroupNormalization": Operator(layers.group_normalization),
    "LRN": Operator(layers.local_response_normalization),
    "Softmax": Operator(layers.softmax),
    "LogSoftmax": Operator(layers.log_softmax),
    # Activations
    "Relu": _plain(torch.relu),
    "LeakyRelu": Operator(lambda call, x: functional.leaky_relu(x, call.get("alpha", 0.01))),
    "PRelu": Operator(_prelu),
    "Elu": Operator(lambda call, x: functional.elu(x, call.get("alpha", 1.0))),
    "Celu": Operator(lambda call, x: functional.celu(x, call.get("alpha", 1.0))),
    "Selu": Operator(lambda call, x: call.get("gamma", 1.05070102) * functional.elu(x, call.get("alpha", 1.67326319))),
    "Sigmoid": _plain(torch.sigmoid),
    "HardSigmoid": Operator(lambda call, x: (call.get("alpha", 0.2) * x + call.get("beta", 0.5)).clamp(0, 1)),
    "HardSwish": _plain(functional.hardswish),
    "Swish": Operator(lambda call, x: x * torch.sigmoid(call.get("alpha", 1.0) * x)),
    "Mish": _plain(functional.mish),
    "Tanh": _plain(torch.tanh),
    "Softplus": _plain(functional.softplus),
    "Softsign": _plain(functional.softsign),
    "Gelu": Operator(_gelu),
    "Erf": _plain(torch.erf),
    "ThresholdedRelu": Operator(lambda call, x: torch.where(x > call.get("alpha", 1.0), x, torch.zeros_like(x))),
    # Arithmetic
    "Add": _plain(torch.add, np.add),
    "Sub": _plain(torch.sub, np.subtract),
    "Mul": _plain(torch.mul, np.multiply),
    "Div": _plain(_divide, _divide_sizes),
    "Mod": Operator(
        lambda call, a, b: torch.fmod(a, b) if call.get("fmod", 0) else torch.remainder(a, b),
        on_sizes=lambda call, a, b: np.fmod(a, b) if call.get("fmod", 0) else np.remainder(a, b),
    ),
    "Pow": Operator(_power),
    "Sqrt": _plain(torch.sqrt),
    "Exp": _plain(torch.exp),
    "Log": _plain(torch.log),
    "Abs": _plain(torch.abs),
    "Neg": _plain(torch.neg, np.negative),
    "Reciprocal": _plain(torch.reciprocal),
    "Floor": _plain(torch.floor, np.floor),
    "Ceil": _plain(torch.ceil, np.ceil),
    "Round": _plain(torch.round),
    "Sign": _plain(torch.sign),
    "Sin": _plain(torch.sin),
    "Cos": _plain(torch.cos),
    "Min": _folded(torch.minimum, np.minimum),
    "Max": _folded(torch.maximum, np.maximum),
    "Sum": _folded(torch.add),
    "Clip": Operator(_clip, (1, 2)),
    # Conditions
    "Equal": _plain(torch.eq, np.equal),
    "Less": _plain(torch.lt, np.less),
    "LessOrEqual": _plain(torch.le, np.less_equal),
    "Greater": _plain(torch.gt, np.greater),
    "GreaterOrEqual": _plain(torch.ge, np.greater_equal),
    "And": _plain(torch.logical_and),
    "Or": _plain(torch.logical_or),
    "Not": _plain(torch.logical_not),
    "Where": _plain(torch.where, np.where),
    "IsNaN": _plain(torch.isnan),
    # Means and sums over axes
    "ReduceMean": _reduced(lambda x, axes, keep: x.mean(axes, keepdim=keep)),
    "ReduceSum": _reduced(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "ReduceMax": _reduced(lambda x, axes, keep: x.amax(axes, keepdim=keep)),
    "ReduceMin": _reduced(lambda x, axes, keep: x.amin(axes, keepdim=keep)),
    "ReduceProd": _reduced(_product),
    "ReduceL1": _reduced(lambda x, axes, keep: x.abs().sum(axes, keepdim=keep)),
    "ReduceL2": _reduced(lambda x, axes, keep: torch.linalg.vector_norm(x, dim=axes, keepdim=keep)),
    "ReduceSumSquare": _reduced(lambda x, axes, keep: x.square().sum(axes, keepdim=keep)),
    "ReduceLogSumExp": _reduced(lambda x, axes, keep: x.logsumexp(axes, keepdim=keep)),
    # Shapes
    "Reshape": Operator(_reshape, (1,), lambda call, x, shape: x.reshape(shape.tolist())),
    "Flatten": Operator(_flatten),
    "Transpose": Operator(_transpose),
    "Squeeze": Operator(_squeeze, (1,), lambda call, x, *axes: _squeeze(call, x, *(one.tolist() for one in axes))),
    "Unsqueeze": Operator(
        _unsqueeze, (1,), lambda call, x, *axes: _unsqueeze(call, x, *(one.tolist() for one in axes))
    ),
    "Concat": Operator(_concat, (), lambda call, *parts: np.concatenate(parts, axis=call.get("axis", 1))),
    "Slice": Operator(_slice, (1, 2, 3, 4), _slice_sizes),
    "Gather": Operator(_gather, (), lambda call, x, places: np.take(x, places, axis=call.get("axis", 0))),
    "GatherElements": Operator(_gather_elements),
    "Shape": Operator(_shape, (), _shape),
    "Size": Operator(lambda call, x: np.array(prod(x.shape)), (), lambda call, x: np.array(x.size)),
    "ConstantOfShape": Operator(_constant_of_shape, (0,), _constants_of_sizes),
    "Expand": Operator(_expand, (1,)),
    "Tile": Operator(lambda call, x, repeats: x.repeat(*repeats), (1,)),
    "Pad": Operator(_pad, (1, 2, 3)),
    "Split": Operator(_split, (1,)),
    "DepthToSpace": Operator(_depth_to_space),
    "SpaceToDepth": Operator(_space_to_depth),
    "Trilu": Operator(_triangle, (1,)),
    "Range": Operator(
        lambda call, *ends: torch.arange(*(end[0] for end in ends), device=call.device),
        ALL,
        lambda call, *ends: np.arange(*(end.item() for end in ends)),
    ),
    # What changes nothing
    "Identity": Operator(_identity, (), _identity),
    "Dropout": Operator(_dropout, (), _dropout),
    "Cast": Operator(_cast, (), _cast_sizes),
    "CastLike": _plain(lambda x, like: x.to(like.dtype)),
}
"""What computes each kind of node."""
