"""Networks in ONNX files with gradients: their graphs over operations of PyTorch, once these give the same scores."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from brittle.errors import ModelError, listed
from brittle.model.loading.onnx_file import OnnxModel
from brittle.model.loading.onnx_operators import OPERATORS, TYPES, Call, NotConverted

ALLOWED = 1e-4
"""By how much class scores may differ from those of onnxruntime, as a share of their size (`_share`)."""

COMPARED = 8
"""How many of the first inputs are compared, and as many made of them."""

FAILURES = (RuntimeError, ValueError, TypeError, AssertionError, LookupError, ArithmeticError, AttributeError)
"""What computing a node of a graph that is wrong, or unlike what is known here, may raise besides `NotConverted`."""

_CPU = torch.device("cpu")


def open_onnx(content: bytes, name: str) -> OnnxModel | OnnxNetwork:
    """The network in an ONNX file; with gradients where each of its operators has a counterpart in PyTorch.

    Args:
        content: the whole file.
        name: what to call it in messages.

    Raises:
        ArtefactError: the file names other files.
        ModelError: onnxruntime is not installed or cannot load the file, or it has not one input of real numbers.
    """
    original = OnnxModel(content, name)
    try:
        return OnnxNetwork(original, _read_graph(content, original.input, original.output)).eval()
    except NotConverted as reason:
        original.forward_only = original.sentence(str(reason))
        return original


class OnnxNetwork(nn.Module):
    """The network in an ONNX file as a module, with gradients.

    At the first inputs its scores are compared with those of onnxruntime, at as many again with the numbers of each
    input shifted by one place, and in a batch of all of them. Where they differ by more than `ALLOWED`, onnxruntime
    gives the scores, and there are no gradients.

    Attributes:
        forward_only: why there are no gradients, in a sentence; None where there are, or before the first inputs.
    """

    def __init__(self, original: OnnxModel, graph: _Graph) -> None:
        super().__init__()
        self.__name__ = original.__name__
        self.original = original
        self.network = _GraphModule(graph, original.batch)
        self.forward_only: str | None = None
        self._in_batches: bool | None = None  # until it is compared

    def forward(self, inputs: Tensor) -> Tensor:
        """Class scores `[B, C]` of inputs `[B, *shape]`.

        Raises:
            ModelError: the inputs do not fit, or the network is exported before it has seen inputs.
        """
        rows = self.original.arranged(inputs)
        if torch.compiler.is_compiling() and self._in_batches is not False:
            reason = "fixes the number of rows" if self._in_batches else "has not been compared with onnxruntime yet"
            raise ModelError("model_file", f"{self.__name__} cannot be traced, because it {reason}")
        if self._in_batches is None and self.forward_only is None:
            self._compare(rows)
        if self._in_batches is None:
            return self.original.run(rows)
        return self._run(rows, self.network, self._in_batches)

    def _run(self, rows: Tensor, network: _GraphModule, in_batches: bool) -> Tensor:
        if not in_batches:
            return network(rows, any_rows=True)
        return torch.cat([network(batch, any_rows=False) for batch in self.original.batches(rows)])[: len(rows)]

    def _compare(self, rows: Tensor) -> None:
        """Decide whether the graph is used, and how; nothing is decided where no score is finite."""
        some = rows[:COMPARED].detach().cpu()
        probes = torch.cat((some, some.flatten(1).roll(1, 1).reshape(some.shape)))
        theirs = self.original.run(probes)
        finite = theirs.reshape(len(theirs), -1).isfinite().all(1)
        if not bool(finite.any()):
            return
        for in_batches in (False, True) if self.original.batch else (False,):
            reason = self._difference(probes, theirs, finite, in_batches)
            if reason is None:
                self._in_batches, self.forward_only = in_batches, None
                return
            self.forward_only = self.original.sentence(reason)

    def _difference(self, probes: Tensor, theirs: Tensor, finite: Tensor, in_batches: bool) -> str | None:
        """What is wrong with the scores of the graph; None where nothing is.

        They are computed where onnxruntime computes, because a GPU may round convolutions to 10 bits.
        """
        elsewhere = any(one.device.type != "cpu" for one in (*self.network.parameters(), *self.network.buffers()))
        network = copy.deepcopy(self.network).cpu() if elsewhere else self.network
        try:
            with torch.no_grad():
                ours = self._run(probes, network, in_batches)
        except (*FAILURES, NotConverted) as error:
            where = (getattr(error, "__notes__", None) or ["?"])[-1]
            return f"its operator {where} fails in PyTorch ({_first_line(error)})"
        if ours.shape != theirs.shape:
            return f"in PyTorch its scores have shape {list(ours.shape)}, expected {list(theirs.shape)}"
        share = _share(ours[finite].to(theirs), theirs[finite])
        return None if share <= ALLOWED else f"in PyTorch its scores differ by {share:.2g} of their range"


def _share(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of scores `[B, C]`, as a share of the size of the score, or of the largest of its row.

    The size of a score is how far its class ranges over the inputs, and the score itself. So a class masked with
    -1e9 hides no difference of another.
    """
    theirs, ours = theirs.flatten(1), ours.flatten(1)
    sizes = theirs.amax(dim=0) - theirs.amin(dim=0) + theirs.abs()
    sizes = torch.maximum(sizes, sizes.gather(1, theirs.argmax(dim=1, keepdim=True)))
    return float(((ours - theirs).abs() / sizes.clamp_min(torch.finfo(theirs.dtype).tiny)).max())


