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

ALLOWED = 1e-4
"""By how much class scores may differ from those of onnxruntime, as a share of their size (`_share`)."""

COMPARED = 8
"""How many of the first inputs are compared, and as many made of them."""

THREADS = 2
"""At most so many threads of onnxruntime compute a batch."""

INSTALL = "pip install 'brittle[onnx]'"

_TYPES = {"tensor(float)": torch.float32, "tensor(double)": torch.float64, "tensor(float16)": torch.float16}
_OTHER_FILE = re.compile(rb"[\x00\x08]location")
"""A weight that lies in another file names it under this key; before it stands the last byte of its length."""


class _NotConverted(Exception):
    """Why a graph has no counterpart in PyTorch, in words that follow "because"."""


def open_onnx(content: bytes, name: str) -> OnnxModel | OnnxNetwork:
    """The network in an ONNX file; with gradients where each of its operators has a counterpart in PyTorch."""
    original = OnnxModel(content, name)
    try:
        return OnnxNetwork(original, *_read_graph(content, original)).eval()
    except _NotConverted as reason:
        original.forward_only = original.sentence(str(reason))
        return original


class OnnxModel(ArrayModel):
    """The network in an ONNX file as a function of tensors; the result has no gradient.

    Where the graph fixes the number of rows, so many are run at a time and the last batch is filled up with copies of
    its last row. An image `[C, H, W]` is flattened, or its channels are put last, where the graph takes it so. `batch`
    is the only number of rows that the graph takes, None where it is free; `forward_only` says in a sentence why there
    are no gradients, where somebody has said so.
    """

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(self._scores)
        self.__name__ = name
        self._session = _open(content, name)
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in _TYPES or not inputs[0].shape:
            found = ", ".join(f"{one.name}: {one.type} {one.shape}" for one in inputs) or "none"
            raise ModelError(
                "input_shape", f"expected 1 input, a tensor of real numbers with a batch axis; {name} has {found}"
            )
        self.input, self._type = inputs[0].name, _TYPES[inputs[0].type]
        sizes = [size if isinstance(size, int) and size > 0 else None for size in inputs[0].shape]
        self.batch, self._shape = sizes[0], tuple(sizes[1:])
        self.output = _output(self._session, name)
        self.forward_only: str | None = None

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.run(self.arranged(inputs))

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxModel:
        return self  # nothing of it changes

    def sentence(self, reason: str) -> str:
        """Why there are no gradients and what to do, in a sentence."""
        return f"{self.__name__} runs forward only, because {reason}; {WITHOUT_GRADIENT}"

    def run(self, rows: Tensor) -> Tensor:
        """Class scores `[B, C]` of rows as the graph takes them."""
        return super().__call__(rows)

    def arranged(self, inputs: Tensor) -> Tensor:
        """`[B, *shape]` in the type and the shape that the graph takes."""
        rows = inputs.to(self._type)
        found, taken = tuple(rows.shape[1:]), self._shape
        if _fits(found, taken):
            return rows
        if len(found) == 3 and _fits((*found[1:], found[0]), taken):
            return rows.permute(0, 2, 3, 1)
        if None not in taken and prod(found) == prod(size or 0 for size in taken):
            kept = [size for size in taken if size != 1]
            if len(kept) <= 1 or kept == [size for size in found if size != 1]:
                return rows.reshape(len(rows), *(size or 0 for size in taken))
        raise ModelError(
            "input_shape",
            f"{self.__name__} takes inputs of shape {[size or 'any' for size in taken]}, found {list(found)}; give "
            f"data of that shape",
        )

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        size = self.batch or len(rows)
        filled = np.concatenate((rows, rows[-1:].repeat(-len(rows) % size, axis=0)))
        batches = [np.ascontiguousarray(filled[start : start + size]) for start in range(0, len(filled), size)]
        try:
            scores = [self._session.run([self.output], {self.input: batch})[0] for batch in batches]
        except Exception as error:  # onnxruntime has errors of its own
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
    if _OTHER_FILE.search(content) or content[4:8] == b"ORTM":
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
        with contextlib.redirect_stdout(io.StringIO()):  # where it prints errors that it also raises
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        version, reason = onnxruntime.__version__, first_line(error)
        raise ModelError("model_file", f"onnxruntime {version} cannot load {name}: {reason}") from error


def _output(session: Any, name: str) -> str:
    """The name of the class scores: the only output of real numbers, or the one called logits."""
    outputs = [one.name for one in session.get_outputs() if one.type in _TYPES]
    if len(outputs) == 1 or "logits" in outputs:
        return outputs[0] if len(outputs) == 1 else "logits"
    found = ", ".join(f"{one.name}: {one.type}" for one in session.get_outputs())
    raise ModelError(
        "output_shape",
        f"{name} returns {found}; export it with one output of class scores, or call that one logits (skl2onnx: "
        f"options={{'zipmap': False}})",
    )


