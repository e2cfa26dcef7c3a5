"""A network as a plain sequence of layers that bounds can be sent through, or the layer that does not allow it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves, tree_map

from brittle.model.classifier import Classifier
from brittle.model.quiet import without_last_words, without_warnings
from brittle.model.turns import PASSES

Value = TypeVar("Value")
"""What an interpretation of the network sends along its edges: a tensor, an interval, a bounded point."""


class UnsupportedLayer(Exception):
    """A layer that no bounds can be sent through, in words."""


@dataclass(frozen=True)
class Edge:
    """The value of an earlier layer, or the input, where an argument stands for it."""

    name: str


@dataclass(frozen=True)
class Layer:
    """One operator of the network; all its arguments but the edges are constants.

    Attributes:
        name: what others call its value.
        operator: name of the operator without its overload, such as `conv2d`.
        function: the operator itself, on tensors.
        args: arguments, with an `Edge` wherever the value depends on the input; tensors in double precision.
    """

    name: str
    operator: str
    function: Callable[..., Tensor]
    args: tuple[Any, ...]

    @property
    def words(self) -> str:
        """What a user would call it."""
        return f"{self.operator} ({self.name})" if self.name != self.operator else self.operator


@dataclass(frozen=True)
class Network:
    """The layers in the order of computation, in double precision.

    Attributes:
        layers: affine ones (`AFFINE`) and monotone ones (`MONOTONE`); each row of a batch goes its own way.
        inputs: the edge that the input takes.
        output: the edge that the class scores leave by.
    """

    layers: tuple[Layer, ...]
    inputs: Edge
    output: Edge

    def interpret(self, inputs: Value, apply: Callable[[Layer, tuple[Any, ...]], Value]) -> Value:
        """Send `inputs` through all layers; `apply` gives the value of one layer from its arguments."""
        values = {self.inputs: inputs}
        for layer in self.layers:
            args = tree_map(lambda one: values[one] if isinstance(one, Edge) else one, layer.args)
            values[Edge(layer.name)] = apply(layer, args)
        return values[self.output]

    def __call__(self, inputs: Tensor) -> Tensor:
        """Class scores `[B, C]` of `inputs`, `[B, *shape]`, double precision.

        Raises:
            UnsupportedLayer: a layer fails on this batch.
        """
        return self.interpret(inputs.double(), run_layer)


def run_layer(layer: Layer, args: tuple[Any, ...]) -> Tensor:
    """The value of one layer, from tensors.

    Raises:
        UnsupportedLayer: it fails.
    """
    try:
        return layer.function(*args)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise UnsupportedLayer(f"{layer.words}: {str(error).strip().partition(chr(10))[0]}") from error


def build_network(classifier: Classifier, inputs: Tensor) -> Network:
    """The layers from inputs in the declared units to class scores.

    Args:
        classifier: its model is an exported program's module, or a module that `torch.export` can trace.
        inputs: `[B, *shape]`; what the model is traced with.

    Raises:
        UnsupportedLayer: the model cannot be traced, or one of its layers is neither affine nor monotone.
    """
    units = Edge("inputs")
    layers = [*_normalisation(classifier, inputs, units)]
    first = Edge(layers[-1].name) if layers else units
    traced, output = _layers(_graph_module(classifier, inputs), first)
    layers += traced
    if classifier.outputs == "binary-logit":
        layers.append(Layer("binary_logit", "binary_logit", _beside_zero, (output,)))
        output = Edge("binary_logit")
    return Network(tuple(layers), units, output)


def _normalisation(classifier: Classifier, inputs: Tensor, edge: Edge) -> Iterator[Layer]:
    """The classifier's own `(x - mean) / std`."""
    shape = (1, -1) + (1,) * (inputs.dim() - 2)
    steps = (("sub", "mean", classifier.mean, torch.sub), ("div", "std", classifier.std, torch.div))
    for operator, name, numbers, function in steps:
        if numbers is not None:
            constant = torch.tensor(numbers, dtype=torch.float64, device=inputs.device).view(shape)
            yield Layer(name, operator, function, (edge, constant))
            edge = Edge(name)


def _beside_zero(logit: Tensor) -> Tensor:
    """Class scores `[B, 2]` of one logit for class 1."""
    logit = logit.reshape(len(logit), 1)
    return torch.cat((torch.zeros_like(logit), logit), dim=1)


