"""Image classifiers in folders of Hugging Face: local files alone, and their declarations."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.artefacts import refused
from torch import Tensor

import brittle
from brittle.cli.options import ModelOptions
from brittle.extensions.hugging_face.hugging_face import load_hugging_face
from brittle.model.loading.load import LoadedModel, check_named, load_model
from brittle.scores import FeatureMargin, Laplacian, Taylor

NAMES = ("ant", "bee", "cat")
PROCESSOR = {
    "do_resize": True,
    "size": {"height": 8, "width": 8},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.25, 0.5],
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a tiny vision transformer by transformers."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("vit")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=8,
        patch_size=4,
        id2label=dict(enumerate(NAMES)),
        label2id={name: at for at, name in enumerate(NAMES)},
    )
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def loaded(saved: Path) -> LoadedModel:
    return load_model(saved)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the variable that loading sets after each test."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def _x() -> Tensor:
    return torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_scores_are_those_of_the_network_on_normalised_pixels(saved: Path, loaded: LoadedModel) -> None:
    transformers = pytest.importorskip("transformers")
    network = transformers.AutoModelForImageClassification.from_pretrained(saved).eval()
    mean, std = (torch.tensor(PROCESSOR[name]).reshape(3, 1, 1) for name in ("image_mean", "image_std"))
    expected = network((_x() - mean) / std).logits
    assert loaded.declared is not None
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)):
        own_mean, own_std = loaded.declared.within(low, high)
        classifier = brittle.Classifier(loaded.module, (low, high), own_mean, own_std)
        with classifier.evaluating():
            torch.testing.assert_close(classifier(low + (high - low) * _x()), expected, rtol=1e-4, atol=1e-5)


def test_a_folder_that_describes_no_model_is_refused(tmp_path: Path) -> None:
    for call in (load_model, lambda spec: check_named(str(spec), None)):
        refused("usage", str(tmp_path), call, tmp_path)


def test_names_are_read_and_recorded(saved: Path, loaded: LoadedModel) -> None:
    assert loaded.declared is not None
    assert loaded.declared.class_names == NAMES
    classifier = ModelOptions().classifier(str(saved))
    scores = [Taylor(sigma=0.1), Laplacian(), FeatureMargin()]
    table = brittle.score(classifier.with_head(None), _x(), scores)
    assert table.record.data.class_names == NAMES
    assert table.record.model.mean == (0.5, 0.4, 0.3)
    assert loaded.provenance["runs_code"] is False
    assert loaded.provenance["format"] == "transformers"
    for score in scores:
        assert np.isfinite(table[score].value.to_numpy(float)).all()


def test_a_declaration_of_the_users_wins(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classifier = ModelOptions().classifier(str(saved))
    assert (classifier.mean, classifier.std) == ((0.5, 0.4, 0.3), (0.2, 0.25, 0.5))
    message = capsys.readouterr().err
    assert "declares mean 0.5 0.4 0.3, std 0.2 0.25 0.5, 3 classes ('ant', 'bee', 'cat')" in message
    classifier = ModelOptions(mean=(0.1,)).classifier(str(saved))
    assert (classifier.mean, classifier.std) == ((0.1,), None)
    assert "--mean and --std are yours" in capsys.readouterr().err


def test_no_server_is_asked(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: Any) -> None:
        raise AssertionError("asked a server")

    monkeypatch.setattr(socket.socket, "connect", connect)
    load_hugging_face(saved)


def test_code_in_the_folder_is_not_run(saved: Path, tmp_path: Path) -> None:
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((saved / "config.json").read_text())
    code = {"AutoConfig": "own.Config", "AutoModelForImageClassification": "own.Model"}
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "config.json").write_text(json.dumps(config | {"auto_map": code}))
    load_model(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"auto_map": code, "model_type": "own"}))
    refused("model_file", "cannot load", load_model, tmp_path)
    assert not (tmp_path / "ran").exists()


def _folder(folder: Path, config: dict[str, Any], *files: str) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    for name in files:
        (folder / name).write_bytes(b"")
    return folder


@pytest.mark.parametrize("kind", ["BertForTokenClassification", "ViTModel", None])
def test_other_folders_are_refused_before_anything_is_built(kind: str | None, tmp_path: Path) -> None:
    refused("model_file", str(kind), load_model, _folder(tmp_path, {"architectures": kind and [kind]}))


def test_weights_that_are_no_safetensors_are_refused(saved: Path, tmp_path: Path) -> None:
    config = json.loads((saved / "config.json").read_text())
    refused("model_file", "safetensors", load_model, _folder(tmp_path, config, "pytorch_model.bin"))


def _declared(saved: Path, folder: Path, kind: str, **options: Any) -> LoadedModel:
    """Load the network with an image processor of this kind, with these options besides the usual ones."""
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    usual = {"do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_resize": False}
    description = {"image_processor_type": f"{kind}ImageProcessor", "image_mean": [0.0] * 3, "image_std": [1.0] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(usual | description | options), encoding="utf-8")
    return load_model(folder)


HALF, QUARTER, MIXED = [0.5] * 3, [0.25] * 3, [0.5, 0.4, 0.3]


@pytest.mark.parametrize(
    ("kind", "options", "mean", "std"),
    [
        ("ViT", {"image_mean": MIXED, "image_std": QUARTER}, MIXED, QUARTER),
        ("ViT", {"do_normalize": False, "image_mean": HALF, "image_std": HALF}, None, None),
        ("ViT", {"do_normalize": False, "do_rescale": False}, [0.0], [1 / 255]),
        ("ViT", {"image_mean": [127.5] * 3, "image_std": [51.0] * 3, "do_rescale": False}, HALF, [0.2] * 3),
        ("ViT", {"image_std": HALF, "rescale_factor": 1 / 127.5}, [0.0] * 3, QUARTER),
        (
            "EfficientNet",
            {"image_mean": MIXED, "image_std": QUARTER, "include_top": True, "rescale_offset": False},
            MIXED,
            [0.0625] * 3,
        ),
    ],
)
def test_mean_and_std_are_those_of_pixels_in_0_to_1(
    kind: str, options: dict[str, Any], mean: Any, std: Any, saved: Path, tmp_path: Path
) -> None:
    """`(factor * 255 p - mean) / std` of the processor equals `(p - mean) / std` of the declaration."""
    declared = _declared(saved, tmp_path, kind, **options).declared
    assert declared is not None
    for numbers, expected in ((declared.mean, mean), (declared.std, std)):
        assert numbers == expected if expected is None else numbers == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("MobileViT", {"do_flip_channel_order": True, "do_normalize": False}),
        ("EfficientNet", {"rescale_offset": True}),
        ("Perceiver", {"do_rescale": False, "do_normalize": True, "image_std": [0.0, 1.0, 1.0]}),
        *(("ViT", {"rescale_factor": factor}) for factor in (0, "a", [1, 2])),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_other_preprocessing_is_refused(kind: str, options: dict[str, Any], saved: Path, tmp_path: Path) -> None:
    refused("model_file", "", _declared, saved, tmp_path, kind, **options)


PROBLEMS = {
    "single_label_classification": (("class", "top:2"), ("multilabel", "multilabel:1", "within:0.1")),
    "multi_label_classification": (("multilabel", "multilabel:1"), ("class", "top:2", "within:0.1")),
    "regression": (("within:0.1",), ("class", "top:2", "multilabel")),
    None: (("class", "multilabel", "within:0.1"), ()),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_decision_fits_the_problem_type_of_the_folder(saved: Path, tmp_path: Path, problem: str | None) -> None:
    """On the command line, where the default is the predicted class, and in Python, with the network itself."""
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((saved / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"problem_type": problem}))
    module = load_model(tmp_path).module
    fitting, unfitting = PROBLEMS[problem]
    for decision in fitting:
        assert ModelOptions(decision=decision).classifier(str(tmp_path)).decision.label == decision
    for decision in unfitting:
        refused("parameter", f"{problem}.*{fitting[0][:6]}", brittle.Classifier, module, decision=decision)
        refused("parameter", str(problem), ModelOptions(decision=decision).classifier, str(tmp_path))
    if "class" in unfitting:
        refused("parameter", str(problem), ModelOptions().classifier, str(tmp_path))
