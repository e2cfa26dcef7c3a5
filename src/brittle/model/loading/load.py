"""The model that a command line names: a file that runs no code, or a factory in code of the user's."""

from __future__ import annotations

import hashlib
import inspect
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import fx, nn

from brittle.errors import ModelError, UsageError
from brittle.model.arrays import is_estimator
from brittle.model.loading.archive import load_archive
from brittle.model.loading.declared import Declared
from brittle.model.loading.hugging_face import is_hugging_face, load_hugging_face
from brittle.model.loading.onnx_network import open_onnx
from brittle.model.loading.other_files import spec_error, web_page
from brittle.model.loading.skops_file import load_skops
from brittle.model.loading.timm_model import PREFIX, build_timm, is_timm, load_timm
from brittle.model.loading.user_code import import_module, line_of, run_file
from brittle.model.loading.weights import (
    check_weights,
    check_weights_name,
    load_weights,
    read_content,
    state_digest,
)


@dataclass(frozen=True)
class LoadedModel:
    """A model that can be scored, and where it comes from.

    Attributes:
        module: the network, or an estimator or a function of arrays.
        provenance: spec, format, files and sha256 digests; JSON values only.
        runs_code: whether loading it ran code of the user's.
        fixed_batch: the only number of rows it takes, or None where that number is free.
        declared: what the model's own files say of its inputs and classes, or None where they say nothing.
    """

    module: Any
    provenance: dict[str, Any]
    runs_code: bool
    fixed_batch: int | None = None
    declared: Declared | None = None


def load_model(spec: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None) -> LoadedModel:
    """Load the model that `spec` names.

    - `FILE.pt2`: an archive of `torch.export.save`; loading it runs no code.
    - `FILE.onnx`: a network that onnxruntime runs; with gradients where PyTorch has its operators and agrees.
    - `FILE.skops`: a scikit-learn classifier of `skops.io.dump`, of types that skops trusts; forward only.
    - `FOLDER`: an image classifier as Hugging Face writes it, or a network of timm; weights in safetensors alone.
    - `timm:NAME`: a network of timm, with `weights`.
    - `FILE.py:FACTORY`: a function in a file, called without arguments, that returns the network.
    - `PACKAGE.MODULE:FACTORY`: the same in a module that Python can import. The current folder is
      not searched for it.

    A factory may also be a network itself, and may return a fitted scikit-learn classifier.

    Args:
        spec: one of the above.
        weights: a `.safetensors` file whose names must be those of the network that the factory returns.

    Returns:
        the model.

    Raises:
        UsageError: the spec has another form, or weights are given for an archive.
        ModelError: there is no such model, it is no network, or its weights do not fit or are not finite.
        ArtefactError: a file is refused because it could run code.
    """
    spec = os.fspath(spec)
    if spec.startswith(PREFIX):
        loaded = _load_timm(spec, None if weights is None else Path(weights))
    elif is_hugging_face(Path(spec)):
        loaded = _load_folder(spec, weights)
    else:
        names_code = ":" in spec and not Path(spec).is_file()
        loaded = _load_code(spec) if names_code else _load_file(spec, weights)
    if weights is not None:
        if not isinstance(loaded.module, nn.Module):
            raise UsageError(f"{spec} is no network of PyTorch and has its own weights; leave out --weights")
        loaded = replace(loaded, provenance=loaded.provenance | load_weights(loaded.module, Path(weights)))
    if not isinstance(loaded.module, nn.Module):
        return loaded
    check_weights(loaded.module, spec)
    return replace(loaded, provenance=loaded.provenance | {"state_sha256": state_digest(loaded.module)})


def check_named(spec: str, weights: Path | None) -> None:
    """Raise where what `load_model` would be given cannot be a model, or is not there; nothing large is read or run.

    Raises:
        UsageError: the spec has another form, or weights are given for a file that holds its own.
        ModelError: a file is not there.
        ArtefactError: a file is a pickle.
    """
    if is_hugging_face(Path(spec)):
        _check_own_weights(spec, weights)
    elif not spec.startswith(PREFIX):
        place = Path(spec.rpartition(":")[0]) if ":" in spec and not Path(spec).is_file() else None
        if place is None:
            _check_file(spec, weights)
        file = Path(spec) if place is None else place
        if not file.is_file() and (place is None or place.suffix == ".py"):
            read_content(file)  # raises, with what may have been meant
    if weights is not None:
        check_weights_name(weights)
        if not weights.is_file():
            read_content(weights)


def _check_file(spec: str, weights: str | os.PathLike[str] | None) -> None:
    if Path(spec).suffix not in (".pt2", ".onnx", ".skops"):
        raise spec_error(spec)
    _check_own_weights(spec, weights)


def _check_own_weights(spec: str, weights: str | os.PathLike[str] | None) -> None:
    if weights is not None:
        raise UsageError(f"{spec} holds its own weights; leave out --weights")


