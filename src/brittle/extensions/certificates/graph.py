"""A network as a plain sequence of layers that bounds can be sent through."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

Value = TypeVar("Value")  # value on the edges of the network in an interpretation: tensor, interval, bounded point


class UnsupportedLayer(Exception):
    """A layer that no bounds can be sent through; its text names the layer."""


class UnknownOperator(UnsupportedLayer):
    """An operator on none of the lists, however the model is traced."""


@dataclass(frozen=True)
class Edge:
    """The value of an earlier layer, or the input, where an argument stands for it."""

    name: str


@dataclass(frozen=True)
class Layer:
    """One operator of the network; all its arguments but the edges are constants.

    `name` names its value; the operator is one of `operators`, without its overload, such as `conv2d`. `args` have an
    `Edge` wherever the value depends on the input; tensors are in double precision.
    """

    name: str
    operator: str
    function: Callable[..., Tensor]
    args: tuple[Any, ...]

    @property
    def label(self) -> str:
        return f"{self.operator} ({self.name})" if self.name != self.operator else self.operator


def identity(scores: Tensor) -> Tensor:
    return scores


@dataclass(frozen=True)
class Network:
    """The layers in the order of computation, in double precision.

    The input and the class scores are edges. The rows of a batch are the first axis of every value, unless the layers
    take one row at a time, `row_by_row`. `read` leads from the class scores that are bounded to the numbers that the
    classifier compares, where these differ.
    """

    layers: tuple[Layer, ...]
    inputs: Edge
    output: Edge
    row_by_row: bool = False
    read: Callable[[Tensor], Tensor] = identity

    def interpret(self, inputs: Value, apply: Callable[[Layer, tuple[Any, ...]], Value]) -> Value:
        """Send `inputs` through all layers; `apply` gives the value of one layer from its arguments."""
        values = {self.inputs: inputs}
        for layer in self.layers:
            args = tree_map(lambda arg: values[arg] if isinstance(arg, Edge) else arg, layer.args)
            values[Edge(layer.name)] = apply(layer, args)
        return values[self.output]

    def __call__(self, inputs: Tensor) -> Tensor:
        """Class scores `[B, C]` of `inputs`, `[B, *shape]`, double precision."""
        parts = inputs.double().split(1) if self.row_by_row else (inputs.double(),)
        return torch.cat([self.interpret(part, run_layer) for part in parts])


def run_layer(layer: Layer, args: tuple[Any, ...]) -> Tensor:
    try:
        return layer.function(*args)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise UnsupportedLayer(f"{layer.label}: {str(error).strip().partition(chr(10))[0]}") from error
