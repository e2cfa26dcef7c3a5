"""Frozen dataclasses as JSON and back: every key known and there once, every value of its declared type.

Files that decide something are read by this module. `msgspec` checks the values; that no key is unknown, missing or
there twice, no text too long and no number infinite is checked here. Numbers survive the way there and back bit for
bit, because JSON is written with the shortest decimal that gives the same double.
"""

from __future__ import annotations

import json
import math
import typing
from collections import Counter
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from brittle.errors import BrittleError

MOST_BYTES = 1_000_000
"""Size of the largest file that is read."""

MOST_CHARACTERS = 1000
"""Length of the longest string that is read."""

MOST_WHOLE = 2**63 - 1
"""Largest whole number that is read."""

MOST_EXACT = 2**53
"""Up to here each whole number is one of double precision."""

WHOLE = "the file"
"""What the outermost object is called in messages."""

T = TypeVar("T")


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


class FormatProblem(ValueError):
    """The text is not what was asked for; the message says why."""


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
        FormatProblem: the text is not JSON, or holds a key, a type or a value that `kind` does not have.
    """
    return convert(kind, parse_json(text, limits))


def parse_json(text: str, limits: Limits = STRICT) -> object:
    """The JSON value that `text` holds, of no declared type yet.

    Raises:
        FormatProblem: the text is too long or not JSON, nests too deeply, says a key twice, or holds a string that is
            too long or a number that is not finite.
    """
    if len(text) > limits.size:
        raise FormatProblem(f"it has more than {limits.size:,} characters")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite, parse_int=_whole
        )
        _check_strings(value, limits)
    except FormatProblem:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"it is not valid JSON ({error})") from error
    return value


def convert(kind: Any, value: object, where: str = WHOLE) -> Any:
    """The dataclass `kind` that a JSON value holds.

    Args:
        kind: a dataclass, or the type of one of its fields: whatever `msgspec` knows, other dataclasses, tuples of
            them, and unions of them that differ by their keys.
        value: as `parse_json` gives it.
        where: what the value is called in messages.

    Raises:
        FormatProblem: the value has a key, a type or a value (one that the dataclass itself refuses included) that
            `kind` does not have.
    """
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    objects = [one for one in typing.get_args(kind) if is_dataclass(one)]
    if objects and isinstance(value, dict):
        return convert(max(objects, key=lambda one: len(_types(one).keys() & value.keys())), value, where)
    if objects and isinstance(value, list) and typing.get_origin(kind) is tuple:
        return tuple(convert(objects[0], item, f"{where}[{place}]") for place, item in enumerate(value))
    if objects and value is None and type(None) in typing.get_args(kind):
        return None
    if objects:
        raise FormatProblem(f"{where} must be an object or a list of some; found {value!a:.60}")
    try:
        found = msgspec.convert(value, kind, strict=True)
    except (msgspec.ValidationError, OverflowError) as error:
        raise FormatProblem(f"{where}: {error!s:.200}; found {value!a:.60}") from error
    _check_exact(found, value, where)
    return found


def _check_exact(found: Any, value: object, where: str) -> None:
    """Raise where a whole number was read as a fraction that need not be the same."""
    if isinstance(found, float) and isinstance(value, int) and abs(value) > MOST_EXACT:
        raise FormatProblem(f"{where}: {value} is a whole number that no fraction holds exactly")
    if isinstance(found, tuple | list) and isinstance(value, list):
        for one, own in zip(found, value, strict=True):
            _check_exact(one, own, where)


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise FormatProblem(f"{where} must be an object; found {value!a:.60}")
    types = _types(kind)
    if unknown := [key for key in value if key not in types]:
        raise FormatProblem(f"{where} has the unknown key {unknown[0]!a:.60}")
    if missing := [name for name in types if name not in value]:
        raise FormatProblem(f"{where} lacks {', '.join(missing)}; found {', '.join(value) or 'nothing'}")
    inside = "" if where == WHOLE else f"{where}."
    try:
        return kind(**{name: convert(part, value[name], f"{inside}{name}") for name, part in types.items()})
    except BrittleError as error:
        raise FormatProblem(f"{where}: {error.args[0]}") from error


@cache
def _types(kind: Any) -> dict[str, Any]:
    """The type of every field of a dataclass."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatProblem(f"the key {twice!a:.60} stands twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FormatProblem(f"{text:.60} is not a number")
    return number


def _whole(text: str) -> int:
    number = int(text)
    if abs(number) > MOST_WHOLE:
        raise FormatProblem(f"{text:.60} is larger than {MOST_WHOLE}")
    return number


def _check_strings(value: Any, limits: Limits) -> None:
    if isinstance(value, str):
        if len(value) > limits.characters or (limits.printable and value and not value.isprintable()):
            kind = "printable strings" if limits.printable else "strings"
            raise FormatProblem(f"expected {kind} of at most {limits.characters} characters; found {value!a:.60}")
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_strings(part, limits)