def _load_file(spec: str, weights: str | os.PathLike[str] | None) -> LoadedModel:
    path = Path(spec)
    _check_file(spec, weights)
    content = read_content(path)
    if page := web_page(path):
        raise ModelError("model_file", page)
    if path.suffix != ".pt2":
        return _load_forward(spec, content)
    exported = load_archive(content, spec)
    provenance = {
        "spec": spec,
        "format": "torch.export",
        "runs_code": False,
        "file": spec,
        "sha256": hashlib.sha256(content).hexdigest(),
        "written_by_torch": exported.torch_version,
        "fixed_batch": exported.fixed_batch,
    }
    return LoadedModel(exported.module, provenance, runs_code=False, fixed_batch=exported.fixed_batch)


def _load_forward(spec: str, content: bytes) -> LoadedModel:
    """What runs outside PyTorch; the digest of the file stands for that of its weights."""
    form = Path(spec).suffix.removeprefix(".")
    model = open_onnx(content, spec) if form == "onnx" else load_skops(content, spec)
    digest = hashlib.sha256(content).hexdigest()
    provenance = {"spec": spec, "format": form, "runs_code": False, "file": spec, "sha256": digest}
    return LoadedModel(model, provenance | {"state_sha256": digest}, runs_code=False)


def _load_folder(spec: str, weights: str | os.PathLike[str] | None) -> LoadedModel:
    _check_own_weights(spec, weights)
    form, load = ("timm", load_timm) if is_timm(Path(spec)) else ("transformers", load_hugging_face)
    module, declared, digest = load(Path(spec))
    provenance = {"spec": spec, "format": form, "runs_code": False, "file": spec, "sha256": digest}
    return LoadedModel(module, provenance, runs_code=False, declared=declared)


def _load_timm(spec: str, weights: Path | None) -> LoadedModel:
    module, declared = build_timm(spec, weights)
    provenance = {"spec": spec, "format": "timm", "runs_code": False}
    return LoadedModel(module, provenance, runs_code=False, declared=declared)


def _load_code(spec: str) -> LoadedModel:
    place, _, name = spec.rpartition(":")
    module, source = _run(Path(place)) if place.endswith(".py") else _import(place, name)
    digest = None if source is None else hashlib.sha256(source).hexdigest()
    file = getattr(module, "__file__", None)
    network = _build(module, name, spec if place.endswith(".py") or file is None else f"{spec} ({file})")
    provenance = {
        "spec": spec,
        "format": "python",
        "runs_code": True,
        "file": file,
        "sha256": digest,
        "weights": None,
        "weights_sha256": None,
    }
    return LoadedModel(network, provenance, runs_code=True)


_failure = partial(ModelError, "user_code")


def _run(path: Path) -> tuple[ModuleType, bytes]:
    source = read_content(path)
    return run_file(path, source, _failure), source


def _import(place: str, name: str) -> tuple[ModuleType, bytes | None]:
    module = import_module(place, name, _failure)
    file = getattr(module, "__file__", None)
    return module, None if file is None else Path(file).read_bytes()


def _build(module: ModuleType, name: str, where: str) -> Any:
    """The network or estimator that a factory returns; messages call it `where`."""
    if not hasattr(module, name):
        there = [own for own, value in vars(module).items() if callable(value) and not own.startswith("_")]
        raise ModelError("user_code", f"{where} does not exist; the file has {', '.join(there[:10]) or 'nothing'}")
    factory = getattr(module, name)
    if is_estimator(factory):
        return factory
    if not isinstance(factory, nn.Module):
        _check_callable(factory, where)
    try:
        network = factory if isinstance(factory, nn.Module) else factory()
        if isinstance(network, nn.Module) and not isinstance(network, fx.GraphModule):
            network.eval()  # a new network is in training mode, which is nothing to warn of
    except (Exception, SystemExit) as error:
        raise ModelError(
            "user_code",
            f"{where} failed{line_of(error, module)}: {type(error).__name__}: {error}; relative paths start at "
            f"{Path.cwd()}",
        ) from error
    if not isinstance(network, nn.Module) and not is_estimator(network):
        raise ModelError("user_code", f"expected a torch.nn.Module, found that {where} returned {_kind(network)}")
    return network


def _check_callable(factory: Any, where: str) -> None:
    if not callable(factory):
        raise ModelError(
            "user_code",
            f"expected a function that returns a torch.nn.Module, found that {where} is {_kind(factory)}",
        )
    try:
        signature = inspect.signature(factory)
    except ValueError:
        return  # a builtin without a signature: calling it shows
    try:
        signature.bind()
    except TypeError as error:
        raise ModelError(
            "user_code",
            f"expected a function without arguments that returns a torch.nn.Module, found that {where} cannot be "
            f"called without arguments ({error})",
        ) from error


def _kind(value: Any) -> str:
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"
