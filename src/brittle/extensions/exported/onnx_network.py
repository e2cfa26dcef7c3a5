"""Networks in ONNX files: run by onnxruntime, and with gradients where PyTorch gives the same scores."""

from __future__ import annotations

import contextlib
import copy
import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from brittle.errors import ArtefactError, ModelError, first_line, listed
from brittle.extensions.exported.onnx_operators import OPERATORS, OPSET, as_tensor, compute
from brittle.model.arrays import ArrayModel
from brittle.model.loading.load import file_source
from brittle.model.passes import FAILURES, WITHOUT_GRADIENT
from brittle.user_code import import_package

MAX_DIFFERENCE = 1e-4  # largest difference of scores from those of onnxruntime, as a share of their size (`_share`)
SAMPLE_ROWS = 8  # number of first inputs whose scores are compared; as many again are derived from them
THREADS = 2  # most threads of onnxruntime for a batch

INSTALL = "pip install 'brittle[onnx]'"

_TYPES = {"tensor(float)": torch.float32, "tensor(double)": torch.float64, "tensor(float16)": torch.float16}
_EXTERNAL_WEIGHT = re.compile(rb"[\x00\x08]location")
"""Key under which a weight names its other file, behind the last byte of the key's length."""


class _NotConverted(Exception):
    """The reason why a graph has no counterpart in PyTorch, in words that follow "because"."""


def open_onnx(content: bytes, name: str) -> OnnxModel | OnnxNetwork:
    """Open the network in an ONNX file; with gradients where each of its operators has a counterpart in PyTorch."""
    original = OnnxModel(content, name)
    try:
        return OnnxNetwork(original, *_read_graph(content, original)).eval()
    except _NotConverted as reason:
        original.forward_only = original.sentence(str(reason))
        return original


class OnnxModel(ArrayModel):
    """The network in an ONNX file as a function of tensors; the result has no gradient.

    Where the graph fixes the number of rows, batches have that size, and copies of the last row fill the last batch. An
    image `[C, H, W]` is flattened, or its channels are put last, where the graph requires it. `batch` is the only
    number of rows that the graph takes, None where it is free; `forward_only` is a sentence on why there are no
    gradients, None until `open_onnx` sets it.
    """

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(self._scores)
        self.__name__ = name
        self._session = _open(content, name)
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in _TYPES or not inputs[0].shape:
            inputs_text = ", ".join(f"{value.name}: {value.type} {value.shape}" for value in inputs) or "none"
            raise ModelError(
                "input_shape", f"expected 1 input, a tensor of real numbers with a batch axis; {name} has {inputs_text}"
            )
        self.input, self._type = inputs[0].name, _TYPES[inputs[0].type]
        sizes = [size if isinstance(size, int) and size > 0 else None for size in inputs[0].shape]
        self.batch, self._shape = sizes[0], tuple(sizes[1:])
        self.output = _output(self._session, name)
        self.forward_only: str | None = None

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.run(self.arrange(inputs))

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxModel:
        return self  # immutable

    def sentence(self, reason: str) -> str:
        """Return a sentence on why there are no gradients and how to proceed."""
        return f"{self.__name__} runs forward only, because {reason}; {WITHOUT_GRADIENT}"

    def run(self, rows: Tensor) -> Tensor:
        """Return class scores `[B, C]` of rows in the graph's type and shape."""
        return super().__call__(rows)

    def arrange(self, inputs: Tensor) -> Tensor:
        """Return inputs `[B, *shape]` in the type and the shape that the graph takes."""
        rows = inputs.to(self._type)
        shape, graph_shape = tuple(rows.shape[1:]), self._shape
        if _fits(shape, graph_shape):
            return rows
        if len(shape) == 3 and _fits((*shape[1:], shape[0]), graph_shape):
            return rows.permute(0, 2, 3, 1)
        if None not in graph_shape and prod(shape) == prod(size or 0 for size in graph_shape):
            wide_sizes = [size for size in graph_shape if size != 1]
            if len(wide_sizes) <= 1 or wide_sizes == [size for size in shape if size != 1]:
                return rows.reshape(len(rows), *(size or 0 for size in graph_shape))
        raise ModelError(
            "input_shape",
            f"{self.__name__} takes inputs of shape {[size or 'any' for size in graph_shape]}, found {list(shape)}; "
            f"give data of that shape",
        )

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        size = self.batch or len(rows)
        filled = np.concatenate((rows, rows[-1:].repeat(-len(rows) % size, axis=0)))
        batches = [np.ascontiguousarray(filled[start : start + size]) for start in range(0, len(filled), size)]
        try:
            scores = [self._session.run([self.output], {self.input: batch})[0] for batch in batches]
        except Exception as error:  # onnxruntime raises its own classes
            raise RuntimeError(first_line(error)) from error
        for batch in scores:
            if batch.shape[:1] != (size,):
                raise ModelError(
                    "output_shape",
                    f"{self.__name__} gave a result of shape {list(batch.shape)} for {size} inputs; export a network "
                    "that gives one row of class scores for each input",
                )
        return np.concatenate(scores)[: len(rows)]


