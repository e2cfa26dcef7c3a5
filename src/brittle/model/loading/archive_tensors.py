"""Whether every tensor of an exported program is read by its graph, and every byte of its records is of a tensor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from brittle.errors import ArtefactError

_RAW = re.compile(r"(.*/)?data/(weights/weight|constants/tensor)_\d+")
"""Names of records that are the bytes of tensors."""


def check_claimed(program: ExportedProgram, records: Mapping[str, bytes], name: str) -> None:
    """Raise where an archive holds more, or less, than the tensors of its program.

    Args:
        program: as it was loaded.
        records: of the archive it was loaded from.
        name: what to call it in messages.

    Raises:
        ArtefactError: it does; the tensor is named.
    """
    tensors = _tensors(program)
    signature = program.graph_signature
    read = {
        *signature.inputs_to_parameters.values(),
        *signature.inputs_to_buffers.values(),
        *signature.inputs_to_lifted_tensor_constants.values(),
    }
    if unread := sorted(tensors.keys() - read):
        raise _surplus(name, f"{len(unread)} tensors that its graph does not read, beginning with {unread[0]!r:.80}")
    raw = [len(content) for record, content in records.items() if _RAW.fullmatch(record)]
    storages = _by_storage(tensors)
    loaded = sum(size for size, _ in storages)
    if raw and loaded != sum(raw):  # PyTorch makes zeros of a tensor whose record is empty
        raise _surplus(name, f"{sum(raw)} bytes of tensors where its graph reads {loaded}")
    for size, named in storages:
        if free := size - _claimed(size, named.values()):
            raise _surplus(
                name,
                f"{free} bytes beside {next(iter(named))!r:.80}, as where a part of a larger tensor was exported",
            )


def storage_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the storages of `tensors`, those they share counted once."""
    return sum(size for size, _ in _by_storage(dict(enumerate(tensors))))


def _tensors(program: ExportedProgram) -> dict[str, Tensor]:
    found = {**program.state_dict, **program.constants}
    return {own: tensor for own, tensor in found.items() if isinstance(tensor, Tensor)}


def _by_storage(tensors: Mapping[Any, Tensor]) -> list[tuple[int, dict[Any, Tensor]]]:
    """The size of every storage, with the tensors that lie in it by name; empty ones are left out."""
    found: dict[int, dict[Any, Tensor]] = {}
    for own, tensor in tensors.items():
        if tensor.untyped_storage().nbytes():
            found.setdefault(tensor.untyped_storage().data_ptr(), {})[own] = tensor
    return [(next(iter(one.values())).untyped_storage().nbytes(), one) for one in found.values()]


def _claimed(size: int, tensors: Iterable[Tensor]) -> int:
    """How many bytes of a storage of `size` bytes are of one of the `tensors` in it."""
    tensors = list(tensors)
    if any(tensor.numel() * tensor.element_size() == size and tensor.is_contiguous() for tensor in tensors):
        return size
    claimed = torch.zeros(size, dtype=torch.bool)
    for tensor in tensors:
        width = tensor.element_size()
        strides = [*(width * stride for stride in tensor.stride()), 1]
        claimed.as_strided((*tensor.shape, width), strides, width * tensor.storage_offset()).fill_(True)
    return int(claimed.sum())


def _surplus(name: str, found: str) -> ArtefactError:
    return ArtefactError(
        "archive_surplus", f"{name} holds {found}; export the network again, from tensors of their own (tensor.clone())"
    )
