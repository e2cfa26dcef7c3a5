"""The operators of ONNX as operations of PyTorch, in one table, as https://onnx.ai/onnx/operators has them at `OPSET`.

They are those with which PyTorch and skl2onnx export networks. Each is a function of the inputs of a node, None where
one is left out, and of its attributes by their names; a form that it does not know raises, or gives other numbers than
onnxruntime, and then the network runs forward only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

OPSET = 21
"""The version of the operators; older graphs are brought to it."""

Operator = Callable[..., Any]


def compute(name: str, inputs: Sequence[Any], attributes: Mapping[str, Any], device: torch.device) -> tuple[Any, ...]:
    """The outputs of one node: on `device`, or where all inputs are, as what is computed from sizes alone."""
    several = len({one.device for one in inputs if one is not None}) > 1
    given: list[Any] = []
    for at, one in enumerate(inputs):
        if one is not None and at and name in TAKES_NUMBERS:
            given.append(one.reshape(-1).tolist())
        else:
            given.append(one.to(device) if several and one is not None else one)
    found = OPERATORS[name](*given, **attributes)
    return found if isinstance(found, tuple) else (found,)


# Products, convolutions, pools and normalisations


def _gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0,
) -> Tensor:  # fmt: skip
    product = alpha * ((a.T if transA else a) @ (b.T if transB else b))
    return product if c is None else product + beta * c


def _convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, strides: Any = 1, dilations: Any = 1, group: int = 1,
    pads: Sequence[int] = (), kernel_shape: Any = None, auto_pad: str = "NOTSET",
) -> Tensor:  # fmt: skip
    kernel = weight.shape[2:]
    if auto_pad == "SAME_UPPER":  # of steps of 1, as PyTorch exports padding="same"
        wide = ((torch.tensor(kernel) - 1) * torch.tensor(dilations)).tolist()
        pads, auto_pad = [one // 2 for one in wide] + [one - one // 2 for one in wide], "VALID"
    x, padding = _padded(x, kernel, pads, 0.0, auto_pad)
    return getattr(functional, f"conv{x.dim() - 2}d")(x, weight, bias, strides, padding, dilations, group)


def _max_pool(
    x: Tensor, kernel_shape: list[int], strides: Any = 1, dilations: Any = 1, ceil_mode: int = 0,
    pads: Sequence[int] = (), storage_order: int = 0, auto_pad: str = "NOTSET",
) -> Tensor:  # fmt: skip
    x, padding = _padded(x, kernel_shape, pads, -torch.inf, auto_pad)
    pool = getattr(functional, f"max_pool{x.dim() - 2}d")
    return pool(x, kernel_shape, strides, padding, dilations, bool(ceil_mode))


def _average_pool(
    x: Tensor, kernel_shape: list[int], strides: Any = 1, ceil_mode: int = 0, pads: Sequence[int] = (),
    count_include_pad: int = 0, auto_pad: str = "NOTSET",
) -> Tensor:  # fmt: skip
    x, padding = _padded(x, kernel_shape, pads, 0.0, auto_pad)
    pool = getattr(functional, f"avg_pool{x.dim() - 2}d")
    return pool(x, kernel_shape, strides, padding, bool(ceil_mode), bool(count_include_pad))


def _padded(
    x: Tensor, kernel: Sequence[int], pads: Sequence[int], fill: float, auto_pad: str
) -> tuple[Tensor, list[int]]:
    """`x` and its padding as PyTorch takes it; padding that it has not is put around `x`."""
    if auto_pad not in ("NOTSET", "VALID"):
        raise ValueError(f"auto_pad is {auto_pad}")
    axes = len(kernel)
    before, after = (list(pads[:axes]), list(pads[axes:])) if pads else ([0] * axes, [0] * axes)
    if before != after or any(2 * pad > size for pad, size in zip(before, kernel, strict=True)):
        x, before = functional.pad(x, _ends(before, after), value=fill), [0] * axes
    return x, before


def _ends(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Padding in the order of PyTorch, the last axis first."""
    return [pad for pair in reversed(list(zip(before, after, strict=True))) for pad in pair]


def _layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    normal = functional.layer_norm(x, x.shape[axis % x.dim() :], None, None, epsilon) * scale
    return normal if bias is None else normal + bias


# Arithmetic and types


def _reduced(function: Operator) -> Operator:
    """A function of a tensor, axes and whether these are kept."""

    def compute(x: Tensor, axes: list[int] | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        return x if not axes and noop_with_empty_axes else function(x, tuple(axes or range(x.dim())), bool(keepdims))

    return compute


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return torch.div(a, b, rounding_mode=None if a.is_floating_point() or b.is_floating_point() else "trunc")


def _power(x: Tensor, exponent: Tensor) -> Tensor:
    return x.pow(float(exponent)) if exponent.numel() == 1 and exponent.dim() <= x.dim() else x.pow(exponent)


_TYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
    10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
}  # fmt: skip
"""The types of numbers by their codes."""


# Shapes


def _reshape(x: Tensor, shape: list[int], allowzero: int = 0) -> Tensor:
    return x.reshape([x.shape[at] if size == 0 and not allowzero else size for at, size in enumerate(shape)])


def _slice(x: Tensor, starts: list[int], ends: list[int], axes: Any = None, steps: Any = None) -> Tensor:
    for at, axis in enumerate(axes or range(len(starts))):
        part = slice(starts[at], ends[at], steps[at] if steps else 1)
        if part.step > 0:
            x = x[(*(slice(None),) * (axis % x.dim()), part)]
        else:  # PyTorch has no negative steps
            x = x.index_select(axis, torch.arange(*part.indices(x.shape[axis]), device=x.device))
    return x


