"""Each source of models agrees with the same network in PyTorch, and offers the documented scores."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from helpers.documents import read
from safetensors.torch import save_file, save_model
from torch import Tensor, nn

import brittle
from brittle.errors import ArtefactError, ModelError
from brittle.model.loading.load import load_model
from brittle.scores.catalogue import CATALOGUE

pytestmark = pytest.mark.usefixtures("short_search")

SHAPE, CLASSES = (2, 4, 4), 3
WITH_GRADIENTS = {
    "taylor",
    "taylor_mvs",
    "first_order_margin",
    "laplacian",
    "mmse",
    "mmse_mvs",
    "first_order_change",
    "change_bound",
}
OF_THE_HEAD = {"feature_margin", "feature_distance"}

SLOW = {"input_margin", "rare_event"}
"""Scores of hundreds of passes a point; both work without gradients, where their search is weaker."""

OPTIONS = {"sigma": 0.1, "radius": 0.1, "draws": 20, "effort": "fast"}
"""Options of the scores that have them."""

FACTORY = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(16, 3))

def other():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(16, 3))
"""


def _network() -> nn.Module:
    namespace: dict[str, Any] = {}
    exec(FACTORY, namespace)
    return namespace["make"]().eval()


def _x(rows: int = 6) -> Tensor:
    return torch.rand(rows, *SHAPE, generator=torch.Generator().manual_seed(0))


Source = Callable[[Path, pytest.MonkeyPatch], tuple[Any, nn.Module]]
"""A function that returns a model and the same network in PyTorch."""


