"""The table of what is typed as a model that cannot be one, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.artefacts import refused

from brittle.model.loading.load import load_model

TYPED = {
    "model.pkl": (b"", "which holds a pickle that could run code and is not read; save .* with skops.io.dump"),
    "model.joblib": (b"", "which holds a pickle .* skops.io.dump"),
    "model.pt": (b"", "which holds a pickle .* torch.export.save"),
    "weights.ckpt": (b"", "which holds a pickle .* torch.export.save"),
    "model.h5": (b"\x89HDF\r\n\x1a\n", "a Keras or HDF5 file, which is not read; convert it to ONNX"),
    "model.dat": (b"\x89HDF\r\n\x1a\n", "a Keras or HDF5 file"),
    "model.keras": (b"PK", "a Keras file.* format='onnx'"),
    "model.tflite": (b"", "a TensorFlow Lite file.* tf2onnx.convert --tflite"),
    "saved_model.pb": (b"", "a TensorFlow graph.* tf2onnx"),
    "model.gguf": (b"GGUF", "a GGUF file of a language model"),
    "model": (b"GGUF\x03", "a GGUF file of a language model"),
    "model.mlmodel": (b"", "a Core ML file"),
    "model.safetensors": (b"", "weights without a network; give it with --weights"),
    "net.py": (b"", "names no function in the file"),
    "data.npz": (b"PK", "holds data and no model; MODEL comes first and DATA second"),
    "data.parquet": (b"PAR1", "MODEL comes first and DATA second"),
    "model.xyz": (b"", "is neither FILE.pt2, FILE.onnx, FILE.skops"),
    "page.pt2": (b"\n<!DOCTYPE html><html>", "holds a web page .* download the file itself"),
    "page.onnx": (b"<html><head>", "holds a web page"),
    "page.pth": (b"<!doctype html>", "holds a web page"),
}
"""What is named, what is in it, and what is said."""


@pytest.mark.parametrize("name", TYPED)
def test_a_file_is_named_for_what_it_is(name: str, tmp_path: Path) -> None:
    content, match = TYPED[name]
    (tmp_path / name).write_bytes(content)
    error = refused("model_file", match, load_model, tmp_path / name)
    assert str(error).count("\n") == 0
    assert error.exit_code == (6 if "holds a pickle" in str(error) else 3 if "web page" in str(error) else 2)


@pytest.mark.parametrize(
    ("files", "name", "match"),
    [
        (("saved_model.pb",), "saved", "a TensorFlow SavedModel.* tf2onnx.convert --saved-model"),
        (
            ("cat.png",),
            "images",
            "is a folder without config.json; a model of Hugging Face has one, and DATA comes second",
        ),
        ((), "net.mlpackage", "a Core ML package"),
    ],
)
def test_a_folder_is_named_for_what_it_is(files: tuple[str, ...], name: str, match: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    for file in files:
        (tmp_path / name / file).touch()
    refused("model_file", match, load_model, tmp_path / name)


@pytest.mark.parametrize("ending", ["pt2", "onnx", "skops"])
def test_a_file_that_is_not_there(ending: str, tmp_path: Path) -> None:
    refused("model_missing", "cannot be read: No such file", load_model, tmp_path / f"absent.{ending}")


def test_no_pickle_is_opened(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
    refused("model_file", "is not read", load_model, tmp_path / "model.pkl")
    assert [path.name for path in tmp_path.iterdir()] == ["model.pkl"]