def _gather(x: Tensor, places: Tensor, axis: int = 0) -> Tensor:
    axis %= x.dim()
    places = torch.where(places < 0, places + x.shape[axis], places)
    taken = x.index_select(axis, places.reshape(-1))
    return taken.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


def _constant_of_shape(shape: Tensor, value: Tensor | None = None) -> Tensor:
    one = torch.zeros(1, dtype=torch.float32) if value is None else value
    return one.expand(prod(shape.tolist())).reshape(shape.tolist())


def _pad(x: Tensor, pads: list[int], value: list[float] | None = None, mode: str = "constant") -> Tensor:
    before, after = pads[: x.dim()], pads[x.dim() :]
    if mode == "constant":
        return functional.pad(x, _ends(before, after), value=float(value[0]) if value else 0.0)
    known = {"wrap": "circular", "edge": "replicate"}
    return functional.pad(x, _ends(before[2:], after[2:]), mode=known.get(mode, mode))


_OF_TORCH = (
    "Relu", "Sigmoid", "Tanh", "Erf", "Sqrt", "Exp", "Log", "Abs", "Reciprocal", "Sign", "Sin", "Cos", "MatMul",
)  # fmt: skip

OPERATORS: dict[str, Operator] = {
    # Products, convolutions, pools and normalisations
    "Gemm": _gemm,
    "Einsum": lambda *values, equation: torch.einsum(equation, *values),
    "Conv": _convolution,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda x: x.mean(dim=tuple(range(2, x.dim())), keepdim=True),
    "BatchNormalization": lambda x, scale, bias, mean, var, epsilon=1e-5, momentum=0.9: functional.batch_norm(
        x, mean, var, scale, bias, False, 0.0, epsilon
    ),
    "InstanceNormalization": lambda x, scale, bias, epsilon=1e-5: functional.instance_norm(
        x, weight=scale, bias=bias, eps=epsilon
    ),
    "LayerNormalization": _layer_normalization,
    "Softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "LogSoftmax": lambda x, axis=-1: torch.log_softmax(x, axis),
    # Activations and functions of one number
    **{name: getattr(torch, name.lower()) for name in _OF_TORCH},
    **{name: getattr(functional, name.lower()) for name in ("HardSwish", "Mish", "Softplus")},
    "LeakyRelu": lambda x, alpha=0.01: functional.leaky_relu(x, alpha),
    "PRelu": lambda x, slope: torch.where(x < 0, slope * x, x),
    "Elu": lambda x, alpha=1.0: functional.elu(x, alpha),
    "Celu": lambda x, alpha=1.0: functional.celu(x, alpha),
    "Selu": lambda x, alpha=1.67326319, gamma=1.05070102: gamma * functional.elu(x, alpha),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: (alpha * x + beta).clamp(0, 1),
    "Gelu": lambda x, approximate="none": functional.gelu(x, approximate=approximate),
    # Arithmetic and conditions
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _divide,
    "Mod": lambda a, b, fmod=0: torch.fmod(a, b) if fmod else torch.remainder(a, b),
    "Pow": _power,
    "Neg": operator.neg,
    "Min": lambda *values: reduce(torch.minimum, values),
    "Max": lambda *values: reduce(torch.maximum, values),
    "Clip": lambda x, low=None, high=None: x.clamp(low and low[0], high and high[0]),
    "Equal": operator.eq,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Where": torch.where,
    # Means and sums over axes
    "ReduceMean": _reduced(lambda x, axes, keep: x.mean(axes, keepdim=keep)),
    "ReduceSum": _reduced(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "ReduceMax": _reduced(lambda x, axes, keep: x.amax(axes, keepdim=keep)),
    "ReduceMin": _reduced(lambda x, axes, keep: x.amin(axes, keepdim=keep)),
    "ReduceL2": _reduced(lambda x, axes, keep: torch.linalg.vector_norm(x, dim=axes, keepdim=keep)),
    "ReduceLogSumExp": _reduced(lambda x, axes, keep: x.logsumexp(axes, keepdim=keep)),
    # Shapes
    "Reshape": _reshape,
    "Flatten": lambda x, axis=1: x.flatten(1) if axis == 1 and x.dim() > 1 else x.reshape(prod(x.shape[:axis]), -1),
    "Transpose": lambda x, perm=None: x.permute(*(perm or range(x.dim())[::-1])),
    "Squeeze": lambda x, axes=None: x.squeeze() if axes is None else x.squeeze(tuple(axes)),
    "Unsqueeze": lambda x, axes: reduce(Tensor.unsqueeze, sorted(at % (x.dim() + len(axes)) for at in axes), x),
    "Concat": lambda *parts, axis: torch.cat(parts, axis),
    "Slice": _slice,
    "Gather": _gather,
    "Shape": lambda x, start=0, end=None: torch.tensor(x.shape[start:end], dtype=torch.int64),
    "ConstantOfShape": _constant_of_shape,
    "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(x.shape, tuple(shape))),
    "Tile": lambda x, repeats: x.repeat(*repeats),
    "Pad": _pad,
    "Split": lambda x, sizes=None, axis=0, num_outputs=1: x.split(sizes or -(-x.shape[axis] // num_outputs), axis),
    # What changes nothing
    "Identity": lambda x: x,
    "Dropout": lambda x, *_, seed=0: x,
    "Cast": lambda x, to, saturate=1: x.to(_TYPES[to]),
}
"""What computes each kind of node."""

TAKES_NUMBERS = {"Clip", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Expand", "Tile", "Pad", "Split"} | {
    name for name in OPERATORS if name.startswith("Reduce")
}
"""Operators that take all inputs after the first as lists of numbers."""
