"""Networks in ONNX files: run by onnxruntime, and with gradients where PyTorch gives the same scores."""

from __future__ import annotations

import contextlib
import copy
import importlib
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

from brittle.errors import ArtefactError, ModelError, listed
from brittle.model.arrays import ArrayModel
from brittle.model.loading.onnx_operators import OPERATORS, OPSET, TYPES, as_tensor, compute
from brittle.model.passes import WITHOUT_GRADIENT

ALLOWED = 1e-4
"""By how much class scores may differ from those of onnxruntime, as a share of their size (`_share`)."""

COMPARED = 8
"""How many of the first inputs are compared, and as many made of them."""

THREADS = 2
"""At most so many threads of onnxruntime compute a batch."""

FAILURES = (RuntimeError, ValueError, TypeError, AssertionError, LookupError, ArithmeticError, AttributeError)
"""What computing a node may raise where a graph is wrong, or unlike what is known here."""

_TYPES = {"tensor(float)": torch.float32, "tensor(double)": torch.float64, "tensor(float16)": torch.float16}
_OTHER_FILE = re.compile(rb"[\x00\x08]location")
"""A weight that lies in another file names it under this key; before it stands the last byte of its length."""

_FATAL_ONLY = 4
_CPU = torch.device("cpu")


class _NotConverted(Exception):
    """Why a graph has no counterpart in PyTorch, in words that follow "because"."""


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
        return OnnxNetwork(original, *_read_graph(content, original)).eval()
    except _NotConverted as reason:
        original.forward_only = original.sentence(str(reason))
        return original


class OnnxModel(ArrayModel):
    """The network in an ONNX file as a function of tensors; the result has no gradient.

    Where the graph fixes the number of rows, so many are run at a time and the last batch is filled up with copies of
    its last row. An image `[C, H, W]` is flattened, or its channels are put last, where the graph takes it so.

    Attributes:
        input: name of the input of the graph.
        output: name of the class scores.
        batch: the only number of rows that the graph takes, or None where that number is free.
        forward_only: why there are no gradients, in a sentence, or None where nobody has said so.
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
        """Class scores `[B, C]` of `inputs`, `[B, *shape]`, on their device."""
        return self.run(self.arranged(inputs))

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxModel:
        return self  # nothing of it changes

    def sentence(self, reason: str) -> str:
        """Why there are no gradients and what to do, in a sentence."""
        return f"{self.__name__} runs forward only, because {reason}; {WITHOUT_GRADIENT}"

    def run(self, rows: Tensor) -> Tensor:
        """Class scores `[B, C]` of rows as the graph takes them."""
        return super().__call__(rows)

    def batches(self, rows: Tensor) -> list[Tensor]:
        """Batches of so many rows as the graph takes, the last filled up with copies of the last row."""
        if self.batch is None:
            return [rows]
        missing = -len(rows) % self.batch
        filled = torch.cat((rows, rows[-1:].expand(missing, *rows.shape[1:]))) if missing else rows
        return list(filled.split(self.batch))

    def arranged(self, inputs: Tensor) -> Tensor:
        """`[B, *shape]` in the type and the shape that the graph takes.

        Raises:
            ModelError: it takes another shape.
        """
        rows = inputs.to(self._type)
        found, taken = tuple(rows.shape[1:]), self._shape
        if _fits(found, taken):
            return rows
        if len(found) == 3 and _fits((*found[1:], found[0]), taken):
            return rows.permute(0, 2, 3, 1)
        sizes = [size for size in taken if size is not None]
        whole = len(sizes) == len(taken) and prod(sizes) == prod(found)
        kept = [size for size in taken if size != 1]
        if whole and (len(kept) <= 1 or kept == [size for size in found if size != 1]):
            return rows.reshape(len(rows), *sizes)
        raise ModelError(
            "input_shape",
            f"{self.__name__} takes inputs of shape {[size or 'any' for size in taken]}, found {list(found)}; give "
            f"data of that shape",
        )

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        batches = [np.ascontiguousarray(batch.numpy()) for batch in self.batches(torch.from_numpy(rows))]
        try:
            found = [self._session.run([self.output], {self.input: batch})[0] for batch in batches]
        except Exception as error:  # onnxruntime has errors of its own
            raise RuntimeError(_first_line(error)) from error
        return np.concatenate(found)[: len(rows)]


def _open(content: bytes, name: str) -> Any:
    """A session of onnxruntime."""
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ModelError(
            "not_installed", f"{name} needs onnxruntime, which is not installed; pip install 'brittle[onnx]'"
        ) from error
    if _OTHER_FILE.search(content) or content[4:8] == b"ORTM":
        raise ArtefactError(
            "file_refused",
            f"{name} keeps weights in another file, or is in onnxruntime's own form; save it in one file: "
            f"onnx.save(onnx.load(...), 'model.onnx')",
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.use_deterministic_compute = True
    options.log_severity_level = _FATAL_ONLY
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # where it prints errors that it also raises
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = _first_line(error)
        raise ModelError("model_file", f"onnxruntime {onnxruntime.__version__} cannot load {name}: {reason}") from error


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
    """One operator of a graph.

    Attributes:
        name: of the node, often empty.
        operator: one of `OPERATORS`.
        inputs: names of what it takes, empty where one is left out.
        outputs: names of what it gives.
        attributes: by name; tensors as NumPy arrays.
        layer: name of the linear layer that stands for it, or None.
        shape: where it reshapes to a number of rows that the graph fixes, the sizes after that number; else None.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    layer: str | None = None
    shape: tuple[int, ...] | None = None