def _fits(found: tuple[int, ...], taken: tuple[int | None, ...]) -> bool:
    return len(found) == len(taken) and all(size in (None, own) for own, size in zip(found, taken, strict=True))


@dataclass(frozen=True)
class _Node:
    """One operator of a graph: the names of what it takes, empty where one is left out, and of what it gives; its
    attributes, tensors as NumPy arrays; and the name of the linear layer that stands for it, or None."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    layer: str | None = None


class OnnxNetwork(nn.Module):
    """The network in an ONNX file over operations of PyTorch; its linear layers are modules, its weights parameters.

    At the first inputs its scores are compared with those of onnxruntime, and at as many again with the numbers of each
    input shifted by one place, all in one batch. Where they differ by more than `ALLOWED`, onnxruntime gives the
    scores, and there are no gradients. `original` is the same run by onnxruntime; `forward_only` is None before the
    first inputs, too.
    """

    def __init__(self, original: OnnxModel, nodes: list[_Node], constants: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.__name__ = original.__name__
        self.original = original
        self.forward_only: str | None = None
        self._compared = False
        self.layers = nn.ModuleDict()
        self._nodes = _with_layers(nodes, constants, original.output, self.layers)
        self._last_use = {name: at for at, node in enumerate(self._nodes) for name in node.inputs}
        self._constants = dict(constants)
        self._parameter_of: dict[str, str] = {}
        for name, value in constants.items():
            if name in self._last_use and value.dtype.kind == "f" and value.size > 1:
                self._parameter_of[name] = f"constant_{len(self._parameter_of)}"
                self.register_parameter(self._parameter_of[name], _frozen(value))

    def forward(self, inputs: Tensor) -> Tensor:
        rows = self.original.arranged(inputs)
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
            given = [self._value(name, values) for name in node.inputs]
            try:
                if node.layer is not None:
                    found = (self.layers[node.layer](given[0]),)
                else:
                    found = compute(node.operator, given, node.attributes, rows.device)
            except FAILURES as error:
                error.add_note(node.operator)
                raise
            values.update(zip(node.outputs, found, strict=False))
            for name in node.inputs:
                if self._last_use[name] == at and name != self.original.output:
                    values.pop(name, None)  # large, and not needed any more
        return as_tensor(self._value(self.original.output, values), rows.device)

    def _value(self, name: str, values: Mapping[str, Any]) -> Any:
        if name in self._parameter_of:
            return getattr(self, self._parameter_of[name])
        return values[name] if name in values else self._constants.get(name)

    def _compare(self, rows: Tensor) -> None:
        """Decide whether the graph is used; nothing is decided where no score is finite."""
        some = rows[:COMPARED].detach().cpu()
        probes = torch.cat((some, some.flatten(1).roll(1, 1).reshape(some.shape)))
        if len(probes) == self.original.batch:
            probes = torch.cat((probes, some))  # that of the graph would say nothing of another number of rows
        theirs = self.original.run(probes)
        finite = theirs.reshape(len(theirs), -1).isfinite().all(1)
        if bool(finite.any()):
            reason = self._difference(probes, theirs, finite)
            self.forward_only = None if reason is None else self.original.sentence(reason)
            self._compared = True

    def _difference(self, probes: Tensor, theirs: Tensor, finite: Tensor) -> str | None:
        """What is wrong with the scores of the graph on the CPU (a GPU may round to 10 bits); None where nothing is."""
        elsewhere = any(one.device.type != "cpu" for one in self.parameters())
        network = copy.deepcopy(self).cpu() if elsewhere else self
        try:
            with torch.no_grad():
                ours = network._scores(probes)
        except FAILURES as error:
            where = (getattr(error, "__notes__", None) or ["?"])[-1]
            return f"its operator {where} fails in PyTorch ({first_line(error)})"
        if ours.shape != theirs.shape:
            return f"in PyTorch its scores have shape {list(ours.shape)}, expected {list(theirs.shape)}"
        share = _share(ours[finite].to(theirs), theirs[finite])
        return None if share <= ALLOWED else f"in PyTorch its scores differ by {share:.2g} of their range"


def _share(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of scores `[B, C]`, as a share of the size of the score, or of the largest of its row."""
    # The size is how far the class ranges over the inputs, and the score itself: -1e9 hides no difference of another.
    theirs, ours = theirs.flatten(1), ours.flatten(1)
    sizes = theirs.amax(dim=0) - theirs.amin(dim=0) + theirs.abs()
    sizes = torch.maximum(sizes, sizes.gather(1, theirs.argmax(dim=1, keepdim=True)))
    return float(((ours - theirs).abs() / sizes.clamp_min(torch.finfo(theirs.dtype).tiny)).max())


