"""Archives of `torch.export`, loaded without running code of theirs.

`torch.export.load` unpickles sample inputs, legacy weights, pickled tensors and custom objects, opens compiled
libraries, evaluates the text of symbolic sizes and compiles Python from the names in the graph. So the archive is
read here first: each record must be on a short list and hold nothing but tensors and plain names, and what PyTorch
loads is a copy of exactly those records.
"""

from __future__ import annotations

import ast
import io
import json
import logging
import pickle
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from brittle.errors import ArtefactError, ModelError
from brittle.model.loading.archive_tensors import check_claimed, storage_bytes
from brittle.model.loading.zip_layout import SurplusBytesError, check_layout


@dataclass(frozen=True)
class Exported:
    """A network out of an archive.

    Attributes:
        module: the network.
        fixed_batch: the only number of rows it takes, or None where that number is free.
        torch_version: the version that wrote it, or None where the archive does not say.
    """

    module: nn.Module
    fixed_batch: int | None
    torch_version: str | None


def load_archive(content: bytes, name: str) -> Exported:
    """The network in an archive of `torch.export.save`.

    Args:
        content: the whole file.
        name: what to call it in messages.

    Raises:
        ArtefactError: the archive holds more than tensors and a graph of PyTorch operators.
        ModelError: the file is no such archive, or PyTorch cannot load it.
    """
    records = _checked(_records(content, name), name)
    program = next((json.loads(one) for record, one in records.items() if _local(record) in _PROGRAMS), None)
    if program is None:
        raise ModelError("archive_format", f"{name} holds no exported program; write it with torch.export.save(...)")
    written_by = program.get("torch_version")
    try:
        with _quiet():
            exported = torch.export.load(io.BytesIO(_packed(records)))
            check_claimed(exported, records, name)
            module = exported.module()
    except ArtefactError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            "archive_format",
            f"PyTorch {torch.__version__} cannot load {name} (written by {written_by or 'an unknown version'}): "
            f"{type(error).__name__}: {reason}",
        ) from error
    try:
        return Exported(module, _fixed_batch(program, name), written_by if isinstance(written_by, str) else None)
    except (LookupError, TypeError, AttributeError) as error:
        raise ArtefactError("archive_refused", f"the graph in {name} is malformed: {error!r}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyTorch from writing the traceback of what it could not read to the terminal."""
    log = logging.getLogger("torch.export")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


_PROGRAMS = ("models/model.json", "serialized_exported_program.json")
_STRIPPED = {"metadata": {}, "guards_code": []}
"""Parts of a program that are not needed to run it and that PyTorch interprets; they are emptied."""

_PLAIN = re.compile(r"[\w./:-]*", re.ASCII)
_NAME = re.compile(r"(?!\d)\w*", re.ASCII)
_OPERATOR = re.compile(
    r"torch\.ops\.[a-z]\w*\.[A-Za-z_]\w*(\.\w+)?|_operator\.[a-z]\w*|math\.[a-z]\w*|torch\.sym_\w+", re.ASCII
)
_NOT_PURE = re.compile(r"torch\.ops\.aten\.(from_file|save|load)\b.*|_operator\.(call|methodcaller|attrgetter)")
"""Operators that touch files, or that call what they are given."""

_SYMBOLIC = re.compile(
    "Symbol|Integer|Float|Rational|Add|Mul|Pow|Mod|Max|Min|Abs|Eq|Ne|Lt|Le|Gt|Ge|And|Or|Not|Equality|Unequality|"
    "StrictLessThan|LessThan|StrictGreaterThan|GreaterThan|floor|ceiling|FloorDiv|ModularIndexing|Where|PythonMod|"
    "CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift|RShift|PowByNatural|FloatPow|FloatTrueDiv|IntTrueDiv|TruncToFloat|"
    "TruncToInt|RoundToInt|RoundDecimal|ToFloat|Identity"
)
"""What symbolic sizes are made of."""

_POWERS = re.compile("Pow|PowByNatural|FloatPow|LShift")
_LONGEST_SIZE, _MOST_POWERS, _LARGEST_EXPONENT = 2000, 3, 8
"""Characters, powers and exponents in such a text; more would let a short text keep a computer busy for ever."""

_SYMBOLIC_NODES = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.Call,
    ast.keyword,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
)
_CHECKPOINT = re.compile(
    r"[^/]+/((?P<data>data/\d+)|data\.pkl|version|byteorder|\.format_version|\.storage_alignment|\.data/serialization_id)"
)
"""Records of a checkpoint of PyTorch; `data/N` is a storage."""

