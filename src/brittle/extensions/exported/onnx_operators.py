"""The operators of ONNX at `OPSET` as operations of PyTorch, in one table; see https://onnx.ai/onnx/operators.

Each is a function of the inputs of a node, None for an absent one, and of its attributes by name.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

OPSET = 21  # the version of the operators; older graphs are converted to it

Operator = Callable[..., Any]


def compute(name: str, inputs: Sequence[Any], attributes: Mapping[str, Any], device: torch.device) -> tuple[Any, ...]:
    """Return the outputs of one node: tensors on `device`, or NumPy arrays where they are computed from sizes alone.
    Arrays of sizes hold objects while a network is traced, because its number of rows is symbolic then."""
    as_arrays = name in ON_ARRAYS and not any(isinstance(value, Tensor) for value in inputs)
    arguments: list[Any] = []
    for at, value in enumerate(inputs):
        if value is not None and at and name in TAKES_NUMBERS:
            arguments.append(value.reshape(-1).tolist())
        else:
            arguments.append(value if value is None or as_arrays else as_tensor(value, device))
    outputs = OPERATORS[name](*arguments, **attributes)
    if isinstance(outputs, tuple | list):
        return tuple(outputs)
    if isinstance(outputs, Tensor | np.ndarray):
        return (outputs,)
    return (np.array(outputs, None if isinstance(outputs, int | float | np.generic) else object),)


def as_tensor(value: Any, device: torch.device) -> Tensor:
    if isinstance(value, Tensor):
        return value if value.device == device else value.to(device)
    if value.dtype == object:
        return torch.stack([torch.as_tensor(size, device=device) for size in value.reshape(-1)]).reshape(value.shape)
    return torch.from_numpy(np.array(value)).to(device)


# Products, convolutions, pools and normalisations


def _gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0,
) -> Tensor:  # fmt: skip
    product = alpha * ((a.T if transA else a) @ (b.T if transB else b))
    return product if c is None else product + beta * c


def _convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, strides: Any = (), dilations: Any = (), group: int = 1,
    kernel_shape: Any = None, **padding: Any,
) -> Tensor:  # fmt: skip
    x, *windows = _windows(x, weight.shape[2:], strides, dilations, 0.0, **padding)
    return getattr(functional, f"conv{x.dim() - 2}d")(x, weight, bias, *windows, group)


def _max_pool(
    x: Tensor, kernel_shape: list[int], strides: Any = (), dilations: Any = (), ceil_mode: int = 0,
    storage_order: int = 0, **padding: Any,
) -> Tensor:  # fmt: skip
    x, *windows = _windows(x, kernel_shape, strides, dilations, -torch.inf, **padding)
    return getattr(functional, f"max_pool{x.dim() - 2}d")(x, kernel_shape, *windows, bool(ceil_mode))


def _average_pool(
    x: Tensor, kernel_shape: list[int], strides: Any = (), dilations: Any = (), ceil_mode: int = 0,
    count_include_pad: int = 0, **padding: Any,
) -> Tensor:  # fmt: skip
    if any(dilation != 1 for dilation in dilations):
        raise ValueError("AveragePool has dilations")
    padded, steps, before, _ = _windows(x, kernel_shape, strides, (), 0.0, **padding)
    options = (kernel_shape, steps, before, bool(ceil_mode), bool(count_include_pad))
    if not count_include_pad and padded is not x:
        raise ValueError("AveragePool leaves out padding that is uneven")
    return getattr(functional, f"avg_pool{x.dim() - 2}d")(padded, *options)


def _windows(
    x: Tensor, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], fill: float,
    pads: Sequence[int] = (), auto_pad: str = "NOTSET",
) -> tuple[Tensor, Sequence[int], list[int], Sequence[int]]:  # fmt: skip
    """Return `x`, steps, padding and dilations for PyTorch; padding that it does not support is added to `x`."""
    axes = len(kernel)
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    if auto_pad in ("NOTSET", "VALID"):
        pads = pads if pads and auto_pad == "NOTSET" else [0] * 2 * axes
        before, after = list(pads[:axes]), list(pads[axes:])
    else:
        total_pads = [
            max(0, (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size)
            for size, width, stride, dilation in zip(x.shape[2:], kernel, strides, dilations, strict=True)
        ]
        before, after = [pad // 2 for pad in total_pads], [pad - pad // 2 for pad in total_pads]
        before, after = (before, after) if auto_pad == "SAME_UPPER" else (after, before)
    if before != after or any(2 * pad > size for pad, size in zip(before, kernel, strict=True)):
        x, before = functional.pad(x, _ends(before, after), value=fill), [0] * axes
    return x, strides, before, dilations


def _ends(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return padding in the order of PyTorch, the last axis first."""
    return [pad for pair in reversed(list(zip(before, after, strict=True))) for pad in pair]


def _batch_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0,
) -> Tensor:  # fmt: skip
    if training_mode:
        raise ValueError("BatchNormalization is in training mode")
    return functional.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)


