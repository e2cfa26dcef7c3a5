"""Small networks in ONNX files, written by the package onnx alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def linear(weight: np.ndarray, batch: int | str, shape: tuple[int, ...], external: str | None = None) -> bytes:
    """The file of `x -> flatten(x) @ weight`, `weight` being `[d, C]`, for inputs `[batch, *shape]`."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(weight.dtype)
    held = onnx.numpy_helper.from_array(weight, "weight")
    if external is not None:
        held.ClearField("raw_data")
        held.data_location = onnx.TensorProto.EXTERNAL
        held.external_data.add(key="location", value=external)
    nodes = [
        onnx.helper.make_node("Flatten", ["x"], ["flat"], axis=1),
        onnx.helper.make_node("MatMul", ["flat", "weight"], ["scores"]),
    ]
    ends: list[Any] = [
        onnx.helper.make_tensor_value_info("x", kind, [batch, *shape]),
        onnx.helper.make_tensor_value_info("scores", kind, [batch, weight.shape[1]]),
    ]
    graph = onnx.helper.make_graph(nodes, "linear", ends[:1], ends[1:], [held])
    opset = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
