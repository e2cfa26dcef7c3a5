"""Tracing of a classifier's model to its network, or to the layer that prevents it."""

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
from brittle.extensions.certificates import graph, operators
from brittle.extensions.certificates.graph import Edge, Layer, Network, UnsupportedLayer, run_layer
from brittle.extensions.certificates.operators import ALIASES, COMPOSITES, FUNCTIONS, VALUE_OPERATORS
from brittle.model.classifier import Classifier
from brittle.model.evaluation_mode import traced


def build_network(classifier: Classifier, inputs: Tensor) -> Network:
    """Return the layers from inputs in the declared units to class scores.

    A model that keeps the rows of a batch on the first axis of every value is bounded for many rows at once, others
    (attention of `torch.nn` puts them second) for one row at a time.
    """
    try:
        network = _network(classifier, inputs, row_by_row=False)
    except graph.UnknownOperator:
        raise
    except UnsupportedLayer as error:
        try:
            return _network(classifier, inputs, row_by_row=True)
        except UnsupportedLayer:
            raise error from None
    is_batched = not len(inputs) or _has_rows_first(network, inputs)
    return network if is_batched else _network(classifier, inputs, row_by_row=True)


def _network(classifier: Classifier, inputs: Tensor, row_by_row: bool) -> Network:
    units = Edge("inputs")
    layers = [*_normalisation_layers(classifier, inputs, units)]
    source = Edge(layers[-1].name) if layers else units
    model_layers, output = _model_layers(classifier, inputs, source, row_by_row)
    layers += model_layers
    if classifier.outputs == "binary-logit":
        layers.append(Layer("binary_logit", "binary_logit", FUNCTIONS["binary_logit"], (output,)))
        output = Edge("binary_logit")
    read = graph.identity
    if classifier.outputs == "probs":
        output, read = probability_scores(layers, output, classifier.decision, classifier.dtype or torch.float32)
    return Network(_prune_layers(layers, output), units, output, row_by_row, read)


def _prune_layers(layers: list[Layer], output: Edge) -> tuple[Layer, ...]:
    """Return the layers on which the output depends."""
    needed_edges, needed_layers = {output}, []
    for layer in reversed(layers):
        if Edge(layer.name) in needed_edges:
            needed_layers.append(layer)
            needed_edges.update(arg for arg in tree_leaves(layer.args) if isinstance(arg, Edge))
    return tuple(reversed(needed_layers))


def _has_rows_first(network: Network, inputs: Tensor) -> bool:
    """Return whether the first axis of every value counts the rows, and no other axis does."""
    shapes: dict[int, list[torch.Size]] = {2: [], 3: []}
    for rows, row_shapes in shapes.items():

        def record_shape(layer: Layer, args: tuple[Any, ...], row_shapes: list[torch.Size] = row_shapes) -> Tensor:
            value = run_layer(layer, args)
            row_shapes.append(value.shape)
            return value

        try:
            network.interpret(inputs[:1].double().expand(rows, *inputs.shape[1:]), record_shape)
        except UnsupportedLayer:
            return False
    pairs = zip(*shapes.values(), strict=True)
    return all(two == (2, *two[1:]) and three == (3, *two[1:]) for two, three in pairs)


def _normalisation_layers(classifier: Classifier, inputs: Tensor, edge: Edge) -> Iterator[Layer]:
    """Yield the layers of the classifier's `(x - mean) / std`."""
    shape = (1, -1) + (1,) * (inputs.dim() - 2)
    steps = (("sub", "mean", classifier.mean), ("div", "std", classifier.std))
    for operator, name, numbers in steps:
        if numbers is not None:
            constant = torch.tensor(numbers, dtype=torch.float64, device=inputs.device).view(shape)
            yield Layer(name, operator, FUNCTIONS[operator], (edge, constant))
            edge = Edge(name)