def _open(content: bytes, name: str) -> Any:
    onnxruntime = import_package("onnxruntime", name, INSTALL)
    if _EXTERNAL_WEIGHT.search(content) or content[4:8] == b"ORTM":
        raise ArtefactError(
            "file_refused",
            f"{name} keeps weights in another file, or is in onnxruntime's own form; save it in one file: "
            f"onnx.save(onnx.load(...), 'model.onnx')",
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.use_deterministic_compute = True
    options.log_severity_level = 4  # fatal errors alone
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it also prints the errors that it raises
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        version, reason = onnxruntime.__version__, first_line(error)
        raise ModelError("model_file", f"onnxruntime {version} cannot load {name}: {reason}") from error


def _output(session: Any, name: str) -> str:
    """Return the name of the class scores: the only output of real numbers, or the one called logits."""
    outputs = [value.name for value in session.get_outputs() if value.type in _TYPES]
    if len(outputs) == 1 or "logits" in outputs:
        return outputs[0] if len(outputs) == 1 else "logits"
    outputs_text = ", ".join(f"{value.name}: {value.type}" for value in session.get_outputs())
    raise ModelError(
        "output_shape",
        f"{name} returns {outputs_text}; export it with one output of class scores, or call that one logits (skl2onnx: "
        f"options={{'zipmap': False}})",
    )


def _fits(shape: tuple[int, ...], graph_shape: tuple[int | None, ...]) -> bool:
    return len(shape) == len(graph_shape) and all(size in (None, n) for n, size in zip(shape, graph_shape, strict=True))


@dataclass(frozen=True)
class _Node:
    """One operator of a graph: the names of its inputs, empty for an absent one, and of its outputs; its attributes,
    tensors as NumPy arrays; and the name of the linear layer that stands for it, or None."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    layer: str | None = None


class OnnxNetwork(nn.Module):
    """The network in an ONNX file over operations of PyTorch; its linear layers are modules, its weights parameters.

    Its scores are compared with those of onnxruntime at the first inputs, and at as many again with the numbers of each
    input shifted by one place, all in one batch. Where they differ by more than `MAX_DIFFERENCE`, onnxruntime computes
    the scores, and there are no gradients. `original` is the network of onnxruntime; `forward_only` is None before the
    first inputs.
    """

    def __init__(self, original: OnnxModel, nodes: list[_Node], constants: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.__name__ = original.__name__
        self.original = original
        self.forward_only: str | None = None
        self._compared = False
        self.layers = nn.ModuleDict()
        self._nodes = _link(nodes, constants, original.output, self.layers)
        self._last_use = {name: at for at, node in enumerate(self._nodes) for name in node.inputs}
        self._constants = dict(constants)
        self._parameter_of: dict[str, str] = {}
        for name, value in constants.items():
            if name in self._last_use and value.dtype.kind == "f" and value.size > 1:
                self._parameter_of[name] = f"constant_{len(self._parameter_of)}"
                self.register_parameter(self._parameter_of[name], _freeze(value))

    def forward(self, inputs: Tensor) -> Tensor:
        rows = self.original.arrange(inputs)
        if not self._compared and not torch.compiler.is_compiling():
            self._compare(rows)
        if self._compared and self.forward_only is None:
            return self._scores(rows)
        if torch.compiler.is_compiling():
            reason = self.forward_only or f"{self.__name__} has not been compared with onnxruntime yet"
            raise ModelError("model_file", f"it cannot be traced: {reason}")
        return self.original.run(rows)

    def _scores(self, rows: Tensor) -> Tensor:
        values: dict[str, Any] = {self.original.input: rows}
        for at, node in enumerate(self._nodes):
            inputs = [self._value(name, values) for name in node.inputs]
            try:
                if node.layer is not None:
                    outputs = (self.layers[node.layer](inputs[0]),)
                else:
                    outputs = compute(node.operator, inputs, node.attributes, rows.device)
            except FAILURES as error:
                error.add_note(node.operator)
                raise
            values.update(zip(node.outputs, outputs, strict=False))
            for name in node.inputs:
                if self._last_use[name] == at and name != self.original.output:
                    values.pop(name, None)  # frees memory after the last use
        return as_tensor(self._value(self.original.output, values), rows.device)

    def _value(self, name: str, values: Mapping[str, Any]) -> Any:
        if name in self._parameter_of:
            return getattr(self, self._parameter_of[name])
        return values[name] if name in values else self._constants.get(name)

    def _compare(self, rows: Tensor) -> None:
        """Decide whether to use the graph; leave it undecided where no score is finite."""
        sample = rows[:SAMPLE_ROWS].detach().cpu()
        probes = torch.cat((sample, sample.flatten(1).roll(1, 1).reshape(sample.shape)))
        if len(probes) == self.original.batch:
            probes = torch.cat((probes, sample))  # the graph's own batch size would test no other number of rows
        reference = self.original.run(probes)
        finite = reference.reshape(len(reference), -1).isfinite().all(1)
        if bool(finite.any()):
            reason = self._difference(probes, reference, finite)
            self.forward_only = None if reason is None else self.original.sentence(reason)
            self._compared = True

    def _difference(self, probes: Tensor, reference: Tensor, finite: Tensor) -> str | None:
        """Return the fault of the graph's scores on the CPU (a GPU may round to 10 bits); None for sound ones."""
        is_on_gpu = any(parameter.device.type != "cpu" for parameter in self.parameters())
        network = copy.deepcopy(self).cpu() if is_on_gpu else self
        try:
            with torch.no_grad():
                scores = network._scores(probes)
        except FAILURES as error:
            operator = (getattr(error, "__notes__", None) or ["?"])[-1]
            return f"its operator {operator} fails in PyTorch ({first_line(error)})"
        if scores.shape != reference.shape:
            return f"in PyTorch its scores have shape {list(scores.shape)}, expected {list(reference.shape)}"
        share = _share(scores[finite].to(reference), reference[finite])
        return None if share <= MAX_DIFFERENCE else f"in PyTorch its scores differ by {share:.2g} of their range"


def _share(scores: Tensor, reference: Tensor) -> float:
    """Return the largest difference of scores `[B, C]`, as a share of the score's size, or of the row's largest."""
    # The size is the range of the class over the inputs plus the score itself: -1e9 hides no difference of another.
    reference, scores = reference.flatten(1), scores.flatten(1)
    sizes = reference.amax(dim=0) - reference.amin(dim=0) + reference.abs()
    sizes = torch.maximum(sizes, sizes.gather(1, reference.argmax(dim=1, keepdim=True)))
    return float(((scores - reference).abs() / sizes.clamp_min(torch.finfo(reference.dtype).tiny)).max())


def _link(nodes: list[_Node], constants: Mapping[str, np.ndarray], output: str, layers: nn.ModuleDict) -> list[_Node]:
    """Return the nodes of a graph, with each product with a constant matrix, and a sum after it, as one of `layers`."""
    uses = Counter(name for node in nodes for name in node.inputs) + Counter([output])
    linked_nodes: list[_Node] = []
    for node in nodes:
        previous = linked_nodes[-1] if linked_nodes and linked_nodes[-1].layer is not None else None
        if node.operator == "Add" and previous is not None and uses[previous.outputs[0]] == 1:
            layer = cast(nn.Linear, layers[str(previous.layer)])
            bias = [constants[name] for name in node.inputs if name in constants and previous.outputs[0] in node.inputs]
            if layer.bias is None and bias and bias[0].shape == (len(layer.weight),):
                layer.bias = _freeze(bias[0])
                linked_nodes[-1] = replace(previous, outputs=node.outputs)
                continue
        layer = _linear(node, constants)
        if layer is not None:
            name = re.sub(r"\W+", "_", node.inputs[1].removesuffix(".weight")).strip("_")
            while not name or hasattr(layers, name):
                name += "_"
            layers[name] = layer
            node = replace(node, inputs=node.inputs[:1], layer=name)
        linked_nodes.append(node)
    return linked_nodes


def _linear(node: _Node, constants: Mapping[str, np.ndarray]) -> nn.Linear | None:
    """Return the linear layer of a product with a constant matrix; None for other nodes."""
    weight = constants.get(node.inputs[1]) if node.operator in ("Gemm", "MatMul") else None
    bias = constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
    scales = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0} | dict(node.attributes)
    is_transposed = scales.pop("transB")
    if weight is None or weight.ndim != 2 or weight.dtype.kind != "f" or list(scales.values()) != [1.0, 1.0, 0]:
        return None
    weight = weight if is_transposed else weight.T
    if len(node.inputs) > 2 and (bias is None or bias.size != len(weight)):
        return None
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = _freeze(weight)
    if bias is not None:
        layer.bias = _freeze(bias.reshape(-1))
    return layer