def _graph_module(classifier: Classifier, inputs: Tensor) -> fx.GraphModule:
    """The model as a graph of ATen operators."""
    model = classifier.model
    if isinstance(model, fx.GraphModule) and _is_exported(model):
        return model
    if not isinstance(model, nn.Module):
        raise UnsupportedLayer("a model that is no torch.nn.Module")
    # Two rows, because a batch of one is taken for a constant.
    example = inputs[:1].to(classifier.dtype or inputs.dtype).expand(2, *inputs.shape[1:]).clone()
    try:
        with PASSES.alone(), _quiet():  # tracing puts other parameters into the model
            dynamic = ({0: torch.export.Dim.AUTO},)
            exported = torch.export.export(model, (example,), dynamic_shapes=dynamic, strict=False).module()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise UnsupportedLayer(f"a model that torch.export cannot trace ({type(error).__name__}: {reason})") from error
    assert isinstance(exported, fx.GraphModule)
    return exported


@contextmanager
def _quiet() -> Iterator[None]:
    """What `torch.export` tells its developers is not for the user."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with without_warnings(), without_last_words():
            yield
    finally:
        logger.setLevel(level)


def _is_exported(model: fx.GraphModule) -> bool:
    called = [node for node in model.graph.nodes if node.op == "call_function"]
    modules = [node for node in model.graph.nodes if node.op == "call_module" and node.users]
    return not modules and any(isinstance(node.target, torch._ops.OpOverload) for node in called)


def _layers(module: fx.GraphModule, inputs: Edge) -> tuple[list[Layer], Edge]:
    """The layers of an exported graph whose placeholder is `inputs`, and the edge of its output.

    What does not depend on the input is computed here.
    """
    layers: list[Layer] = []
    values: dict[fx.Node, Any] = {}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    if len(placeholders) != 1:
        raise UnsupportedLayer(f"a model of {len(placeholders)} inputs")
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = inputs
        elif node.op == "get_attr":
            values[node] = _constant(module, str(node.target))
        elif node.op == "output":
            return layers, _only_output(tree_map(lambda one: values.get(one, one), list(node.args)))
        elif node.users:
            values[node] = _value(node, values, layers)
    raise UnsupportedLayer("a graph without an output")


def _constant(module: nn.Module, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name)
    if not isinstance(found, Tensor):
        return found
    found = found.detach()
    return found.double() if found.is_floating_point() else found


def _only_output(args: Any) -> Edge:
    outputs = tree_leaves(args)
    if len(outputs) != 1 or not isinstance(outputs[0], Edge):
        raise UnsupportedLayer(f"a model of {len(outputs)} outputs, or one that does not depend on its input")
    return outputs[0]


def _value(node: fx.Node, values: Mapping[fx.Node, Any], layers: list[Layer]) -> Any:
    """The constant that `node` computes, or the edge of the layer that it adds to `layers`."""
    operator = _operator(node)
    if operator == "sym_size":
        return -1  # the number of rows is free
    args = _positional(node, values)
    if not any(isinstance(one, Edge) for one in tree_leaves(args)):
        return _folded(node, operator, values)
    _check_in_place(node, operator)
    layer = Layer(node.name, operator.rstrip("_"), *_meaning(node, operator.rstrip("_"), args))
    layers.append(layer)
    return Edge(layer.name)


def _folded(node: fx.Node, operator: str, values: Mapping[fx.Node, Any]) -> Any:
    """A constant; one row stands for all, wherever it is repeated for each."""
    filled: Any = map_arg((node.args, node.kwargs), lambda one: values[one])
    args, keywords = tuple(filled[0]), dict(filled[1])
    if operator == "expand" and args[1][0] == -1:
        args = (args[0], [1, *args[1][1:]])
    assert callable(node.target)
    function = partial(node.target, **keywords)
    return run_layer(Layer(node.name, operator, function, args), args)


def _operator(node: fx.Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name.partition("::")[2]
    return getattr(node.target, "__name__", str(node.target))


def _positional(node: fx.Node, values: Mapping[fx.Node, Any]) -> tuple[Any, ...]:
    """All arguments in the order of the operator's schema."""
    schema = getattr(node.target, "_schema", None)
    given = list(node.args)
    if schema is not None:
        rest = schema.arguments[len(given) :]
        given += [node.kwargs.get(one.name, one.default_value) for one in rest]
    filled: Any = map_arg(tuple(given), lambda one: values[one])
    args = list(filled)
    if _operator(node) == "addmm":  # the product first, as everywhere else
        args = [args[1], args[2], args[0], *args[3:]]
    return tuple(args)


