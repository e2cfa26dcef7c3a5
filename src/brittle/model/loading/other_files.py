"""What a file or folder is that was named as a model and cannot be one, and what to do with it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from brittle.errors import ArtefactError, ModelError, UsageError
from brittle.model.loading.weights import PICKLED

EXPORT = (
    "export the network with torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), "
    "'model.pt2'), or name a factory: FILE.py:FUNCTION"
)
"""What to do with any network of PyTorch."""

SKOPS = "save a scikit-learn classifier with skops.io.dump(model, 'model.skops')"
"""What to do with a classifier that was pickled."""

TORCHSCRIPT = (
    "if you trust it, load it in a function: own.py with the two lines 'import torch' and "
    "'make = lambda: torch.jit.load({path!r})', and own.py:make for MODEL"
)
"""What to do with a TorchScript file, whose interpreter is not made for code of strangers."""

_ONNX = "convert it to ONNX ({how}) and name model.onnx"

_KINDS = {
    ".h5": ("a Keras or HDF5 file", _ONNX.format(how="model.export('model.onnx', format='onnx') in Keras 3")),
    ".keras": ("a Keras file", _ONNX.format(how="model.export('model.onnx', format='onnx') in Keras 3")),
    ".pb": ("a TensorFlow graph", _ONNX.format(how="python -m tf2onnx.convert --saved-model FOLDER")),
    ".tflite": ("a TensorFlow Lite file", _ONNX.format(how="python -m tf2onnx.convert --tflite FILE")),
    ".gguf": ("a GGUF file of a language model", "brittle scores classifiers of images and numbers; " + EXPORT),
    ".mlmodel": ("a Core ML file", "go back to the network that it was made from, and " + EXPORT),
    ".mlpackage": ("a Core ML package", "go back to the network that it was made from, and " + EXPORT),
}
"""Endings of model files of others: what they are and what to do."""

_DATA = (".npz", ".npy", ".parquet", ".csv", ".png", ".jpg", ".jpeg")

_STARTS = (
    (b"GGUF", ".gguf"),
    (b"\x89HDF\r\n\x1a\n", ".h5"),
)

_FORMS = "FILE.pt2, FILE.onnx, FILE.skops, FOLDER with config.json, FILE.py:FACTORY"

_HEAD = 512


def spec_error(spec: str) -> UsageError | ModelError:
    """The error for `spec`, which is none of the forms of a model that are read.

    A file is told by its first bytes where they say what it is, and else by its ending.
    """
    path = Path(spec)
    suffix = path.suffix.lower()
    if path.is_dir():
        return _folder(spec, path)
    if page := web_page(path):
        return ModelError("model_file", page)
    if torchscript(path):
        found = f"{spec} is a TorchScript file, which holds a pickle and code of its own and is not read"
        return ArtefactError("model_file", f"{found}; {TORCHSCRIPT.format(path=str(spec))}")
    if suffix in PICKLED or suffix in (".joblib", ".dill"):
        found = f"{spec} is a {suffix} file, which holds a pickle that could run code and is not read"
        advice = EXPORT if suffix in (".pt", ".pth", ".bin", ".ckpt") else f"{SKOPS}; of PyTorch, {EXPORT}"
        return ArtefactError("model_file", f"{found}; {advice}")
    kind = next((suffix for start, suffix in _STARTS if _head(path).startswith(start)), suffix)
    if kind in _KINDS:
        what, advice = _KINDS[kind]
        return UsageError(f"{spec} is {what}, which is not read; {advice}")
    return UsageError(f"{_other(spec, suffix, path)}; {EXPORT}")


def web_page(path: Path) -> str | None:
    """The sentence for a file that holds a web page, as a download does that asked for a login; else None."""
    if not _head(path).lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html")):
        return None
    return f"{path} holds a web page (HTML) and no model; download the file itself, not the page that shows it"


def torchscript(path: Path) -> bool:
    """Whether a file is an archive with the code of TorchScript. Only its list of names is read."""
    if not _head(path).startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.partition("/")[2] for name in archive.namelist()]
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
    return "constants.pkl" in names and any(name.startswith("code/") for name in names)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD) if path.is_file() else b""
    except OSError:
        return b""


def _other(spec: str, suffix: str, path: Path) -> str:
    if suffix == ".safetensors":
        return f"{spec} holds weights without a network; give it with --weights"
    if suffix == ".py":
        return f"{spec} names no function in the file"
    if suffix in _DATA:
        return f"{spec} holds data and no model; MODEL comes first and DATA second: brittle score MODEL DATA"
    if os.sep in spec and not path.exists():
        return f"{spec} is not there, and is neither {_FORMS} nor an import"
    return f"{spec!r} is neither {_FORMS} nor PACKAGE.MODULE:FACTORY"


def _folder(spec: str, path: Path) -> UsageError:
    if (path / "saved_model.pb").exists():
        advice = _ONNX.format(how=f"python -m tf2onnx.convert --saved-model {spec} --output model.onnx")
        return UsageError(f"{spec} is a TensorFlow SavedModel, which is not read; {advice}")
    if path.suffix == ".mlpackage":
        what, advice = _KINDS[".mlpackage"]
        return UsageError(f"{spec} is {what}, which is not read; {advice}")
    found = f"{spec} is a folder without config.json; a model of Hugging Face has one, and DATA comes second"
    return UsageError(f"{found}; {EXPORT}")
