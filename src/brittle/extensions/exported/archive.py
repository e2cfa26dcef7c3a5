"""Archives of `torch.export`, loaded without running their code.

`torch.export.load` unpickles samples and custom objects, opens compiled libraries, evaluates the text of symbolic sizes
and compiles Python from the names in the graph. So each record must be tensors, or JSON whose texts are names, and
PyTorch loads a copy of exactly those records.
"""

import io
import json
import logging
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from brittle.errors import ArtefactError, ModelError, first_line
from brittle.model.loading.load import LoadedModel, Source, read_file
from brittle.model.loading.weights import check_uncompressed

_PROGRAM = "models/model.json"
_NETWORK_RECORDS = re.compile(
    r"models/model\.json|data/(weights|constants)/(model_(weights|constants)_config\.json|(weight|tensor)_\d+)"
    r"|archive_(format|version)|byteorder|\.data/\w+"
)
"""Records of the network; only the JSON among them is interpreted."""

_IGNORED_RECORDS = re.compile(r"data/sample_inputs/model\.pt|extra/.*")  # records that are not read

_WRITE = (
    "write it with torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), 'model.pt2') of "
    "PyTorch 2.8 or later"
)

_EMPTY_PARTS = {"metadata": {}, "guards_code": []}  # parts that PyTorch interprets and no run needs
_PLAIN = re.compile(r"[\w./:-]*", re.ASCII)  # a text that cannot end the quotes which PyTorch puts around it

_NAME = re.compile(r"(?!\d)\w*", re.ASCII)
_OPERATOR = re.compile(
    r"(?!torch\.ops\.aten\.(from_file|save|load)\b|_operator\.(call|methodcaller|attrgetter)$)"
    r"(torch\.ops\.[a-z]\w*\.[A-Za-z_]\w*(\.\w+)?|_operator\.[a-z]\w*|math\.[a-z]\w*|torch\.sym_\w+)",
    re.ASCII,
)
"""Operators, except those that touch files or call an argument."""

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
"""The form of a text in a program by its key; `_PLAIN` for all others."""

_CONTAINERS = re.compile(r"builtins\.(tuple|list|dict)|collections\.OrderedDict")
_KEYS = re.compile(r"(?!.*__)[^\\]*")  # keys of a container: PyTorch imports the value of `__enum__`


def load_archive(content: bytes, name: str) -> tuple[nn.Module, dict[str, Any]]:
    """Return the network in an archive of `torch.export.save`, and its facts for the record of a run.

    These are `fixed_batch`, the only number of rows it takes, None where it is free, and `written_by_torch`, the
    version that wrote it, None where the archive lacks it.
    """
    records = _read_records(content, name)
    try:
        program = _empty_parts(json.loads(records[_PROGRAM]))
        for key, text in _texts(program):
            is_allowed = _is_structure if key in ("in_spec", "out_spec") else _FORMS.get(key, _PLAIN).fullmatch
            if not is_allowed(text):
                raise ArtefactError("file_refused", f"{text!r:.80} ({key or 'a name'}) in {name} could run code")
        for kind in ("weights", "constants"):
            _check_tensors(records, kind, name)
        fixed_batch = _fixed_batch(program, name)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ArtefactError("file_refused", f"{name} is malformed ({error!r:.80}); export the network again") from error
    records |= {_PROGRAM: json.dumps(program).encode(), "data/sample_inputs/model.pt": b""}
    network_file, log, version = io.BytesIO(), logging.getLogger("torch.export"), program.get("torch_version")
    with zipfile.ZipFile(network_file, "w", zipfile.ZIP_STORED) as archive:
        for record, data in records.items():
            archive.writestr(f"model/{record}", data)
    network_file.seek(0)
    was_disabled, log.disabled = log.disabled, True  # PyTorch logs tracebacks to the terminal
    try:
        module = torch.export.load(network_file).module()
    except Exception as error:
        raise ModelError(
            "model_file",
            f"PyTorch {torch.__version__} cannot load {name} (written by {version or 'an unknown version'}): "
            f"{type(error).__name__}: {first_line(error)}",
        ) from error
    finally:
        log.disabled = was_disabled
    return module, {"written_by_torch": version if isinstance(version, str) else None, "fixed_batch": fixed_batch}


def _read_records(content: bytes, name: str) -> dict[str, bytes]:
    """Return the records of an archive by name below its folder, uncompressed, so that none is larger than the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            check_uncompressed(members, len(content), name)
            records = {member.filename.partition("/")[2]: archive.read(member) for member in members}
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error) as error:
        raise ModelError("model_file", f"{name} is not an archive of torch.export ({error}); {_WRITE}") from error
    if _PROGRAM not in records:
        raise ModelError("model_file", f"{name} holds no network as PyTorch 2.8 and later write it; {_WRITE}")
    for record in records:
        if not _NETWORK_RECORDS.fullmatch(record) and not _IGNORED_RECORDS.fullmatch(record):
            raise ArtefactError(
                "file_refused",
                f"{name} holds {record!r}, which is neither a tensor nor a graph of operators (compiled code and "
                f"custom objects are not loaded); export the plain network",
            )
    return {record: data for record, data in records.items() if _NETWORK_RECORDS.fullmatch(record)}


def _check_tensors(records: dict[str, bytes], kind: str, name: str) -> None:
    """Raise unless each weight or constant is a plain tensor with bytes: PyTorch turns an empty record into zeros."""
    for tensor, entry in json.loads(records[f"data/{kind}/model_{kind}_config.json"])["config"].items():
        path, sizes = entry["path_name"], [size["as_int"] for size in entry["tensor_meta"]["sizes"]]
        is_pickled = entry.get("use_pickle") or not re.fullmatch(r"(weight|tensor)_\d+", path)
        if is_pickled or (0 not in sizes and not records[f"data/{kind}/{path}"]):
            raise ArtefactError(
                "file_refused", f"{tensor!r} in {name} is no plain tensor, or has no bytes; export the network again"
            )


def _empty_parts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _EMPTY_PARTS[key] if key in _EMPTY_PARTS else _empty_parts(part) for key, part in value.items()}
    return [_empty_parts(part) for part in value] if isinstance(value, list) else value


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a JSON value with its key; keys themselves have an empty one."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield "", name
            yield from _texts(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, key)
    elif isinstance(value, str):
        yield key, value


def _is_structure(text: str) -> bool:
    try:
        texts = list(_texts(json.loads(text)))
    except ValueError:
        return False
    forms = {"type": _CONTAINERS, "context": _KEYS, "": _NAME}
    return all(key in forms and forms[key].fullmatch(string) for key, string in texts)


def _fixed_batch(program: Mapping[str, Any], name: str) -> int | None:
    """Return the size of the first axis of the only input, where it is a number."""
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


def _load(name: str, _: Path | None) -> LoadedModel:
    content, facts = read_file(name)
    module, archive_facts = load_archive(content, facts["file"])
    return LoadedModel(module, facts | {"format": "torch.export"} | archive_facts)


PT2 = Source(_load)  # archives of `torch.export.save`, `FILE.pt2`
