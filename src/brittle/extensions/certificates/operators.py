"""The operators that bounds can be sent through: groups, functions, conditions, and composites of other operators."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from brittle.extensions.certificates.curves import CURVES
from brittle.extensions.certificates.graph import Edge, UnknownOperator, UnsupportedLayer

KINKED = frozenset({"relu", "leaky_relu"})  # activations of two straight pieces
ACTIVATIONS = frozenset({"relu", "sigmoid", "tanh", *CURVES})  # functions of each number alone
SUMS = frozenset({"add", "sub", "rsub"})  # sums of two values
BILINEAR = frozenset({"mul", "matmul", "mm", "bmm", "einsum"})  # linear in each of two arguments

WINDOWED = frozenset({"max_pool1d", "max_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"})
"""The largest number of each window."""

MAXIMA = WINDOWED | {"maximum", "amax"}  # the largest of some numbers

VIEWS = frozenset({"view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze", "permute"}) | {
    "transpose", "t", "slice", "select", "narrow", "expand", "expand_as", "alias", "detach", "movedim", "swapaxes",
    "numpy_T", "mT", "split", "chunk", "unbind", "split_with_sizes", "view_as", "getitem",
}  # fmt: skip
"""Operators whose value may share memory with their argument."""

IDENTITIES = frozenset(
    {"clone", "contiguous", "alias", "detach", "to", "_to_copy", "dropout", "feature_dropout", "lift_fresh"}
)
"""Operators that change no number."""

MULTIVALUED = frozenset({"split", "chunk", "unbind", "split_with_sizes"}) | {"_native_batch_norm_legit_no_training"}
"""Operators that return several values, each of which `getitem` takes."""

MOVES = VIEWS.union(
    IDENTITIES,
    {"cat", "stack", "index", "index_select", "gather", "flip", "roll", "repeat", "repeat_interleave"},
    {"pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d"},
    {"masked_fill", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "upsample_nearest2d"},
    {"tril", "triu", "binary_logit", "where"},
)
"""Each number of their value is one of their arguments' numbers, or a constant."""

AFFINE = frozenset({"linear", "conv1d", "conv2d", "conv3d", "batch_norm"}) | {
    "div", "neg", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "mean", "sum",
    "convolution", "_native_batch_norm_legit_no_training", "upsample_bilinear2d",
    "scaled", "group_mean", "sum_less", "channel_mul", "channel_add",
    *SUMS, *BILINEAR,
}  # fmt: skip
"""Affine in one argument when all others are constants and the factors among these are tensors or numbers."""

ELEMENTWISE = (VIEWS - {"expand", "expand_as"}) | IDENTITIES | {"add", "sub", "rsub", "mul", "div", "neg", "batch_norm"}
"""Affine in each number of a single argument by itself, where the value has no more numbers than the argument."""

VALUE_OPERATORS = {
    "max.dim": "amax", "min.dim": "amin", "max_pool2d_with_indices": "max_pool2d", "native_layer_norm": "layer_norm",
    "max_pool1d_with_indices": "max_pool1d", "adaptive_max_pool1d": "adaptive_max_pool1d",
    "adaptive_max_pool2d": "adaptive_max_pool2d",
}  # fmt: skip
"""Operators that return more than their values, with the operators that return the values alone."""

ALIASES = {
    "max.other": "maximum", "min.other": "minimum", "_softmax": "softmax", "_log_softmax": "log_softmax",
    "special_expit": "sigmoid", "special_erf": "erf", "subtract": "sub", "multiply": "mul", "divide": "div",
    "concat": "cat", "concatenate": "cat", "clip": "clamp", "swapdims": "transpose",
    "true_divide": "div",
}  # fmt: skip

SUPPORTED = AFFINE | MOVES | MAXIMA | ACTIVATIONS | {"softmax"}  # all operators that bounds can be sent through


def _reshape(value: Tensor, sizes: Any) -> Tensor:
    """Reshape each row; the number of rows, -1 where it is free, stays."""
    row_sizes = list(sizes[1:])
    if sizes[0] == -1 and (-1 in row_sizes or len(value) * math.prod(row_sizes) == value.numel()):
        return value.reshape(len(value), *row_sizes)
    return value.reshape(sizes)


def _broadcast(values: list[Tensor]) -> list[Tensor]:
    rows = max(len(value) for value in values)
    return [value.expand(rows, *value.shape[1:]) if len(value) == 1 else value for value in values]


def _pair_with_zero(logit: Tensor) -> Tensor:
    """Return class scores `[B, 2]` of one logit for class 1."""
    logit = logit.reshape(len(logit), 1)
    return torch.cat((torch.zeros_like(logit), logit), dim=1)


