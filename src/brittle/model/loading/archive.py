"""Archives of `torch.export`, loaded without running code of theirs.

`torch.export.load` unpickles samples and custom objects, opens compiled libraries, evaluates the text of symbolic sizes
and compiles Python from the names in the graph. So each record must be tensors, or JSON whose texts are names, and
PyTorch loads a copy of exactly those records.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from brittle.errors import ArtefactError, ModelError

_PROGRAM = re.compile(r"models/model\.json|serialized_exported_program\.json")
_WEIGHT_LIST = re.compile(r"data/(weights|constants)/model_(weights|constants)_config\.json")
_CHECKPOINT = re.compile(r"data/(weights|constants|sample_inputs)/model\.pt|serialized_\w+\.pt")
_BYTES = re.compile(
    r"data/(weights/weight|constants/tensor)_\d+|archive_format|archive_version|byteorder|version|\.data/\w+"
    r"|extra(_files)?/.*"
)
"""Records that an archive may hold, in newer and in older forms; of the last kind no byte is interpreted."""

_EMPTIED = {"metadata": {}, "guards_code": []}
"""Parts of a program that are not needed to run it and that PyTorch interprets."""

_PLAIN = re.compile(r"[\w./:-]*", re.ASCII)
"""A text that cannot end the quotes which PyTorch puts around it."""

_NAME = re.compile(r"(?!\d)\w*", re.ASCII)
_OPERATOR = re.compile(
    r"(?!torch\.ops\.aten\.(from_file|save|load)\b|_operator\.(call|methodcaller|attrgetter)$)"
    r"(torch\.ops\.[a-z]\w*\.[A-Za-z_]\w*(\.\w+)?|_operator\.[a-z]\w*|math\.[a-z]\w*|torch\.sym_\w+)",
    re.ASCII,
)
"""Operators, but for those that touch files or call what they are given."""

_SIZE = re.compile(
    r"(?:(?:Symbol|Integer|Add|Mul|Mod|Max|Min|FloorDiv|CleanDiv|CeilDiv|ModularIndexing|PythonMod|Where|Eq|Ne|L[te]|"
    r"G[te]|Identity|floor|ceiling)(?=\()|'?[su]\d+'?|(?:positive|integer)=True|\d{1,9}|\*(?!\*)|[-+/%(), ]){1,500}"
)
"""The text of a symbolic size: sums, products and quotients of symbols and whole numbers, no powers."""

_ANY = re.compile(r".*", re.DOTALL)
_FORMS = {
    "name": _NAME, "as_name": _NAME, "target": _OPERATOR, "as_operator": _OPERATOR, "expr_str": _SIZE,
    "as_string": _ANY, "torch_version": _ANY,
}  # fmt: skip
"""The form of a text in a program by its key; of all others `_PLAIN`."""

_CONTAINERS = re.compile(r"builtins\.(tuple|list|dict)|collections\.OrderedDict")
_KEYS = re.compile(r"(?!.*__)[^\\]*")
"""Keys of a container: PyTorch imports what stands under `__enum__`."""


def load_archive(content: bytes, name: str) -> tuple[nn.Module, dict[str, Any]]:
    """The network in an archive of `torch.export.save`, and what the record of a run says of it.

    Args:
        content: the whole file.
        name: what to call it in messages.

    Returns:
        the network; `fixed_batch`, the only number of rows it takes, or None where that number is free; and
        `written_by_torch`, the version that wrote it, or None where the archive does not say.

    Raises:
        ArtefactError: the archive holds more than tensors and a graph of PyTorch operators.
        ModelError: the file is no such archive, or PyTorch cannot load it.
    """
    records = _read_records(content, name)
    try:
        program = _check_records(records, name)
        fixed_batch = _fixed_batch(program, name)
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ArtefactError("file_refused", f"{name} is malformed ({error!r:.80}); export the network again") from error
    copied, log, version = io.BytesIO(), logging.getLogger("torch.export"), program.get("torch_version")
    with zipfile.ZipFile(copied, "w", zipfile.ZIP_STORED) as archive:
        for record, own in records.items():
            archive.writestr(record, own)
    before, log.disabled = log.disabled, True  # it writes tracebacks to the terminal
    try:
        module = torch.export.load(io.BytesIO(copied.getvalue())).module()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            "model_file",
            f"PyTorch {torch.__version__} cannot load {name} (written by {version or 'an unknown version'}): "
            f"{type(error).__name__}: {reason}",
        ) from error
    finally:
        log.disabled = before
    return module, {"written_by_torch": version if isinstance(version, str) else None, "fixed_batch": fixed_batch}


def _read_records(content: bytes, name: str) -> dict[str, bytes]:
    """The records of a zip archive; they must be uncompressed, so that they cannot be larger than it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
            twice = len({member.filename for member in members}) < len(members)
            if packed or twice or sum(member.file_size for member in members) > len(content):
                raise ArtefactError(
                    "file_refused",
                    f"{name} is compressed, holds two records of one name, or claims more than its {len(content)} "
                    f"bytes; export the network again",
                )
            return {member.filename: archive.read(member) for member in members}
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error) as error:
        raise ModelError(
            "model_file",
            f"{name} is not an archive of torch.export ({error}); write one with "
            f"torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), 'model.pt2')",
        ) from error


