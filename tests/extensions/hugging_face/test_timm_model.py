"""Networks of timm, with a stand-in for timm: the real one needs torchvision, which not every PyTorch has."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from helpers.artefacts import refused
from safetensors.torch import save_model
from torch import nn

from brittle.model.loading.load import load_model

KNOWN = {"classifier": "fc", "mean": (0.5, 0.4, 0.3), "std": [0.2, 0.2, 0.2]}


class Network(nn.Module):
    def __init__(self, num_classes: int = 10, width: int = 4) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.stem = nn.Linear(12, width)
        self.fc = nn.Linear(width, num_classes)
        self.pretrained_cfg = dict(KNOWN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.stem(x.flatten(1)))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_model(name: str, *, pretrained: bool, **options: Any) -> nn.Module:
        assert not pretrained
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})")
        return Network(**options)

    module = ModuleType("timm")
    vars(module).update(create_model=create_model, __version__="0")
    monkeypatch.setitem(sys.modules, "timm", module)


def test_a_name_with_weights_has_the_classes_of_the_weights(tmp_path: Path) -> None:
    network = Network(num_classes=3)
    save_model(network, str(tmp_path / "w.safetensors"))
    loaded = load_model("timm:tiny", weights=tmp_path / "w.safetensors")
    x = torch.rand(2, 12)
    assert torch.equal(loaded.module(x), network(x))
    assert loaded.declared is not None
    assert loaded.declared.mean == (0.5, 0.4, 0.3)
    assert loaded.provenance["weights_sha256"]
    assert loaded.provenance["runs_code"] is False


def test_a_folder_is_loaded_as_it_declares(tmp_path: Path) -> None:
    network = Network(num_classes=2, width=5)
    save_model(network, str(tmp_path / "model.safetensors"))
    config = {"architecture": "tiny", "num_classes": 2, "model_args": {"width": 5}, "label_names": ["ant", "bee"]}
    config["pretrained_cfg"] = {"mean": [0.1], "std": [0.3]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = load_model(tmp_path)
    x = torch.rand(2, 12)
    assert torch.equal(loaded.module(x), network(x))
    assert loaded.declared is not None
    assert (loaded.declared.mean, loaded.declared.std) == ((0.1,), (0.3,))
    assert loaded.declared.class_names == ("ant", "bee")
    assert loaded.provenance["format"] == "timm"
    (tmp_path / "model.safetensors").unlink()
    refused("weights", "model.safetensors", load_model, tmp_path)


def test_missing_weights_names_and_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "w.safetensors"
    save_model(Network(), str(weights))
    refused("usage", "--weights", load_model, "timm:tiny")
    refused("model_file", "timm:other", load_model, "timm:other", weights=weights)
    monkeypatch.setitem(sys.modules, "timm", None)
    refused("not_installed", "timm.*torchvision", load_model, "timm:tiny", weights=weights)
