"""Small networks in ONNX files, written with the package onnx alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

Step = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]
"""Operator, inputs, outputs and attributes of a node; the operator of another domain is `DOMAIN:NAME`."""


def linear(weight: np.ndarray, batch: int | str, shape: tuple[int, ...], external: str | None = None) -> bytes:
    """Return the file of `x -> flatten(x) @ weight`, with `weight` `[d, C]`, for inputs `[batch, *shape]`."""
    steps: list[Step] = [("Flatten", ["x"], ["flat"], {"axis": 1}), ("MatMul", ["flat", "weight"], ["scores"], {})]
    model = onnx.load_model_from_string(file_of(steps, {"weight": weight}, batch, shape))
    if external is not None:
        held = model.graph.initializer[0]
        held.ClearField("raw_data")
        held.data_location = onnx.TensorProto.EXTERNAL
        held.external_data.add(key="location", value=external)
    return model.SerializeToString()


def file_of(
    steps: Sequence[Step],
    constants: Mapping[str, np.ndarray],
    batch: int | str,
    shape: tuple[int | str, ...],
    *,
    opset: int = 17,
    dtype: type | None = None,
) -> bytes:
    """Return the file of a graph from `x`, `[batch, *shape]`, to `scores`, as precise as its first constant."""
    floats = [value.dtype for value in constants.values() if value.dtype.kind == "f"]
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype or (floats or [np.dtype(np.float32)])[0]))
    nodes = []
    for operator, operands, results, attributes in steps:
        domain, _, name = operator.rpartition(":")
        held = {
            key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
            for key, value in attributes.items()
        }
        nodes.append(onnx.helper.make_node(name, operands, results, domain=domain, **held))
    graph = onnx.helper.make_graph(
        nodes,
        "graph",
        [onnx.helper.make_tensor_value_info("x", kind, [batch, *shape])],
        [onnx.helper.make_tensor_value_info("scores", kind, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    domains = {"", *(operator.rpartition(":")[0] for operator, *_ in steps)}
    opsets = [onnx.helper.make_opsetid(domain, 1 if domain else opset) for domain in sorted(domains)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
