"""From a classifier's model to its network, or the layer that does not allow it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves, tree_map

from brittle.decisions import Decision, PredictedClass
from brittle.extensions.certificates.graph import (
    Edge,
    Layer,
    Network,
    UnknownOperator,
    UnsupportedLayer,
    run_layer,
    unchanged,
)
from brittle.extensions.certificates.operators import (
    ALIASES,
    COMPOSITES,
    FUNCTIONS,
    PAIRS,
    SAME,
    SEVERAL,
    SUPPORTED,
    VIEWS,
    check,
)
from brittle.model.classifier import Classifier
from brittle.model.evaluation_mode import traced


def build_network(classifier: Classifier, inputs: Tensor) -> Network:
    """The layers from inputs in the declared units to class scores.

    A model that keeps the rows of a batch on the first axis of every value is bounded for many rows at once, others
    (attention of `torch.nn` puts them second) for one row at a time.
    """
    try:
        network = _network(classifier, inputs, alone=False)
    except UnknownOperator:
        raise
    except UnsupportedLayer as error:
        try:
            return _network(classifier, inputs, alone=True)
        except UnsupportedLayer:
            raise error from None
    return network if not len(inputs) or _rows_first(network, inputs) else _network(classifier, inputs, alone=True)


def _network(classifier: Classifier, inputs: Tensor, alone: bool) -> Network:
    units = Edge("inputs")
    layers = [*_normalisation(classifier, inputs, units)]
    first = Edge(layers[-1].name) if layers else units
    traced, output = _known_layers(classifier, inputs, first, alone)
    layers += traced
    if classifier.outputs == "binary-logit":
        layers.append(Layer("binary_logit", "binary_logit", FUNCTIONS["binary_logit"], (output,)))
        output = Edge("binary_logit")
    read = unchanged
    if classifier.outputs == "probs":
        output, read = below_probabilities(layers, output, classifier.decision, classifier.dtype or torch.float32)
    return Network(_needed(layers, output), units, output, alone, read)


def _needed(layers: list[Layer], output: Edge) -> tuple[Layer, ...]:
    """The layers on which the output depends."""
    needed, kept = {output}, []
    for layer in reversed(layers):
        if Edge(layer.name) in needed:
            kept.append(layer)
            needed.update(one for one in tree_leaves(layer.args) if isinstance(one, Edge))
    return tuple(reversed(kept))


def _rows_first(network: Network, inputs: Tensor) -> bool:
    """Whether the first axis of every value counts the rows, and nothing else does."""
    shapes: dict[int, list[torch.Size]] = {2: [], 3: []}
    for rows, seen in shapes.items():

        def noted(layer: Layer, args: tuple[Any, ...], seen: list[torch.Size] = seen) -> Tensor:
            value = run_layer(layer, args)
            seen.append(value.shape)
            return value

        try:
            network.interpret(inputs[:1].double().expand(rows, *inputs.shape[1:]), noted)
        except UnsupportedLayer:
            return False
    pairs = zip(*shapes.values(), strict=True)
    return all(two == (2, *two[1:]) and three == (3, *two[1:]) for two, three in pairs)


def _normalisation(classifier: Classifier, inputs: Tensor, edge: Edge) -> Iterator[Layer]:
    """The classifier's own `(x - mean) / std`."""
    shape = (1, -1) + (1,) * (inputs.dim() - 2)
    steps = (("sub", "mean", classifier.mean), ("div", "std", classifier.std))
    for operator, name, numbers in steps:
        if numbers is not None:
            constant = torch.tensor(numbers, dtype=torch.float64, device=inputs.device).view(shape)
            yield Layer(name, operator, FUNCTIONS[operator], (edge, constant))
            edge = Edge(name)


def _known_layers(classifier: Classifier, inputs: Tensor, first: Edge, alone: bool) -> tuple[list[Layer], Edge]:
    """The layers of the model; what is not known is decomposed by PyTorch, and named if that does not help."""
    model = classifier.model
    if not isinstance(model, nn.Module):
        raise UnsupportedLayer("a model that is no torch.nn.Module")
    if classifier.dtype in (torch.float16, torch.bfloat16):
        # Its rounding anywhere else is not bounded by what is seen at the point.
        raise UnsupportedLayer(f"a model that computes in half precision ({str(classifier.dtype).partition('.')[2]})")
    program: torch.export.ExportedProgram | None = None
    if not alone and isinstance(model, fx.GraphModule) and _is_exported(model):
        graph = model
    else:
        program = _exported(classifier, inputs, alone)
        graph = program.module()
    assert isinstance(graph, fx.GraphModule)
    try:
        return _layers(graph, first)
    except UnsupportedLayer as error:
        program = _exported(classifier, inputs, alone) if program is None else program
        # Decompositions change nothing in place.
        called = (node for node in program.graph.nodes if node.op == "call_function")
        if not isinstance(error, ChangedInPlace) and all(_canonical(node) in _KNOWN for node in called):
            raise
        try:
            with traced():
                decomposed = program.run_decompositions(_decompositions()).module()
            assert isinstance(decomposed, fx.GraphModule)
            return _layers(decomposed, first)
        except UnsupportedLayer:
            raise error from None