def _model_layers(classifier: Classifier, inputs: Tensor, source: Edge, row_by_row: bool) -> tuple[list[Layer], Edge]:
    """Return the layers of the model; PyTorch decomposes unknown ones, and an error names those that stay unknown."""
    model = classifier.model
    if not isinstance(model, nn.Module):
        raise UnsupportedLayer("a model that is no torch.nn.Module")
    if classifier.dtype in (torch.float16, torch.bfloat16):
        # Its rounding at the point bounds none elsewhere.
        raise UnsupportedLayer(f"a model that computes in half precision ({str(classifier.dtype).partition('.')[2]})")
    program: torch.export.ExportedProgram | None = None
    if not row_by_row and isinstance(model, fx.GraphModule) and _is_exported(model):
        graph = model
    else:
        program = _export(classifier, inputs, row_by_row)
        graph = program.module()
    assert isinstance(graph, fx.GraphModule)
    try:
        return _layers(graph, source)
    except UnsupportedLayer as error:
        program = _export(classifier, inputs, row_by_row) if program is None else program
        # Decompositions change nothing in place.
        calls = (node for node in program.graph.nodes if node.op == "call_function")
        if not isinstance(error, ChangedInPlace) and all(_canonical(node) in _DIRECT for node in calls):
            raise
        rules = dict(torch.export.default_decompositions())
        rules = {operator: rule for operator, rule in rules.items() if str(operator).split(".")[1] not in _DIRECT}
        try:
            with traced():
                decomposed = program.run_decompositions(rules).module()
            assert isinstance(decomposed, fx.GraphModule)
            return _layers(decomposed, source)
        except UnsupportedLayer:
            raise error from None


def _export(classifier: Classifier, inputs: Tensor, row_by_row: bool) -> torch.export.ExportedProgram:
    model = classifier.model
    assert isinstance(model, nn.Module)
    model = getattr(model, "_orig_mod", model)  # the model that torch.compile wraps
    # Two rows, because the export makes a batch of one a constant.
    rows = 1 if row_by_row else 2
    example = inputs[:1].to(classifier.dtype or inputs.dtype).expand(rows, *inputs.shape[1:]).clone()
    dynamic = None if row_by_row else ({0: torch.export.Dim.AUTO},)
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # its notes for developers are not for the user
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
    """Return the layers of an exported graph on `inputs`, and the edge of its output; constants are computed here."""
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
            constant = attrgetter(str(node.target))(module)
            values[node] = _to_double(constant.detach() if isinstance(constant, Tensor) else constant)
        elif node.op == "output":
            outputs = tree_leaves(tree_map(lambda arg: values.get(arg, arg), list(node.args)))
            if len(outputs) != 1 or not isinstance(outputs[0], Edge):
                kind = f"a model of {len(outputs)} outputs, or one that does not depend on its input"
                raise UnsupportedLayer(kind)
            return layers, outputs[0]
        elif node.users:
            values[node] = _value(node, values, layers)
    raise UnsupportedLayer("a graph without an output")


class ChangedInPlace(UnsupportedLayer):
    """A tensor that is changed in place while others may read it."""


def _check_writes(graph: fx.Graph) -> None:
    """Refuse an operator that changes a tensor which another may read: a view, a constant, or one with other users.
    Values of layers never change here, so that a later reader would get the values from before."""
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        targets = [
            node.args[place] if place < len(node.args) else node.kwargs.get(parameter.name)
            for place, parameter in enumerate(schema.arguments if schema and node.op == "call_function" else ())
            if parameter.alias_info is not None and parameter.alias_info.is_write
        ]
        for target in tree_leaves(targets):
            if not isinstance(target, fx.Node):
                continue
            view = target.op == "call_function" and _canonical(target) in operators.VIEWS | operators.IDENTITIES
            if view or target.op == "get_attr" or len(target.users) > 1:
                raise ChangedInPlace(f"{_canonical(node)} in place on a tensor that is used elsewhere")


def _call(target: Any, *args: Any) -> Any:
    schema = target._schema.arguments
    keywords = {parameter.name: value for parameter, value in zip(schema, args, strict=True) if parameter.kwarg_only}
    return target(*args[: len(args) - len(keywords)], **keywords)


