"""Networks in ONNX files with gradients: their graphs over operations of PyTorch, once these give the same scores."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from brittle.errors import ModelError
from brittle.model.loading.onnx_file import OnnxModel
from brittle.model.loading.onnx_graph import FAILURES, Graph, Node, as_tensor, compute, first_line, read_graph
from brittle.model.loading.onnx_layers import Call, NotConverted
from brittle.model.loading.onnx_operators import OPERATORS

ALLOWED = 1e-4
"""By how much class scores may differ from those of onnxruntime, as a share of their size (`_share`)."""

COMPARED = 8
"""How many of the first inputs are compared, and as many made of them."""


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
        return OnnxNetwork(original, read_graph(content, original.input, original.output)).eval()
    except NotConverted as reason:
        original.set_reason(str(reason))
        return original


class OnnxNetwork(nn.Module):
    """The network in an ONNX file as a module, with gradients.

    At the first inputs its scores are compared with those of onnxruntime, at as many again with the numbers of each
    input shifted by one place, and in a batch of all of them. Where they differ by more than `ALLOWED`, onnxruntime
    gives the scores, and there are no gradients.

    Args:
        original: the same network in onnxruntime.
        graph: what is in the file.

    Attributes:
        forward_only: why there are no gradients, in a sentence; None where there are, or before the first inputs.
    """

    def __init__(self, original: OnnxModel, graph: Graph) -> None:
        super().__init__()
        self.__name__ = original.__name__
        self.original = original
        self.network = GraphModule(graph, original.batch)
        self.forward_only: str | None = None
        self._in_batches: bool | None = None

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
        return self._run(rows, self.network, in_batches=self._in_batches)

    def _run(self, rows: Tensor, network: GraphModule, *, in_batches: bool) -> Tensor:
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
            reason = self._difference(probes, theirs, finite, in_batches=in_batches)
            if reason is None:
                self._in_batches, self.forward_only = in_batches, None
                return
            self.forward_only = self.original.sentence(reason)

    def _on_processor(self) -> GraphModule:
        """The graph where onnxruntime computes, because a GPU may round convolutions to 10 bits."""
        elsewhere = any(one.device.type != "cpu" for one in (*self.network.parameters(), *self.network.buffers()))
        return copy.deepcopy(self.network).cpu() if elsewhere else self.network

    def _difference(self, probes: Tensor, theirs: Tensor, finite: Tensor, *, in_batches: bool) -> str | None:
        """What is wrong with the scores of the graph; None where nothing is."""
        try:
            with torch.no_grad():
                ours = self._run(probes, self._on_processor(), in_batches=in_batches)
        except FAILURES as error:
            where = (getattr(error, "__notes__", None) or ["?"])[-1]
            return f"its operator {where} fails in PyTorch ({first_line(error)})"
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
class _Step:
    """One node of a graph.

    Attributes:
        node: what is computed.
        layer: name of the linear layer that stands for it, or None.
        finished: names that no later node reads.
        shape: what it reshapes to where the batch has another number of rows than the graph was exported for, or None.
    """

    node: Node
    layer: str | None
    finished: tuple[str, ...]
    shape: np.ndarray | None


_PLAIN = Call({}, 1, 1, torch.device("cpu"))


class GraphModule(nn.Module):
    """An ONNX graph over operations of PyTorch; its linear layers are modules of their own.

    Args:
        graph: what is in the file.
        batch: the number of rows that it was exported for, or None where that is free.
    """

    def __init__(self, graph: Graph, batch: int | None) -> None:
        super().__init__()
        self.layers = nn.ModuleDict()
        self._graph = graph
        steps = list(_linear(graph, self.layers))
        self._steps = tuple(
            _Step(node, layer, _finished(at, [one for one, _ in steps], graph.output), _open_shape(node, graph, batch))
            for at, (node, layer) in enumerate(steps)
        )
        computed = [node for node, layer in steps if layer is None]
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
        for step in self._steps:
            given = [self._value(name, values) for name in step.node.inputs]
            try:
                if step.layer is not None:
                    found = (self.layers[step.layer](given[0]),)
                elif any_rows and step.shape is not None:
                    found = (OPERATORS["Reshape"].function(_PLAIN, given[0], step.shape.tolist()),)
                else:
                    found = compute(step.node, given, self._graph.opset, inputs.device)
            except FAILURES as error:
                error.add_note(step.node.operator)
                raise
            values.update(zip(step.node.outputs, found, strict=False))
            for name in step.finished:
                values.pop(name, None)
        return as_tensor(self._value(self._graph.output, values), inputs.device)

    def _value(self, name: str, values: dict[str, Tensor]) -> Tensor | np.ndarray | None:
        if not name or name in values:
            return values.get(name)
        held = self._held.get(name)
        return self._graph.constants.get(name) if held is None else getattr(self, held)


def _finished(at: int, nodes: list[Node], output: str) -> tuple[str, ...]:
    """What node `at` is the last to read."""
    later = {name for node in nodes[at + 1 :] for name in node.inputs} | {output}
    return tuple(name for name in nodes[at].inputs if name and name not in later)


def _open_shape(node: Node, graph: Graph, batch: int | None) -> np.ndarray | None:
    """The shape that `node` gives its input, with a first size of 0, which keeps the one that is there.

    None where it gives none, or one that does not begin with the number of rows that the graph was exported for.
    """
    shape = graph.constants.get(node.inputs[1]) if node.operator == "Reshape" and len(node.inputs) > 1 else None
    if batch is None or shape is None or shape.size < 2 or shape[0] != batch or not shape.all():
        return None
    return np.concatenate(([0], shape[1:]))


def _linear(graph: Graph, layers: nn.ModuleDict) -> Iterator[tuple[Node, str | None]]:
    """The nodes of a graph with the names of linear layers, which are put into `layers`.

    A product with a constant matrix is one, and takes in a sum with a constant after it.
    """
    nodes, taken = list(graph.nodes), set()
    readers: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    for node in nodes:
        if id(node) in taken:
            continue
        weight, bias = _weights(node, graph)
        if weight is None:
            yield node, None
            continue
        after = readers.get(node.outputs[0], [])
        added = _added(after[0], node.outputs[0], len(weight), graph) if bias is None and len(after) == 1 else None
        if added is not None and node.outputs[0] != graph.output:
            taken.add(id(after[0]))
            node, bias = replace(node, outputs=after[0].outputs), added
        yield replace(node, inputs=node.inputs[:1]), _put(layers, _layer_name(node, graph), weight, bias)


def _weights(node: Node, graph: Graph) -> tuple[np.ndarray | None, np.ndarray | None]:
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


def _added(node: Node, product: str, width: int, graph: Graph) -> np.ndarray | None:
    """The constant `[width]` that `node` adds to a product; None where it does something else."""
    if node.operator != "Add" or len(node.inputs) != 2:
        return None
    other = node.inputs[1] if node.inputs[0] == product else node.inputs[0]
    value = graph.constants.get(other)
    return value if value is not None and value.shape == (width,) and value.dtype.kind == "f" else None


def _layer_name(node: Node, graph: Graph) -> str:
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