class OnnxNetwork(nn.Module):
    """The network in an ONNX file over operations of PyTorch; its linear layers are modules, its weights parameters.

    At the first inputs its scores are compared with those of onnxruntime, at as many again with the numbers of each
    input shifted by one place, and in a batch of all of them. Where they differ by more than `ALLOWED`, onnxruntime
    gives the scores, and there are no gradients.

    Attributes:
        original: the same run by onnxruntime.
        forward_only: why there are no gradients, in a sentence; None where there are, or before the first inputs.
    """

    def __init__(self, original: OnnxModel, nodes: list[_Node], constants: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.__name__ = original.__name__
        self.original = original
        self.forward_only: str | None = None
        self._in_batches: bool | None = None  # until it is compared
        self.layers = nn.ModuleDict()
        self._nodes = _with_layers(nodes, constants, original, self.layers)
        self._last_use = {name: at for at, node in enumerate(self._nodes) for name in node.inputs}
        self._constants = dict(constants)
        self._parameter_of: dict[str, str] = {}
        for name, value in constants.items():
            if name in self._last_use and value.dtype.kind == "f" and value.size > 1:
                self._parameter_of[name] = f"constant_{len(self._parameter_of)}"
                self.register_parameter(self._parameter_of[name], _frozen(value))

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
        return self._run(rows, self._in_batches)

    def _run(self, rows: Tensor, in_batches: bool) -> Tensor:
        if not in_batches:
            return self._scores(rows, any_rows=True)
        return torch.cat([self._scores(batch, any_rows=False) for batch in self.original.batches(rows)])[: len(rows)]

    def _scores(self, rows: Tensor, *, any_rows: bool) -> Tensor:
        """The output of the graph; with `any_rows` for another number of rows than it was exported for."""
        values: dict[str, Any] = {self.original.input: rows}
        for at, node in enumerate(self._nodes):
            given = [self._value(name, values) for name in node.inputs]
            try:
                if node.layer is not None:
                    found = (self.layers[node.layer](given[0]),)
                elif any_rows and node.shape is not None:
                    found = (given[0].reshape(len(given[0]), *node.shape),)
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
        elsewhere = any(one.device.type != "cpu" for one in self.parameters())
        network = copy.deepcopy(self).cpu() if elsewhere else self
        try:
            with torch.no_grad():
                ours = network._run(probes, in_batches)
        except FAILURES as error:
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


def _with_layers(
    nodes: list[_Node], constants: Mapping[str, np.ndarray], original: OnnxModel, layers: nn.ModuleDict
) -> list[_Node]:
    """The nodes of a graph with the names of linear layers, which are put into `layers`.

    A product with a constant matrix is one, and takes in a sum with a constant after it.
    """
    uses = Counter(name for node in nodes for name in node.inputs) + Counter([original.output])
    found: list[_Node] = []
    products: dict[str, int] = {}  # without a bias, by what they give, and their place
    for node in nodes:
        product = next((name for name in node.inputs if name in products and uses[name] == 1), None)
        if node.operator == "Add" and product is not None:
            layer = cast(nn.Linear, layers[str(found[products[product]].layer)])
            bias = constants.get(node.inputs[node.inputs[0] == product])
            if bias is not None and bias.shape == (len(layer.weight),):
                layer.bias = _frozen(bias)
                found[products[product]] = replace(found[products[product]], outputs=node.outputs)
                continue
        weight, bias = _weights(node, constants)
        if weight is not None:
            if bias is None:
                products[node.outputs[0]] = len(found)
            node = replace(node, inputs=node.inputs[:1], layer=_put(layers, node, weight, bias))
        elif node.operator == "Reshape" and original.batch is not None:
            shape = constants.get(node.inputs[1])
            if shape is not None and shape.size > 1 and shape[0] == original.batch and shape.all():
                node = replace(node, shape=tuple(shape[1:].tolist()))
        found.append(node)
    return found


def _weights(node: _Node, constants: Mapping[str, np.ndarray]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weight `[out, in]` and bias `[out]` of a product with a constant matrix; None for what it has not."""
    weight = constants.get(node.inputs[1]) if node.operator in ("Gemm", "MatMul") else None
    of_gemm = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0} | dict(node.attributes)
    turned = of_gemm.pop("transB")
    if weight is None or weight.ndim != 2 or weight.dtype.kind != "f" or list(of_gemm.values()) != [1.0, 1.0, 0]:
        return None, None
    weight = weight if turned else weight.T
    if len(node.inputs) < 3 or not node.inputs[2]:
        return weight, None
    bias = constants.get(node.inputs[2])
    if bias is None or bias.size != len(weight) or bias.shape[-1] != len(weight):
        return None, None
    return weight, bias.reshape(-1)


def _put(layers: nn.ModuleDict, node: _Node, weight: np.ndarray, bias: np.ndarray | None) -> str:
    """Put a linear layer into `layers`, and give its name there, which is that of its weight where that says one."""
    named = node.inputs[1].removesuffix(".weight")
    name = re.sub(r"\W+", "_", named if named != node.inputs[1] else node.name or node.operator).strip("_") or "linear"
    while name in layers or hasattr(layers, name):
        name += "_"
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = _frozen(weight)
    if bias is not None:
        layer.bias = _frozen(bias)
    layers[name] = layer
    return name


def _frozen(value: np.ndarray) -> nn.Parameter:
    return nn.Parameter(torch.from_numpy(np.array(value)), requires_grad=False)


def _read_graph(content: bytes, original: OnnxModel) -> tuple[list[_Node], dict[str, np.ndarray]]:
    """The nodes of the graph in a file that its class scores depend on, and its constants by name."""
    try:
        onnx = importlib.import_module("onnx")
        inliner = importlib.import_module("onnx.inliner")
        converter = importlib.import_module("onnx.version_converter")
    except ImportError as error:
        raise _NotConverted("the package onnx is not installed (pip install 'brittle[onnx]')") from error
    try:
        model = onnx.load_model_from_string(content)
        model = inliner.inline_local_functions(model) if model.functions else model
        _check_known(_needed(model.graph, original.output))
        if any(one.domain in ("", "ai.onnx") and one.version < OPSET for one in model.opset_import):
            model = converter.convert_version(model, OPSET)
        needed = _needed(model.graph, original.output)
        _check_known(needed)
        constants: dict[str, Any] = {tensor.name: _array(onnx, tensor) for tensor in model.graph.initializer}
    except (*FAILURES, MemoryError) as error:  # those of onnx are of these kinds
        raise _NotConverted(f"the package onnx cannot read it ({_first_line(error)})") from error
    nodes = []
    for one in needed:
        attributes = {own.name: _attribute(onnx, own) for own in one.attribute}
        node = _Node(one.name, one.op_type, tuple(one.input), tuple(one.output), attributes)
        try:
            if node.operator == "Constant":
                constants[node.outputs[0]] = np.asarray(attributes.popitem()[1])
            elif node.inputs and all(not name or name in constants for name in node.inputs):
                with torch.no_grad():
                    found = compute(node.operator, [constants.get(name) for name in node.inputs], attributes, _CPU)
                constants |= {
                    name: value.numpy() if isinstance(value, Tensor) else value
                    for name, value in zip(node.outputs, found, strict=False)
                }
            else:
                nodes.append(node)
        except FAILURES as error:
            raise _NotConverted(f"what is constant in it cannot be computed ({_first_line(error)})") from error
    used = {name for node in nodes for name in node.inputs} | {original.output}
    return nodes, {name: value for name, value in constants.items() if name in used}


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
        raise _NotConverted(f"brittle knows no counterpart in PyTorch of {listed(sorted(unknown), 5)}")
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
    if TYPES.get(tensor.data_type, torch.bfloat16) is torch.bfloat16:  # NumPy has no bfloat16
        kind = onnx.TensorProto.DataType.Name(tensor.data_type)
        raise _NotConverted(f"it holds numbers of the type {kind}")
    return onnx.numpy_helper.to_array(tensor)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
