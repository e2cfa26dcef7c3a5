"""The files of a run folder, read without trust: records in JSON, and the shards that the manifest names."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from brittle.errors import ArtefactError, StorageError, printable
from brittle.store.files.plain_parquet import ERRORS, opened, reason

MOST_BYTES = 1 << 25
"""Size of the largest record that is read."""

ROWS = 1 << 8
"""Rows that are unpacked at a time."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHARD = r"(points|scores|counterexamples)-\d{5,}\.parquet"
_STRAY = re.compile(rf"{_SHARD}|\.({_SHARD}|run\.json|manifest\.json)(\..*)?\.tmp", re.DOTALL)
"""Names of shards, and of the files of a run while they are written."""


@dataclass(frozen=True)
class Shard:
    """A shard file as the manifest names it.

    Attributes:
        kind: of its rows, such as `points`.
        file: its name in the run folder.
        bytes: its size.
        sha256: digest of its bytes, 64 hexadecimal digits.
    """

    kind: str
    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Fault:
    """A file of a run folder that is not as it should be.

    Attributes:
        file: its name in the run folder.
        problem: what is wrong with it.
        stray: whether it is no part of the run, so that readers pass over it.
    """

    file: str
    problem: str
    stray: bool = False

    def __str__(self) -> str:
        return printable(f"{self.file}: {self.problem}")


