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
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from brittle.errors import BrittleError

MOST_BYTES = 1_000_000
"""Size of the largest file that is read."""

MOST_DEPTH = 8
"""Levels of brackets inside one another."""

MOST_CHARACTERS = 1000
"""Length of the longest string that is read."""


@dataclass(frozen=True)
class Limits:
    """What a file may hold at most.

    Attributes:
        size: bytes, and characters, of the whole text.
        characters: of one string.
        printable: whether a string must be printable.
    """

    size: int = MOST_BYTES
    characters: int = MOST_CHARACTERS
    printable: bool = True


STRICT = Limits()
"""Limits of a file that decides something by itself."""


@dataclass(frozen=True)
class Rule:
    """What a value must hold beyond its type; stands in `typing.Annotated`.

    Attributes:
        holds: whether a value of the type does.
        expected: what is expected, in words.
    """

    holds: Callable[[Any], bool]
    expected: str


MOST_WHOLE = 2**63 - 1
"""Largest whole number that is read."""

WHOLE = "the file"
"""What the outermost object is called in messages."""

T = TypeVar("T")

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


class FormatProblem(ValueError):
    """The text is not what was asked for; the message says why.

    Attributes:
        where: the value that is meant, such as `model.bounds`; empty for the text itself.
        problem: what is wrong with it.
    """

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(f"{where} {problem}" if where else problem)
        self.where, self.problem = where, problem


def dump(record: Any) -> str:
    """`record`, a dataclass, as JSON with its keys in the order of the fields.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(asdict(record), indent=1, allow_nan=False) + "\n"


def read_text(path: Path, limits: Limits = STRICT) -> str:
    """The text of the file `path`.

    Raises:
        FormatProblem: it is larger than the limit, or not UTF-8.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(limits.size + 1)
    if len(content) > limits.size:
        raise FormatProblem(f"it has more than {limits.size:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatProblem(f"it is not UTF-8 at byte {error.start}") from error


def parse(kind: type[T], text: str, limits: Limits = STRICT) -> T:
    """The dataclass `kind` that `text` holds.

    Raises:
        FormatProblem: as `parse_json` and `convert`.
    """
    return convert(kind, parse_json(text, limits), limits)


def parse_json(text: str, limits: Limits = STRICT) -> object:
    """The JSON value that `text` holds, of no declared type yet.

    Raises:
        FormatProblem: the text is too long or not JSON, nests too deeply, says a key twice, or holds NaN.
    """
    if len(text) > limits.size:
        raise FormatProblem(f"it has more than {limits.size:,} characters")
    _check_depth(text)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except FormatProblem:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"it is not valid JSON ({error})") from error


def convert(kind: type[T], value: object, limits: Limits = STRICT) -> T:
    """The dataclass `kind` that a JSON value holds.

    Fields may be numbers, strings, booleans, tuples of one length or of any, mappings from strings to scalars, other
    dataclasses, literals, and unions of these with None; each may carry a `Rule`.

    Raises:
        FormatProblem: the value has a key, a type or a value (one that the dataclass itself refuses included) that
            `kind` does not have.
    """
    return _convert(kind, value, WHOLE, limits)


