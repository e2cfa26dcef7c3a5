"""Operators that are taken apart into simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from brittle.measure.certified.graph import Edge, UnsupportedLayer

Build = Callable[..., Any]
"""`build(operator, *args)`: the edge of one more layer, or the constant where nothing in it depends on the input."""


def _scaled_weights(build: Build, value: Any, weight: Any, bias: Any) -> Any:
    value = value if weight is None else build("mul", value, weight)
    return value if bias is None else build("add", value, bias)


def _standardised(build: Build, value: Any, mean: Callable[[Any], Any], eps: float) -> Any:
    """`(x - m) / sqrt(mean of (x - m)^2 + eps)`, which is positive below the root whatever `x` is."""
    centred = build("sub", value, mean(value))
    variance = build("add", mean(build("pow", centred, 2)), eps)
    return build("mul", centred, build("rsqrt", variance))


def _layer_norm(build: Build, value: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any):
    axes = list(range(-len(shape), 0))
    return _scaled_weights(
        build, _standardised(build, value, lambda one: build("mean", one, axes, True), eps), weight, bias
    )


def _group_norm(
    build: Build, value: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
):
    def mean(one: Any) -> Any:
        return build("group_mean", one, groups)

    found = _standardised(build, value, mean, eps)
    found = found if weight is None else build("channel_mul", found, weight)
    return found if bias is None else build("channel_add", found, bias)


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
    seen: Any = "causal" if is_causal else None
    if isinstance(mask, Tensor):
        seen = mask if mask.dtype == torch.bool else mask > -torch.inf
        scores = scores if mask.dtype == torch.bool else build("add", scores, mask.masked_fill(~seen, 0.0))
    return build("matmul", build("softmax", scores, -1, seen), value)


def _softmax(build: Build, value: Any, axis: int, dtype: Any = None) -> Any:
    return build("softmax", value, axis)


def _log_softmax(build: Build, value: Any, axis: int, dtype: Any = None) -> Any:
    return build("sub", value, build("log", build("sum", build("exp", value), [axis], True)))


def _prelu(build: Build, value: Any, weight: Tensor) -> Any:
    if weight.numel() != 1:
        raise UnsupportedLayer("prelu with a slope for each channel")
    return build("leaky_relu", value, float(weight))


def _div(build: Build, one: Any, other: Any, *mode: Any) -> Any:
    if any(one is not None for one in mode):
        raise UnsupportedLayer("div that rounds")
    return build("mul", build("reciprocal", other), one) if isinstance(other, Edge) else build("div", one, other)


def _minimum(build: Build, one: Any, other: Any) -> Any:
    return build("neg", build("maximum", build("neg", one), build("neg", other)))


def _amin(build: Build, value: Any, axes: Any = (), keep: bool = False) -> Any:
    return build("neg", build("amax", build("neg", value), axes, keep))


def _product_sum(build: Build, value: Any, one: Any, other: Any, beta: float = 1, alpha: float = 1) -> Any:
    return build("add", _times(build, value, beta), _times(build, build("matmul", one, other), alpha))


def _times(build: Build, value: Any, factor: float) -> Any:
    if factor == 1:
        return value
    return build("mul", value, factor) if isinstance(value, Edge) else value * factor


def _glu(build: Build, value: Any, axis: int = -1) -> Any:
    first, second = (build("half", value, axis, number) for number in range(2))
    return build("mul", first, build("sigmoid", second))


def _variance(build: Build, value: Any, axes: Any = None, correction: Any = 1, keep: bool = False) -> Any:
    if not axes:
        raise UnsupportedLayer("var over all axes")
    centred = build("sub", value, build("mean", value, axes, True))
    return build("sum_less", build("pow", centred, 2), axes, keep, 1 if correction is None else correction)


def _deviation(build: Build, value: Any, axes: Any = None, correction: Any = 1, keep: bool = False) -> Any:
    return build("sqrt", _variance(build, value, axes, correction, keep))


def _vector_norm(build: Build, value: Any, order: float = 2, axes: Any = None, keep: bool = False, *_: Any) -> Any:
    if order not in (1, 2) or not axes:
        raise UnsupportedLayer(f"linalg_vector_norm of order {order}")
    if order == 1:
        return build("sum", build("abs", value), axes, keep)
    return build("sqrt", build("sum", build("pow", value, 2), axes, keep))


def _log_sum(build: Build, value: Any, axes: Any, keep: bool = False) -> Any:
    return build("log", build("sum", build("exp", value), axes, keep))


def _instance_norm(
    build: Build, value: Any, weight: Any, bias: Any, mean: Any, var: Any, fresh: bool, *rest: Any
) -> Any:
    if not fresh:
        raise UnsupportedLayer("instance_norm with running statistics")
    return _group_norm(build, value, 0, weight, bias, rest[1])


COMPOSITES: dict[str, Callable[..., Any]] = {
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "scaled_dot_product_attention": _attention,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "prelu": _prelu,
    "div": _div,
    "minimum": _minimum,
    "amin": _amin,
    "addmm": _product_sum,
    "baddbmm": _product_sum,
    "glu": _glu,
    "var.correction": _variance,
    "std.correction": _deviation,
    "linalg_vector_norm": _vector_norm,
    "logsumexp": _log_sum,
    "instance_norm": _instance_norm,
    "square": lambda build, value: build("pow", value, 2),
}
"""What each is made of, from the operator's arguments."""
