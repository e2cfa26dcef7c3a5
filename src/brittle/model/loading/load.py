"""The model that a command line names: an exported archive, or a factory in code of the user's."""

from __future__ import annotations

import hashlib
import inspect
import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import safetensors
import torch
from safetensors.torch import load_model as load_safetensors
from torch import Tensor, nn

from brittle.errors import ArtefactError, ModelError, UsageError
from brittle.model.loading.archive import load_archive
from brittle.user_code import import_module, line_of, run_file

NAMED = 5
"""How many missing or unexpected weights a message names."""

PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
"""Endings of files that hold a pickle, which could run code; none is opened."""

_CONVERT = (
    'convert once with: python -c "import torch; from safetensors.torch import save_file; '
    "save_file(torch.load('{path}', weights_only=True), '{stem}.safetensors')\""
)
_EXPORT = (
    "export the network with torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), "
    "'model.pt2'), or name a factory: FILE.py:FUNCTION"
)


@dataclass(frozen=True)
class LoadedModel:
    """A model that can be scored, and where it comes from.

    Attributes:
        module: the network.
        provenance: spec, format, files and sha256 digests; JSON values only.
        runs_code: whether loading it ran code of the user's.
        fixed_batch: the only number of rows it takes, or None where that number is free.
    """

    module: nn.Module
    provenance: dict[str, Any]
    runs_code: bool
    fixed_batch: int | None = None


