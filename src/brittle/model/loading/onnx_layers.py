"""Layers of ONNX graphs over operations of PyTorch: products, convolutions, pools and normalisations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def gemm(call: Call, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    """`alpha a b + beta c`, of transposed `a` and `b` where the node says so."""
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    product = call.get("alpha", 1.0) * (a @ b)
    return product if c is None else product + call.get("beta", 1.0) * c


def convolution(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A convolution over one, two or three axes."""
    axes = x.dim() - 2
    strides, dilations = call.get("strides", [1] * axes), call.get("dilations", [1] * axes)
    before, after = _padding(call, x.shape[2:], weight.shape[2:], strides, dilations)
    if before != after:
        x, before = functional.pad(x, _ends(before, after)), [0] * axes
    function = _by_axes(axes, functional.conv1d, functional.conv2d, functional.conv3d)
    return function(x, weight, bias, strides, before, dilations, call.get("group", 1))


def max_pool(call: Call, x: Tensor) -> Tensor:
    """The largest value of each window; what is padded never is."""
    if call.outputs > 1:
        raise NotConverted("its MaxPool returns places besides values")
    kernel = call.get("kernel_shape")
    strides, dilations = call.get("strides", [1] * len(kernel)), call.get("dilations", [1] * len(kernel))
    before, after = _padding(call, x.shape[2:], kernel, strides, dilations)
    if before != after or any(2 * pad > size for pad, size in zip(before, kernel, strict=True)):
        x, before = functional.pad(x, _ends(before, after), value=-torch.inf), [0] * len(kernel)
    function = _by_axes(len(kernel), functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
    return function(x, kernel, strides, before, dilations, bool(call.get("ceil_mode", 0)))


def average_pool(call: Call, x: Tensor) -> Tensor:
    """The mean of each window, of the padded zeros too where the node says so."""
    kernel = call.get("kernel_shape")
    strides = call.get("strides", [1] * len(kernel))
    if any(one != 1 for one in call.get("dilations", [1])):
        raise NotConverted("its AveragePool has dilations")
    before, after = _padding(call, x.shape[2:], kernel, strides, [1] * len(kernel))
    counted = bool(call.get("count_include_pad", 0))
    function = _by_axes(len(kernel), functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)
    rounded_up = bool(call.get("ceil_mode", 0))
    if before == after and all(2 * pad <= size for pad, size in zip(before, kernel, strict=True)):
        return function(x, kernel, strides, before, rounded_up, counted)
    ends, flat = _ends(before, after), [0] * len(kernel)
    mean = function(functional.pad(x, ends), kernel, strides, flat, rounded_up)
    if counted:
        return mean
    return mean / function(functional.pad(torch.ones_like(x), ends), kernel, strides, flat, rounded_up)


def global_average_pool(call: Call, x: Tensor) -> Tensor:
    """The mean over all axes but batch and channels."""
    return x.mean(dim=tuple(range(2, x.dim())), keepdim=True)


def global_max_pool(call: Call, x: Tensor) -> Tensor:
    """The largest value over all axes but batch and channels."""
    return x.amax(dim=tuple(range(2, x.dim())), keepdim=True)


def batch_normalization(call: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    """Normalised by the statistics of training."""
    if call.get("training_mode", 0) or (call.opset < 7 and not call.get("is_test", 0)):
        raise NotConverted("its BatchNormalization is in training mode")
    return functional.batch_norm(x, mean, var, scale, bias, False, 0.0, call.get("epsilon", 1e-5))


def instance_normalization(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Normalised over the places of each channel."""
    return functional.instance_norm(x, weight=scale, bias=bias, eps=call.get("epsilon", 1e-5))


def layer_normalization(call: Call, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """Normalised over the axes from `axis` on."""
    if call.outputs > 1:
        raise NotConverted("its LayerNormalization returns means besides values")
    shape = x.shape[call.get("axis", -1) % x.dim() :]
    normal = functional.layer_norm(x, shape, None, None, call.get("epsilon", 1e-5)) * scale
    return normal if bias is None else normal + bias


def group_normalization(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Normalised over the channels of a group and their places."""
    groups = call.get("num_groups")
    if call.opset < 21:  # one number a group
        scale, bias = (one.repeat_interleave(x.shape[1] // groups) for one in (scale, bias))
    return functional.group_norm(x, groups, scale, bias, call.get("epsilon", 1e-5))


def local_response_normalization(call: Call, x: Tensor) -> Tensor:
    """Each channel over a power of the squares of its neighbours."""
    size, alpha, beta = call.get("size"), call.get("alpha", 1e-4), call.get("beta", 0.75)
    return functional.local_response_norm(x, size, alpha, beta, call.get("bias", 1.0))


def softmax(call: Call, x: Tensor) -> Tensor:
    """Softmax over an axis; before opset 13, over that axis and all after it."""
    return _over_axis(call, x, torch.softmax)


def log_softmax(call: Call, x: Tensor) -> Tensor:
    """The logarithm of `softmax`."""
    return _over_axis(call, x, torch.log_softmax)


def _over_axis(call: Call, x: Tensor, function: Any) -> Tensor:
    if call.opset >= 13:
        return function(x, call.get("axis", -1))
    axis = call.get("axis", 1) % x.dim()
    return function(x.flatten(axis), axis).reshape(x.shape)


def _by_axes(axes: int, *functions: Any) -> Any:
    if not 1 <= axes <= len(functions):
        raise NotConverted(f"a layer of it has {axes} axes of places")
    return functions[axes - 1]


def _padding(
    call: Call, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[list[int], list[int]]:
    """How much is padded before and after each axis."""
    kind = call.get("auto_pad", "NOTSET")
    if kind in ("NOTSET", "VALID"):
        pads = call.get("pads", [0] * 2 * len(kernel)) if kind == "NOTSET" else [0] * 2 * len(kernel)
        return list(pads[: len(kernel)]), list(pads[len(kernel) :])
    wide = [
        max(0, (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size)
        for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
    ]
    less, more = [one // 2 for one in wide], [one - one // 2 for one in wide]
    return (less, more) if kind == "SAME_UPPER" else (more, less)


def _ends(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Padding in the order of PyTorch, the last axis first."""
    both = list(zip(before, after, strict=True))
    return [pad for pair in reversed(both) for pad in pair]
