"""The records of an archive of `torch.export`: only tensors and graphs, each checked before PyTorch reads it."""

from __future__ import annotations

import io
import pickle
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from brittle.errors import ArtefactError, ModelError
from brittle.model.loading.archive_graph import check_program, read_json
from brittle.model.loading.archive_tensors import storage_bytes
from brittle.model.loading.zip_layout import SurplusBytesError, check_layout

PROGRAMS = ("models/model.json", "serialized_exported_program.json")
"""Names of the record that holds the program, in newer and in older archives."""

_CHECKPOINT = re.compile(
    r"[^/]+/((?P<data>data/\d+)|data\.pkl|version|byteorder|\.format_version|\.storage_alignment|\.data/serialization_id)"
)
"""Records of a checkpoint of PyTorch; `data/N` is a storage."""


def read_records(content: bytes, name: str) -> dict[str, bytes]:
    """The records of an archive by their names; they must be uncompressed, so that they cannot be larger than it.

    Args:
        content: the whole file.
        name: what messages call it.

    Raises:
        ArtefactError: it holds bytes of no record, compressed records or two of one name.
        ModelError: it is no archive.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members, len(content), name)
            check_layout(content, archive)
            return {member.filename: archive.read(member) for member in members}
    except SurplusBytesError as error:
        raise ArtefactError(
            "archive_surplus", f"{name} holds more than its records: {error}; export it again"
        ) from error
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as error:
        raise ModelError(
            "archive_format",
            f"{name} is not an archive of torch.export ({error}); write one with "
            f"torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), 'model.pt2')",
        ) from error


def _check_members(members: list[zipfile.ZipInfo], size: int, name: str) -> None:
    if len({member.filename for member in members}) < len(members):
        raise ArtefactError("archive_refused", f"{name} holds two records of one name")
    compressed = [member.filename for member in members if member.compress_type != zipfile.ZIP_STORED]
    if compressed:
        raise ArtefactError(
            "archive_refused", f"{compressed[0]!r} in {name} is compressed; PyTorch writes plain records"
        )
    total = sum(member.file_size for member in members)
    if total > size:
        raise ArtefactError("archive_refused", f"the records of {name} claim {total} bytes, the file has {size}")


def local_name(record: str) -> str:
    """The name of a record without the folder that newer archives put first."""
    first, _, rest = record.partition("/")
    return rest if rest and first not in ("extra_files", ".data") else record


def check_records(records: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    """The records, each checked and cut down by the rule for its name.

    Raises:
        ArtefactError: a record is neither a tensor nor a graph of operators, or there are several programs.
        ModelError: a record is not JSON where it should be.
    """
    roots = {record.removesuffix(local_name(record)) for record in records}
    if len(roots) > 1:
        raise ArtefactError(
            "archive_surplus", f"{name} holds the records of {len(roots)} programs: {sorted(roots)!r:.80}"
        )
    kept = {}
    for record, content in records.items():
        rule = next((rule for pattern, rule in _RULES if pattern.fullmatch(local_name(record))), None)
        if rule is None:
            raise ArtefactError(
                "archive_refused",
                f"{name} holds {record!r}, which is neither a tensor nor a graph of operators (compiled code and "
                f"custom objects are not loaded); export the plain network",
            )
        try:
            kept[record] = rule(content, f"{record!r} in {name}")
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ArtefactError("archive_refused", f"{record!r} in {name} is malformed: {error!r}") from error
    return kept


def _unchanged(content: bytes, where: str) -> bytes:
    return content


def _check_list(content: bytes, where: str) -> bytes:
    """The list of tensors; none may be pickled."""
    for tensor, entry in read_json(content, where)["config"].items():
        if entry.get("use_pickle") or not re.fullmatch(r"(weight|tensor)_\d+", str(entry.get("path_name"))):
            raise ArtefactError("archive_refused", f"{tensor!r}, {where}, is not a plain tensor")
    return content


def _check_tensors(content: bytes, where: str) -> bytes:
    """A checkpoint that PyTorch unpickles; it must load as tensors only, and its tensors must be all it holds."""
    if content:
        records = read_records(content, where)
        try:
            tensors = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
        except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, KeyError, EOFError) as error:
            raise ArtefactError("archive_refused", f"{where} holds more than tensors, which could run code") from error
        _check_checkpoint(records, tensors, where)
    return content


def _check_checkpoint(records: Mapping[str, bytes], tensors: Any, where: str) -> None:
    """Raise where a checkpoint holds records that none of its tensors reads."""
    names = [_CHECKPOINT.fullmatch(record) for record in records]
    held = sum(len(content) for one, content in zip(names, records.values(), strict=True) if one and one["data"])
    read = storage_bytes(leaf for leaf in pytree.tree_leaves(tensors) if isinstance(leaf, Tensor))
    if not all(names) or held != read:
        odd = next((record for record, one in zip(records, names, strict=True) if not one), None)
        found = f"{held} bytes of tensors and reads {read}" if odd is None else f"{odd!r:.80}, which it does not read"
        raise ArtefactError("archive_surplus", f"{where} holds {found}; export the network again")


_RULES: tuple[tuple[re.Pattern[str], Callable[[bytes, str], bytes]], ...] = (
    (re.compile("|".join(map(re.escape, PROGRAMS))), check_program),
    (re.compile(r"data/(weights|constants)/model_(weights|constants)_config\.json"), _check_list),
    (re.compile(r"data/(weights|constants|sample_inputs)/model\.pt"), _check_tensors),
    (re.compile(r"serialized_(state_dict|constants|example_inputs)\.pt"), _check_tensors),
    (re.compile(r"data/(weights/weight|constants/tensor)_\d+"), _unchanged),
    (re.compile(r"archive_format|archive_version|byteorder|version|\.data/\w+|extra(_files)?/.*"), _unchanged),
)
"""What an archive may hold: form of a record's name, and what is done with its content."""


def write_records(records: Mapping[str, bytes]) -> bytes:
    """An archive of these records, uncompressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for record, content in records.items():
            archive.writestr(record, content)
    return file.getvalue()
