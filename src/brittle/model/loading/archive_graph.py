"""The graph of an exported program: its texts must be of the forms that PyTorch writes, so that none can run as code.

PyTorch evaluates the text of symbolic sizes and compiles Python from the names in the graph.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any

from brittle.errors import ArtefactError, ModelError

_EMPTIED = {"metadata": {}, "guards_code": []}
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

_CONTAINERS = (None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")


def check_program(content: bytes, where: str) -> bytes:
    """The graph of a program, in JSON, without the parts that are not needed and that PyTorch would interpret.

    Raises:
        ArtefactError: a text in it is not of the form of its key, so that loading it could run code.
        ModelError: it is not JSON.
    """
    program = _without_metadata(read_json(content, where))
    if not isinstance(program, dict):
        raise TypeError("no object")
    _check_texts(program, "", where)
    return json.dumps(program).encode()


def read_json(content: bytes, where: str) -> Any:
    """The JSON value in `content`, which messages call `where`.

    Raises:
        ModelError: it is not JSON.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError("archive_format", f"{where} is not valid JSON ({error}); export the network again") from error


def _without_metadata(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _EMPTIED[key] if key in _EMPTIED else _without_metadata(one) for key, one in value.items()}
    return [_without_metadata(one) for one in value] if isinstance(value, list) else value


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
        start = value if len(value) <= 80 else f"{value[:80]}…"
        raise ArtefactError("archive_refused", f"{start!r} ({key or 'a name'}), {where}, could run code when loaded")


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
