"""A network as a plain sequence of layers that bounds can be sent through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

Value = TypeVar("Value")
"""What an interpretation of the network sends along its edges: a tensor, an interval, a bounded point."""


class UnsupportedLayer(Exception):
    """A layer that no bounds can be sent through, in words."""


class UnknownOperator(UnsupportedLayer):
    """One that is on no list of operators, however the model is traced."""


@dataclass(frozen=True)
class Edge:
    """The value of an earlier layer, or the input, where an argument stands for it."""

    name: str


@dataclass(frozen=True)
class Layer:
    """One operator of the network; all its arguments but the edges are constants.

    `name` is what others call its value; the operator is one of `operators`, named without its overload, such as
    `conv2d`. `args` have an `Edge` wherever the value depends on the input; tensors are in double precision.
    """

    name: str
    operator: str
    function: Callable[..., Tensor]
    args: tuple[Any, ...]

    @property
    def words(self) -> str:
        """What a user would call it."""
        return f"{self.operator} ({self.name})" if self.name != self.operator else self.operator


def unchanged(scores: Tensor) -> Tensor:
    return scores


@dataclass(frozen=True)
class Network:
    """The layers in the order of computation, in double precision.

    The input and the class scores are edges. The rows of a batch are the first axis of every value, unless the layers
    take one row at a time, `alone`. `read` leads from the class scores that are bounded to the numbers that the
    classifier compares, where these differ.
    """

    layers: tuple[Layer, ...]
    inputs: Edge
    output: Edge
    alone: bool = False
    read: Callable[[Tensor], Tensor] = unchanged

    def interpret(self, inputs: Value, apply: Callable[[Layer, tuple[Any, ...]], Value]) -> Value:
        """Send `inputs` through all layers; `apply` gives the value of one layer from its arguments."""
        values = {self.inputs: inputs}
        for layer in self.layers:
            args = tree_map(lambda one: values[one] if isinstance(one, Edge) else one, layer.args)
            values[Edge(layer.name)] = apply(layer, args)
        return values[self.output]

    def __call__(self, inputs: Tensor) -> Tensor:
        """Class scores `[B, C]` of `inputs`, `[B, *shape]`, double precision."""
        parts = inputs.double().split(1) if self.alone else (inputs.double(),)
        return torch.cat([self.interpret(part, run_layer) for part in parts])


def run_layer(layer: Layer, args: tuple[Any, ...]) -> Tensor:
    try:
        return layer.function(*args)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise UnsupportedLayer(f"{layer.words}: {str(error).strip().partition(chr(10))[0]}") from error
