"""What is typed as a model that cannot be one is named for what it is, and not opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.artefacts import refused

from brittle.errors import ArtefactError, UsageError
from brittle.model.loading.load import load_model

TYPED = {
    "model.pkl": (b"cos\nsystem\n(S'touch opened'\ntR.", "pickle.*skops.io.dump", ArtefactError),
    "model.joblib": (b"", "pickle.*skops.io.dump", ArtefactError),
    "weights.ckpt": (b"", "pickle.*torch.export.save", ArtefactError),
    "model.h5": (b"", "Keras", UsageError),
    "model.tflite": (b"", "tf2onnx.convert --tflite", UsageError),
    "saved_model.pb": (b"", "tf2onnx", UsageError),
    "model.safetensors": (b"", "--weights", UsageError),
    "net.py": (b"", "names no function", UsageError),
    "data.npz": (b"PK", "brittle score MODEL DATA", UsageError),
    "model.xyz": (b"", "FILE.pt2, FILE.onnx, FILE.skops", UsageError),
}
"""What is named, what is in it, what is said, and the error."""


@pytest.mark.parametrize("name", TYPED)
def test_a_file_is_named_for_what_it_is(name: str, tmp_path: Path) -> None:
    content, match, kind = TYPED[name]
    (tmp_path / name).write_bytes(content)
    code = "usage" if kind is UsageError else "model_file"
    assert type(refused(code, match, load_model, tmp_path / name)) is kind
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_folder_is_named_for_what_it_is(tmp_path: Path) -> None:
    refused("usage", "without config.json", load_model, tmp_path)


@pytest.mark.parametrize("ending", ["pt2", "onnx", "skops"])
def test_a_file_that_is_not_there(ending: str, tmp_path: Path) -> None:
    refused("unreadable", f"absent.{ending}", load_model, tmp_path / f"absent.{ending}")
