"""Digest of the weights of a model, by which it is recognised."""

import hashlib
import io
import zipfile
from typing import Any

import torch
from torch import Tensor, nn


def state_digest(module: nn.Module) -> str:
    """Return the sha256 over all parameters and buffers; of a frozen TorchScript module over its code and constants."""
    digest = hashlib.sha256()
    tensors = [*module.named_parameters(), *module.named_buffers()]
    for name, tensor in ((name, dense(tensor)) for name, tensor in tensors):
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    if not tensors and isinstance(module, torch.jit.ScriptModule):
        with zipfile.ZipFile(io.BytesIO(module.save_to_buffer())) as archive:
            for name in sorted(archive.namelist()):
                if "/constants" in name or name.endswith((".py", "data.pkl")):
                    digest.update(archive.read(name))
    return digest.hexdigest()


def digest_of(model: Any) -> str | None:
    """Return what a model is known by, `state_digest` of a network or `digest` of an estimator; None for a function."""
    return state_digest(model) if isinstance(model, nn.Module) else getattr(model, "digest", None)


def dense(tensor: Tensor) -> Tensor:
    """Return the same numbers on the CPU, and with bytes, as weights of MKLDNN and sparse ones have none."""
    plain = tensor.detach().cpu()
    return plain if plain.layout == torch.strided else plain.to_dense()
