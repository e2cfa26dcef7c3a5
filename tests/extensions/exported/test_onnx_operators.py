"""Every operator of ONNX agrees with onnxruntime, and its gradient with differences of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from helpers.onnx_files import Step, file_of

from brittle.extensions.exported.onnx_network import OnnxNetwork, open_onnx
from brittle.extensions.exported.onnx_operators import OPERATORS

Case = tuple[dict[str, Any], tuple[np.ndarray | None, ...], tuple[int, ...], int]
"""Attributes, constant inputs after the first, shape of an input, and opset."""

IMAGE, ROW = (4, 6, 6), (6,)


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _one(value: float) -> np.ndarray:
    return np.array(value, np.float32)


KERNEL, CHANNELS = _numbers(3, 4, 3, 3), np.abs(_numbers(4)) + 0.5

CASES: list[tuple[str, Case]] = [
    ("Gemm", ({}, (_numbers(6, 3), _numbers(3)), ROW, 13)),
    ("Gemm", ({"alpha": 0.5, "beta": 2.0, "transB": 1}, (_numbers(3, 6), _numbers(1, 3)), ROW, 13)),
    ("MatMul", ({}, (_numbers(6, 3),), ROW, 13)),
    ("MatMul", ({}, (_numbers(4, 6, 3),), IMAGE, 13)),
    ("Einsum", ({"equation": "bi,ij->bj"}, (_numbers(6, 3),), ROW, 13)),
    ("Conv", ({"pads": [1, 1, 1, 1], "strides": [2, 2]}, (KERNEL, _numbers(3)), IMAGE, 13)),
    ("Conv", ({"pads": [0, 1, 2, 0], "dilations": [2, 1]}, (KERNEL,), IMAGE, 13)),
    ("Conv", ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (KERNEL,), IMAGE, 13)),
    ("Conv", ({"auto_pad": "VALID", "group": 2}, (_numbers(2, 2, 3, 3),), IMAGE, 13)),
    ("Conv", ({}, (_numbers(3, 4, 3),), (4, 7), 13)),
    ("MaxPool", ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}, (), IMAGE, 13)),
    ("MaxPool", ({"kernel_shape": [3, 2], "pads": [0, 0, 1, 1]}, (), IMAGE, 13)),
    ("AveragePool", ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (), IMAGE, 13)),
    ("AveragePool", ({"kernel_shape": [2, 2], "pads": [0, 0, 1, 1], "count_include_pad": 1}, (), IMAGE, 13)),
    ("GlobalAveragePool", ({}, (), IMAGE, 13)),
    ("GlobalMaxPool", ({}, (), IMAGE, 13)),
    ("BatchNormalization", ({"epsilon": 0.01}, (CHANNELS, _numbers(4), _numbers(4), CHANNELS), IMAGE, 15)),
    ("InstanceNormalization", ({}, (CHANNELS, _numbers(4)), IMAGE, 13)),
    ("LayerNormalization", ({"axis": -2, "epsilon": 0.01}, (_numbers(6, 6), _numbers(6, 6)), IMAGE, 17)),
    ("Softmax", ({"axis": 1}, (), IMAGE, 13)),
    ("Softmax", ({"axis": 1}, (), IMAGE, 9)),
    ("LogSoftmax", ({}, (), ROW, 13)),
    *((name, ({}, (), ROW, 18)) for name in ("Relu", "Elu", "Celu", "Selu", "LeakyRelu", "ThresholdedRelu", "Mish")),
    *((name, ({}, (), ROW, 18)) for name in ("Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softplus", "Softsign")),
    ("PRelu", ({}, (_numbers(4, 1, 1),), IMAGE, 13)),
    ("Gelu", ({"approximate": "tanh"}, (), ROW, 20)),
    ("Erf", ({}, (), ROW, 13)),
    *((name, ({}, (_numbers(6),), ROW, 13)) for name in ("Add", "Sub", "Mul", "Div", "Min", "Max")),
    *((name, ({}, (_numbers(6), _numbers(1, 6)), ROW, 13)) for name in ("Min", "Max", "Sum")),
    ("Pow", ({}, (_one(3.0),), ROW, 13)),
    ("Pow", ({}, (np.array([1, 2, 3, 2, 1, 2], np.float32),), ROW, 13)),
    *((name, ({}, (), ROW, 13)) for name in ("Exp", "Abs", "Neg", "Sin", "Cos", "Identity", "Dropout")),
    *((name, ({}, (), ROW, 13)) for name in ("Floor", "Ceil", "Round", "Sign")),
    *((f"positive {name}", ({}, (), ROW, 13)) for name in ("Sqrt", "Log", "Reciprocal")),
    ("Mod", ({"fmod": 1}, (_numbers(6),), ROW, 13)),
    ("Clip", ({}, (_one(-0.5), _one(0.5)), ROW, 13)),
    ("Clip", ({"min": -0.2, "max": 0.4}, (), ROW, 6)),
    *((name, ({}, (_numbers(6),), ROW, 16)) for name in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")),
    *((f"Reduce{name}", ({"axes": [1, -1]}, (), IMAGE, 12)) for name in ("Mean", "Sum", "Max", "Min")),
    *(
        (f"Reduce{name}", ({"axes": [-1], "keepdims": 0}, (), IMAGE, 12))
        for name in ("L1", "L2", "SumSquare", "LogSumExp")
    ),
    ("ReduceSum", ({}, (_ints(1, 2),), IMAGE, 13)),
    ("ReduceMean", ({"keepdims": 0}, (_ints(-1),), IMAGE, 18)),
    ("Reshape", ({}, (_ints(0, -1, 4),), IMAGE, 13)),
    ("Flatten", ({}, (), IMAGE, 13)),
    ("Transpose", ({"perm": [0, 3, 1, 2]}, (), IMAGE, 13)),
    ("Squeeze", ({"axes": [1]}, (), (1, 6), 11)),
    ("Squeeze", ({}, (_ints(1),), (1, 6), 13)),
    ("Unsqueeze", ({}, (_ints(-1),), (6,), 13)),
    ("Concat", ({"axis": -1}, (), ROW, 13)),
    ("Slice", ({"axes": [1, 2], "starts": [0, -3], "ends": [2, 9999]}, (), IMAGE, 9)),
    ("Slice", ({}, (_ints(1, 0), _ints(3, 6), _ints(1, 3), _ints(1, 2)), IMAGE, 13)),
    ("Slice", ({}, (_ints(-1), _ints(-100), _ints(2), _ints(-2)), IMAGE, 13)),
    ("Gather", ({"axis": 1}, (_ints(2, -1, 0),), IMAGE, 13)),
    ("Expand", ({}, (_ints(1, 3, 6),), (1, 6), 13)),
    ("Tile", ({}, (_ints(1, 2, 1, 3),), IMAGE, 13)),
    ("Pad", ({}, (_ints(0, 1, 0, 2, 0, 0, 3, 0), _one(0.7)), IMAGE, 13)),
    ("Pad", ({"mode": "reflect"}, (_ints(0, 0, 1, 2, 0, 0, 2, 1),), IMAGE, 13)),
    ("Pad", ({"pads": [0, 1, 0, 2, 0, 0, 3, 0], "value": 0.7}, (), IMAGE, 9)),
    ("Pad", ({}, (_ints(1, 2), None, _ints(-1)), IMAGE, 18)),
    ("Cast", ({"to": 1}, (), ROW, 13)),
]

GRAPHS: dict[str, tuple[list[Step], dict[str, np.ndarray], tuple[int, ...]]] = {
    "CastLike": (
        [("Less", ["x", "c"], ["less"], {}), ("CastLike", ["less", "x"], ["scores"], {})],
        {"c": _numbers(6)},
        ROW,
    ),
    "Where": (
        [("Less", ["x", "c"], ["less"], {}), ("Where", ["less", "x", "c"], ["scores"], {})],
        {"c": _numbers(6)},
        ROW,
    ),
    "And Or Not": (
        [
            ("Less", ["x", "c"], ["a"], {}),
            ("Greater", ["x", "zero"], ["b"], {}),
            ("And", ["a", "b"], ["both"], {}),
            ("Not", ["b"], ["not"], {}),
            ("Or", ["both", "not"], ["one"], {}),
            ("Where", ["one", "x", "c"], ["scores"], {}),
        ],
        {"c": _numbers(6), "zero": _one(0.0)},
        ROW,
    ),
    "Split": (
        [
            ("Split", ["x", "sizes"], ["a", "b"], {"axis": 1}),
            ("Split", ["a"], ["c", "d"], {"axis": 1}),
            ("Sub", ["c", "d"], ["e"], {}),
            ("Concat", ["b", "e"], ["scores"], {"axis": 1}),
        ],
        {"sizes": _ints(4, 2)},
        ROW,
    ),
    "Shape Gather Unsqueeze Concat Reshape": (
        [
            ("Shape", ["x"], ["shape"], {}),
            ("Gather", ["shape", "zero"], ["rows"], {"axis": 0}),
            ("Constant", [], ["axis"], {"value": _ints(0)}),
            ("Unsqueeze", ["rows", "axis"], ["row"], {}),
            ("Concat", ["row", "rest"], ["target"], {"axis": 0}),
            ("Reshape", ["x", "target"], ["scores"], {}),
        ],
        {"zero": np.array(0, np.int64), "rest": _ints(-1)},
        IMAGE,
    ),
    "ConstantOfShape Equal Where Expand": (
        [
            ("Constant", [], ["wanted"], {"value_ints": [-1, 4, 6, 6]}),
            ("Shape", ["wanted"], ["size"], {}),
            ("ConstantOfShape", ["size"], ["ones"], {"value": _ints(1)}),
            ("Mul", ["ones", "minus"], ["free"], {}),
            ("Equal", ["wanted", "free"], ["kept"], {}),
            ("Where", ["kept", "ones", "wanted"], ["shape"], {}),
            ("Expand", ["x", "shape"], ["scores"], {}),
        ],
        {"minus": np.array(-1, np.int64)},
        (4, 6, 1),
    ),
    "Size Div Cast Sqrt Range Squeeze Mod": (
        [
            ("Shape", ["x"], ["shape"], {"start": 1}),
            ("Slice", ["shape", "zeros", "ones"], ["width"], {}),
            ("Squeeze", ["width"], ["w"], {}),
            ("Range", ["zero", "w", "two"], ["places"], {}),
            ("Mod", ["places", "three"], ["taken"], {}),
            ("Gather", ["x", "taken"], ["part"], {"axis": 1}),
            ("Size", ["taken"], ["count"], {}),
            ("Cast", ["count"], ["float"], {"to": 1}),
            ("Sqrt", ["float"], ["root"], {}),
            ("Div", ["part", "root"], ["scores"], {}),
        ],
        {
            "zeros": _ints(0),
            "ones": _ints(1),
            "zero": np.array(0, np.int64),
            "two": np.array(2, np.int64),
            "three": np.array(3, np.int64),
        },
        ROW,
    ),
}

STEP = 2e-4
"""Step of the differences, small enough that few of the largest values of windows change places."""

CONDITIONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")

JUMPING = (*CONDITIONS, "Floor", "Ceil", "Round", "Sign", "Mod")
"""Operators that have no gradient, or jump."""


def _file(name: str, case: Case) -> tuple[bytes, tuple[int, ...]]:
    attributes, constants, shape, opset = case
    operator = name.removeprefix("positive ")
    held = {f"c{at}": value for at, value in enumerate(constants) if value is not None}
    inputs = ["x", *(f"c{at}" if value is not None else "" for at, value in enumerate(constants))]
    inputs += ["x"] if operator == "Concat" else []
    steps: list[Step] = [(operator, inputs, ["scores"], attributes)]
    if operator in CONDITIONS:
        steps = [(operator, inputs, ["truth"], attributes), ("Cast", ["truth"], ["scores"], {"to": 1})]
    return file_of(steps, held, "rows", shape, opset=opset, dtype=np.float32), shape


def _check(name: str, content: bytes, shape: tuple[int, ...], *, has_gradient: bool) -> None:
    """Scores and slopes along a random direction agree with those of onnxruntime."""
    network = open_onnx(content, name)
    assert isinstance(network, OnnxNetwork), network.forward_only
    original = network.original  # onnxruntime alone
    generator = torch.Generator().manual_seed(3)
    x, along = (torch.randn(3, *shape, generator=generator) for _ in range(2))
    x = x.abs() + 0.5 if name.startswith("positive") else x
    x.requires_grad_()
    ours = network(x)
    assert network.forward_only is None
    assert network(x[:1]).shape == original(x[:1].detach()).shape
    torch.testing.assert_close(ours.detach(), original(x.detach()), rtol=1e-5, atol=1e-5)
    if not has_gradient:
        return
    weights = torch.randn(ours.shape, generator=generator)
    slope = float((torch.autograd.grad((weights * ours).sum(), x)[0] * along).sum())
    ends = [float((weights * original(x.detach() + sign * STEP * along)).double().sum()) for sign in (1, -1)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=0.02, abs=0.02)


@pytest.mark.every_other
@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{at}" for at, (name, _) in enumerate(CASES)])
def test_an_operator_agrees_with_onnxruntime(name: str, case: Case) -> None:
    _check(name, *_file(name, case), has_gradient=name not in JUMPING)


@pytest.mark.parametrize("name", GRAPHS)
def test_operators_of_shapes_agree_with_onnxruntime(name: str) -> None:
    steps, constants, shape = GRAPHS[name]
    has_gradient = name != "CastLike"
    content = file_of(steps, constants, "rows", shape, dtype=np.float32)
    _check(name, content, shape, has_gradient=has_gradient)


def test_every_operator_of_the_table_has_a_case() -> None:
    tested = {name.removeprefix("positive ") for name, _ in CASES}
    tested |= {operator for steps, _, _ in GRAPHS.values() for operator, *_ in steps}
    newer_than_onnxruntime = {"Swish"}
    assert set(OPERATORS) - tested == newer_than_onnxruntime