def _with_layers(
    nodes: list[_Node], constants: Mapping[str, np.ndarray], output: str, layers: nn.ModuleDict
) -> list[_Node]:
    """The nodes of a graph, of which each product with a constant matrix, and a sum after it, is one of `layers`."""
    uses = Counter(name for node in nodes for name in node.inputs) + Counter([output])
    found: list[_Node] = []
    for node in nodes:
        before = found[-1] if found and found[-1].layer is not None else None
        if node.operator == "Add" and before is not None and uses[before.outputs[0]] == 1:
            layer = cast(nn.Linear, layers[str(before.layer)])
            bias = [constants[name] for name in node.inputs if name in constants and before.outputs[0] in node.inputs]
            if layer.bias is None and bias and bias[0].shape == (len(layer.weight),):
                layer.bias = _frozen(bias[0])
                found[-1] = replace(before, outputs=node.outputs)
                continue
        layer = _linear(node, constants)
        if layer is not None:
            name = re.sub(r"\W+", "_", node.inputs[1].removesuffix(".weight")).strip("_")
            while not name or hasattr(layers, name):
                name += "_"
            layers[name] = layer
            node = replace(node, inputs=node.inputs[:1], layer=name)
        found.append(node)
    return found


def _linear(node: _Node, constants: Mapping[str, np.ndarray]) -> nn.Linear | None:
    """The linear layer that a product with a constant matrix is; None where it is none."""
    weight = constants.get(node.inputs[1]) if node.operator in ("Gemm", "MatMul") else None
    bias = constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
    scales = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0} | dict(node.attributes)
    turned = scales.pop("transB")
    if weight is None or weight.ndim != 2 or weight.dtype.kind != "f" or list(scales.values()) != [1.0, 1.0, 0]:
        return None
    weight = weight if turned else weight.T
    if len(node.inputs) > 2 and (bias is None or bias.size != len(weight)):
        return None
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = _frozen(weight)
    if bias is not None:
        layer.bias = _frozen(bias.reshape(-1))
    return layer


def _frozen(value: np.ndarray) -> nn.Parameter:
    return nn.Parameter(torch.from_numpy(np.array(value)), requires_grad=False)


def _read_graph(content: bytes, original: OnnxModel) -> tuple[list[_Node], dict[str, np.ndarray]]:
    """The nodes of the graph in a file that its class scores depend on, and its constants by name."""
    onnx, converter = (import_package(part, original.__name__, INSTALL) for part in ("onnx", "onnx.version_converter"))
    try:
        model = onnx.load_model_from_string(content)
        _check_known(_needed(model.graph, original.output))
        if any(one.domain in ("", "ai.onnx") and one.version < OPSET for one in model.opset_import):
            model = converter.convert_version(model, OPSET)
        constants: dict[str, Any] = {tensor.name: _array(onnx, tensor) for tensor in model.graph.initializer}
        nodes: list[_Node] = []
        for one in _needed(model.graph, original.output):
            attributes = {own.name: _attribute(onnx, own) for own in one.attribute}
            node = _Node(one.op_type, tuple(one.input), tuple(one.output), attributes)
            if node.operator == "Constant":
                constants[node.outputs[0]] = np.asarray(attributes.popitem()[1])
            elif node.inputs and all(not name or name in constants for name in node.inputs):
                constants |= _computed(node, constants)
            else:
                nodes.append(_for_any_rows(node, constants, original.batch))
    except (*FAILURES, MemoryError) as error:  # those of onnx are of these kinds
        raise _NotConverted(f"the package onnx cannot read it ({first_line(error)})") from error
    used = {name for node in nodes for name in node.inputs} | {original.output}
    return nodes, {name: value for name, value in constants.items() if name in used}


def _computed(node: _Node, constants: Mapping[str, Any]) -> dict[str, Any]:
    """What a node gives whose inputs are constant."""
    with torch.no_grad():
        given = [constants.get(name) for name in node.inputs]
        found = compute(node.operator, given, node.attributes, torch.device("cpu"))
    arrays = (value.numpy() if isinstance(value, Tensor) else value for value in found)
    return dict(zip(node.outputs, arrays, strict=False))


def _for_any_rows(node: _Node, constants: dict[str, Any], batch: int | None) -> _Node:
    """The node, which keeps the number of rows where it reshapes to the only one that the graph takes."""
    shape = constants.get(node.inputs[1]) if node.operator == "Reshape" else None
    if shape is None or batch is None or shape.size < 2 or shape[0] != batch or not shape.all():
        return node
    name = f"{node.inputs[1]} for any number of rows"
    constants[name] = np.array([0, *shape[1:]])  # 0 keeps the size of an axis
    return replace(node, inputs=(node.inputs[0], name), attributes={})


def _needed(graph: Any, output: str) -> list[Any]:
    """The nodes that `output` is computed from, in the order of computation."""
    needed, wanted = [], {output}
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            needed.append(node)
            wanted.update(node.input)
    return needed[::-1]


def _check_known(nodes: list[Any]) -> None:
    """Raise unless each node has a counterpart in PyTorch, and gives what that gives."""
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


ONNX = file_source(open_onnx)
"""Networks in ONNX files, `FILE.onnx`."""