def _layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    normed = functional.layer_norm(x, x.shape[axis % x.dim() :], None, None, epsilon) * scale
    return normed if bias is None else normed + bias


# Arithmetic and types


def _reduce_with(function: Operator) -> Operator:
    """Return the ONNX operator of a function of a tensor, axes and whether to keep these."""

    def compute(x: Tensor, axes: list[int] | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        return x if not axes and noop_with_empty_axes else function(x, tuple(axes or range(x.dim())), bool(keepdims))

    return compute


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, Tensor):
        is_integer = not (a.is_floating_point() or b.is_floating_point())
        return torch.div(a, b, rounding_mode="trunc" if is_integer else None)
    return a // b if a.dtype.kind in "iuO" and b.dtype.kind in "iuO" else a / b


_TYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
    10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
}  # fmt: skip


def _cast(x: Any, to: int, saturate: int = 1) -> Any:
    if isinstance(x, np.ndarray) and to in (6, 7):
        return x if x.dtype == object else x.astype(np.int64)
    return as_tensor(x, torch.device("cpu")).to(_TYPES[to]) if isinstance(x, np.ndarray) else x.to(_TYPES[to])


# Shapes


def _reshape(x: Any, shape: list[int], allowzero: int = 0) -> Any:
    return x.reshape([x.shape[at] if size == 0 and not allowzero else size for at, size in enumerate(shape)])


def _flatten(x: Tensor, axis: int = 1) -> Tensor:
    axis += x.dim() if axis < 0 else 0
    return x.flatten(axis) if axis == 1 and x.dim() > 1 else x.reshape(prod(x.shape[:axis]), -1)


def _squeeze(x: Any, axes: list[int] | None = None) -> Any:
    axes = [at for at, size in enumerate(x.shape) if size == 1] if axes is None else [at % x.ndim for at in axes]
    return x.reshape([size for at, size in enumerate(x.shape) if at not in axes])


def _unsqueeze(x: Any, axes: list[int]) -> Any:
    rank = x.ndim + len(axes)
    new_axes, sizes = {at % rank for at in axes}, iter(x.shape)
    return x.reshape([1 if at in new_axes else next(sizes) for at in range(rank)])


def _slice(x: Any, starts: list[int], ends: list[int], axes: Any = None, steps: Any = None) -> Any:
    for dim, start, end, step in zip(axes or range(len(starts)), starts, ends, steps or [1] * len(starts), strict=True):
        before = (slice(None),) * (dim % x.ndim)
        if step == 1 or isinstance(x, np.ndarray):
            x = x[(*before, slice(start, end, step))]
        else:  # PyTorch has no negative steps
            places = torch.arange(*slice(start, end, step).indices(x.shape[dim]), device=x.device)
            x = x.index_select(dim, places)
    return x


def _gather(x: Any, places: Any, axis: int = 0) -> Any:
    if isinstance(x, np.ndarray):
        return np.take(x, places, axis=axis)
    axis %= x.dim()
    places = torch.where(places < 0, places + x.shape[axis], places)
    values = x.index_select(axis, places.reshape(-1))
    return values.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


def _shape(x: Any, start: int = 0, end: int | None = None) -> np.ndarray:
    sizes = list(x.shape)[start:end]
    return np.array(sizes, np.int64 if all(type(size) is int for size in sizes) else object)


def _constant_of_shape(shape: np.ndarray, value: np.ndarray | None = None) -> Tensor:
    fill = np.zeros(1, np.float32) if value is None else np.array(value).reshape(-1)
    return torch.from_numpy(fill)[:1].expand(prod(shape.tolist())).reshape(shape.tolist()).clone()


def _expand(x: Tensor, shape: list[int]) -> Tensor:
    sizes = [1] * (len(shape) - x.dim()) + list(x.shape)
    target_sizes = [1] * (x.dim() - len(shape)) + list(shape)
    return x.expand([size if new == 1 else new for size, new in zip(sizes, target_sizes, strict=True)])


def _pad(x: Tensor, pads: list[int], value: Any = None, axes: Any = None, mode: str = "constant") -> Tensor:
    axes = [axis % x.dim() for axis in axes] if axes else list(range(x.dim()))
    before, after = [0] * x.dim(), [0] * x.dim()
    for at, axis in enumerate(axes):
        before[axis], after[axis] = pads[at], pads[at + len(axes)]
    if mode == "constant":
        return functional.pad(x, _ends(before, after), value=float(value[0]) if value else 0.0)
    if any(before[:2] + after[:2]):
        raise ValueError(f"Pad repeats rows or channels ({mode})")
    torch_modes = {"edge": "replicate", "wrap": "circular"}
    return functional.pad(x, _ends(before[2:], after[2:]), mode=torch_modes.get(mode, mode))


def _module_of(value: Any) -> Any:
    return torch if isinstance(value, Tensor) else np


_TORCH_FUNCTIONS = (
    "Relu", "Sigmoid", "Tanh", "Erf", "Sqrt", "Exp", "Log", "Abs", "Reciprocal", "Round", "Sign", "Sin", "Cos", "Floor",
    "Ceil", "MatMul",
)  # fmt: skip

