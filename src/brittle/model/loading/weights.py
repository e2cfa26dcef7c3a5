"""The weights of a network: loaded from a `.safetensors` file, checked to be finite, and their digest."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_model as load_safetensors
from torch import Tensor, nn

from brittle.errors import ArtefactError, ModelError
from brittle.model.loading.named_code import first_line
from brittle.store.writing import nearby

NAMED = 5
"""How many missing or unexpected weights a message names."""

PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
"""Endings of files that hold a pickle, which could run code; none is opened."""

WRAPPERS = ("module", "_orig_mod")
"""What `DataParallel` and `torch.compile` put before the names of the weights of the network that they wrap."""


def check_weights_name(path: Path) -> None:
    """Raise where a file of weights is called as one of another format."""
    if path.suffix != ".safetensors":
        kind = ArtefactError if path.suffix in PICKLED else ModelError
        raise kind(
            "weights_format",
            f"{path} is not a .safetensors file, the only form that is read; convert once with: "
            f'python -c "import torch; from safetensors.torch import save_file; '
            f"save_file(torch.load('{path}', weights_only=True), '{path.with_suffix('')}.safetensors')\"",
        )


def load_weights(module: nn.Module, path: Path) -> dict[str, Any]:
    """Load a `.safetensors` file into `module`, and give the path and the sha256 of the file for the record.

    Weights of a network that was wrapped by `DataParallel` or `torch.compile` fit the network without the wrapper.
    """
    check_weights_name(path)
    content = read_content(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = list(file.keys())
        missing, unexpected = load_safetensors(_wrapped(module, names), path, strict=False)
    except (safetensors.SafetensorError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise ArtefactError(
            "file_refused", f"{path} is not a sound .safetensors file ({first_line(error)}); save it again"
        ) from error
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1:]]
        raise ModelError("weights", f"{path} does not fit the network: {' '.join(lines[:NAMED])}") from error
    if missing or unexpected:
        kinds = ((missing, "missing"), (unexpected, "unexpected"))
        found = "; ".join(f"{len(keys)} {kind}: {', '.join(sorted(keys)[:NAMED])}" for keys, kind in kinds if keys)
        raise ModelError("weights", f"{path} does not fit the network ({found}); all names must agree")
    return {"weights": os.fspath(path), "weights_sha256": hashlib.sha256(content).hexdigest()}


def _wrapped(module: nn.Module, names: list[str]) -> nn.Module:
    """`module`, as deep inside other modules as `names` say and its own names do not."""
    own = list(module.state_dict())
    for wrapper in WRAPPERS:
        start = f"{wrapper}."
        if names and all(name.startswith(start) for name in names) and not any(name.startswith(start) for name in own):
            inner = _wrapped(module, [name.removeprefix(start) for name in names])
            return nn.ModuleDict({wrapper: inner})
    return module


def state_digest(module: nn.Module) -> str:
    """The sha256 over names, types, shapes and bytes of all parameters and buffers; of a frozen TorchScript module,
    which has none, over its code and constants."""
    digest = hashlib.sha256()
    tensors = [*module.named_parameters(), *module.named_buffers()]
    for name, tensor in ((name, dense(one)) for name, one in tensors):
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    if not tensors and isinstance(module, torch.jit.ScriptModule):
        with zipfile.ZipFile(io.BytesIO(module.save_to_buffer())) as archive:
            for name in sorted(archive.namelist()):
                if "/constants" in name or name.endswith((".py", "data.pkl")):
                    digest.update(archive.read(name))
    return digest.hexdigest()


def digest_of(model: Any) -> str | None:
    """What a model is known by, `state_digest` of a network or `digest` of an estimator; None for a function."""
    return state_digest(model) if isinstance(model, nn.Module) else getattr(model, "digest", None)


def check_weights(module: nn.Module, name: str) -> None:
    """Raise where a parameter or buffer holds NaN or infinite values (minus infinity may mask in a buffer)."""
    for tensor_name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        numbers = dense(tensor)
        bad = ~numbers.isfinite()
        if not isinstance(tensor, nn.Parameter):
            bad &= numbers != -torch.inf  # attention masks are buffers that hold it on purpose
        if count := int(bad.sum()):
            raise ModelError(
                "weights",
                f"{tensor_name} of {name} holds {count} NaN or infinite values among {tensor.numel()}; the "
                f"training has diverged or the file is damaged",
            )


def dense(tensor: Tensor) -> Tensor:
    """The same numbers on the CPU, and with bytes, as weights of MKLDNN and sparse ones have none."""
    plain = tensor.detach().cpu()
    return plain if plain.layout == torch.strided else plain.to_dense()


def read_content(path: Path) -> bytes:
    """The bytes of a file."""
    if path.exists() and not path.is_file():
        raise ModelError("unreadable", f"{path} is no regular file; name the file itself")
    try:
        return path.read_bytes()
    except OSError as error:
        meant = "" if path.exists() else nearby(path, lambda one: one.suffix == path.suffix)
        raise ModelError("unreadable", f"{path} cannot be read: {error.strerror or error}{meant}") from error
