"""Data formats from outside: found by name, checked, and read into points that say where they come from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from brittle.data.files import file_digest, path_text
from brittle.data.format import Format
from brittle.data.options import ReadingOptions
from brittle.data.points import Batch, Points
from brittle.errors import BrittleError, DataError
from brittle.model.loading.named_code import check_name, find_named, kind_of, refused
from brittle.model.loading.user_code import digests, line_of
from brittle.store.record import DataRecord, record_of

GROUP = "brittle.formats"
"""Entry point group in which an installed package offers formats."""

T = TypeVar("T")


@dataclass(frozen=True)
class DescribedPoints:
    """The first points of others, and what is known of where they come from.

    Attributes:
        points: as a format from outside gave them.
        count: how many of them.
        provenance: where they come from.
    """

    points: Points
    count: int
    provenance: dict[str, Any]

    @property
    def labels(self) -> Sequence[int] | None:
        """Class index of every point, or None."""
        labels = self.points.labels
        return None if labels is None else labels[: self.count]

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes in the order of their index, or None."""
        return self.points.class_names

    def __len__(self) -> int:
        return self.count

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The points of the rows `start` up to `stop` (all others) in their order, `size` at a time."""
        return self.points.batches(size, start, self.count if stop is None else min(stop, self.count))


def find_outside_format(name: str) -> Format | None:
    """The format that `name` stands for, as `find_named` knows it; None where there is none.

    Raises:
        UsageError: there is no such file, or no such name in it.
        ParameterError: its code fails, or it is no format that can be used.
    """
    found = find_named(name, GROUP, lambda value: isinstance(value, Format))
    return None if found is None else check_format(found, name)


def check_format(found: object, where: str) -> Format:
    """`found`, if it is a format.

    Args:
        found: what was found.
        where: how it was named, for the message.

    Raises:
        ParameterError: it is none, or a part of it is of another kind.
    """
    if not isinstance(found, Format):
        raise refused(where, f"is {kind_of(found)}; expected a brittle.data.Format")
    check_name(where, found.name, "'csv'")
    if not isinstance(found.form, str) or not found.form:
        raise refused(where, f"has the form {found.form!r:.60}; expected what it looks like, in words")
    if not (callable(found.recognise) and callable(found.read)):
        raise refused(where, "expected functions for recognise and read")
    return found


def recognises(known: Format, path: Path) -> bool:
    """Whether a format from outside recognises a path.

    Raises:
        DataError: its code fails.
    """
    return bool(_guarded(known, path, known.recognise, path))


def read_outside(known: Format, path: Path, options: ReadingOptions) -> DescribedPoints:
    """The points that a format from outside reads, at most as many as are asked for.

    Raises:
        DataError: its code fails.
        ParameterError: it gives no points, or no digest of a folder, or says of them what a record cannot hold.
    """
    points = _guarded(known, path, known.read, path, options)
    where = f"the format {known.name}"
    if not isinstance(points, Points):
        raise refused(where, f"gave {kind_of(points)}; expected points, such as brittle.data.array_points makes")
    count = len(points) if options.limit is None else min(len(points), options.limit)
    said = {"format": known.name, "path": path_text(path), "split": options.split, "limit": options.limit}
    said |= {"layout": options.layout, "scale_uint8": options.scale_uint8} if known.arrays else {}
    said |= {"exif": options.exif} if known.encoded else {}
    said |= {"label_column": options.label_column} if "label_column" in known.options else {}
    code = digests((known.recognise, known.read))
    digest = points.provenance.get("sha256") or (file_digest(path) if path.is_file() else None)
    if digest is None:
        raise refused(where, "gives no sha256 of what it read from a folder; add one to the provenance of its points")
    provenance = {**points.provenance, **said, "sha256": digest, "points": count, "code": code}
    record_of(DataRecord, provenance, f"the provenance of {where}")
    return DescribedPoints(points, count, provenance)


def _guarded(known: Format, path: Path, function: Callable[..., T], *arguments: object) -> T:
    """What a function of the format gives; what it raises is told with the line."""
    try:
        return function(*arguments)
    except BrittleError:
        raise
    except Exception as error:
        module = sys.modules.get(getattr(function, "__module__", ""))
        line = "" if module is None else line_of(error, module)
        seen = f"{type(error).__name__}: {error}"
        raise DataError(
            "user_code", f"{path_text(path)} cannot be read by the format {known.name}, which failed{line}: {seen}"
        ) from error