_ACTIVATIONS = ("Celu", "Elu", "Gelu", "HardSwish", "Mish", "Softplus", "Softsign")

OPERATORS: dict[str, Operator] = {
    # Products, convolutions, pools and normalisations
    "Gemm": _gemm,
    "Einsum": lambda *values, equation: torch.einsum(equation, *values),
    "Conv": _convolution,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda x: x.mean(dim=tuple(range(2, x.dim())), keepdim=True),
    "GlobalMaxPool": lambda x: x.amax(dim=tuple(range(2, x.dim())), keepdim=True),
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": lambda x, scale, bias, epsilon=1e-5: functional.instance_norm(
        x, weight=scale, bias=bias, eps=epsilon
    ),
    "LayerNormalization": _layer_normalization,
    "Softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "LogSoftmax": lambda x, axis=-1: torch.log_softmax(x, axis),
    # Activations and functions of one number
    **{name: getattr(torch, name.lower()) for name in _TORCH_FUNCTIONS},
    **{name: getattr(functional, name.lower()) for name in _ACTIVATIONS},
    "LeakyRelu": lambda x, alpha=0.01: functional.leaky_relu(x, alpha),
    "PRelu": lambda x, slope: torch.where(x < 0, slope * x, x),
    "Selu": lambda x, alpha=1.67326319, gamma=1.05070102: gamma * functional.elu(x, alpha),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: (alpha * x + beta).clamp(0, 1),
    "Swish": lambda x, alpha=1.0: x * torch.sigmoid(alpha * x),
    "ThresholdedRelu": lambda x, alpha=1.0: torch.where(x > alpha, x, torch.zeros_like(x)),
    # Arithmetic and conditions
    **{name: getattr(operator, name.lower()) for name in ("Add", "Sub", "Mul", "Neg")},
    **{name: getattr(torch, f"logical_{name.lower()}") for name in ("And", "Or", "Not")},
    "Equal": operator.eq,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Div": _divide,
    "Mod": lambda a, b, fmod=0: torch.fmod(a, b) if fmod else torch.remainder(a, b),
    "Pow": lambda x, power: x.pow(float(power)) if power.numel() == 1 and power.dim() <= x.dim() else x.pow(power),
    "Min": lambda *values: reduce(torch.minimum, values),
    "Max": lambda *values: reduce(torch.maximum, values),
    "Sum": lambda *values: reduce(torch.add, values),
    "Clip": lambda x, low=None, high=None: x.clamp(low and low[0], high and high[0]) if low or high else x,
    "Where": lambda condition, a, b: _module_of(condition).where(condition, a, b),
    # Means and sums over axes
    "ReduceMean": _reduce_with(lambda x, axes, keep: x.mean(axes, keepdim=keep)),
    "ReduceSum": _reduce_with(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "ReduceMax": _reduce_with(lambda x, axes, keep: x.amax(axes, keepdim=keep)),
    "ReduceMin": _reduce_with(lambda x, axes, keep: x.amin(axes, keepdim=keep)),
    "ReduceL1": _reduce_with(lambda x, axes, keep: x.abs().sum(axes, keepdim=keep)),
    "ReduceL2": _reduce_with(lambda x, axes, keep: torch.linalg.vector_norm(x, dim=axes, keepdim=keep)),
    "ReduceSumSquare": _reduce_with(lambda x, axes, keep: x.square().sum(axes, keepdim=keep)),
    "ReduceLogSumExp": _reduce_with(lambda x, axes, keep: x.logsumexp(axes, keepdim=keep)),
    # Shapes
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": lambda x, perm=None: x.permute(*(perm or range(x.dim())[::-1])),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": lambda *parts, axis: _module_of(parts[0]).concatenate(parts, axis=axis),
    "Slice": _slice,
    "Gather": _gather,
    "Shape": _shape,
    "Size": lambda x: np.array(prod(x.shape)),
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Tile": lambda x, repeats: x.repeat(*repeats),
    "Pad": _pad,
    "Split": lambda x, sizes=None, axis=0, num_outputs=0: x.split(sizes or -(-x.shape[axis] // num_outputs), dim=axis),
    "Range": lambda *ends: np.arange(*(end.item() for end in ends)),
    # Identities and types
    "Identity": lambda x: x,
    "Dropout": lambda x, *_, seed=0: x,
    "Cast": _cast,
    "CastLike": lambda x, like, saturate=1: x.to(like.dtype),
}

TAKES_NUMBERS = {"Clip", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Expand", "Tile", "Pad", "Split"} | {
    name for name in OPERATORS if name.startswith("Reduce")
}
"""Operators that take all inputs after the first as lists of numbers."""

ON_ARRAYS = {
    "Add", "Sub", "Mul", "Div", "Neg", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Where", "Reshape",
    "Squeeze", "Unsqueeze", "Concat", "Slice", "Gather", "Shape", "Size", "ConstantOfShape", "Range", "Identity",
    "Cast",
}  # fmt: skip
"""Operators that take NumPy arrays, too, for values computed from sizes alone."""