def _exported(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    pytest.importorskip("brittle.extensions.exported")
    file = io.BytesIO()
    program = torch.export.export(_network(), (_x(2),), dynamic_shapes=({0: torch.export.Dim("b")},))
    torch.export.save(program, file)
    (folder / "same.pt2").write_bytes(file.getvalue())
    return load_model(folder / "same.pt2").module, _network()


def _factory(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    (folder / "own.py").write_text(FACTORY)
    return load_model(f"{folder / 'own.py'}:make").module, _network()


def _weights(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    (folder / "own.py").write_text(FACTORY)
    state = {f"module.{name}": value for name, value in _network().state_dict().items()}
    save_file(state, folder / "w.safetensors")
    return load_model(f"{folder / 'own.py'}:other", weights=folder / "w.safetensors").module, _network()


def _checkpoint(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    (folder / "own.py").write_text(FACTORY)
    state = {f"module.{name}": value for name, value in _network().state_dict().items()}
    torch.save({"epoch": 3, "state_dict": state}, folder / "theirs.pt")
    return load_model(f"{folder / 'own.py'}:other", weights=folder / "theirs.pt").module, _network()


def _torchscript(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    """Follow the advice of the sentence that refuses the file itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.trace(_network(), _x()), folder / "net.pt")
    with pytest.raises(ArtefactError, match=r"torch\.jit\.load"):
        load_model(folder / "net.pt")
    (folder / "own.py").write_text(
        f"import torch\ndef make():\n    return torch.jit.load({str(folder / 'net.pt')!r})\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return load_model(f"{folder / 'own.py'}:make").module, _network()


def _onnx(folder: Path, _: pytest.MonkeyPatch, *, activation: tuple[str, ...] = ("Tanh",)) -> tuple[Any, nn.Module]:
    pytest.importorskip("brittle.extensions.exported")
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from helpers.onnx_files import Step, file_of

    network = _network()
    names = ["k", *(f"a{at}" for at in range(len(activation)))]
    steps: list[Step] = [("Conv", ["x", "0.weight", "0.bias"], ["k"], {})]
    steps += [(kind, [names[at]], [names[at + 1]], {}) for at, kind in enumerate(activation)]
    steps += [
        ("Flatten", [names[-1]], ["f"], {}),
        ("Gemm", ["f", "3.weight", "3.bias"], ["scores"], {"transB": 1}),
    ]
    constants = {name: value.numpy() for name, value in network.state_dict().items()}
    (folder / "net.onnx").write_bytes(file_of(steps, constants, "rows", SHAPE))
    return load_model(folder / "net.onnx").module, network


def _onnx_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    """`sinh` and its inverse are unknown to the reader, and cancel each other."""
    return _onnx(folder, monkeypatch, activation=("Tanh", "Sinh", "Asinh"))


def _hugging_face(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    pytest.importorskip("brittle.extensions.hugging_face")
    transformers = pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        num_channels=2, embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic", num_labels=CLASSES
    )
    network = transformers.ResNetForImageClassification(config).eval()
    network.save_pretrained(folder)

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x).logits

    return load_model(folder).module, Plain().eval()


def _timm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    """Use a stand-in for timm, which needs torchvision."""
    pytest.importorskip("brittle.extensions.hugging_face")
    timm = ModuleType("timm")
    vars(timm).update(create_model=lambda name, pretrained, **_: _network(), __version__="0")
    monkeypatch.setitem(sys.modules, "timm", timm)
    (folder / "config.json").write_text(json.dumps({"architecture": "own"}))
    save_model(_network(), str(folder / "model.safetensors"))
    return load_model(folder).module, _network()


def _regression() -> tuple[Any, nn.Module]:
    linear_model = pytest.importorskip("sklearn.linear_model")
    x, y = np.random.default_rng(0).random((60, 32)), np.arange(60) % CLASSES
    model = linear_model.LogisticRegression().fit(x, y)
    network = nn.Sequential(nn.Flatten(), nn.Linear(32, CLASSES)).double()
    network[1].weight, network[1].bias = (
        nn.Parameter(torch.from_numpy(array.copy())) for array in (model.coef_, model.intercept_)
    )
    return model, network


def _skops(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    skops = pytest.importorskip("skops.io")
    model, network = _regression()
    skops.dump(model, folder / "model.skops")
    return load_model(folder / "model.skops").module, network


def _sklearn(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    return _regression()


def _function(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    network = _network()

    def function(x: np.ndarray) -> np.ndarray:
        return network(torch.from_numpy(x)).detach().numpy()

    return function, network


def _maite(folder: Path, _: pytest.MonkeyPatch) -> tuple[Any, nn.Module]:
    network = _network()

    class Model:
        metadata: ClassVar[dict[str, str]] = {"id": "network"}

        def __call__(self, images: Sequence[np.ndarray]) -> list[np.ndarray]:
            return [*network(torch.from_numpy(np.stack(images))).detach().numpy()]

    return Model(), network


SOURCES: dict[str, Source] = {
    "exported program": _exported,
    "function that returns a network": _factory,
    "function and weights": _weights,
    "function and a checkpoint": _checkpoint,
    "TorchScript file": _torchscript,
    "ONNX file": _onnx,
    "ONNX file with other operators": _onnx_unknown,
    "Hugging Face folder, images": _hugging_face,
    "timm": _timm,
    "scikit-learn file": _skops,
    "scikit-learn classifier": _sklearn,
    "function of NumPy arrays": _function,
    "image classifier of MAITE": _maite,
}


@dataclass(frozen=True)
class Row:
    """A row of the table of sources."""

    scores: str
    tolerance: float


def _table() -> dict[str, Row]:
    lines = [line for line in read("docs/reference/models.md").splitlines() if line.startswith("| ")][2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: Row(scores, float(tolerance)) for name, _, _, scores, tolerance in rows}


def _compute_scores(classifier: brittle.Classifier, x: Tensor) -> dict[str, np.ndarray]:
    """Return the values of every available score, by name."""
    values_by_score = {}
    for name, kind in CATALOGUE.items():
        option_names = {field.name for field in fields(kind)}
        score = kind(**{option: value for option, value in OPTIONS.items() if option in option_names})
        if name not in SLOW:
            with contextlib.suppress(ModelError):
                values_by_score[name] = score(classifier, x, seed=0).value.numpy()
    return values_by_score


OF_TEXTS = "Hugging Face folder, texts"
"""A source of embeddings and a mask: `tests/cli/test_text_commands.py` compares it with transformers itself."""


def test_the_table_names_every_source() -> None:
    assert [name for name in _table() if name != OF_TEXTS] == list(SOURCES)
    assert _table()[OF_TEXTS] == Row("all but certificates", 1e-5)


@pytest.mark.every_other
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_agrees_with_the_same_network_in_pytorch(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = _table()[name]
    model, network = SOURCES[name](tmp_path, monkeypatch)
    arrays = "numpy" if name == "function of NumPy arrays" else "torch"
    classifier = brittle.Classifier(model, arrays=arrays)
    reference = brittle.Classifier(network)
    x = _x()
    with classifier.evaluating(), reference.evaluating():
        assert float((classifier(x) - reference(x)).abs().max()) <= row.tolerance
    values, expected = _compute_scores(classifier, x[:2]), _compute_scores(reference, x[:2])
    missing = {
        "all": set(),
        "without the last layer": OF_THE_HEAD,
        "without gradients": WITH_GRADIENTS | OF_THE_HEAD,
    }[row.scores]
    assert set(values) == set(expected) - missing == set(CATALOGUE) - SLOW - missing
    for score in values:
        np.testing.assert_allclose(values[score], expected[score], rtol=50 * row.tolerance, atol=50 * row.tolerance)


def test_the_page_names_scores_that_need_gradients() -> None:
    page = read("docs/reference/models.md")
    assert all(f"`{name}`" in page for name in WITH_GRADIENTS | OF_THE_HEAD)
