"""Networks in ONNX files with gradients: used where they agree with onnxruntime, and not where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.artefacts import refused
from torch import Tensor, nn

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from helpers.onnx_files import Step, file_of

import brittle
from brittle.extensions.exported.onnx_network import OnnxNetwork, open_onnx
from brittle.extensions.exported.onnx_operators import OPERATORS
from brittle.scores import FeatureMargin, InputMargin, Laplacian, MonteCarlo, Taylor

GENERATOR = np.random.default_rng(0)
KERNEL, FIRST, LAST = (
    GENERATOR.normal(size=shape).astype(np.float32) for shape in ((4, 2, 3, 3), (4 * 4 * 4, 6), (6, 3))
)
SHIFT = GENERATOR.normal(size=3).astype(np.float32)
SHAPE = (2, 6, 6)


def _steps(flatten: Step = ("Flatten", ["c"], ["f"], {})) -> list[Step]:
    return [
        ("Conv", ["x", "kernel"], ["k"], {}),
        ("Relu", ["k"], ["c"], {}),
        flatten,
        ("MatMul", ["f", "first"], ["m"], {}),
        ("Tanh", ["m"], ["h"], {}),
        ("MatMul", ["h", "last"], ["n"], {}),
        ("Add", ["n", "shift"], ["scores"], {}),
    ]


def _file(batch: int | str = "rows", flatten: Step | None = None, **constants: np.ndarray) -> bytes:
    held = {"kernel": KERNEL, "first": FIRST, "last": LAST, "shift": SHIFT, **constants}
    return file_of(_steps() if flatten is None else _steps(flatten), held, batch, SHAPE)


def _opened() -> OnnxNetwork:
    network = open_onnx(_file(), "net.onnx")
    assert isinstance(network, OnnxNetwork)
    return network


def _network() -> nn.Module:
    """Return the same network in PyTorch."""
    network = nn.Sequential(
        nn.Conv2d(2, 4, 3, bias=False),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 6, bias=False),
        nn.Tanh(),
        nn.Linear(6, 3),
    )
    for layer, weight in ((network[0], KERNEL), (network[3], FIRST.T), (network[5], LAST.T)):
        layer.weight.data = torch.from_numpy(weight.copy())
    network[5].bias.data = torch.from_numpy(SHIFT)
    return network.eval()


def _x(rows: int = 5) -> Tensor:
    return torch.rand(rows, *SHAPE, generator=torch.Generator().manual_seed(0))


def test_scores_with_gradients_are_those_of_the_same_network() -> None:
    scores = [Taylor(sigma=0.3), Laplacian(), FeatureMargin(), InputMargin(effort="fast", certify=True)]
    ours = brittle.score(brittle.Classifier(open_onnx(_file(), "net.onnx")), _x(1), scores)
    theirs = brittle.score(brittle.Classifier(_network()), _x(1), scores)
    for score in scores:
        for part in ("value", "low", "high"):
            values, expected = (getattr(table[score], part).to_numpy(float) for table in (ours, theirs))
            np.testing.assert_allclose(values, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("batch", "flatten"),
    [
        ("rows", None),
        (1, ("Reshape", ["c", "shape"], ["f"], {})),
        (4, ("Reshape", ["c", "four"], ["f"], {"allowzero": 1})),
        (1, ("Einsum", ["c", "ones"], ["f"], {"equation": "bchw,chwf->bf"})),
    ],
)
def test_graphs_for_a_fixed_number_of_rows_take_any(batch: int | str, flatten: Step | None) -> None:
    shapes = {"shape": [1, -1], "four": [4, 64]}
    held: dict[str, np.ndarray] = {name: np.array(shape, np.int64) for name, shape in shapes.items()}
    held["ones"] = np.eye(64, dtype=np.float32).reshape(4, 4, 4, 64)
    classifier = brittle.Classifier(open_onnx(_file(batch, flatten, **held), "net.onnx"))
    for rows in (5, 1, 8):
        torch.testing.assert_close(classifier(_x(rows)), _network()(_x(rows)).detach(), rtol=1e-4, atol=1e-5)
    _check_gradient(classifier)
    assert classifier.head.weight.shape == (3, 6)


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_graphs_that_cannot_take_more_rows_run_forward_only(batch: int) -> None:
    """A row of numbers for each row of the batch stands beside the features; 8 rows are as many as are compared."""
    steps: list[Step] = [
        ("Flatten", ["x"], ["f"], {}),
        ("Concat", ["f", "beside"], ["both"], {"axis": 1}),
        ("MatMul", ["both", "weight"], ["scores"], {}),
    ]
    weight = GENERATOR.normal(size=(74, 3)).astype(np.float32)
    held = {"beside": np.full((batch, 2), 0.5, np.float32), "weight": weight}
    classifier = brittle.Classifier(open_onnx(file_of(steps, held, batch, SHAPE), "net.onnx"))
    for rows in (4, 1):
        inputs = np.concatenate((_x(rows).flatten(1).numpy(), np.full((rows, 2), 0.5)), axis=1)
        np.testing.assert_allclose(classifier(_x(rows)).numpy(), inputs @ weight, rtol=1e-4)
    refused("not_differentiable", "net.onnx .*Concat", Taylor(sigma=0.1), classifier, _x())


def _check_gradient(classifier: brittle.Classifier) -> None:
    slopes = []
    for model in (classifier, _network()):
        x = _x().requires_grad_()
        slopes.append(torch.autograd.grad(model(x).square().sum(), x)[0])
    torch.testing.assert_close(*slopes, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["Sinh", "com.microsoft:Gelu"])
def test_an_unknown_operator_is_named(kind: str) -> None:
    steps: list[Step] = [("Flatten", ["x"], ["f"], {}), (kind, ["f"], ["scores"], {})]
    classifier = brittle.Classifier(open_onnx(file_of(steps, {}, "rows", SHAPE), "net.onnx"))
    pattern = f"net.onnx runs forward only, because .*{kind.rpartition(':')[2]}"
    refused("not_differentiable", pattern, Taylor(sigma=0.1), classifier, _x())
    refused("not_differentiable", pattern, brittle.score, classifier, _x(), [Taylor(sigma=0.1)])
    assert MonteCarlo(sigma=0.1, draws=20, limit=None)(classifier, _x()).value.isfinite().all()


@pytest.mark.parametrize(
    ("wrong", "pattern"),
    [
        (lambda x: torch.relu(x) + 0.01 * x, "in PyTorch its scores differ by 0.0.* of their range"),
        (lambda x: torch.relu(x)[:, :3], "its operator MatMul fails in PyTorch"),
        (lambda x: torch.relu(x).flip(0), "differ by"),
    ],
)
def test_a_graph_that_disagrees_is_not_used(wrong: Any, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATORS, "Relu", wrong)
    classifier = brittle.Classifier(open_onnx(_file(), "net.onnx"))
    torch.testing.assert_close(classifier(_x()), _network()(_x()).detach(), rtol=1e-4, atol=1e-5)
    sentence = f"net.onnx runs forward only, because .*{pattern}"
    refused("not_differentiable", sentence, Taylor(sigma=0.1), classifier, _x())


def test_a_class_that_is_masked_hides_no_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The range of all scores is 1e9 then. Where the graph agrees, its gradients are still used."""
    masked = np.array([SHIFT[0], SHIFT[1], -1e9], np.float32)
    network = open_onnx(_file(shift=masked), "net.onnx")
    network(_x())
    assert network.forward_only is None
    monkeypatch.setitem(OPERATORS, "Relu", lambda x: torch.relu(x) + 0.01 * x)
    classifier = brittle.Classifier(open_onnx(_file(shift=masked), "net.onnx"))
    assert classifier(_x()).shape == (len(_x()), 3)
    refused("not_differentiable", "net.onnx runs forward only", Taylor(sigma=0.1), classifier, _x())


def test_inputs_that_are_not_finite_decide_nothing() -> None:
    network = _opened()
    assert network(torch.full((2, *SHAPE), torch.nan)).isnan().all()
    assert network.forward_only is None
    assert network(_x().requires_grad_()).requires_grad


def test_a_network_is_traced_only_after_its_comparison() -> None:
    network = _opened()
    rows = ({0: torch.export.Dim("rows")},)
    with pytest.raises(Exception, match="has not been compared with onnxruntime yet"):
        torch.export.export(network, (_x(),), dynamic_shapes=rows, strict=False)
    network(_x())
    exported = torch.export.export(network, (_x(),), dynamic_shapes=rows, strict=False).module()
    torch.testing.assert_close(exported(_x(3)), _network()(_x(3)), rtol=1e-4, atol=1e-5)