def _check_in_place(node: fx.Node, operator: str) -> None:
    """Refuse an operator that changes a tensor which others see, too."""
    changed = node.args[0] if node.args else None
    if operator.endswith("_") and isinstance(changed, fx.Node):
        shared = len(changed.users) > 1 or changed.op != "call_function" or _operator(changed) in _VIEWS
        if shared:
            raise UnsupportedLayer(f"{operator} in place on a tensor that is used elsewhere")


def _meaning(node: fx.Node, operator: str, args: tuple[Any, ...]) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """The function of a layer and its arguments, where it is of a kind that bounds can be sent through."""
    edges = [isinstance(one, Edge) for one in args]
    first_only = edges[:1] == [True] and not any(isinstance(one, Edge) for one in tree_leaves(args[1:]))
    if operator in SUMS or (operator in PRODUCTS and sum(edges) == 1) or (operator in AFFINE and first_only):
        return _FUNCTIONS.get(operator, node.target), _in_evaluation(operator, args)  # type: ignore[return-value]
    if operator in MONOTONE and first_only:
        _check_monotone(operator, args)
        return node.target, args  # type: ignore[return-value]
    between = " of two values that both depend on the input" if sum(edges) > 1 else ""
    raise UnsupportedLayer(f"{operator}{between}")


def _in_evaluation(operator: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse layers of the training mode and precisions below single."""
    if (operator == "batch_norm" and args[5]) or (operator in ("dropout", "feature_dropout") and args[2]):
        raise UnsupportedLayer(f"{operator} in training mode")
    if any(one in (torch.float16, torch.bfloat16) for one in args if isinstance(one, torch.dtype)):
        raise UnsupportedLayer(f"{operator} to half precision")
    return args


def _check_monotone(operator: str, args: tuple[Any, ...]) -> None:
    if operator == "leaky_relu" and not 0 <= args[1] <= 1:
        raise UnsupportedLayer(f"leaky_relu with slope {args[1]}")
    if operator == "max_pool2d" and (any(args[3]) or any(one != 1 for one in args[4]) or args[5]):
        raise UnsupportedLayer("max_pool2d with padding, dilation or ceil_mode")


SUMS = frozenset({"add", "sub", "cat"})
"""Affine in all arguments together."""

PRODUCTS = frozenset({"mul"})
"""Affine in one argument."""

_VIEWS = frozenset({"view", "reshape", "_unsafe_view", "flatten", "unsqueeze", "squeeze", "permute", "transpose", "t"})
_SAME = frozenset({"clone", "contiguous", "alias", "detach", "to", "_to_copy", "dropout", "feature_dropout"})

AFFINE = _VIEWS.union(
    _SAME,
    SUMS,
    PRODUCTS,
    {"linear", "matmul", "mm", "conv1d", "conv2d", "conv3d", "batch_norm", "div", "neg", "rsub"},
    {"avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "mean", "sum"},
    {"addmm", "binary_logit"},
)
"""Affine in their first argument when all others are constants."""

MONOTONE = frozenset({"relu", "leaky_relu", "sigmoid", "tanh", "max_pool2d"})
"""Nonlinear, and not decreasing in any number of the first argument."""


def _reshape(value: Tensor, sizes: Any) -> Tensor:
    """Reshape each row; the number of rows stays."""
    return value.reshape(len(value), *sizes[1:])


def _beside(values: list[Tensor], axis: int = 0) -> Tensor:
    """`cat`, where a constant may have one row for all."""
    rows = max(len(value) for value in values)
    return torch.cat([value.expand(rows, *value.shape[1:]) for value in values], dim=axis)


def _unchanged(value: Tensor, *_: Any) -> Tensor:
    return value


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _reshape),
    **dict.fromkeys(_SAME, _unchanged),
    "cat": _beside,
    "add": lambda one, other, alpha=1: one + alpha * other,
    "sub": lambda one, other, alpha=1: one - alpha * other,
    "rsub": lambda one, other, alpha=1: other - alpha * one,
    "div": lambda one, other: one / other,
    "mul": lambda one, other: one * other,
    "addmm": lambda value, weight, bias, beta=1, alpha=1: beta * bias + alpha * (value @ weight),
    "mean": lambda value, axes=None, keep=False, dtype=None: value.mean(axes, keep),
    "sum": lambda value, axes=None, keep=False, dtype=None: value.sum(axes, keep),
}
"""What stands for an operator: on any number of rows, in any precision."""
