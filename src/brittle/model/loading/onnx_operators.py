"""The operators of ONNX graphs that are known here, in one table, as operations of PyTorch.

Each is named and behaves as in https://onnx.ai/onnx/operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


class NotConverted(Exception):
    """A part of an ONNX graph that has no counterpart here, in words that follow "because"."""


@dataclass(frozen=True)
class Call:
    """What an operator is called with besides its inputs.

    Attributes:
        attributes: of the node, by name; tensors as NumPy arrays.
        opset: version of the operators of the graph.
        outputs: number of outputs of the node.
        device: where the tensors are.
    """

    attributes: Mapping[str, Any]
    opset: int
    outputs: int
    device: torch.device

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute `name`, or `default` where the node has none."""
        return self.attributes.get(name, default)


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


def _of_any_number(function: Callable[..., Any], on_sizes: Callable[..., Any] | None = None) -> Operator:
    """An operator of two inputs that takes any number of them."""
    sized = None if on_sizes is None else (lambda *values: reduce(on_sizes, values))
    return _plain(lambda *values: reduce(function, values), sized)


def _reduced(function: Callable[[Tensor, tuple[int, ...], bool], Tensor]) -> Operator:
    """An operator over axes: an attribute, since opset 13 or 18 an input."""

    def compute(call: Call, x: Tensor, axes: list[int] | None = None) -> Tensor:
        axes = axes or call.get("axes")
        if not axes and call.get("noop_with_empty_axes", 0):
            return x
        return function(x, tuple(axes or range(x.dim())), bool(call.get("keepdims", 1)))

    return Operator(compute, (1,))


def _unchanged(call: Call, x: Any, *_: Any) -> Any:
    if call.outputs > 1:
        raise NotConverted("its Dropout returns a mask besides values")
    return x


# Products, convolutions, pools and normalisations


