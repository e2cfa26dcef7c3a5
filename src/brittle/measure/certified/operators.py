"""The operators that bounds can be sent through, by what bounds do with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from brittle.measure.certified.curves import CURVES

KINKED = frozenset({"relu", "leaky_relu"})
"""Of two straight pieces."""

ACTIVATIONS = frozenset({"relu", "sigmoid", "tanh", *CURVES})
"""Functions of each number alone."""

SUMS = frozenset({"add", "sub", "rsub"})
"""Sums of two values."""

BILINEAR = frozenset({"mul", "matmul", "mm", "bmm", "einsum"})
"""Linear in each of two arguments."""

WINDOWED = frozenset({"max_pool1d", "max_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"})
"""The largest number of each window."""

MAXIMA = WINDOWED | {"maximum", "amax"}
"""The largest of some numbers."""

VIEWS = frozenset({"view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze", "permute"}) | {
    "transpose", "t", "slice", "select", "narrow", "expand", "expand_as", "alias", "detach", "movedim", "swapaxes",
    "numpy_T", "mT", "diagonal", "split", "chunk", "unbind", "split_with_sizes", "tensor_split", "view_as", "getitem",
}  # fmt: skip
"""Operators whose value may share memory with their argument."""

SAME = frozenset(
    {"clone", "contiguous", "alias", "detach", "to", "_to_copy", "dropout", "feature_dropout", "lift_fresh"}
)
"""Operators that change no number."""

SEVERAL = frozenset({"split", "chunk", "unbind", "split_with_sizes", "tensor_split"}) | {
    "_native_batch_norm_legit_no_training",
}
"""Operators that return several values, each of which `getitem` takes."""

MOVES = VIEWS.union(
    SAME,
    {"cat", "stack", "index", "index_select", "gather", "flip", "roll", "repeat", "tile", "repeat_interleave"},
    {"pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d"},
    {"masked_fill", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "upsample_nearest2d", "unfold", "im2col"},
    {"tril", "triu", "binary_logit", "half", "where"},
)
"""Each number of their value is one of their arguments' numbers, or a constant."""