def _check_depth(text: str) -> None:
    depth = deepest = 0
    for match in _BRACKETS.finditer(_STRINGS.sub("", text)):
        depth += 1 if match.group() in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        raise FormatProblem(f"brackets are nested {deepest} deep; at most {MOST_DEPTH} are read")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatProblem(f"the key {_shorten(twice)} stands twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise FormatProblem(f"{name} is not a number")


def _convert(kind: Any, value: Any, where: str, limits: Limits) -> Any:
    """`value` as `kind`; `where` says in a message which value is meant."""
    if is_dataclass(kind):
        return _dataclass(kind, value, where, limits)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _ruled(arguments, value, where, limits)
    if origin is Literal:
        _require(value in arguments and isinstance(value, str), f"one of {', '.join(arguments)}", value, where)
        return value
    if origin in (types.UnionType, typing.Union):
        return _union(arguments, value, where, limits)
    if origin is tuple:
        return _tuple(arguments, value, where, limits)
    if origin in (dict, Mapping):
        return _mapping(arguments[1], value, where, limits)
    return _string(value, where, limits) if kind is str else _SCALARS[kind](value, where)


def _dataclass(kind: Any, value: Any, where: str, limits: Limits) -> Any:
    _require(isinstance(value, dict), "an object", value, where)
    wanted = typing.get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]
    for key in value:
        if key not in names:
            raise FormatProblem(f"has the unknown key {_shorten(key)}", where)
    if missing := [name for name in names if name not in value]:
        raise FormatProblem(f"lacks {', '.join(missing)}; found {', '.join(value) or 'nothing'}", where)
    inside = "" if where == WHOLE else f"{where}."
    parts = {name: _convert(wanted[name], value[name], f"{inside}{name}", limits) for name in names}
    try:
        return kind(**parts)
    except BrittleError as error:
        raise FormatProblem(str(error) if where == WHOLE else f"{where}: {error}") from error


def _ruled(arguments: tuple[Any, ...], value: Any, where: str, limits: Limits) -> Any:
    kind, *rules = arguments
    found = _convert(kind, value, where, limits)
    for rule in rules:
        _require(rule.holds(found), rule.expected, value, where)
    return found


def _union(kinds: tuple[Any, ...], value: Any, where: str, limits: Limits) -> Any:
    """The first of `kinds` that `value` is; they differ by their JSON type, objects by their keys."""
    problem = None
    for kind in sorted(kinds, key=lambda kind: -_shared_keys(kind, value)):
        try:
            return _convert(kind, value, where, limits)
        except FormatProblem as error:
            # The problem of the part that matched farthest is that of the object; None explains nothing.
            problem = problem or (None if kind is types.NoneType else error)
    raise problem or FormatProblem(f"is {_shorten(value)}, which it cannot be", where)


def _shared_keys(kind: Any, value: Any) -> int:
    """How many keys of `value` are fields of `kind`."""
    names = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    return len(names & value.keys()) if isinstance(value, dict) else 0


def _tuple(kinds: tuple[Any, ...], value: Any, where: str, limits: Limits) -> tuple[Any, ...]:
    _require(isinstance(value, list), "a list", value, where)
    each = [kinds[0]] * len(value) if len(kinds) == 2 and kinds[1] is Ellipsis else list(kinds)
    if len(each) != len(value):
        raise FormatProblem(f"has {len(value)} entries; {len(each)} are needed", where)
    pairs = enumerate(zip(each, value, strict=True))
    return tuple(_convert(kind, item, f"{where}[{number}]", limits) for number, (kind, item) in pairs)


def _mapping(kind: Any, value: Any, where: str, limits: Limits) -> dict[str, object]:
    _require(isinstance(value, dict), "an object", value, where)
    return {_string(key, where, limits): _convert(kind, item, f"{where}.{key}", limits) for key, item in value.items()}


def _string(value: Any, where: str, limits: Limits) -> str:
    fits = isinstance(value, str) and len(value) <= limits.characters
    kind = "printable string" if limits.printable else "string"
    fits = fits and (not limits.printable or not value or value.isprintable())
    _require(fits, f"a {kind} of at most {limits.characters} characters", value, where)
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
    int: _whole,
    float: _number,
    bool: _boolean,
    types.NoneType: _none,
}


def _require(fits: bool, expected: str, value: Any, where: str) -> None:
    if not fits:
        raise FormatProblem(f"must be {expected}; found {_shorten(value)}", where)


def _shorten(value: Any) -> str:
    """The start of a value from a file, escaped."""
    kind = type(value).__name__
    return f"{value!a:.60}" if isinstance(value, str | float | bool | types.NoneType) else f"a value of type {kind}"