_CONTAINERS = (None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")


def _records(content: bytes, name: str) -> dict[str, bytes]:
    """The records of an archive; they must lie in it uncompressed, so that they cannot be larger than it."""
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
    packed = [member.filename for member in members if member.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise ArtefactError("archive_refused", f"{packed[0]!r} in {name} is compressed; PyTorch writes plain records")
    total = sum(member.file_size for member in members)
    if total > size:
        raise ArtefactError("archive_refused", f"the records of {name} claim {total} bytes, the file has {size}")


def _local(record: str) -> str:
    """The name of a record without the folder that newer archives put first."""
    first, _, rest = record.partition("/")
    return rest if rest and first not in ("extra_files", ".data") else record


def _checked(records: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    """The records that are needed, each as its rule leaves it."""
    roots = {record.removesuffix(_local(record)) for record in records}
    if len(roots) > 1:
        raise ArtefactError(
            "archive_surplus", f"{name} holds the records of {len(roots)} programs: {sorted(roots)!r:.80}"
        )
    kept = {}
    for record, content in records.items():
        rule = next((rule for pattern, rule in _RULES if pattern.fullmatch(_local(record))), None)
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


def _as_it_is(content: bytes, where: str) -> bytes:
    return content


def _payloads(content: bytes, where: str) -> bytes:
    """The list of tensors; none may be pickled."""
    for tensor, entry in _json(content, where)["config"].items():
        if entry.get("use_pickle") or not re.fullmatch(r"(weight|tensor)_\d+", str(entry.get("path_name"))):
            raise ArtefactError("archive_refused", f"{tensor!r}, {where}, is not a plain tensor")
    return content


def _tensors(content: bytes, where: str) -> bytes:
    """A checkpoint that PyTorch unpickles; it must load as tensors only, and its tensors must be all it holds."""
    if content:
        records = _records(content, where)
        try:
            found = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
        except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, KeyError, EOFError) as error:
            raise ArtefactError("archive_refused", f"{where} holds more than tensors, which could run code") from error
        _check_checkpoint(records, found, where)
    return content


def _check_checkpoint(records: Mapping[str, bytes], found: Any, where: str) -> None:
    """Raise where a checkpoint holds records that none of its tensors reads."""
    names = [_CHECKPOINT.fullmatch(record) for record in records]
    held = sum(len(content) for one, content in zip(names, records.values(), strict=True) if one and one["data"])
    read = storage_bytes(leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, Tensor))
    if not all(names) or held != read:
        odd = next((record for record, one in zip(records, names, strict=True) if not one), None)
        seen = f"{held} bytes of tensors and reads {read}" if odd is None else f"{odd!r:.80}, which it does not read"
        raise ArtefactError("archive_surplus", f"{where} holds {seen}; export the network again")


def _program(content: bytes, where: str) -> bytes:
    """The graph without what is interpreted and not needed; its texts must be what they claim to be."""
    program = _stripped(_json(content, where))
    if not isinstance(program, dict):
        raise TypeError("no object")
    _check_texts(program, "", where)
    return json.dumps(program).encode()


_RULES: tuple[tuple[re.Pattern[str], Callable[[bytes, str], bytes]], ...] = (
    (re.compile("|".join(map(re.escape, _PROGRAMS))), _program),
    (re.compile(r"data/(weights|constants)/model_(weights|constants)_config\.json"), _payloads),
    (re.compile(r"data/(weights|constants|sample_inputs)/model\.pt"), _tensors),
    (re.compile(r"serialized_(state_dict|constants|example_inputs)\.pt"), _tensors),
    (re.compile(r"data/(weights/weight|constants/tensor)_\d+"), _as_it_is),
    (re.compile(r"archive_format|archive_version|byteorder|version|\.data/\w+|extra(_files)?/.*"), _as_it_is),
)
"""What an archive may hold: form of a record's name, and what is done with its content."""


def _json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError("archive_format", f"{where} is not valid JSON ({error}); export the network again") from error


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _STRIPPED[key] if key in _STRIPPED else _stripped(one) for key, one in value.items()}
    return [_stripped(one) for one in value] if isinstance(value, list) else value


