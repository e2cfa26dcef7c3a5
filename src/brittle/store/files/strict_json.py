"""Frozen dataclasses as JSON and back: every key known and there once, every value of its declared type.

Files that decide something are read by this module. Numbers survive the way there and back bit for bit, because JSON
is written with the shortest decimal that gives the same double.
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from brittle.errors import BrittleError

MOST_BYTES = 1_000_000
"""Size of the largest file that is read."""

MOST_DEPTH = 8
"""Levels of brackets inside one another."""

MOST_CHARACTERS = 1000
"""Length of the longest string that is read."""

MOST_WHOLE = 2**63 - 1
"""Largest whole number that is read."""

WHOLE = "the file"
"""What the outermost object is called in messages."""

Scalar = str | int | float | bool | None
"""What a free parameter may be."""

T = TypeVar("T")

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


class FormatProblem(ValueError):
    """The text is not what was asked for; the message says why."""


def dump(record: Any) -> str:
    """`record`, a dataclass, as JSON with its keys in the order of the fields.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(asdict(record), indent=1, allow_nan=False) + "\n"


def read_text(path: Path) -> str:
    """The text of the file `path`.

    Raises:
        FormatProblem: it is larger than `MOST_BYTES`, or not UTF-8.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise FormatProblem(f"it has more than {MOST_BYTES:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatProblem(f"it is not UTF-8 at byte {error.start}") from error


def parse(kind: type[T], text: str) -> T:
    """The dataclass `kind` that `text` holds.

    Fields may be numbers, strings, booleans, tuples of one length or of any, mappings from strings to scalars, other
    dataclasses, and unions of these with None.

    Raises:
        FormatProblem: the text is too long or not JSON, nests too deeply, says a key twice, or has a key, a type or a
            value (one that the dataclass itself refuses included) that `kind` does not have.
    """
    if len(text) > MOST_BYTES:
        raise FormatProblem(f"it has more than {MOST_BYTES:,} characters")
    _check_depth(text)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except FormatProblem:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"it is not valid JSON ({error})") from error
    return _convert(kind, value, WHOLE)


def _check_depth(text: str) -> None:
    depth = deepest = 0
    for match in _BRACKETS.finditer(_STRINGS.sub("", text)):
        depth += 1 if match.group() in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        raise FormatProblem(f"brackets are nested {deepest} deep; at most {MOST_DEPTH} are read")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatProblem(f"the key {_shown(twice)} stands twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise FormatProblem(f"{name} is not a number")


def _convert(kind: Any, value: Any, where: str) -> Any:
    """`value` as `kind`; `where` says in a message which value is meant."""
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _union(arguments, value, where)
    if origin is tuple:
        return _tuple(arguments, value, where)
    if origin in (dict, Mapping):
        _require(isinstance(value, dict), "an object", value, where)
        return {_string(key, where): _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    return _SCALARS[kind](value, where)


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    _require(isinstance(value, dict), "an object", value, where)
    wanted = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    for key in value:
        if key not in names:
            raise FormatProblem(f"{where} has the unknown key {_shown(key)}")
    if missing := [name for name in names if name not in value]:
        raise FormatProblem(f"{where} lacks {', '.join(missing)}")
    parts = {name: _convert(wanted[name], value[name], name) for name in names}
    try:
        return kind(**parts)
    except BrittleError as error:
        raise FormatProblem(str(error) if where == WHOLE else f"{where}: {error}") from error


def _union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """The first of `kinds` that `value` is; they differ by their JSON type."""
    problem = None
    for kind in kinds:
        try:
            return _convert(kind, value, where)
        except FormatProblem as error:
            # The problem of the part that matched farthest is that of the object; None explains nothing.
            problem = problem or (None if kind is types.NoneType else error)
    raise problem or FormatProblem(f"{where} is {_shown(value)}, which it cannot be")


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    _require(isinstance(value, list), "a list", value, where)
    each = [kinds[0]] * len(value) if len(kinds) == 2 and kinds[1] is Ellipsis else list(kinds)
    if len(each) != len(value):
        raise FormatProblem(f"{where} has {len(value)} entries; {len(each)} are needed")
    pairs = enumerate(zip(each, value, strict=True))
    return tuple(_convert(kind, item, f"{where}[{number}]") for number, (kind, item) in pairs)


def _string(value: Any, where: str) -> str:
    fits = isinstance(value, str) and len(value) <= MOST_CHARACTERS and (value.isprintable() or not value)
    _require(fits, f"a printable string of at most {MOST_CHARACTERS} characters", value, where)
    return value


def _whole(value: Any, where: str) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_WHOLE
    _require(fits, "a whole number", value, where)
    return value


def _number(value: Any, where: str) -> float:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53
    _require(whole or (isinstance(value, float) and math.isfinite(value)), "a finite number", value, where)
    return float(value)


def _boolean(value: Any, where: str) -> bool:
    _require(isinstance(value, bool), "true or false", value, where)
    return value


def _none(value: Any, where: str) -> None:
    _require(value is None, "null", value, where)


_SCALARS: dict[Any, Callable[[Any, str], Any]] = {
    str: _string,
    int: _whole,
    float: _number,
    bool: _boolean,
    types.NoneType: _none,
}


def _require(fits: bool, expected: str, value: Any, where: str) -> None:
    if not fits:
        raise FormatProblem(f"{where} must be {expected}; found {_shown(value)}")


def _shown(value: Any) -> str:
    """The start of a value from a file, escaped."""
    kind = type(value).__name__
    return f"{value!a:.60}" if isinstance(value, str | float | bool | types.NoneType) else f"a value of type {kind}"