def load_model(spec: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None) -> LoadedModel:
    """Load the model that `spec` names.

    - `FILE.pt2`: an archive of `torch.export.save`; loading it runs no code.
    - `FILE.py:FACTORY`: a function in a file, called without arguments, that returns the network.
    - `PACKAGE.MODULE:FACTORY`: the same in an module that Python can import. The current folder is
      not searched for it.

    A factory may also be a network itself.

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
    names_code = ":" in spec and not Path(spec).is_file()
    loaded = _load_code(spec) if names_code else _load_file(spec, weights)
    if weights is not None:
        loaded = replace(loaded, provenance=loaded.provenance | _load_weights(loaded.module, Path(weights)))
    check_weights(loaded.module, spec)
    return replace(loaded, provenance=loaded.provenance | {"state_sha256": state_digest(loaded.module)})


def state_digest(module: nn.Module) -> str:
    """The sha256 over names, types, shapes and bytes of all parameters and buffers."""
    digest = hashlib.sha256()
    for name, tensor in _tensors(module):
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _load_file(spec: str, weights: str | os.PathLike[str] | None) -> LoadedModel:
    path = Path(spec)
    if path.suffix != ".pt2":
        raise _unknown(spec, path)
    if weights is not None:
        raise UsageError("weights", f"{spec} holds its own weights; leave out --weights")
    content = _read(path, "model")
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


def _unknown(spec: str, path: Path) -> UsageError | ArtefactError:
    if path.suffix in PICKLED:
        seen = f"{spec} is a {path.suffix} file, which holds a pickle that could run code and is not read"
        return ArtefactError("model_spec", f"{seen}; {_EXPORT}")
    if path.suffix == ".safetensors":
        seen = f"{spec} holds weights without a network; give it with --weights"
    elif path.suffix == ".py":
        seen = f"{spec} names no function in the file"
    else:
        seen = f"{spec!r} is neither FILE.pt2, FILE.py:FACTORY nor PACKAGE.MODULE:FACTORY"
    return UsageError("model_spec", f"{seen}; {_EXPORT}")


def _load_code(spec: str) -> LoadedModel:
    place, _, name = spec.rpartition(":")
    module, source = _run(Path(place)) if place.endswith(".py") else _import(place, name)
    digest = None if source is None else hashlib.sha256(source).hexdigest()
    where = f"{spec} (file {getattr(module, '__file__', None) or 'none'}, sha256 {digest or 'none'})"
    network = _build(module, name, where)
    provenance = {
        "spec": spec,
        "format": "python",
        "runs_code": True,
        "file": getattr(module, "__file__", None),
        "sha256": digest,
        "weights": None,
        "weights_sha256": None,
    }
    return LoadedModel(network, provenance, runs_code=True)


def _run(path: Path) -> tuple[ModuleType, bytes]:
    source = _read(path, "model")
    return run_file(path, source, ModelError, "factory_failed"), source


def _import(place: str, name: str) -> tuple[ModuleType, bytes | None]:
    module = import_module(place, name, ModelError, "factory_failed", "model_missing")
    file = getattr(module, "__file__", None)
    return module, None if file is None else Path(file).read_bytes()


def _build(module: ModuleType, name: str, where: str) -> nn.Module:
    """The network that a factory returns."""
    if not hasattr(module, name):
        there = [own for own, value in vars(module).items() if callable(value) and not own.startswith("_")]
        raise ModelError(
            "factory_missing", f"{where} does not exist; the file has {', '.join(there[:10]) or 'nothing'}"
        )
    factory = getattr(module, name)
    if isinstance(factory, nn.Module):
        return factory
    _check_callable(factory, where)
    try:
        network = factory()
    except (Exception, SystemExit) as error:
        raise ModelError(
            "factory_failed",
            f"{name} in {module.__file__} failed{line_of(error, module)}: {type(error).__name__}: {error}; "
            f"relative paths start at {Path.cwd()}",
        ) from error
    if not isinstance(network, nn.Module):
        raise ModelError("factory_type", f"{where} returned {_kind(network)}; a torch.nn.Module is needed")
    return network


def _check_callable(factory: Any, where: str) -> None:
    if not callable(factory):
        raise ModelError(
            "factory_type", f"{where} is {_kind(factory)}; a function that returns a torch.nn.Module is needed"
        )
    try:
        signature = inspect.signature(factory)
    except ValueError:
        return  # a builtin without a signature: calling it shows
    try:
        signature.bind()
    except TypeError as error:
        raise ModelError(
            "factory_type",
            f"{where} cannot be called without arguments ({error}); a function without arguments that returns a "
            f"torch.nn.Module is needed",
        ) from error


def _kind(value: Any) -> str:
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"


def _load_weights(module: nn.Module, path: Path) -> dict[str, Any]:
    """Load weights into `module` strictly; gives their provenance."""
    if path.suffix != ".safetensors":
        advice = _CONVERT.format(path=path, stem=path.with_suffix(""))
        seen = f"{path} is not a .safetensors file, the only form that is read"
        kind = ArtefactError if path.suffix in PICKLED else ModelError
        raise kind("weights_format", f"{seen}; {advice}")
    content = _read(path, "weights")
    try:
        missing, unexpected = load_safetensors(module, path, strict=False)
    except safetensors.SafetensorError as error:
        raise ArtefactError("weights_refused", f"{path} is not a sound .safetensors file: {error}") from error
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        seen = f"{path} holds types or shapes that PyTorch does not know ({reason})"
        raise ArtefactError("weights_refused", f"{seen}; save it again") from error
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1:]]
        raise ModelError("state_dict", f"{path} does not fit the network: {' '.join(lines[:NAMED])}") from error
    if missing or unexpected:
        found = ((keys, kind) for keys, kind in ((missing, "missing"), (unexpected, "unexpected")) if keys)
        seen = "; ".join(f"{len(keys)} {kind}: {', '.join(sorted(keys)[:NAMED])}" for keys, kind in found)
        raise ModelError("state_dict", f"{path} does not fit the network ({seen}); all names must agree")
    return {"weights": os.fspath(path), "weights_sha256": hashlib.sha256(content).hexdigest()}


def check_weights(module: nn.Module, name: str) -> None:
    """Raise where a parameter or buffer of `module` holds NaN or infinite values (minus infinity may mask in a buffer).

    Raises:
        ModelError: one does; the tensor is named.
    """
    parameters = {own for own, _ in module.named_parameters()}
    for tensor_name, tensor in _tensors(module):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        bad = ~tensor.detach().isfinite()
        if tensor_name not in parameters:
            # Attention masks are buffers that hold -inf on purpose.
            bad &= tensor != -torch.inf
        if count := int(bad.sum()):
            raise ModelError(
                "weights_nonfinite",
                f"{tensor_name} of {name} holds {count} NaN or infinite values among {tensor.numel()}; the "
                f"training has diverged or the file is damaged",
            )


def _tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _read(path: Path, what: str) -> bytes:
    if path.exists() and not path.is_file():
        raise ModelError(f"{what}_missing", f"{path} is no regular file; name the file itself")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{what}_missing", f"{path} cannot be read: {error.strerror or error}") from error