def _check_records(records: dict[str, bytes], name: str) -> dict[str, Any]:
    """The program of an archive, of which every record may be read; put back without what PyTorch would interpret."""
    programs = []
    # Newer archives have a folder first.
    local = {one: one if re.match(r"extra_files/|\.data/|[^/]*$", one) else one.partition("/")[2] for one in records}
    empty = {local[record] for record, content in records.items() if not content}
    for record, own in local.items():
        where, content = f"{record!r} in {name}", records[record]
        if _PROGRAM.fullmatch(own):
            programs.append(_emptied(_read_json(content, where)))
            _check_texts(programs[-1], where)
            records[record] = json.dumps(programs[-1]).encode()
        elif _WEIGHT_LIST.fullmatch(own):
            for tensor, entry in _read_json(content, where)["config"].items():
                path, sizes = str(entry.get("path_name")), [size["as_int"] for size in entry["tensor_meta"]["sizes"]]
                pickled = entry.get("use_pickle") or not re.fullmatch(r"(weight|tensor)_\d+", path)
                # Of an empty record PyTorch makes zeros.
                if pickled or (0 not in sizes and empty & {f"data/weights/{path}", f"data/constants/{path}"}):
                    raise ArtefactError(
                        "file_refused", f"{tensor!r}, {where}, is no plain tensor, or has no bytes; export it again"
                    )
        elif _CHECKPOINT.fullmatch(own) and content:
            _read_records(content, where)
            try:
                torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
            except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, KeyError, EOFError) as error:
                raise ArtefactError("file_refused", f"{where} holds more than tensors, which could run code") from error
        elif not _CHECKPOINT.fullmatch(own) and not _BYTES.fullmatch(own):
            raise ArtefactError(
                "file_refused",
                f"{name} holds {record!r}, which is neither a tensor nor a graph of operators (compiled code and "
                f"custom objects are not loaded); export the plain network",
            )
    if len(programs) != 1:
        raise ModelError(
            "model_file", f"{name} holds {len(programs)} exported programs, not 1; write it with torch.export.save"
        )
    return programs[0]


def _read_json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ModelError("model_file", f"{where} is not valid JSON ({error}); export the network again") from error


def _check_texts(program: Any, where: str) -> None:
    """Raise unless every text in a program has the form of its key."""
    for key, text in _texts(program):
        fits = _is_structure(text) if key in ("in_spec", "out_spec") else _FORMS.get(key, _PLAIN).fullmatch(text)
        if not fits:
            raise ArtefactError(
                "file_refused", f"{text!r:.80} ({key or 'a name'}), {where}, could run code when loaded"
            )


def _emptied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _EMPTIED[key] if key in _EMPTIED else _emptied(one) for key, one in value.items()}
    return [_emptied(one) for one in value] if isinstance(value, list) else value


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a JSON value with the key under which it stands; keys themselves stand under none."""
    if isinstance(value, dict):
        for own, one in value.items():
            yield "", own
            yield from _texts(one, own)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, key)
    elif isinstance(value, str):
        yield key, value


def _is_structure(text: str) -> bool:
    """Whether a text describes nested tuples, lists and dictionaries."""
    try:
        texts = list(_texts(json.loads(text)))
    except ValueError:
        return False
    forms = {"type": _CONTAINERS, "context": _KEYS, "": _NAME}
    return all(key in forms and forms[key].fullmatch(one) for key, one in texts)


def _fixed_batch(program: Mapping[str, Any], name: str) -> int | None:
    """The size of the first axis of the only input, where it is a number."""
    module = program["graph_module"]
    inputs = [spec["user_input"]["arg"] for spec in module["signature"]["input_specs"] if "user_input" in spec]
    tensors = [arg["as_tensor"]["name"] for arg in inputs if "as_tensor" in arg]
    if len(inputs) != 1 or not tensors:
        raise ModelError(
            "input_shape",
            f"expected 1 input, a tensor; found that {name} takes {len(inputs)} inputs, {len(tensors)} of them tensors",
        )
    sizes = module["graph"]["tensor_values"][tensors[0]]["sizes"]
    return sizes[0].get("as_int") if sizes else None
