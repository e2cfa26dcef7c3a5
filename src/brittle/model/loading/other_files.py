"""What a file or folder is that was named as a model and cannot be one, and what to do with it."""

from __future__ import annotations

import zipfile
from pathlib import Path

from brittle.errors import ArtefactError, ModelError, UsageError
from brittle.model.loading.user_code import defined_in
from brittle.model.loading.weights import PICKLED

EXPORT = (
    "export the network with torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), "
    "'model.pt2'), or name a factory: FILE.py:FUNCTION"
)
"""What to do with any network of PyTorch."""

_KERAS = "is a Keras or HDF5 file; convert it to ONNX, model.export('model.onnx', format='onnx') in Keras 3"
_TENSORFLOW = "is a TensorFlow graph; convert it to ONNX, python -m tf2onnx.convert --saved-model FOLDER"
_DATA = "holds data and no model; MODEL comes first and DATA second: brittle score MODEL DATA"
_ADVICE = {
    ".h5": _KERAS,
    ".keras": _KERAS,
    ".pb": _TENSORFLOW,
    ".tflite": "is a TensorFlow Lite file; convert it to ONNX, python -m tf2onnx.convert --tflite FILE",
    ".gguf": "is a GGUF file of a language model; brittle scores classifiers",
    ".mlmodel": f"is a Core ML file; go back to the network that it was made from, and {EXPORT}",
    ".mlpackage": f"is a Core ML package; go back to the network that it was made from, and {EXPORT}",
    ".safetensors": f"holds weights without a network; give it with --weights; {EXPORT}",
    **dict.fromkeys((".npz", ".npy", ".parquet", ".csv", ".png", ".jpg", ".jpeg"), _DATA),
}
"""What a file is by its ending, and what to do."""

_HEAD = 512


def spec_error(spec: str) -> UsageError | ModelError:
    """The error for `spec`, which is none of the forms of a model that are read."""
    path, suffix = Path(spec), Path(spec).suffix.lower()
    if page := web_page(path):
        return ModelError("model_file", page)
    if _is_torchscript(path):
        return ArtefactError(
            "model_file",
            f"{spec} is a TorchScript file, which holds a pickle and code of its own and is not read; if you trust "
            f"it, load it in a function: own.py with the two lines 'import torch' and "
            f"'make = lambda: torch.jit.load({spec!r})', and own.py:make for MODEL",
        )
    if suffix in (*PICKLED, ".joblib", ".dill"):
        classifier = "save a scikit-learn classifier with skops.io.dump(model, 'model.skops'); of PyTorch, "
        return ArtefactError(
            "model_file",
            f"{spec} is a {suffix} file, which holds a pickle that could run code and is not read; "
            f"{'' if suffix in ('.pt', '.pth', '.bin', '.ckpt') else classifier}{EXPORT}",
        )
    if (path / "saved_model.pb").exists():
        return UsageError(f"{spec} {_TENSORFLOW}")
    if suffix == ".py":
        return UsageError(f"{spec} names no function in the file{defined_in(path)}; {EXPORT}")
    if suffix in _ADVICE:
        return UsageError(f"{spec} {_ADVICE[suffix]}")
    if path.is_dir():
        found = f"{spec} is a folder without config.json; a model of Hugging Face has one, and DATA comes second"
        return UsageError(f"{found}; {EXPORT}")
    forms = "FILE.pt2, FILE.onnx, FILE.skops, FOLDER with config.json, FILE.py:FACTORY nor PACKAGE.MODULE:FACTORY"
    return UsageError(f"{spec!r} is neither {forms}{'' if path.exists() else ', and is no file'}; {EXPORT}")


def web_page(path: Path) -> str | None:
    """The sentence for a file that holds a web page, as a download does that asked for a login; else None."""
    if not _head(path).lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html")):
        return None
    return f"{path} holds a web page (HTML) and no model; download the file itself, not the page that shows it"


def _is_torchscript(path: Path) -> bool:
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
            return file.read(_HEAD)
    except OSError:
        return b""
