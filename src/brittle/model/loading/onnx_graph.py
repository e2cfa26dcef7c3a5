"""The graph in an ONNX file as plain nodes and constants, with what is constant computed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.errors import listed
from brittle.model.loading.onnx_layers import Call, NotConverted
from brittle.model.loading.onnx_operators import OPERATORS

NAMED = 5
"""How many unknown operators a message names."""

FAILURES = (
    RuntimeError,
    ValueError,
    TypeError,
    AssertionError,
    LookupError,
    ArithmeticError,
    AttributeError,
    NotConverted,
)
"""What computing a node of a graph that is wrong, or unlike what is known here, may raise."""

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Node:
    """One operator of a graph.

    Attributes:
        name: of the node, often empty.
        operator: one of `OPERATORS`.
        inputs: names of what it takes, empty where one is left out.
        outputs: names of what it gives.
        attributes: by name; tensors as NumPy arrays.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Graph:
    """What a file computes of one input.

    Attributes:
        nodes: in the order of computation; only those that the output depends on.
        constants: by name.
        opset: version of the operators.
        input: its name.
        output: name of the class scores.
    """

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    opset: int
    input: str
    output: str


def read_graph(content: bytes, taken: str, given: str) -> Graph:
    """The graph in a file, from the input `taken` to the output `given`.

    Args:
        content: the whole file, all weights inside.
        taken: name of the input.
        given: name of the output.

    Raises:
        NotConverted: it holds something that has no counterpart here, or the package onnx is not there to read it.
    """
    try:
        onnx = importlib.import_module("onnx")
        inliner = importlib.import_module("onnx.inliner")
    except ImportError as error:
        raise NotConverted("the package onnx is not installed (pip install 'brittle[onnx]')") from error
    try:
        model = onnx.load_model_from_string(content)
        model = inliner.inline_local_functions(model) if model.functions else model
    except Exception as error:
        raise NotConverted(f"the package onnx cannot read it ({first_line(error)})") from error
    constants = {tensor.name: _array(onnx, tensor) for tensor in model.graph.initializer}
    nodes = []
    for each in _needed(model.graph.node, given):
        if each.op_type == "Constant" and each.domain in ("", "ai.onnx"):
            constants[each.output[0]] = _constant(onnx, each.attribute[0])
        else:
            nodes.append(each)
    _check_known(nodes)
    opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 1)
    plain = tuple(
        Node(one.name, one.op_type, tuple(one.input), tuple(one.output), _attributes(onnx, one)) for one in nodes
    )
    try:
        return _folded(Graph(plain, constants, opset, taken, given))
    except FAILURES as error:
        raise NotConverted(f"what is constant in it cannot be computed ({first_line(error)})") from error


def compute(node: Node, values: Sequence[Any], opset: int, device: torch.device) -> tuple[Any, ...]:
    """The outputs of `node`: tensors, or NumPy arrays where they are computed from shapes alone.

    Args:
        node: what to compute.
        values: its inputs, tensors, NumPy arrays, or None where one is left out.
        opset: version of the operators.
        device: where tensors are made.
    """
    operator = OPERATORS[node.operator]
    call = Call(node.attributes, opset, sum(map(bool, node.outputs)), device)
    if operator.on_sizes is not None and not any(isinstance(one, Tensor) for one in values):
        return (as_sizes(operator.on_sizes(call, *values)),)
    given = [
        None if one is None else _numbers(one) if at in operator.numbers else as_tensor(one, device)
        for at, one in enumerate(values)
    ]
    result = operator.function(call, *given)
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def as_sizes(value: Any) -> np.ndarray:
    """A NumPy array; of objects where it is made of sizes that are no plain numbers, as while a network is traced."""
    if isinstance(value, np.ndarray):
        return value
    return np.array(value, None if isinstance(value, int | float | bool | np.generic) else object)


def as_tensor(value: Any, device: torch.device) -> Tensor:
    """A tensor of a NumPy array on `device`; a tensor as it is."""
    if isinstance(value, Tensor):
        return value
    if value.dtype == object:  # sizes that are traced
        return torch.stack([torch.as_tensor(one, device=device) for one in value.reshape(-1)]).reshape(value.shape)
    return torch.from_numpy(np.array(value)).to(device)


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _numbers(value: Any) -> list[Any]:
    return value.reshape(-1).tolist()


def _needed(nodes: Iterable[Any], given: str) -> list[Any]:
    """The nodes that the output depends on, in their order."""
    wanted, kept = {given}, []
    for node in reversed(list(nodes)):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
    return kept[::-1]


def _check_known(nodes: Iterable[Any]) -> None:
    known = {"", "ai.onnx"}
    unknown = {
        one.op_type if one.domain in known else f"{one.op_type} of {one.domain}"
        for one in nodes
        if one.domain not in known or one.op_type not in OPERATORS
    }
    if unknown:
        several = len(unknown) > 1
        has = "operators {} have no counterparts" if several else "operator {} has no counterpart"
        raise NotConverted(f"its {has.format(listed(sorted(unknown), NAMED))} in PyTorch that brittle knows")


def _folded(graph: Graph) -> Graph:
    """The graph without nodes that take constants alone; their outputs are constants."""
    constants, left = dict(graph.constants), []
    for node in graph.nodes:
        if node.inputs and all(not name or name in constants for name in node.inputs):
            with torch.no_grad():
                found = compute(node, [constants.get(name) for name in node.inputs], graph.opset, _CPU)
            for name, value in zip(node.outputs, found, strict=False):
                constants[name] = value.numpy() if isinstance(value, Tensor) else value
        else:
            left.append(node)
    used = {name for node in left for name in node.inputs} | {graph.output}
    kept = {name: value for name, value in constants.items() if name in used}
    return replace(graph, nodes=tuple(left), constants=kept)


def _attributes(onnx: Any, node: Any) -> dict[str, Any]:
    found = {}
    for one in node.attribute:
        value = onnx.helper.get_attribute_value(one)
        if isinstance(value, onnx.TensorProto):
            value = _array(onnx, value)
        found[one.name] = value.decode() if isinstance(value, bytes) else value
    return found


def _constant(onnx: Any, attribute: Any) -> np.ndarray:
    """What a node of the kind Constant holds."""
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return _array(onnx, value)
    if attribute.name not in ("value_int", "value_ints", "value_float", "value_floats"):
        raise NotConverted(f"its operator Constant holds a {attribute.name}")
    return np.array(value, np.int64 if "int" in attribute.name else np.float32)


def _array(onnx: Any, tensor: Any) -> np.ndarray:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise NotConverted("it keeps weights in another file")
    if tensor.data_type not in _READ:
        kind = onnx.TensorProto.DataType.Name(tensor.data_type)
        raise NotConverted(f"it holds numbers of the type {kind}")
    return onnx.numpy_helper.to_array(tensor)


_READ = (1, 2, 3, 5, 6, 7, 9, 10, 11)
"""Types of tensors, by their numbers in ONNX, that NumPy and PyTorch share."""