def _freeze(value: np.ndarray) -> nn.Parameter:
    return nn.Parameter(torch.from_numpy(np.array(value)), requires_grad=False)


def _read_graph(content: bytes, original: OnnxModel) -> tuple[list[_Node], dict[str, np.ndarray]]:
    """Return the nodes of the graph in a file that its class scores depend on, and its constants by name."""
    onnx, converter = (import_package(part, original.__name__, INSTALL) for part in ("onnx", "onnx.version_converter"))
    try:
        model = onnx.load_model_from_string(content)
        _check_operators(_prune_nodes(model.graph, original.output))
        if any(opset.domain in ("", "ai.onnx") and opset.version < OPSET for opset in model.opset_import):
            model = converter.convert_version(model, OPSET)
        constants: dict[str, Any] = {tensor.name: _array(onnx, tensor) for tensor in model.graph.initializer}
        nodes: list[_Node] = []
        for proto in _prune_nodes(model.graph, original.output):
            attributes = {attribute.name: _attribute(onnx, attribute) for attribute in proto.attribute}
            node = _Node(proto.op_type, tuple(proto.input), tuple(proto.output), attributes)
            if node.operator == "Constant":
                constants[node.outputs[0]] = np.asarray(attributes.popitem()[1])
            elif node.inputs and all(not name or name in constants for name in node.inputs):
                constants |= _fold_constant(node, constants)
            else:
                nodes.append(_for_any_rows(node, constants, original.batch))
    except (*FAILURES, MemoryError) as error:  # onnx raises these classes
        raise _NotConverted(f"the package onnx cannot read it ({first_line(error)})") from error
    used_names = {name for node in nodes for name in node.inputs} | {original.output}
    return nodes, {name: value for name, value in constants.items() if name in used_names}