def _group_means(values: Tensor, groups: int) -> Tensor:
    """Return the mean of each row and group of channels (0 groups: each channel), at each of its numbers."""
    means = values.reshape(len(values), groups or values.shape[1], -1).mean(dim=2)
    return means[..., None].expand(-1, -1, values.numel() // means.numel()).reshape(values.shape)


def _sum_less(values: Tensor, axes: Any, keepdim: bool, correction: float) -> Tensor:
    """Return the sum over `n` numbers, divided by `n` less a correction."""
    total = values.sum(axes, keepdim)
    divisor = values.numel() / total.numel() - correction
    if divisor <= 0:
        raise ValueError(f"a variance with divisor {divisor:g}")
    return total / divisor


def softmax(values: Tensor, axis: int, mask: Any = None) -> Tensor:
    """Return the softmax over an axis, over the places of `mask` only; or `causal`."""
    visible = causal_mask(values) if isinstance(mask, str) else mask
    return (values if visible is None else values.masked_fill(~visible, -torch.inf)).softmax(axis)


def causal_mask(values: Tensor) -> Tensor:
    """Return the places of scores that a softmax without a view of later ones sees, `[L, S]`."""
    return torch.ones(values.shape[-2:], dtype=torch.bool, device=values.device).tril()


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _reshape),
    **dict.fromkeys(IDENTITIES, lambda value, *_: value),
    **{name: lambda value, *constants, name=name: CURVES[name](*constants).function(value) for name in CURVES},
    "relu": torch.relu,
    "binary_logit": _pair_with_zero,
    "cat": lambda values, axis=0: torch.cat(_broadcast(values) if axis % values[0].dim() else values, dim=axis),
    "stack": lambda values, axis=0: torch.stack(_broadcast(values), dim=axis),
    "index": lambda value, places: value[tuple(slice(None) if indices is None else indices for indices in places)],
    "einsum": lambda *values: torch.einsum(values[-1], *values[:-1]),
    "add": lambda x, y, alpha=1: x + alpha * y,
    "sub": lambda x, y, alpha=1: x - alpha * y,
    "rsub": lambda x, y, alpha=1: y - alpha * x,
    "div": lambda x, y: x / y,
    "mul": lambda x, y: x * y,
    **dict.fromkeys(("matmul", "mm", "bmm"), torch.matmul),
    "mean": lambda value, axes=None, keepdim=False, dtype=None: value.mean(axes, keepdim),
    "sum": lambda value, axes=None, keepdim=False, dtype=None: value.sum(axes, keepdim),
    "scaled": lambda value: value / value.shape[-1] ** 0.5,
    "group_mean": _group_means,
    "channel_mul": lambda value, factor: value * factor.view(-1, *[1] * (value.dim() - 2)),
    "channel_add": lambda value, term: value + term.view(-1, *[1] * (value.dim() - 2)),
    "sum_less": _sum_less,
    "softmax": softmax,
    "maximum": torch.maximum,
    "amax": torch.amax,
    "adaptive_max_pool1d": functional.adaptive_max_pool1d,
    "adaptive_max_pool2d": functional.adaptive_max_pool2d,
    "max_pool1d": lambda value, *sizes: functional.max_pool1d(value, *_pooling(*sizes)),
    "max_pool2d": lambda value, *sizes: functional.max_pool2d(value, *_pooling(*sizes)),
}
"""The function of an operator: on any number of rows, in any precision."""


