"""The model that a command line names: a file that runs no code, or a factory in code of the user's."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import fx, nn

from brittle.errors import ArtefactError, ModelError, UsageError, listed
from brittle.model.arrays import ArrayModel, is_estimator
from brittle.model.loading.archive import load_archive
from brittle.model.loading.declared import Declared
from brittle.model.loading.hugging_face import is_hugging_face, load_hugging_face, placed
from brittle.model.loading.onnx_network import open_onnx
from brittle.model.loading.timm_model import PREFIX, build_timm, is_timm, load_timm
from brittle.model.loading.tree_file import read_tree_file
from brittle.model.loading.weights import PICKLED, check_weights, load_weights, read_content, state_digest
from brittle.user_code import (
    defined_in,
    digest_of_module,
    first_line,
    import_module,
    import_package,
    line_of,
    run_file,
)

EXPORT = (
    "export the network with torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), "
    "'model.pt2'), or name a factory: FILE.py:FUNCTION"
)
"""What to do with any network of PyTorch."""

_PICKLE = (
    "file, which holds a pickle that could run code and is no model; weights in it go to --weights beside the network "
    "that they are for; save a scikit-learn classifier with "
    f"skops.io.dump(model, 'model.skops'); of PyTorch, {EXPORT}; what you trust, a factory may load (torch.jit.load)"
)
_KERAS = "is a Keras or HDF5 file; convert it to ONNX, model.export('model.onnx', format='onnx') in Keras 3"
_DATA = "holds data and no model; MODEL comes first and DATA second: brittle score MODEL DATA"
_TENSORFLOW = "is a TensorFlow file; convert it to ONNX, python -m tf2onnx.convert --saved-model FOLDER (--tflite FILE)"
_ADVICE = {
    **dict.fromkeys((".h5", ".keras"), _KERAS),
    **dict.fromkeys((".pb", ".tflite"), _TENSORFLOW),
    ".cbm": "is binary; save the model as .json: save_model('model.json', format='json')",
    ".safetensors": f"holds weights without a network; give it with --weights; {EXPORT}",
    **dict.fromkeys((".npz", ".npy", ".parquet", ".csv", ".png", ".jpg", ".jpeg"), _DATA),
}
"""What a file is by its ending where it is no model, and what to do."""

_failure = partial(ModelError, "user_code")


@dataclass(frozen=True)
class LoadedModel:
    """A model that can be scored, and where it comes from.

    `provenance` holds fields of `brittle.store.record.ModelRecord`; `weights` says what was found in the file of
    weights, in words, and is empty where these are all that is in it.
    """

    module: Any
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])
    declared: Declared | None = None
    weights: str = ""


def load_model(spec: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None) -> LoadedModel:
    """Load the model that `spec` names.

    - `FILE.pt2`: an archive of `torch.export.save`; loading it runs no code.
    - `FILE.onnx`: a network that onnxruntime runs; with gradients where PyTorch has its operators and agrees.
    - `FILE.json`: a classifier of XGBoost (also `FILE.ubj`) or CatBoost, `FILE.txt`: one of LightGBM; scored by
      that library.
    - `FILE.skops`: a scikit-learn classifier of `skops.io.dump`, of types that skops trusts; forward only.
    - `FOLDER`: an image classifier as Hugging Face writes it, or a network of timm; weights in safetensors alone.
    - `hf:OWNER/NAME`, `hf:OWNER/NAME@REVISION`: such a folder of the Hugging Face Hub, from its cache or fetched.
    - `timm:NAME`: a network of timm, with `weights`.
    - `FILE.py:FACTORY`: a function in a file, called without arguments, that returns the network.
    - `PACKAGE.MODULE:FACTORY`: the same in a module that Python can import. The current folder is
      not searched for it.

    A factory may also be a network itself, and may return a fitted scikit-learn classifier, or a
    `brittle.model.texts.TextFunction`. `weights` is a file for the network that the factory returns.
    """
    path = None if weights is None else Path(weights)
    _check_form(os.fspath(spec), path)
    spec, folder = placed(spec)
    if spec.startswith(PREFIX):
        module, declared = build_timm(spec, path)
        loaded = LoadedModel(module, {"format": "timm"}, declared)
    elif is_hugging_face(folder):
        form, load = ("timm", load_timm) if is_timm(folder) else ("transformers", load_hugging_face)
        module, declared, digest = load(folder)
        loaded = LoadedModel(module, {"format": form, "file": os.fspath(folder), "sha256": digest}, declared)
    else:
        loaded = _load_file(Path(spec)) if _factory_place(spec) is None else _load_code(spec)
    module, provenance = loaded.module, {"spec": spec, "runs_code": False} | loaded.provenance
    if path is not None:
        if not isinstance(module, nn.Module):
            raise UsageError(f"{spec} is no network of PyTorch and has its own weights; leave out --weights")
        read = load_weights(module, path)
        provenance |= read.record
        loaded = replace(loaded, weights=read.said)
        if read.mean is not None:
            loaded = replace(loaded, declared=replace(loaded.declared or Declared(), mean=read.mean, std=read.std))
    if isinstance(module, nn.Module):
        check_weights(module, spec)
        provenance["state_sha256"] = state_digest(module)
    return replace(loaded, provenance=provenance)


def check_named(spec: str, weights: Path | None) -> None:
    """Raise where what `load_model` would be given cannot be a model, or is not there; nothing large is read or run."""
    _check_form(spec, weights)
    place = _factory_place(spec)
    file = Path(spec if place is None else place)
    named = spec.startswith(PREFIX) or is_hugging_face(placed(spec)[1]) or (place is not None and file.suffix != ".py")
    if not named and not file.is_file():
        read_content(file)  # raises, with what may have been meant
    if weights is not None and not weights.is_file():
        read_content(weights)


def _factory_place(spec: str) -> str | None:
    """What stands before the name of a factory; None where `spec` names none."""
    return spec.rpartition(":")[0] if ":" in spec.removeprefix(Path(spec).drive) and not Path(spec).is_file() else None


def _check_form(spec: str, weights: Path | None) -> None:
    path, suffix = placed(spec)[1], Path(spec).suffix.lower()
    of_hub = is_hugging_face(path)
    if spec.startswith(PREFIX) or (_factory_place(spec) is not None and not of_hub):
        return
    if of_hub or path.suffix in (".pt2", *_READERS):
        if weights is not None:
            raise UsageError(f"{spec} holds its own weights; leave out --weights")
        return
    if suffix in (*PICKLED, ".joblib"):
        raise ArtefactError("model_file", f"{spec} is a {suffix} {_PICKLE}")
    if suffix == ".py":
        raise UsageError(f"{spec} names no function in the file{defined_in(spec)}; {EXPORT}")
    if suffix in _ADVICE:
        raise UsageError(f"{spec} {_ADVICE[suffix]}")
    if path.is_dir():
        raise UsageError(
            f"{spec} is a folder without config.json; a model of Hugging Face has one, and DATA comes second; {EXPORT}"
        )
    raise UsageError(
        f"{spec!r} is neither FILE.pt2, FILE.onnx, FILE.skops, FILE.json, FILE.ubj, FILE.txt, FOLDER with "
        "config.json, FILE.py:FACTORY nor "
        f"PACKAGE.MODULE:FACTORY{'' if path.exists() else ', and is no file'}; {EXPORT}"
    )


def _load_file(path: Path) -> LoadedModel:
    content, name = read_content(path), str(path)
    digest = hashlib.sha256(content).hexdigest()
    if path.suffix == ".pt2":
        model, facts = load_archive(content, name)
        facts["format"] = "torch.export"
    else:
        model = _READERS[path.suffix](content, name)
        facts = {"format": path.suffix.removeprefix(".")}
    return LoadedModel(model, facts | {"file": name, "sha256": digest})


def _load_skops(content: bytes, name: str) -> Any:
    """The classifier in a file of `skops.io.dump`, made of types that skops itself trusts; trees are none of these."""
    skops = import_package("skops.io", name, "pip install 'brittle[sklearn]'")
    try:
        untrusted = skops.get_untrusted_types(data=content)
        model = None if untrusted else skops.loads(content)
    except Exception as error:
        raise ModelError("model_file", f"skops cannot load {name}: {first_line(error)}") from error
    if untrusted:
        raise ArtefactError(
            "file_refused",
            f"{name} holds types that skops does not trust: {listed(untrusted, 3)}; if you trust the file, load it "
            f"in a function of yours with skops.io.load('{name}', trusted=[...]) and name it: FILE.py:FUNCTION",
        )
    if not is_estimator(model):
        raise ModelError("model_file", f"{name} holds a {type(model).__name__}; save the fitted classifier")
    return model


_READERS = {
    **{".onnx": open_onnx, ".skops": _load_skops},
    **dict.fromkeys((".json", ".ubj", ".txt"), read_tree_file),
}
"""Who reads a file with such an ending, beside archives."""


def _load_code(spec: str) -> LoadedModel:
    """The network or estimator that a factory returns."""
    place, _, name = spec.rpartition(":")
    if place.endswith(".py"):
        module = run_file(Path(place), read_content(Path(place)), _failure)
    else:
        module = import_module(place, name, _failure)
    file = getattr(module, "__file__", None)
    where = spec if file in (None, place) else f"{spec} ({file})"
    if not hasattr(module, name):
        there = [own for own, value in vars(module).items() if callable(value) and not own.startswith("_")]
        raise _failure(f"{where} does not exist; the file has {', '.join(there[:10]) or 'nothing'}")
    model = getattr(module, name)
    try:
        if callable(model) and not isinstance(model, nn.Module | ArrayModel):
            model = model()
        if isinstance(model, nn.Module) and not isinstance(model, fx.GraphModule):
            model.eval()  # a new network is in training mode, which is nothing to warn of
    except (Exception, SystemExit) as error:
        raise _failure(
            f"{where} failed{line_of(error, module)}: {type(error).__name__}: {error}; it is called without arguments, "
            f"and relative paths start at {Path.cwd()}"
        ) from error
    if not isinstance(model, nn.Module | ArrayModel) and not is_estimator(model):
        kind = f"{type(model).__module__}.{type(model).__qualname__}"
        raise _failure(f"expected a torch.nn.Module, found that {where} gives an object of type {kind}")
    facts = {"format": "python", "runs_code": True, "file": file, "sha256": digest_of_module(module)}
    return LoadedModel(model, facts)
