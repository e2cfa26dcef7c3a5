"""Frozen dataclasses as JSON and back: every key known and there once, every value of its declared type and range.

Files that decide something are read by this module. `msgspec` checks types and ranges; what it lets through is checked
here: keys that are unknown or stand twice, long texts, and whole numbers that a fraction rounds. Numbers survive the
way there and back bit for bit, because JSON is written with the shortest decimal that gives the same double.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from brittle.errors import BrittleError

MOST_WHOLE = 2**63 - 1
"""Largest whole number that is read."""

Count = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]
"""How many there are."""

Share = Annotated[float, Meta(gt=0, lt=1)]
"""A number between 0 and 1, both excluded."""

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
"""A sha256 as 64 hexadecimal digits."""

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What a file may hold at most.

    Attributes:
        size: bytes, and characters, of the whole text.
        characters: of one string.
        printable: whether a string must be printable.
    """

    size: int = 1_000_000
    characters: int = 1000
    printable: bool = True


STRICT = Limits()
"""Limits of a file that decides something by itself."""


class FormatProblem(ValueError):
    """The text is not what was asked for; the message says why."""


def plain(record: Any) -> Any:
    """A record as JSON values.

    Raises:
        ValueError: a number is not finite.
    """
    return json.loads(json.dumps(asdict(record), allow_nan=False, default=msgspec.to_builtins))


def dump(record: Any) -> str:
    """A record as JSON with its keys in the order of the fields.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(plain(record), indent=1) + "\n"


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


def convert(kind: type[T], value: Any) -> T:
    """The dataclass `kind` that a JSON value holds.

    Raises:
        FormatProblem: the value has a key, a type or a value (one that the dataclass itself refuses included) that
            `kind` does not have.
    """
    try:
        found = msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, BrittleError) as error:
        raise FormatProblem(f"{error!s:.400}") from error
    _check_same(value, plain(found), "")
    return found


def _check_same(value: Any, read: Any, where: str) -> None:
    """Raise where `value` has another key than was read, or a whole number that a fraction rounded."""
    if isinstance(value, dict):
        if differing := list(value.keys() ^ read.keys()):
            kind = "has the unknown key" if differing[0] in value else "lacks the key"
            raise FormatProblem(f"{where or 'it'} {kind} {differing[0]!a:.60}")
        for key, one in value.items():
            _check_same(one, read[key], f"{where}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for place, (one, other) in enumerate(zip(value, read, strict=True)):
            _check_same(one, other, f"{where}[{place}]")
    elif value != read:
        raise FormatProblem(f"{where}: {value} is a whole number that no fraction holds exactly")


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