def _fold_constant(node: _Node, constants: Mapping[str, Any]) -> dict[str, Any]:
    with torch.no_grad():
        inputs = [constants.get(name) for name in node.inputs]
        outputs = compute(node.operator, inputs, node.attributes, torch.device("cpu"))
    arrays = (value.numpy() if isinstance(value, Tensor) else value for value in outputs)
    return dict(zip(node.outputs, arrays, strict=False))


def _for_any_rows(node: _Node, constants: dict[str, Any], batch: int | None) -> _Node:
    """Return the node, made to keep the number of rows where it reshapes to the only one that the graph takes."""
    shape = constants.get(node.inputs[1]) if node.operator == "Reshape" else None
    if shape is None or batch is None or shape.size < 2 or shape[0] != batch or not shape.all():
        return node
    name = f"{node.inputs[1]} for any number of rows"
    constants[name] = np.array([0, *shape[1:]])  # 0 keeps the size of an axis
    return replace(node, inputs=(node.inputs[0], name), attributes={})


def _prune_nodes(graph: Any, output: str) -> list[Any]:
    needed, names = [], {output}
    for node in reversed(graph.node):
        if names.intersection(node.output):
            needed.append(node)
            names.update(node.input)
    return needed[::-1]


def _check_operators(nodes: list[Any]) -> None:
    """Raise unless each node has a counterpart in PyTorch with the same outputs."""
    kinds = {node.op_type if node.domain in ("", "ai.onnx") else f"{node.op_type} of {node.domain}" for node in nodes}
    if unknown := kinds - {*OPERATORS, "Constant"}:
        raise _NotConverted(f"brittle knows no counterpart in PyTorch of {listed(sorted(unknown))}")
    for node in nodes:
        if len([name for name in node.output if name]) > 1 and node.op_type != "Split":
            raise _NotConverted(f"its {node.op_type} returns more than values")


def _attribute(onnx: Any, attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return _array(onnx, value)
    if attribute.name in ("value_float", "value_floats"):
        return np.array(value, np.float32)
    return value.decode() if isinstance(value, bytes) else value


def _array(onnx: Any, tensor: Any) -> np.ndarray:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise _NotConverted("it keeps weights in another file")
    return onnx.numpy_helper.to_array(tensor)


ONNX = file_source(open_onnx)  # networks in ONNX files, `FILE.onnx`
