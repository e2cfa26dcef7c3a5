"""Frozen dataclasses as JSON and back: every key known and there once, every value of its declared type and range.

Files that decide something are read by this module. `msgspec` checks types and ranges; what it lets through is checked
here: keys that are unknown, missing or stand twice, and texts that are long. Numbers survive the way there and back bit
for bit, because JSON is written with the shortest decimal that gives the same double.
"""

import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from brittle.errors import BrittleError

MOST_BYTES, MOST_CHARACTERS = 1_000_000, 1000  # of a file that decides something, and of a string in it
MOST_LEVELS = 100  # lists and objects in each other
MOST_WHOLE = 2**63 - 1  # largest whole number that is read
Count = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]  # a number of things, 0 or more
Share = Annotated[float, Meta(gt=0, lt=1)]  # a number between 0 and 1, both excluded
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]  # a sha256 as 64 hexadecimal digits

T = TypeVar("T")


class FormatProblem(ValueError):
    """The text is not what was asked for; the message says why."""


def plain(record: Any) -> Any:
    """Return a record as JSON values."""
    return json.loads(json.dumps(asdict(record), allow_nan=False, default=msgspec.to_builtins))


def dump(record: Any) -> str:
    """Return a record as JSON with its keys in the order of the fields."""
    return json.dumps(plain(record), indent=1) + "\n"


def read_text(path: Path, max_bytes: int = MOST_BYTES) -> str:
    """Return the text of the file `path`, of so many bytes at most."""
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise FormatProblem(f"it has more than {max_bytes:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatProblem(f"it is not UTF-8 at byte {error.start}") from error


def parse(kind: type[T], text: str) -> T:
    """Return the dataclass `kind` that `text` holds; every string in it is short and printable."""
    value = parse_json(text)
    _check_strings(value)
    return convert(kind, value)


def parse_json(text: str) -> object:
    """Return the JSON value that `text` holds, of no declared type yet."""
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite, parse_int=_parse_integer
        )
    except FormatProblem:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"it is not valid JSON ({error})") from error
    _check_levels(value)
    return value


def convert(kind: type[T], value: Any) -> T:
    """Return the dataclass `kind` that a JSON value holds."""
    try:
        record = msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, UnicodeEncodeError, BrittleError) as error:
        raise FormatProblem(f"{error!s:.400}") from error
    _check_keys(value, plain(record), "it")
    return record


def _check_keys(value: Any, read: Any, path: str) -> None:
    """Raise where `value` has another key than was read."""
    if not isinstance(value, dict | list):
        return
    if isinstance(value, dict) and (differing := [*(value.keys() ^ read.keys())]):
        kind = "has the unknown key" if differing[0] in value else "lacks the key"
        raise FormatProblem(f"{path} {kind} {differing[0]!a:.60}")
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        _check_keys(part, read[key], f"{path}.{key}")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value_by_key = dict(pairs)
    if len(value_by_key) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatProblem(f"the key {twice!a:.60} stands twice")
    return value_by_key


def _check_levels(value: object) -> None:
    """Raise where lists and objects stand in each other so deep that whatever walks them would end Python's stack."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        holders = [part for part in level if isinstance(part, dict | list)]
        level = [part for holder in holders for part in (holder.values() if isinstance(holder, dict) else holder)]
    if level:
        raise FormatProblem(f"it has more than {MOST_LEVELS} levels")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FormatProblem(f"{text:.60} is not a number")
    return number


def _parse_integer(text: str) -> int:
    """Parse a whole number; raise where its size is above `MOST_WHOLE`."""
    number = int(text)
    if abs(number) > MOST_WHOLE:
        raise FormatProblem(f"{text:.60} is larger than {MOST_WHOLE}")
    return number


def _check_strings(value: Any) -> None:
    if isinstance(value, str):
        if len(value) > MOST_CHARACTERS or (value and not value.isprintable()):
            raise FormatProblem(
                f"expected printable strings of at most {MOST_CHARACTERS} characters; found {value!a:.60}"
            )
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_strings(part)