class _Builder:
    def __init__(self, node: fx.Node, layers: list[Layer]) -> None:
        self.node, self.layers = node, layers

    def __call__(self, operator: str, *args: Any) -> Edge:
        return self.add(operator, FUNCTIONS.get(operator) or getattr(torch.ops.aten, operator), args)

    def add(self, operator: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Edge:
        operators.check(operator, args)
        is_taken = self.node.name in (layer.name for layer in self.layers)
        is_node_layer = operator == _canonical(self.node) and not is_taken
        name = self.node.name if is_node_layer else f"{self.node.name}.{len(self.layers)}"
        self.layers.append(Layer(name, operator, function, args))
        return Edge(name)

    def value(self, operator: str, args: tuple[Any, ...]) -> Any:
        """Return the edge of the node's value; for several values, the function from a number to its edge."""
        if operator in VALUE_OPERATORS:  # of values and their places
            return lambda number: self._values_only(number, operator, args)
        if operator in operators.MULTIVALUED:
            target = self.node.target
            return lambda number: self.add(operator, lambda *all_args: _call(target, *all_args)[number], args)
        if operator in COMPOSITES:
            return COMPOSITES[operator](self, *args)
        return self.add(operator, FUNCTIONS.get(operator) or partial(_call, self.node.target), args)

    def _values_only(self, number: int, operator: str, args: tuple[Any, ...]) -> Any:
        if number:
            raise UnsupportedLayer(f"{operator}, of which the place is used")
        values = VALUE_OPERATORS[operator]
        if values in COMPOSITES:
            return COMPOSITES[values](self, *args)
        return self.add(values, FUNCTIONS[values], args)


def _value(node: fx.Node, values: Mapping[fx.Node, Any], layers: list[Layer]) -> Any:
    """Return the constant that `node` computes, or the edge of the layer that it adds to `layers`."""
    operator = _operator(node)
    if operator == "sym_size":
        return -1  # the number of rows is free
    args = _positional(node, values)
    if operator == "getitem" and callable(args[0]):
        return args[0](args[1])
    if not any(isinstance(arg, Edge) for arg in tree_leaves(args)):
        return _fold(node, operator, values)
    return _Builder(node, layers).value(_canonical(node), args)


def _fold(node: fx.Node, operator: str, values: Mapping[fx.Node, Any]) -> Any:
    """Compute a constant; where it is repeated for each row, one row stands for all."""
    resolved: Any = map_arg((node.args, node.kwargs), lambda arg: values[arg])
    args, keywords = tuple(resolved[0]), dict(resolved[1])
    if operator == "expand" and args[1][0] == -1:
        args = (args[0], [1, *args[1][1:]])
    assert callable(node.target)
    function = partial(node.target, **keywords)
    constant = run_layer(Layer(node.name, operator, function, args), args)
    return tree_map(_to_double, constant)


def _to_double(value: Any) -> Any:
    """Return a constant, which is exact in the precision of the model, in double precision."""
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def _operator(node: fx.Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name.partition("::")[2]
    return getattr(node.target, "__name__", str(node.target))


def _canonical(node: fx.Node) -> str:
    operator = _operator(node).rstrip("_")
    if operator in ("max", "min", "var", "std") and isinstance(node.target, torch._ops.OpOverload):
        operator = f"{operator}.{node.target._overloadname}"
    return ALIASES.get(operator, operator)


def _positional(node: fx.Node, values: Mapping[fx.Node, Any]) -> tuple[Any, ...]:
    """Return all arguments in the order of the operator's schema."""
    schema = getattr(node.target, "_schema", None)
    all_args = list(node.args)
    if schema is not None:
        missing_parameters = schema.arguments[len(all_args) :]
        all_args += [node.kwargs.get(parameter.name, parameter.default_value) for parameter in missing_parameters]
    resolved: Any = map_arg(tuple(all_args), lambda arg: values[arg])
    args = list(resolved)
    if _operator(node) == "einsum":  # operands first, as in all others
        args = [*args[1], args[0]]
    return tuple(args)


_DIRECT = operators.SUPPORTED | set(COMPOSITES) | set(ALIASES) | set(VALUE_OPERATORS) | {"sym_size", "getitem"}


def probability_scores(
    layers: list[Layer], output: Edge, decision: Decision, dtype: torch.dtype
) -> tuple[Edge, Callable[[Tensor], Tensor]]:
    """Return the edge that stands for class probabilities in margins, and the function to their logarithms.

    Classes have the same order by probability, by its logarithm, which the classifier compares, and by the input of a
    softmax at the end. The margins of that input are bounded where there is a softmax, and otherwise those of the
    probabilities themselves, whose errors are at most those of their logarithms, because they are at most 1. The
    smallest normal number of their precision `dtype` stands for 0.
    """
    if not isinstance(decision, PredictedClass):
        raise UnsupportedLayer(
            f"probabilities from which {decision.label} is decided: let the model return the logits below them, "
            "without outputs=probs"
        )
    tiny = torch.finfo(dtype).tiny
    last = next((layer for layer in layers if Edge(layer.name) == output), None)
    if last is not None and last.operator == "softmax" and last.args[1:] in ((1,), (-1,)):
        return last.args[0], lambda logits: logits.log_softmax(dim=1).clamp_min(math.log(tiny))
    return output, lambda probabilities: probabilities.clamp_min(tiny).log()