@dataclass(frozen=True)
class _Node:
    """One operator of a graph.

    Attributes:
        name: of the node, often empty.
        operator: one of `OPERATORS`.
        inputs: names of what it takes, empty where one is left out.
        outputs: names of what it gives.
        attributes: by name; tensors as NumPy arrays.
        layer: name of the linear layer that stands for it, or None.
        finished: names that no later node reads.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    layer: str | None = None
    finished: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Graph:
    """What a file computes of one input: nodes in the order of computation, constants by name."""

    nodes: tuple[_Node, ...]
    constants: Mapping[str, np.ndarray]
    opset: int
    input: str
    output: str


class _GraphModule(nn.Module):
    """An ONNX graph over operations of PyTorch; its linear layers are modules of their own.

    Args:
        graph: what is in the file.
        batch: the number of rows that it was exported for, or None where that is free.
    """

    def __init__(self, graph: _Graph, batch: int | None) -> None:
        super().__init__()
        self.layers = nn.ModuleDict()
        nodes = list(_linear(graph, self.layers))
        last = {name: at for at, node in enumerate(nodes) for name in node.inputs if name and name != graph.output}
        self._graph = replace(
            graph,
            nodes=tuple(
                replace(node, finished=tuple(name for name in node.inputs if last.get(name) == at))
                for at, node in enumerate(nodes)
            ),
        )
        self._shapes = {node.outputs[0]: _open_shape(node, graph, batch) for node in nodes}
        computed = [node for node in nodes if node.layer is None]
        used = {name for node in computed for name in node.inputs} | {graph.output}
        statistics = {name for node in computed if node.operator == "BatchNormalization" for name in node.inputs[3:5]}
        self._held: dict[str, str] = {}
        for name, value in graph.constants.items():
            if name in used and value.dtype.kind == "f" and value.size > 1:
                self._held[name] = f"constant_{len(self._held)}"
                numbers = torch.from_numpy(np.array(value))
                if name in statistics:
                    self.register_buffer(self._held[name], numbers)
                else:
                    self.register_parameter(self._held[name], nn.Parameter(numbers, requires_grad=False))

    def forward(self, inputs: Tensor, *, any_rows: bool) -> Tensor:
        """The output of the graph; with `any_rows` for another number of rows than it was exported for."""
        values = {self._graph.input: inputs}
        for node in self._graph.nodes:
            given = [self._value(name, values) for name in node.inputs]
            shape = self._shapes[node.outputs[0]] if any_rows else None
            try:
                if node.layer is not None:
                    found = (self.layers[node.layer](given[0]),)
                elif shape is not None:
                    found = (given[0].reshape(len(given[0]), *shape),)
                else:
                    found = _compute(node, given, self._graph.opset, inputs.device)
            except (*FAILURES, NotConverted) as error:
                error.add_note(node.operator)
                raise
            values.update(zip(node.outputs, found, strict=False))
            for name in node.finished:
                values.pop(name, None)
        return _as_tensor(self._value(self._graph.output, values), inputs.device)

    def _value(self, name: str, values: dict[str, Any]) -> Any:
        if not name or name in values:
            return values.get(name)
        held = self._held.get(name)
        return self._graph.constants.get(name) if held is None else getattr(self, held)


def _open_shape(node: _Node, graph: _Graph, batch: int | None) -> list[int] | None:
    """The sizes after the number of rows that `node` gives its input.

    None where it gives none, or where its first size is not the number of rows that the graph was exported for.
    """
    shape = graph.constants.get(node.inputs[1]) if node.operator == "Reshape" and len(node.inputs) > 1 else None
    if batch is None or shape is None or shape.size < 2 or shape[0] != batch or not shape.all():
        return None
    return shape[1:].tolist()


def _linear(graph: _Graph, layers: nn.ModuleDict) -> Iterator[_Node]:
    """The nodes of a graph with the names of linear layers, which are put into `layers`.

    A product with a constant matrix is one, and takes in a sum with a constant after it.
    """
    readers: dict[str, list[_Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    taken: set[str] = set()
    for node in graph.nodes:
        if node.outputs[0] in taken:
            continue
        weight, bias = _weights(node, graph)
        if weight is None:
            yield node
            continue
        name, given = _layer_name(node), node.outputs[0]
        after = readers.get(given, [])
        if bias is None and len(after) == 1 and given != graph.output:
            bias = _added(after[0], given, len(weight), graph)
            if bias is not None:
                taken.add(after[0].outputs[0])
                node = replace(node, outputs=after[0].outputs)
        yield replace(node, inputs=node.inputs[:1], layer=_put(layers, name, weight, bias))


def _weights(node: _Node, graph: _Graph) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weight `[out, in]` and bias `[out]` of a product with a constant matrix; None for what it has not."""
    weight = graph.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
    if node.operator not in ("Gemm", "MatMul") or weight is None or weight.ndim != 2 or weight.dtype.kind != "f":
        return None, None
    if node.operator == "MatMul":
        return weight.T, None
    plain = all(node.attributes.get(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    if not plain or node.attributes.get("transA", 0):
        return None, None
    weight = weight if node.attributes.get("transB", 0) else weight.T
    if len(node.inputs) < 3 or not node.inputs[2]:
        return weight, None
    bias = graph.constants.get(node.inputs[2])
    if bias is None or bias.size != len(weight) or bias.shape[-1] != len(weight):
        return None, None
    return weight, bias.reshape(-1)


def _added(node: _Node, product: str, width: int, graph: _Graph) -> np.ndarray | None:
    """The constant `[width]` that `node` adds to a product; None where it does something else."""
    if node.operator != "Add" or len(node.inputs) != 2:
        return None
    value = graph.constants.get(node.inputs[1] if node.inputs[0] == product else node.inputs[0])
    return value if value is not None and value.shape == (width,) and value.dtype.kind == "f" else None


def _layer_name(node: _Node) -> str:
    weight = node.inputs[1]
    return weight.removesuffix(".weight") if weight.endswith(".weight") else node.name or node.operator


def _put(layers: nn.ModuleDict, name: str, weight: np.ndarray, bias: np.ndarray | None) -> str:
    """Put a linear layer into `layers`, and give its name there."""
    plain = re.sub(r"\W+", "_", name).strip("_") or "linear"
    while plain in layers or hasattr(layers, plain):
        plain += "_"
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(torch.from_numpy(np.array(weight)), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(torch.from_numpy(np.array(bias)), requires_grad=False)
    layers[plain] = layer
    return plain


def _read_graph(content: bytes, taken: str, given: str) -> _Graph:
    """The graph in a file, from the input `taken` to the output `given`, with what is constant computed."""
    try:
        onnx = importlib.import_module("onnx")
        inliner = importlib.import_module("onnx.inliner")
    except ImportError as error:
        raise NotConverted("the package onnx is not installed (pip install 'brittle[onnx]')") from error
    try:
        model = onnx.load_model_from_string(content)
        model = inliner.inline_local_functions(model) if model.functions else model
    except Exception as error:
        raise NotConverted(f"the package onnx cannot read it ({_first_line(error)})") from error
    needed, wanted = [], {given}
    for node in reversed(model.graph.node):
        if wanted.intersection(node.output):
            needed.append(node)
            wanted.update(node.input)
    own = ("", "ai.onnx")
    unknown = {
        one.op_type if one.domain in own else f"{one.op_type} of {one.domain}"
        for one in needed
        if one.domain not in own or one.op_type not in (*OPERATORS, "Constant")
    }
    if unknown:
        raise NotConverted(f"brittle knows no counterpart in PyTorch of {listed(sorted(unknown), 5)}")
    opset = next((one.version for one in model.opset_import if one.domain in own), 1)
    constants: dict[str, Any] = {tensor.name: _array(onnx, tensor) for tensor in model.graph.initializer}
    nodes = []
    for one in reversed(needed):
        node = _Node(one.name, one.op_type, tuple(one.input), tuple(one.output), _attributes(onnx, one))
        if node.operator == "Constant":
            constants[node.outputs[0]] = _constant(*next(iter(node.attributes.items())))
        elif node.inputs and all(not name or name in constants for name in node.inputs):
            try:
                with torch.no_grad():
                    found = _compute(node, [constants.get(name) for name in node.inputs], opset, _CPU)
            except FAILURES as error:
                raise NotConverted(f"what is constant in it cannot be computed ({_first_line(error)})") from error
            for name, value in zip(node.outputs, found, strict=False):
                constants[name] = value.numpy() if isinstance(value, Tensor) else value
        else:
            nodes.append(node)
    used = {name for node in nodes for name in node.inputs} | {given}
    kept = {name: value for name, value in constants.items() if name in used}
    return _Graph(tuple(nodes), kept, opset, taken, given)


def _compute(node: _Node, values: Sequence[Any], opset: int, device: torch.device) -> tuple[Any, ...]:
    """The outputs of `node`: tensors, or NumPy arrays where they are computed from shapes alone.

    `values` are its inputs: tensors, NumPy arrays, or None where one is left out.
    """
    operator = OPERATORS[node.operator]
    call = Call(node.attributes, opset, sum(map(bool, node.outputs)), device)
    if operator.on_sizes is not None and not any(isinstance(one, Tensor) for one in values):
        sizes = operator.on_sizes(call, *values)
        plain = isinstance(sizes, int | float | bool | np.generic)
        return (sizes if isinstance(sizes, np.ndarray) else np.array(sizes, None if plain else object),)
    given = [
        one if one is None else one.reshape(-1).tolist() if at in operator.numbers else _as_tensor(one, device)
        for at, one in enumerate(values)
    ]
    result = operator.function(call, *given)
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _as_tensor(value: Any, device: torch.device) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if value.dtype == object:  # sizes that are traced
        return torch.stack([torch.as_tensor(one, device=device) for one in value.reshape(-1)]).reshape(value.shape)
    return torch.from_numpy(np.array(value)).to(device)


def _attributes(onnx: Any, node: Any) -> dict[str, Any]:
    found = {}
    for one in node.attribute:
        value = onnx.helper.get_attribute_value(one)
        value = _array(onnx, value) if isinstance(value, onnx.TensorProto) else value
        found[one.name] = value.decode() if isinstance(value, bytes) else value
    return found


def _constant(kind: str, value: Any) -> np.ndarray:
    """What a node of the kind Constant holds."""
    if kind not in ("value", "value_int", "value_ints", "value_float", "value_floats"):
        raise NotConverted(f"its operator Constant holds a {kind}")
    return value if kind == "value" else np.array(value, np.int64 if "int" in kind else np.float32)


def _array(onnx: Any, tensor: Any) -> np.ndarray:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise NotConverted("it keeps weights in another file")
    if TYPES.get(tensor.data_type, torch.bfloat16) is torch.bfloat16:  # NumPy has no bfloat16
        kind = onnx.TensorProto.DataType.Name(tensor.data_type)
        raise NotConverted(f"it holds numbers of the type {kind}")
    return onnx.numpy_helper.to_array(tensor)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