def _decompositions() -> dict[Any, Any]:
    """Those of the operators that are not known as they are."""
    table = dict(torch.export.default_decompositions())
    return {operator: made for operator, made in table.items() if str(operator).split(".")[1] not in _KNOWN}


def _exported(classifier: Classifier, inputs: Tensor, alone: bool) -> torch.export.ExportedProgram:
    """The model as a program of ATen operators."""
    model = classifier.model
    assert isinstance(model, nn.Module)
    model = getattr(model, "_orig_mod", model)  # what torch.compile was given
    # Two rows, because a batch of one is taken for a constant.
    rows = 1 if alone else 2
    example = inputs[:1].to(classifier.dtype or inputs.dtype).expand(rows, *inputs.shape[1:]).clone()
    dynamic = None if alone else ({0: torch.export.Dim.AUTO},)
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what it tells its developers is not for the user
    try:
        with traced():
            return torch.export.export(model, (example,), dynamic_shapes=dynamic, strict=False)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise UnsupportedLayer(f"a model that torch.export cannot trace ({type(error).__name__}: {reason})") from error
    finally:
        logger.setLevel(level)


def _is_exported(model: fx.GraphModule) -> bool:
    called = [node for node in model.graph.nodes if node.op == "call_function"]
    modules = [node for node in model.graph.nodes if node.op == "call_module" and node.users]
    return not modules and any(isinstance(node.target, torch._ops.OpOverload) for node in called)


def _layers(module: fx.GraphModule, inputs: Edge) -> tuple[list[Layer], Edge]:
    """The layers of an exported graph whose placeholder is `inputs`, and the edge of its output. What does not depend
    on the input is computed here."""
    layers: list[Layer] = []
    values: dict[fx.Node, Any] = {}
    _check_writes(module.graph)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    if len(placeholders) != 1:
        raise UnsupportedLayer(f"a model of {len(placeholders)} inputs")
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = inputs
        elif node.op == "get_attr":
            found = attrgetter(str(node.target))(module)
            values[node] = _doubled(found.detach() if isinstance(found, Tensor) else found)
        elif node.op == "output":
            outputs = tree_leaves(tree_map(lambda one: values.get(one, one), list(node.args)))
            if len(outputs) != 1 or not isinstance(outputs[0], Edge):
                kind = f"a model of {len(outputs)} outputs, or one that does not depend on its input"
                raise UnsupportedLayer(kind)
            return layers, outputs[0]
        elif node.users:
            values[node] = _value(node, values, layers)
    raise UnsupportedLayer("a graph without an output")


class ChangedInPlace(UnsupportedLayer):
    """A tensor that is changed where others may see it."""


def _check_writes(graph: fx.Graph) -> None:
    """Refuse an operator that changes a tensor which another may see: a view, a constant, or one with other users.
    Values of layers are not changed, so that a later reader would get what stood there before."""
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        written = [
            node.args[place] if place < len(node.args) else node.kwargs.get(one.name)
            for place, one in enumerate(schema.arguments if schema is not None and node.op == "call_function" else ())
            if one.alias_info is not None and one.alias_info.is_write
        ]
        for changed in tree_leaves(written):
            if not isinstance(changed, fx.Node):
                continue
            view = changed.op == "call_function" and _canonical(changed) in VIEWS | SAME
            if view or changed.op == "get_attr" or len(changed.users) > 1:
                raise ChangedInPlace(f"{_canonical(node)} in place on a tensor that is used elsewhere")


def _called(target: Any, *args: Any) -> Any:
    schema = target._schema.arguments
    named = {one.name: value for one, value in zip(schema, args, strict=True) if one.kwarg_only}
    return target(*args[: len(args) - len(named)], **named)