def _check_texts(value: Any, key: str, where: str) -> None:
    """Raise where a text in the program is not of the form that its key asks for."""
    if isinstance(value, dict):
        for own, one in value.items():
            _check_text(own, "", where)
            _check_texts(one, own, where)
    elif isinstance(value, list):
        for one in value:
            _check_texts(one, key, where)
    elif isinstance(value, str):
        _check_text(value, key, where)


def _check_text(value: str, key: str, where: str) -> None:
    if not _FORMS.get(key, _PLAIN.fullmatch)(value):
        shown = value if len(value) <= 80 else f"{value[:80]}…"
        raise ArtefactError("archive_refused", f"{shown!r} ({key or 'a name'}), {where}, could run code when loaded")


def _is_operator(value: str) -> bool:
    return bool(_OPERATOR.fullmatch(value)) and not _NOT_PURE.fullmatch(value)


def _is_size(value: str) -> bool:
    """Whether a text is arithmetic on symbols that costs little to evaluate."""
    try:
        nodes = list(ast.walk(ast.parse(value, mode="eval"))) if len(value) <= _LONGEST_SIZE else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    powers = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift)]
    exponents = [node.right for node in powers] + [argument for call in calls for argument in _exponents_of(call)]
    return (
        bool(nodes)
        and all(isinstance(node, _SYMBOLIC_NODES) for node in nodes)
        and all(isinstance(call.func, ast.Name) and _SYMBOLIC.fullmatch(call.func.id) for call in calls)
        and len(exponents) <= _MOST_POWERS
        and all(_is_small(exponent) for exponent in exponents)
    )


def _exponents_of(call: ast.Call) -> list[ast.expr]:
    """What a function raises to, or shifts by."""
    raises = isinstance(call.func, ast.Name) and _POWERS.fullmatch(call.func.id)
    return [*call.args[1:], *(keyword.value for keyword in call.keywords)] if raises else []


def _is_small(exponent: ast.expr) -> bool:
    """Whether an exponent is a number, and a small one, so that no tower of powers is computed."""
    if isinstance(exponent, ast.Call) and isinstance(exponent.func, ast.Name) and exponent.func.id == "Integer":
        return len(exponent.args) == 1 and _is_small(exponent.args[0])
    if isinstance(exponent, ast.UnaryOp):
        return _is_small(exponent.operand)
    return (
        isinstance(exponent, ast.Constant) and isinstance(exponent.value, int) and exponent.value <= _LARGEST_EXPONENT
    )


def _is_structure(value: str) -> bool:
    """Whether a text describes nested tuples, lists and dictionaries."""
    try:
        version, spec = json.loads(value)
    except (ValueError, RecursionError, TypeError):
        return False
    return isinstance(version, int) and _is_container(spec)


def _is_container(spec: Any) -> bool:
    return (
        isinstance(spec, dict)
        and spec.get("type") in _CONTAINERS
        and "__enum__" not in str(spec.get("context"))
        and isinstance(spec.get("children_spec"), list)
        and all(_is_container(child) for child in spec["children_spec"])
    )


_FORMS: dict[str, Callable[[str], Any]] = {
    "name": _NAME.fullmatch,
    "as_name": _NAME.fullmatch,
    "target": _is_operator,
    "as_operator": _is_operator,
    "expr_str": _is_size,
    "in_spec": _is_structure,
    "out_spec": _is_structure,
    "as_string": lambda value: True,
    "torch_version": lambda value: True,
}
"""The form of a text by its key; all others cannot end the quotes PyTorch puts around them."""


def _packed(records: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for record, content in records.items():
            archive.writestr(record, content)
    return file.getvalue()


def _fixed_batch(program: Mapping[str, Any], name: str) -> int | None:
    """The size of the first axis of the only input, where it is a number."""
    module = program["graph_module"]
    inputs = [spec["user_input"]["arg"] for spec in module["signature"]["input_specs"] if "user_input" in spec]
    tensors = [arg["as_tensor"]["name"] for arg in inputs if "as_tensor" in arg]
    if len(inputs) != 1 or not tensors:
        raise ModelError("inputs", f"{name} takes {len(inputs)} inputs, {len(tensors)} of them tensors; 1 is needed")
    sizes = module["graph"]["tensor_values"][tensors[0]]["sizes"]
    return sizes[0].get("as_int") if sizes else None