class ShardError(StorageError):
    """A shard file is not what was written; `problem` says what is wrong with it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            "shard_damaged", f"{path} {problem}; score again with --resume, which computes only what is lost"
        )
        self.problem = problem


def read_record(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a run folder.

    Raises:
        StorageError: it is missing, too large, or no JSON object.
        ArtefactError: it is a link out of the folder.
    """
    if not path.is_file():
        raise StorageError("no_run", f"{path} is missing; {path.parent} is not a run folder")
    _check_inside(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise StorageError("unreadable", f"{path} cannot be read ({error.strerror})") from error
    if len(content) > MOST_BYTES:
        raise StorageError(
            "run_damaged", f"{path} has more than {MOST_BYTES:,} bytes, which no run writes; score again"
        )
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise StorageError("run_damaged", f"{path} is not valid JSON ({error}); score again") from error
    if not isinstance(found, dict):
        raise StorageError("run_damaged", f"{path} holds no JSON object, but {_kind(found)}; score again")
    return found


def check_provenance(provenance: Mapping[str, Any], path: Path) -> None:
    """Raise where a part of `run.json` that others rely on is of another kind than it is written as.

    Raises:
        StorageError: one is; it is named.
    """
    for place, fits, expected in _PROVENANCE:
        for where, value in _found(provenance, place.split("."), ""):
            if not fits(value):
                raise StorageError(
                    "run_damaged", f"{where} in {path} must be {expected}; found {value!r:.60}; score again"
                )


def shards_of(manifest: Mapping[str, Any], path: Path, kinds: Iterable[str]) -> tuple[Shard, ...]:
    """The shard files that a manifest names, in order.

    Args:
        manifest: the content of the file.
        path: of the manifest, for messages.
        kinds: of shard files; the last may be absent from a shard, the others may not.

    Raises:
        ArtefactError: a name leads out of the folder.
        StorageError: it is not of this form.
    """
    kinds = tuple(kinds)
    listed = manifest.get("shards")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise StorageError("run_damaged", f"{path} holds no list of shards; score again")
    numbers = [one.get("number", place) for place, one in enumerate(listed)]
    if not all(_is_whole(number) and number >= 0 for number in numbers) or len(set(numbers)) < len(numbers):
        raise StorageError("run_damaged", f"{path} does not number its shards one by one; score again")
    return tuple(
        _shard(one.get(kind), kind, number, path)
        for number, one in zip(numbers, listed, strict=True)
        for kind in kinds
        if kind in one or kind != kinds[-1]
    )


def read_bytes(folder: Path, shard: Shard) -> bytes:
    """The bytes of a shard file, which are those that were written.

    Raises:
        ArtefactError: the file is a link out of the folder.
        ShardError: it is missing, or its size or digest is another.
        StorageError: it cannot be read.
    """
    path = folder / shard.file
    if not path.is_file():
        raise ShardError(path, "is missing")
    _check_inside(path)
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size == shard.bytes else b""
    except OSError as error:
        raise StorageError("unreadable", f"{path} cannot be read ({error.strerror})") from error
    if len(content) != shard.bytes:
        raise ShardError(path, f"has {size} bytes, not the {shard.bytes} of the manifest")
    if hashlib.sha256(content).hexdigest() != shard.sha256:
        raise ShardError(path, "is not what was written (its sha256 differs)")
    return content


def decode(content: bytes, schema: pa.Schema, path: Path) -> pa.Table:
    """The table in the bytes of a shard file, read by this thread alone.

    Arrow's own threads may let go of `content` after the read is over; where Python is ending by then, that aborts it
    (https://github.com/apache/arrow/issues/49942). `pq.read_table` starts them whatever it is told.

    Raises:
        ArtefactError: it has an extension type, or unpacks to far more than it holds.
        ShardError: it is not Parquet, its columns are others, or a page or a text in it is damaged.
    """
    try:
        with opened(content, str(path)) as file:
            if not file.schema.equals(schema):
                raise ShardError(path, f"has other columns than a run writes ({_differing(file.schema, schema)})")
            return pa.Table.from_batches(list(file.batches(ROWS)), schema)
    except ERRORS as error:
        raise ShardError(path, f"cannot be read as Parquet ({reason(error)})") from error


def strays(folder: Path, shards: Iterable[Shard]) -> list[Fault]:
    """The files of `folder` that are named as shards or temporary files and that the manifest does not name."""
    known = {shard.file for shard in shards}
    there = sorted(path.name for path in folder.iterdir() if is_stray(path.name))
    problem = "not in the manifest, so no part of the run; what ended the writer left it, and score --resume removes it"
    return [Fault(name, problem, stray=True) for name in there if name not in known]


def is_stray(name: str) -> bool:
    """Whether a file of a run folder that the manifest does not name is named as a shard or a temporary file of one."""
    return bool(_STRAY.fullmatch(name))


def _shard(entry: Any, kind: str, number: int, path: Path) -> Shard:
    found: dict[str, Any] = entry if isinstance(entry, dict) else {}
    file, size, digest = (found.get(key) for key in ("file", "bytes", "sha256"))
    sized = _is_whole(size) and (size or 0) >= 0
    if not isinstance(file, str) or not sized or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise StorageError("run_damaged", f"{path} does not say name, size and sha256 of {kind} {number}; score again")
    if Path(file).name != file or file in (".", "..") or "\\" in file or "\0" in file:
        raise ArtefactError(
            "path_escape", f"{path} names the file {file!r:.100}, which is not in the run folder; nothing of it is read"
        )
    if file != (expected := f"{kind}-{number:05d}.parquet"):
        raise StorageError("run_damaged", f"{path} names {file!r:.100} where {expected} is written; score again")
    return Shard(kind, file, found["bytes"], digest)


def _check_inside(path: Path) -> None:
    """Raise where a file is a link that leads out of its folder."""
    if path.is_symlink() and path.resolve().parent != path.parent.resolve():
        raise ArtefactError(
            "path_escape",
            f"{path} is a link to {path.resolve()}, out of the run folder; copy the file itself into the folder",
        )


def _differing(found: pa.Schema, expected: pa.Schema) -> str:
    """The first column that is another, in words."""
    theirs, ours = ([f"{one.name}: {one.type}" for one in schema] for schema in (found, expected))
    pairs = zip_longest(theirs, ours, fillvalue="nothing")
    return next((f"{its!r:.80} instead of {mine!r}" for its, mine in pairs if its != mine), "some may be null")


def _found(value: Any, keys: list[str], where: str) -> list[tuple[str, Any]]:
    """The values at a place, each with its name; `*` is every entry of a list, `key?` one that may be absent."""
    if not keys:
        return [(where, value)]
    key, rest = keys[0].removesuffix("?"), keys[1:]
    if key == "*":
        return [found for number, one in enumerate(value) for found in _found(one, rest, f"{where}[{number}]")]
    if keys[0].endswith("?") and value.get(key) is None:
        return []
    return _found(value.get(key), rest, f"{where}.{key}" if where else key)


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_flat(value: Any) -> bool:
    return isinstance(value, dict) and not any(isinstance(one, dict) for one in value.values())


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _is_range(value: Any) -> bool:
    return _are_numbers(value) and len(value) == 2 and value[0] < value[1]


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 < value < 1


_PROVENANCE = (
    ("confidence?", _is_share, "a number between 0 and 1"),
    ("seed?", _is_whole, "a whole number"),
    ("passes?", _is_whole, "a whole number"),
    ("failed_points?", _is_whole, "a whole number"),
    ("seconds?", _is_number, "a number"),
    ("created?", _is_text, "a text"),
    ("finished?", _is_text, "a text"),
    ("command?", _are_texts, "a list of texts"),
    ("model", _is_object, "an object"),
    ("model.state_sha256?", _is_text, "a text"),
    ("model.spec?", _is_text, "a text"),
    ("model.head?", _is_text, "a text"),
    ("model.outputs?", _is_text, "a text"),
    ("model.bounds?", _is_range, "two increasing numbers"),
    ("model.mean?", _are_numbers, "a list of numbers"),
    ("model.std?", _are_numbers, "a list of numbers"),
    ("data", _is_object, "an object"),
    ("data.path?", _is_text, "a text"),
    ("data.split?", _is_text, "a text"),
    ("data.sha256?", _is_text, "a text"),
    ("data.limit?", _is_whole, "a whole number"),
    ("data.points?", _is_whole, "a whole number"),
    ("data.input_shape?", _is_list, "a list"),
    ("data.class_names?", _are_texts, "a list of texts"),
    ("scores", _is_list, "a list"),
    ("scores.*", _is_object, "an object"),
    ("scores.*.score", _is_text, "a text"),
    ("scores.*.parameters", _is_flat, "an object of plain values"),
    ("scores.*.label", _is_text, "a text"),
    ("scores.*.quantity", _is_text, "a text"),
    ("warnings?", _is_list, "a list"),
    ("warnings?.*", _is_object, "an object"),
    ("warnings?.*.code", _is_text, "a text"),
    ("warnings?.*.sentence", _is_text, "a text"),
)
"""Places in `run.json` that others rely on, what must be there, and that in words."""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