AFFINE = frozenset({"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "batch_norm"}) | {
    "div", "neg", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "mean", "sum",
    "convolution", "_native_batch_norm_legit_no_training", "cumsum", "upsample_bilinear2d",
    "scaled", "group_mean", "sum_less", "channel_mul", "channel_add",
    *SUMS, *BILINEAR,
}  # fmt: skip
"""Affine in one argument when all others are constants, the factors among which are tensors, or listed as numbers."""

EACH = (VIEWS - {"expand", "expand_as"}) | SAME | {"add", "sub", "rsub", "mul", "div", "neg", "batch_norm"}
"""Affine in each number of their one argument alone, where their value has no more numbers than it."""

PAIRS = {
    "max.dim": "amax", "min.dim": "amin", "max_pool2d_with_indices": "max_pool2d", "native_layer_norm": "layer_norm",
    "max_pool1d_with_indices": "max_pool1d", "adaptive_max_pool1d": "adaptive_max_pool1d",
    "adaptive_max_pool2d": "adaptive_max_pool2d",
}  # fmt: skip
"""Operators that return more than their values, and what the values alone are."""

ALIASES = {
    "max.other": "maximum", "min.other": "minimum", "_softmax": "softmax", "_log_softmax": "log_softmax",
    "special_expit": "sigmoid", "special_erf": "erf", "subtract": "sub", "multiply": "mul", "divide": "div",
    "concat": "cat", "concatenate": "cat", "clip": "clamp", "swapdims": "transpose",
    "true_divide": "div",
}  # fmt: skip
"""Other names of operators."""

SUPPORTED = AFFINE | MOVES | MAXIMA | ACTIVATIONS | {"softmax"}
"""All of them."""


def _reshape(value: Tensor, sizes: Any) -> Tensor:
    """Reshape each row; the number of rows, -1 where it is free, stays."""
    rest = list(sizes[1:])
    if sizes[0] == -1 and (-1 in rest or len(value) * math.prod(rest) == value.numel()):
        return value.reshape(len(value), *rest)
    return value.reshape(sizes)


def _broadcast(values: list[Tensor]) -> list[Tensor]:
    """A constant may have one row for all."""
    rows = max(len(value) for value in values)
    return [value.expand(rows, *value.shape[1:]) if len(value) == 1 else value for value in values]


def _unchanged(value: Tensor, *_: Any) -> Tensor:
    return value


def _beside_zero(logit: Tensor) -> Tensor:
    """Class scores `[B, 2]` of one logit for class 1."""
    logit = logit.reshape(len(logit), 1)
    return torch.cat((torch.zeros_like(logit), logit), dim=1)


def _einsum(one: Tensor, *rest: Any) -> Tensor:
    *others, equation = rest
    return torch.einsum(equation, one, *others)


def _index(value: Tensor, places: Any) -> Tensor:
    return value[tuple(slice(None) if one is None else one for one in places)]


def _shared(values: Tensor, groups: int) -> Tensor:
    """The mean of each row and group of channels (0 groups: each channel), for each of its numbers."""
    means = values.reshape(len(values), groups or values.shape[1], -1).mean(dim=2)
    rest = values.numel() // means.numel()
    return means[..., None].expand(-1, -1, rest).reshape(values.shape)


def _sum_less(values: Tensor, axes: Any, keep: bool, correction: float) -> Tensor:
    """The sum over `n` numbers, divided by `n` less a correction."""
    total = values.sum(axes, keep)
    divisor = values.numel() / total.numel() - correction
    if divisor <= 0:
        raise ValueError(f"a variance with divisor {divisor:g}")
    return total / divisor


def softmax(values: Tensor, axis: int, mask: Any = None) -> Tensor:
    """Softmax over an axis, over the places only where `mask` holds; or `causal`."""
    seen = causal(values) if isinstance(mask, str) else mask
    return (values if seen is None else values.masked_fill(~seen, -torch.inf)).softmax(axis)


def causal(values: Tensor) -> Tensor:
    """Which places of square scores a softmax sees that looks at no later ones, `[L, S]`."""
    return torch.ones(values.shape[-2:], dtype=torch.bool, device=values.device).tril()


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _reshape),
    **dict.fromkeys(SAME, _unchanged),
    **{name: lambda value, *constants, name=name: CURVES[name](*constants).function(value) for name in CURVES},
    "relu": torch.relu,
    "binary_logit": _beside_zero,
    "cat": lambda values, axis=0: torch.cat(_broadcast(values) if axis % values[0].dim() else values, dim=axis),
    "stack": lambda values, axis=0: torch.stack(_broadcast(values), dim=axis),
    "index": _index,
    "einsum": _einsum,
    "add": lambda one, other, alpha=1: one + alpha * other,
    "sub": lambda one, other, alpha=1: one - alpha * other,
    "rsub": lambda one, other, alpha=1: other - alpha * one,
    "div": lambda one, other: one / other,
    "mul": lambda one, other: one * other,
    **dict.fromkeys(("matmul", "mm", "bmm"), torch.matmul),
    "mean": lambda value, axes=None, keep=False, dtype=None: value.mean(axes, keep),
    "sum": lambda value, axes=None, keep=False, dtype=None: value.sum(axes, keep),
    "cumsum": lambda value, axis, dtype=None: value.cumsum(axis),
    "scaled": lambda value: value / value.shape[-1] ** 0.5,
    "group_mean": _shared,
    "channel_mul": lambda value, factor: value * factor.view(-1, *[1] * (value.dim() - 2)),
    "channel_add": lambda value, term: value + term.view(-1, *[1] * (value.dim() - 2)),
    "half": lambda value, axis, number: value.chunk(2, axis)[number],
    "sum_less": _sum_less,
    "softmax": softmax,
    "maximum": torch.maximum,
    "amax": torch.amax,
    "adaptive_max_pool1d": functional.adaptive_max_pool1d,
    "adaptive_max_pool2d": functional.adaptive_max_pool2d,
    "max_pool1d": lambda value, *sizes: functional.max_pool1d(value, *_pooling(*sizes)),
    "max_pool2d": lambda value, *sizes: functional.max_pool2d(value, *_pooling(*sizes)),
}
"""What stands for an operator: on any number of rows, in any precision."""


def _pooling(kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Any:
    return kernel, stride or kernel, padding, dilation, ceil_mode