def _gemm(call: Call, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    product = call.get("alpha", 1.0) * ((a.T if call.get("transA", 0) else a) @ (b.T if call.get("transB", 0) else b))
    return product if c is None else product + call.get("beta", 1.0) * c


def _convolution(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    axes = x.dim() - 2
    strides, dilations = call.get("strides", [1] * axes), call.get("dilations", [1] * axes)
    before, after = _padding(call, x.shape[2:], weight.shape[2:], strides, dilations)
    if before != after:
        x, before = functional.pad(x, _ends(before, after)), [0] * axes
    function = _by_axes(axes, functional.conv1d, functional.conv2d, functional.conv3d)
    return function(x, weight, bias, strides, before, dilations, call.get("group", 1))


def _max_pool(call: Call, x: Tensor) -> Tensor:
    if call.outputs > 1:
        raise NotConverted("its MaxPool returns places besides values")
    kernel = call.get("kernel_shape")
    strides, dilations = call.get("strides", [1] * len(kernel)), call.get("dilations", [1] * len(kernel))
    before, after = _padding(call, x.shape[2:], kernel, strides, dilations)
    if before != after or any(2 * pad > size for pad, size in zip(before, kernel, strict=True)):
        x, before = functional.pad(x, _ends(before, after), value=-torch.inf), [0] * len(kernel)
    function = _by_axes(len(kernel), functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
    return function(x, kernel, strides, before, dilations, bool(call.get("ceil_mode", 0)))


def _average_pool(call: Call, x: Tensor) -> Tensor:
    kernel = call.get("kernel_shape")
    strides = call.get("strides", [1] * len(kernel))
    if any(one != 1 for one in call.get("dilations", [1])):
        raise NotConverted("its AveragePool has dilations")
    before, after = _padding(call, x.shape[2:], kernel, strides, [1] * len(kernel))
    counted, rounded_up = (bool(call.get(name, 0)) for name in ("count_include_pad", "ceil_mode"))
    function = _by_axes(len(kernel), functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)
    if before == after and all(2 * pad <= size for pad, size in zip(before, kernel, strict=True)):
        return function(x, kernel, strides, before, rounded_up, counted)
    mean, ones = (
        function(functional.pad(one, _ends(before, after)), kernel, strides, [0] * len(kernel), rounded_up)
        for one in (x, torch.ones_like(x))
    )
    return mean if counted else mean / ones


def _batch_normalization(call: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    if call.get("training_mode", 0) or (call.opset < 7 and not call.get("is_test", 0)):
        raise NotConverted("its BatchNormalization is in training mode")
    return functional.batch_norm(x, mean, var, scale, bias, False, 0.0, call.get("epsilon", 1e-5))


def _layer_normalization(call: Call, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    if call.outputs > 1:
        raise NotConverted("its LayerNormalization returns means besides values")
    shape = x.shape[call.get("axis", -1) % x.dim() :]
    normal = functional.layer_norm(x, shape, None, None, call.get("epsilon", 1e-5)) * scale
    return normal if bias is None else normal + bias


def _group_normalization(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups = call.get("num_groups")
    if call.opset < 21:  # one number a group
        scale, bias = (one.repeat_interleave(x.shape[1] // groups) for one in (scale, bias))
    return functional.group_norm(x, groups, scale, bias, call.get("epsilon", 1e-5))


def _over_axis(function: Callable[[Tensor, int], Tensor]) -> Operator:
    """A function over an axis; before opset 13, over that axis and all after it."""

    def compute(call: Call, x: Tensor) -> Tensor:
        if call.opset >= 13:
            return function(x, call.get("axis", -1))
        axis = call.get("axis", 1) % x.dim()
        return function(x.flatten(axis), axis).reshape(x.shape)

    return Operator(compute)


def _by_axes(axes: int, *functions: Any) -> Any:
    if not 1 <= axes <= len(functions):
        raise NotConverted(f"a layer of it has {axes} axes of places")
    return functions[axes - 1]


def _padding(
    call: Call, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[list[int], list[int]]:
    """How much is padded before and after each axis."""
    kind, axes = call.get("auto_pad", "NOTSET"), len(kernel)
    if kind in ("NOTSET", "VALID"):
        pads = call.get("pads", [0] * 2 * axes) if kind == "NOTSET" else [0] * 2 * axes
        return list(pads[:axes]), list(pads[axes:])
    wide = [
        max(0, (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size)
        for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
    ]
    less, more = [one // 2 for one in wide], [one - one // 2 for one in wide]
    return (less, more) if kind == "SAME_UPPER" else (more, less)


def _ends(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Padding in the order of PyTorch, the last axis first."""
    return [pad for pair in reversed(list(zip(before, after, strict=True))) for pad in pair]


# Arithmetic and types


def _divide(a: Tensor, b: Tensor) -> Tensor:
    whole = not (a.is_floating_point() or b.is_floating_point())
    return torch.div(a, b, rounding_mode="trunc" if whole else None)


def _divide_sizes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a // b if a.dtype.kind in "iuO" and b.dtype.kind in "iuO" else np.divide(a, b)


def _power(x: Tensor, exponent: Tensor) -> Tensor:
    return x.pow(float(exponent)) if exponent.numel() == 1 and exponent.dim() <= x.dim() else x.pow(exponent)


def _clip(call: Call, x: Tensor, low: list[float] | None = None, high: list[float] | None = None) -> Tensor:
    least, most = (call.get(name) if one is None else one[0] for name, one in (("min", low), ("max", high)))
    return x if least is None and most is None else x.clamp(least, most)


TYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
    10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
}  # fmt: skip
"""Types by their numbers in ONNX."""


def _cast(call: Call, x: Tensor) -> Tensor:
    if call.get("to") not in TYPES:
        raise NotConverted(f"its Cast makes a type (number {call.get('to')}) that is no number")
    return x.to(TYPES[call.get("to")])


def _cast_sizes(call: Call, x: np.ndarray) -> np.ndarray:
    whole = call.get("to") in (6, 7)
    return x if whole and x.dtype == object else x.astype(np.int64 if whole else np.float64)


# Shapes


def _reshape(call: Call, x: Tensor, shape: list[int]) -> Tensor:
    kept = not call.get("allowzero", 0)
    return x.reshape([x.shape[at] if size == 0 and kept else size for at, size in enumerate(shape)])


def _flatten(call: Call, x: Tensor) -> Tensor:
    axis = call.get("axis", 1)
    axis += x.dim() if axis < 0 else 0
    return x.flatten(axis) if axis == 1 and x.dim() > 1 else x.reshape(prod(x.shape[:axis]), -1)


def _squeeze(call: Call, x: Any, axes: Any = None) -> Any:
    axes = call.get("axes") if axes is None else list(axes)
    axes = [at for at, size in enumerate(x.shape) if size == 1] if axes is None else [at % x.ndim for at in axes]
    return x.reshape([size for at, size in enumerate(x.shape) if at not in axes])


def _unsqueeze(call: Call, x: Any, axes: Any = None) -> Any:
    axes = call.get("axes") if axes is None else list(axes)
    whole = x.ndim + len(axes)
    added, sizes = {at % whole for at in axes}, iter(x.shape)
    return x.reshape([1 if at in added else next(sizes) for at in range(whole)])


def _slice(call: Call, x: Any, *given: Any) -> Any:
    starts, ends, axes, steps = [*(None if one is None else list(one) for one in given), None, None, None, None][:4]
    starts, ends = starts or call.get("starts", []), ends or call.get("ends", [])
    axes = axes or call.get("axes") or range(len(starts))
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts), strict=True):
        before = (slice(None),) * (axis % x.ndim)
        if step == 1 or isinstance(x, np.ndarray):
            x = x[(*before, slice(start, end, step))]
        else:  # PyTorch has no negative steps
            places = torch.arange(*slice(start, end, step).indices(x.shape[axis]), device=x.device)
            x = x.index_select(axis, places)
    return x


def _gather(call: Call, x: Tensor, places: Tensor) -> Tensor:
    axis = call.get("axis", 0) % x.dim()
    places = torch.where(places < 0, places + x.shape[axis], places)
    taken = x.index_select(axis, places.reshape(-1))
    return taken.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


def _shape(call: Call, x: Any) -> np.ndarray:
    """The sizes as an array, of objects where a network is traced and they are no plain numbers."""
    sizes = list(x.shape)[call.get("start", 0) : call.get("end")]
    return np.array(sizes, np.int64 if all(type(size) is int for size in sizes) else object)


def _constant_of_shape(call: Call, shape: list[int]) -> Tensor:
    value = torch.from_numpy(np.array(call.get("value", np.zeros(1, np.float32))).reshape(-1)).to(call.device)
    return value[:1].repeat(prod(map(int, shape))).reshape([int(size) for size in shape])


def _expand(call: Call, x: Tensor, shape: list[int]) -> Tensor:
    own = [1] * (len(shape) - x.dim()) + list(x.shape)
    wanted = [1] * (x.dim() - len(shape)) + list(shape)
    return x.expand([size if new == 1 else new for size, new in zip(own, wanted, strict=True)])


def _pad(call: Call, x: Tensor, pads: Any = None, value: list[float] | None = None, axes: Any = None) -> Tensor:
    pads, mode = list(pads or call.get("pads")), str(call.get("mode", "constant"))
    axes = [axis % x.dim() for axis in axes] if axes else list(range(x.dim()))
    before, after = [0] * x.dim(), [0] * x.dim()
    for at, axis in enumerate(axes):
        before[axis], after[axis] = pads[at], pads[at + len(axes)]
    if mode == "constant":
        return functional.pad(x, _ends(before, after), value=float(value[0]) if value else call.get("value", 0.0))
    if any(before[:2] + after[:2]):
        raise NotConverted(f"its Pad repeats rows or channels ({mode})")
    known = {"edge": "replicate", "wrap": "circular"}
    return functional.pad(x, _ends(before[2:], after[2:]), mode=known.get(mode, mode))


def _split(call: Call, x: Tensor, sizes: list[int] | None = None) -> tuple[Tensor, ...]:
    axis = call.get("axis", 0)
    return x.split(sizes or call.get("split") or -(-x.shape[axis] // call.outputs), dim=axis)


_OF_TORCH = (
    "Relu", "Sigmoid", "Tanh", "Erf", "Sqrt", "Exp", "Log", "Abs", "Reciprocal", "Round", "Sign", "Sin", "Cos",
)  # fmt: skip

OPERATORS: dict[str, Operator] = {
    # Products, convolutions, pools and normalisations
    "Gemm": Operator(_gemm),
    "MatMul": _plain(torch.matmul),
    "Einsum": Operator(lambda call, *values: torch.einsum(call.get("equation"), *values)),
    "Conv": Operator(_convolution),
    "MaxPool": Operator(_max_pool),
    "AveragePool": Operator(_average_pool),
    "GlobalAveragePool": _plain(lambda x: x.mean(dim=tuple(range(2, x.dim())), keepdim=True)),
    "GlobalMaxPool": _plain(lambda x: x.amax(dim=tuple(range(2, x.dim())), keepdim=True)),
    "BatchNormalization": Operator(_batch_normalization),
    "InstanceNormalization": Operator(
        lambda call, x, scale, bias: functional.instance_norm(x, weight=scale, bias=bias, eps=call.get("epsilon", 1e-5))
    ),
    "LayerNormalization": Operator(_layer_normalization),
    "GroupNormalization": Operator(_group_normalization),
    "LRN": Operator(
        lambda call, x: functional.local_response_norm(
            x, call.get("size"), call.get("alpha", 1e-4), call.get("beta", 0.75), call.get("bias", 1.0)
        )
    ),
    "Softmax": _over_axis(torch.softmax),
    "LogSoftmax": _over_axis(torch.log_softmax),
    # Activations and functions of one number
    **{name: _plain(getattr(torch, name.lower())) for name in _OF_TORCH},
    **{name: _plain(getattr(functional, name.lower())) for name in ("HardSwish", "Mish", "Softplus", "Softsign")},
    "LeakyRelu": Operator(lambda call, x: functional.leaky_relu(x, call.get("alpha", 0.01))),
    "PRelu": _plain(lambda x, slope: torch.where(x < 0, slope * x, x)),
    "Elu": Operator(lambda call, x: functional.elu(x, call.get("alpha", 1.0))),
    "Celu": Operator(lambda call, x: functional.celu(x, call.get("alpha", 1.0))),
    "Selu": Operator(lambda call, x: call.get("gamma", 1.05070102) * functional.elu(x, call.get("alpha", 1.67326319))),
    "HardSigmoid": Operator(lambda call, x: (call.get("alpha", 0.2) * x + call.get("beta", 0.5)).clamp(0, 1)),
    "Swish": Operator(lambda call, x: x * torch.sigmoid(call.get("alpha", 1.0) * x)),
    "Gelu": Operator(lambda call, x: functional.gelu(x, approximate=call.get("approximate", "none"))),
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
    "Pow": _plain(_power),
    "Neg": _plain(torch.neg, np.negative),
    "Floor": _plain(torch.floor, np.floor),
    "Ceil": _plain(torch.ceil, np.ceil),
    "Min": _of_any_number(torch.minimum, np.minimum),
    "Max": _of_any_number(torch.maximum, np.maximum),
    "Sum": _of_any_number(torch.add),
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
    # Means and sums over axes
    "ReduceMean": _reduced(lambda x, axes, keep: x.mean(axes, keepdim=keep)),
    "ReduceSum": _reduced(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "ReduceMax": _reduced(lambda x, axes, keep: x.amax(axes, keepdim=keep)),
    "ReduceMin": _reduced(lambda x, axes, keep: x.amin(axes, keepdim=keep)),
    "ReduceL1": _reduced(lambda x, axes, keep: x.abs().sum(axes, keepdim=keep)),
    "ReduceL2": _reduced(lambda x, axes, keep: torch.linalg.vector_norm(x, dim=axes, keepdim=keep)),
    "ReduceSumSquare": _reduced(lambda x, axes, keep: x.square().sum(axes, keepdim=keep)),
    "ReduceLogSumExp": _reduced(lambda x, axes, keep: x.logsumexp(axes, keepdim=keep)),
    # Shapes
    "Reshape": Operator(_reshape, (1,), lambda call, x, shape: x.reshape(shape.tolist())),
    "Flatten": Operator(_flatten),
    "Transpose": Operator(lambda call, x: x.permute(*call.get("perm", range(x.dim())[::-1]))),
    "Squeeze": Operator(_squeeze, (1,), _squeeze),
    "Unsqueeze": Operator(_unsqueeze, (1,), _unsqueeze),
    "Concat": Operator(
        lambda call, *parts: torch.cat(parts, dim=call.get("axis", 1)),
        on_sizes=lambda call, *parts: np.concatenate(parts, axis=call.get("axis", 1)),
    ),
    "Slice": Operator(_slice, (1, 2, 3, 4), _slice),
    "Gather": Operator(_gather, (), lambda call, x, places: np.take(x, places, axis=call.get("axis", 0))),
    "Shape": Operator(_shape, (), _shape),
    "Size": Operator(lambda call, x: np.array(prod(x.shape)), (), lambda call, x: np.array(x.size)),
    "ConstantOfShape": Operator(
        _constant_of_shape, (0,), lambda call, shape: _constant_of_shape(call, shape.tolist()).cpu().numpy()
    ),
    "Expand": Operator(_expand, (1,)),
    "Tile": Operator(lambda call, x, repeats: x.repeat(*repeats), (1,)),
    "Pad": Operator(_pad, (1, 2, 3)),
    "Split": Operator(_split, (1,)),
    "Range": Operator(
        lambda call, *ends: torch.arange(*(end[0] for end in ends), device=call.device),
        (0, 1, 2),
        lambda call, *ends: np.arange(*(end.item() for end in ends)),
    ),
    # What changes nothing
    "Identity": Operator(_unchanged, (), _unchanged),
    "Dropout": Operator(_unchanged, (), _unchanged),
    "Cast": Operator(_cast, (), _cast_sizes),
    "CastLike": _plain(lambda x, like: x.to(like.dtype)),
}
"""What computes each kind of node."""