class _Builder:
    """Adds the layers of one node."""

    def __init__(self, node: fx.Node, layers: list[Layer]) -> None:
        self.node, self.layers = node, layers

    def __call__(self, operator: str, *args: Any) -> Edge:
        return self.add(operator, FUNCTIONS.get(operator) or getattr(torch.ops.aten, operator), args)

    def add(self, operator: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Edge:
        """One more layer whose function is known."""
        check(operator, args)
        taken = self.node.name in (layer.name for layer in self.layers)
        whole = operator == _canonical(self.node) and not taken
        name = self.node.name if whole else f"{self.node.name}.{len(self.layers)}"
        self.layers.append(Layer(name, operator, function, args))
        return Edge(name)

    def value(self, operator: str, args: tuple[Any, ...]) -> Any:
        """The edge of the node's value; of several, the function from a part's number to its edge."""
        if operator in PAIRS:  # of values and their places
            return lambda number: self._values_only(number, operator, args)
        if operator in SEVERAL:
            target = self.node.target
            return lambda number: self.add(operator, lambda *given: _called(target, *given)[number], args)
        if operator in COMPOSITES:
            return COMPOSITES[operator](self, *args)
        return self.add(operator, FUNCTIONS.get(operator) or partial(_called, self.node.target), args)

    def _values_only(self, number: int, operator: str, args: tuple[Any, ...]) -> Any:
        if number:
            raise UnsupportedLayer(f"{operator}, of which the place is used")
        values = PAIRS[operator]
        if values in COMPOSITES:
            return COMPOSITES[values](self, *args)
        return self.add(values, FUNCTIONS[values], args)


def _value(node: fx.Node, values: Mapping[fx.Node, Any], layers: list[Layer]) -> Any:
    """The constant that `node` computes, or the edge of the layer that it adds to `layers`."""
    operator = _operator(node)
    if operator == "sym_size":
        return -1  # the number of rows is free
    args = _positional(node, values)
    if operator == "getitem" and callable(args[0]):
        return args[0](args[1])
    if not any(isinstance(one, Edge) for one in tree_leaves(args)):
        return _folded(node, operator, values)
    return _Builder(node, layers).value(_canonical(node), args)


def _folded(node: fx.Node, operator: str, values: Mapping[fx.Node, Any]) -> Any:
    """A constant; one row stands for all, wherever it is repeated for each."""
    filled: Any = map_arg((node.args, node.kwargs), lambda one: values[one])
    args, keywords = tuple(filled[0]), dict(filled[1])
    if operator == "expand" and args[1][0] == -1:
        args = (args[0], [1, *args[1][1:]])
    assert callable(node.target)
    function = partial(node.target, **keywords)
    found = run_layer(Layer(node.name, operator, function, args), args)
    return tree_map(_doubled, found)


def _doubled(value: Any) -> Any:
    """Constants are exact in the precision that they were made in, and go on in double precision."""
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def _operator(node: fx.Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name.partition("::")[2]
    return getattr(node.target, "__name__", str(node.target))


def _canonical(node: fx.Node) -> str:
    """The name that the operator has in `operators`."""
    operator = _operator(node).rstrip("_")
    if operator in ("max", "min", "var", "std") and isinstance(node.target, torch._ops.OpOverload):
        operator = f"{operator}.{node.target._overloadname}"
    return ALIASES.get(operator, operator)


def _positional(node: fx.Node, values: Mapping[fx.Node, Any]) -> tuple[Any, ...]:
    """All arguments in the order of the operator's schema."""
    schema = getattr(node.target, "_schema", None)
    given = list(node.args)
    if schema is not None:
        rest = schema.arguments[len(given) :]
        given += [node.kwargs.get(one.name, one.default_value) for one in rest]
    filled: Any = map_arg(tuple(given), lambda one: values[one])
    args = list(filled)
    if _operator(node) == "einsum":  # the operands first, as everywhere else
        args = [*args[1], args[0]]
    return tuple(args)


_KNOWN = SUPPORTED | set(COMPOSITES) | set(ALIASES) | set(PAIRS) | {"sym_size", "getitem"}
"""Operators that need no decomposition."""


def below_probabilities(
    layers: list[Layer], output: Edge, decision: Decision, dtype: torch.dtype
) -> tuple[Edge, Callable[[Tensor], Tensor]]:
    """What stands for class probabilities in margins, and the function from it to their logarithms.

    Classes are in the same order by their probabilities, by the logarithms of these, which the classifier compares, and
    by what a softmax at the end makes them of. Margins of the last are bounded where there is one, and otherwise those
    of the probabilities themselves. As these are at most 1, they are wrong by no more than their logarithms are.
    In their precision `dtype` the smallest normal number stands for 0.
    """
    if not isinstance(decision, PredictedClass):
        raise UnsupportedLayer(
            f"probabilities from which {decision.label} is decided: let the model return the logits below them, "
            "without outputs=probs"
        )
    tiny = torch.finfo(dtype).tiny
    last = next((one for one in layers if Edge(one.name) == output), None)
    if last is not None and last.operator == "softmax" and last.args[1:] in ((1,), (-1,)):
        return last.args[0], lambda logits: logits.log_softmax(dim=1).clamp_min(math.log(tiny))
    return output, lambda probabilities: probabilities.clamp_min(tiny).log()
