"""The model that a command line names: a file that runs no code, or a factory in code of the user's."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import fx, nn

from brittle.errors import ArtefactError, ModelError, UsageError, listed
from brittle.model.arrays import is_estimator
from brittle.model.loading.archive import load_archive
from brittle.model.loading.declared import Declared
from brittle.model.loading.hugging_face import is_hugging_face, load_hugging_face
from brittle.model.loading.onnx_network import open_onnx
from brittle.model.loading.other_files import spec_error, web_page
from brittle.model.loading.timm_model import PREFIX, build_timm, is_timm, load_timm
from brittle.model.loading.user_code import import_module, line_of, run_file
from brittle.model.loading.weights import check_weights, check_weights_name, load_weights, read_content, state_digest


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
    spec, path = os.fspath(spec), None if weights is None else Path(weights)
    _check_form(spec, path)
    if spec.startswith(PREFIX):
        module, declared = build_timm(spec, path)
        loaded = LoadedModel(module, _provenance(spec, "timm"), runs_code=False, declared=declared)
    elif is_hugging_face(Path(spec)):
        form, load = ("timm", load_timm) if is_timm(Path(spec)) else ("transformers", load_hugging_face)
        module, declared, digest = load(Path(spec))
        loaded = LoadedModel(module, _provenance(spec, form, digest), runs_code=False, declared=declared)
    else:
        loaded = _load_file(spec) if _factory_file(spec) is None else _load_code(spec)
    if path is not None:
        if not isinstance(loaded.module, nn.Module):
            raise UsageError(f"{spec} is no network of PyTorch and has its own weights; leave out --weights")
        loaded = replace(loaded, provenance=loaded.provenance | load_weights(loaded.module, path))
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
    _check_form(spec, weights)
    file = _factory_file(spec) or Path(spec)
    known = spec.startswith(PREFIX) or is_hugging_face(Path(spec))
    if not known and not file.is_file() and (file == Path(spec) or file.suffix == ".py"):
        read_content(file)  # raises, with what may have been meant
    if weights is not None:
        check_weights_name(weights)
        if not weights.is_file():
            read_content(weights)


def _factory_file(spec: str) -> Path | None:
    """What stands before the name of a factory; None where `spec` names none."""
    return Path(spec.rpartition(":")[0]) if ":" in spec and not Path(spec).is_file() else None


def _check_form(spec: str, weights: Path | None) -> None:
    if spec.startswith(PREFIX) or _factory_file(spec) is not None:
        return
    if not is_hugging_face(Path(spec)) and Path(spec).suffix not in (".pt2", ".onnx", ".skops"):
        raise spec_error(spec)
    if weights is not None:
        raise UsageError(f"{spec} holds its own weights; leave out --weights")


def _provenance(spec: str, form: str, digest: str | None = None) -> dict[str, Any]:
    own = {} if digest is None else {"file": spec, "sha256": digest}
    return {"spec": spec, "format": form, "runs_code": False, **own}


def _load_file(spec: str) -> LoadedModel:
    path = Path(spec)
    content = read_content(path)
    if page := web_page(path):
        raise ModelError("model_file", page)
    digest = hashlib.sha256(content).hexdigest()
    if path.suffix != ".pt2":
        model = open_onnx(content, spec) if path.suffix == ".onnx" else _load_skops(content, spec)
        provenance = _provenance(spec, path.suffix.removeprefix("."), digest)  # the file stands for its weights
        return LoadedModel(model, provenance | {"state_sha256": digest}, runs_code=False)
    exported = load_archive(content, spec)
    provenance = _provenance(spec, "torch.export", digest) | {
        "written_by_torch": exported.torch_version,
        "fixed_batch": exported.fixed_batch,
    }
    return LoadedModel(exported.module, provenance, runs_code=False, fixed_batch=exported.fixed_batch)


def _load_skops(content: bytes, name: str) -> Any:
    """The classifier in a file of `skops.io.dump`, made of types that skops itself trusts.

    It does not trust trees and forests, because scikit-learn follows the numbers in them without looking whether they
    lead out of the tree.
    """
    try:
        skops = importlib.import_module("skops.io")
    except ImportError as error:
        raise ModelError(
            "not_installed", f"{name} needs skops, which is not installed; pip install 'brittle[sklearn]'"
        ) from error
    try:
        untrusted = skops.get_untrusted_types(data=content)
        model = None if untrusted else skops.loads(content)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError("model_file", f"skops cannot load {name}: {type(error).__name__}: {reason}") from error
    if untrusted:
        raise ArtefactError(
            "file_refused",
            f"{name} holds types that skops does not trust: {listed(untrusted, 3)}; if you trust the file, load it "
            f"in a function of yours with skops.io.load('{name}', trusted=[...]) and name it: FILE.py:FUNCTION",
        )
    if not is_estimator(model):
        raise ModelError(
            "model_file", f"{name} holds a {type(model).__name__}, no estimator; save the fitted classifier"
        )
    return model


_failure = partial(ModelError, "user_code")


def _load_code(spec: str) -> LoadedModel:
    place, _, name = spec.rpartition(":")
    if place.endswith(".py"):
        source = read_content(Path(place))
        module = run_file(Path(place), source, _failure)
    else:
        module = import_module(place, name, _failure)
        file = getattr(module, "__file__", None)
        source = None if file is None else Path(file).read_bytes()
    file = getattr(module, "__file__", None)
    network = _build(module, name, spec if place.endswith(".py") or file is None else f"{spec} ({file})")
    provenance = {
        "spec": spec,
        "format": "python",
        "runs_code": True,
        "file": file,
        "sha256": None if source is None else hashlib.sha256(source).hexdigest(),
        "weights": None,
        "weights_sha256": None,
    }
    return LoadedModel(network, provenance, runs_code=True)


def _build(module: ModuleType, name: str, where: str) -> Any:
    """The network or estimator that a factory returns; messages call it `where`."""
    if not hasattr(module, name):
        there = [own for own, value in vars(module).items() if callable(value) and not own.startswith("_")]
        raise _failure(f"{where} does not exist; the file has {', '.join(there[:10]) or 'nothing'}")
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
        raise _failure(
            f"{where} failed{line_of(error, module)}: {type(error).__name__}: {error}; relative paths start at "
            f"{Path.cwd()}"
        ) from error
    if not isinstance(network, nn.Module) and not is_estimator(network):
        raise _failure(f"expected a torch.nn.Module, found that {where} returned {_kind(network)}")
    return network


def _check_callable(factory: Any, where: str) -> None:
    expected = "expected a function without arguments that returns a torch.nn.Module, found that"
    if not callable(factory):
        raise _failure(f"{expected} {where} is {_kind(factory)}")
    try:
        signature = inspect.signature(factory)
    except ValueError:
        return  # a builtin without a signature: calling it shows
    try:
        signature.bind()
    except TypeError as error:
        raise _failure(f"{expected} {where} cannot be called without arguments ({error})") from error


def _kind(value: Any) -> str:
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"