def _pooling(kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Any:
    return kernel, stride or kernel, padding, dilation, ceil_mode


_PRECISIONS = (torch.float32, torch.float64)


def check(operator: str, args: tuple[Any, ...]) -> None:
    """Refuse an operator that is not supported, or arguments that make it do more than its function does."""
    if operator not in SUPPORTED:
        raise UnknownOperator(operator)
    _check_edges(operator, args)
    for arg in tree_leaves(args):
        if isinstance(arg, torch.dtype) and arg not in _PRECISIONS:
            half = "half precision" if arg.is_floating_point else str(arg).removeprefix("torch.")
            raise UnsupportedLayer(f"{operator} to {half}")
        is_infinite = isinstance(arg, float) and math.isinf(arg)
        is_infinite |= isinstance(arg, Tensor) and arg.is_floating_point() and not bool(arg.isfinite().all())
        if is_infinite and operator not in CURVES:
            raise UnsupportedLayer(f"{operator} with an infinite number")
    if (operator == "batch_norm" and args[5]) or (operator in ("dropout", "feature_dropout") and args[2]):
        raise UnsupportedLayer(f"{operator} in training mode")
    if operator == "einsum" and len(args) > 3:
        raise UnsupportedLayer(f"einsum of {len(args) - 1} values")
    if operator in CURVES:
        CURVES[operator](*args[1:])


def _check_edges(operator: str, args: tuple[Any, ...]) -> None:
    """Refuse values that depend on the input where only constants can be."""
    edges = [isinstance(arg, Edge) for arg in args]
    is_first_edge, is_second_edge = edges[:1] == [True], edges[1:2] == [True]
    has_later_edge = any(isinstance(arg, Edge) for arg in tree_leaves(args[2:]))
    is_list = operator in ("cat", "stack") and not any(isinstance(arg, Edge) for arg in tree_leaves(args[1:]))
    is_pair = operator in SUMS | BILINEAR | {"maximum", "expand_as", "view_as"} and not has_later_edge
    is_choice = operator == "where" and not is_first_edge
    is_single = is_first_edge and not is_second_edge and not has_later_edge
    if not (is_list or is_pair or is_choice or is_single):
        between = " of two values that both depend on the input" if sum(edges) > 1 else ""
        raise UnsupportedLayer(f"{operator}{between}")
    if operator == "amax" and args[1:2] in ((), ([],), ((),)):
        raise UnsupportedLayer("amax over all axes")


Build = Callable[..., Any]
"""`build(operator, *args)`: the edge of one more layer, or a constant where no argument depends on the input."""


def _standardise(build: Build, value: Any, mean: Callable[[Any], Any], eps: float) -> Any:
    """Build `(x - m) / sqrt(mean of (x - m)^2 + eps)`, which is positive below the root for any `x`."""
    centred = build("sub", value, mean(value))
    variance = build("add", mean(build("pow", centred, 2)), eps)
    return build("mul", centred, build("rsqrt", variance))


def _layer_norm(build: Build, value: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any):
    axes = list(range(-len(shape), 0))
    normed = _standardise(build, value, lambda numbers: build("mean", numbers, axes, True), eps)
    normed = normed if weight is None else build("mul", normed, weight)
    return normed if bias is None else build("add", normed, bias)


def _group_norm(build: Build, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any):
    normed = _standardise(build, x, lambda numbers: build("group_mean", numbers, groups), eps)
    normed = normed if weight is None else build("channel_mul", normed, weight)
    return normed if bias is None else build("channel_add", normed, bias)


def _attention(
    build: Build,
    query: Any,
    key: Any,
    value: Any,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    grouped: bool = False,
) -> Any:
    if dropout or grouped or isinstance(mask, Edge) or (is_causal and mask is not None):
        raise UnsupportedLayer("scaled_dot_product_attention with dropout, grouped heads or a mask that varies")
    query = build("scaled", query) if scale is None else build("mul", query, scale)
    scores = build("matmul", query, build("transpose", key, -2, -1))
    visible: Any = "causal" if is_causal else None
    if isinstance(mask, Tensor):
        visible = mask if mask.dtype == torch.bool else mask > -torch.inf
        scores = scores if mask.dtype == torch.bool else build("add", scores, mask.masked_fill(~visible, 0.0))
    return build("matmul", build("softmax", scores, -1, visible), value)


def _prelu(build: Build, value: Any, weight: Tensor) -> Any:
    if weight.numel() != 1:
        raise UnsupportedLayer("prelu with a slope for each channel")
    return build("leaky_relu", value, float(weight))


def _div(build: Build, x: Any, y: Any, *mode: Any) -> Any:
    if any(option is not None for option in mode):
        raise UnsupportedLayer("div that rounds")
    return build("mul", build("reciprocal", y), x) if isinstance(y, Edge) else build("div", x, y)


def _times(build: Build, value: Any, factor: float) -> Any:
    if factor == 1:
        return value
    return build("mul", value, factor) if isinstance(value, Edge) else value * factor


def _variance(build: Build, value: Any, axes: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    if not axes:
        raise UnsupportedLayer("var over all axes")
    centred = build("sub", value, build("mean", value, axes, True))
    return build("sum_less", build("pow", centred, 2), axes, keepdim, 1 if correction is None else correction)


def _vector_norm(build: Build, value: Any, order: float = 2, axes: Any = None, keepdim: bool = False, *_: Any) -> Any:
    if order not in (1, 2) or not axes:
        raise UnsupportedLayer(f"linalg_vector_norm of order {order}")
    if order == 1:
        return build("sum", build("abs", value), axes, keepdim)
    return build("sqrt", build("sum", build("pow", value, 2), axes, keepdim))


def _log_sum(build: Build, value: Any, axes: Any, keepdim: bool = False) -> Any:
    return build("log", build("sum", build("exp", value), axes, keepdim))


COMPOSITES: dict[str, Callable[..., Any]] = {
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "scaled_dot_product_attention": _attention,
    "softmax": lambda build, value, axis, dtype=None: build("softmax", value, axis),
    "log_softmax": lambda build, value, axis, dtype=None: build("sub", value, _log_sum(build, value, [axis], True)),
    "prelu": _prelu,
    "div": _div,
    "minimum": lambda build, x, y: build("neg", build("maximum", build("neg", x), build("neg", y))),
    "amin": lambda build, value, *constants: build("neg", build("amax", build("neg", value), *constants)),
    "addmm": lambda build, value, x, y, beta=1, alpha=1: build(
        "add", _times(build, value, beta), _times(build, build("matmul", x, y), alpha)
    ),
    "var.correction": _variance,
    "std.correction": lambda build, *args: build("sqrt", _variance(build, *args)),
    "linalg_vector_norm": _vector_norm,
    "logsumexp": _log_sum,
    "square": lambda build, value: build("pow", value, 2),
}
"""The function that builds each composite operator from its arguments."""
