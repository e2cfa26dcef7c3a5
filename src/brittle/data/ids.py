"""Some of the points of any data, chosen by their ids, and files of ids."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from brittle.data.files import changed_error, path_text
from brittle.data.points import Batch, ChangedPoints, ListedPoints, Points
from brittle.errors import DataError, ParameterError, listed
from brittle.store.csv_text import text_of

READ_THROUGH = 8
"""Where the next chosen row is no further on than this, those in between are read and left out; otherwise reading
begins anew, which in a Parquet file with groups of 1,000 images costs about as much as to read 10, in a folder nothing.
"""

READ_AT_A_TIME = 256
"""Points that are read at a time where reading them is the only way to their ids."""

SHOWN = 3
"""Ids that a message names."""

MOST_BYTES = 1 << 28
"""Bytes of a file of ids at most: more than a hundred for each of two million points."""

COLUMN = "point"
"""What the first column of a table of points is called."""


def choose_points(points: Points, ids: Iterable[str]) -> ChosenPoints:
    """Those of `points` whose ids are given, in the order of the data; an id that is given twice counts once.

    Each keeps its row, id, name and label. The noise of a point is keyed by its id, so its scores are those of a run
    over all points, except as a network rounds differently in another batch.

    Args:
        points: the points of any format.
        ids: some of their ids, as the column `point` of a run holds them: of arrays the row number as text, of a
            folder of images the path below the folder of the classes.

    Raises:
        ParameterError: no id is given, one is no text, or one is not among the points; these are counted and named.
    """
    asked = [ids] if isinstance(ids, str) or not isinstance(ids, Iterable) else list(ids)
    if isinstance(ids, str) or not asked or not all(isinstance(own, str) for own in asked):
        raise ParameterError(f"expected a list of ids, each a text such as '17', at least one; found {ids!r:.60}")
    there, wanted = _ids_of(points), set(asked)
    rows = tuple(row for row, own in enumerate(there) if own in wanted)
    chosen = tuple(there[row] for row in rows)
    unknown = wanted.difference(chosen)
    if unknown:
        missing = [own for own in dict.fromkeys(asked) if own in unknown]
        source = points.provenance.get("path") or "the data"
        named, like = (listed([f"{own!r:.60}" for own in some], SHOWN) for some in (missing, there[:SHOWN]))
        raise ParameterError(
            f"{len(missing):,} of {len(wanted):,} ids are not in {source}: {named}; its {len(there):,} ids, the column "
            f"point of a run, look like {like}",
        )
    known = {
        "points": len(rows),
        "chosen_from": points.provenance.get("chosen_from", len(there)),
        "ids_sha256": hashlib.sha256(json.dumps(chosen).encode()).hexdigest(),
    }
    return ChosenPoints(points, rows, chosen, {**points.provenance, **known})


@dataclass(frozen=True)
class ChosenPoints:
    """Some of other points, in their order.

    Attributes:
        points: the points that they are of.
        rows: which of these, increasing, `[N]`.
        ids: their ids, `[N]`.
        provenance: where they come from, and that they were chosen.
    """

    points: Points
    rows: tuple[int, ...]
    ids: tuple[str, ...]
    provenance: dict[str, Any]

    @property
    def labels(self) -> Sequence[int] | None:
        """Class index of every chosen point, or None."""
        labels = self.points.labels
        return None if labels is None else tuple(labels[row] for row in self.rows)

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes in the order of their index, or None."""
        return self.points.class_names

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The chosen points `start` up to `stop` (all others) in their order, `size` at a time.

        The two count chosen points; the `rows` of a batch are those of the data.
        """
        if size < 1:
            raise ParameterError(f"the batch size must be at least 1; found {size}")
        ids = dict(zip(self.rows[start:stop], self.ids[start:stop], strict=True))
        path = self.provenance.get("path") or "the data"
        waiting: Batch | None = None
        for first, last in _stretches(tuple(ids)):
            row, count = first, last + 1 - first
            even = -(-count // -(-count // size))  # no short batch at the end: some readers read a last one whole
            for batch in self.points.batches(even, first, last + 1):
                part = batch.take([at for at in range(len(batch)) if row + at in ids])
                for one, now in zip((one for one in range(row, row + len(batch)) if one in ids), part.ids, strict=True):
                    if ids[one] != now:
                        raise changed_error(path, f"row {one} has the id {now!r:.60} instead of {ids[one]!r:.60}")
                row += len(batch)
                waiting = part if waiting is None else waiting.joined(part)
                if len(waiting) >= size:
                    yield waiting.take(range(size))
                    waiting = waiting.take(range(size, len(waiting)))
            if row <= last:
                raise changed_error(path, f"its points end before row {row}")
        if waiting is not None and len(waiting):
            yield waiting


def _ids_of(points: Points) -> Sequence[str]:
    """The ids of all points; where nothing but their batches holds them, all are read for it."""
    if isinstance(points, ListedPoints | ChosenPoints):
        return points.ids
    if isinstance(points, ChangedPoints):
        return _ids_of(points.points)[: len(points)]
    return tuple(own for batch in points.batches(READ_AT_A_TIME) for own in batch.ids)


def _stretches(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last row of each stretch that is read in one go."""
    first = 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1] - row > READ_THROUGH:
            yield rows[first], row
            first = place + 1


def read_ids(path: Path) -> tuple[str, ...]:
    r"""The ids that a text file holds, in its order.

    One a line, whose end may be that of Windows; empty lines and a byte order mark are passed over. A file whose first
    line is the header of a table with several columns, of which the first is `point`, is read as CSV, as brittle writes
    it: the ids are that column.

    Raises:
        DataError: the file is missing, no regular file, too large, not UTF-8 text, no table of its header, or holds no
            id.
    """
    if not path.exists():
        raise DataError("no_such_path", f"{path_text(path)} does not exist")
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it is no regular file of at most {MOST_BYTES:,} bytes")
        text = path.read_bytes().decode("utf-8-sig")
        if "\0" in text:
            raise ValueError("it holds zero bytes")
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        if text.startswith((f"{COLUMN},", f'"{COLUMN}",')):
            header, *rows = filter(None, csv.reader(StringIO(text, newline=""), strict=True))
            odd = next((row for row in rows if len(row) != len(header)), None)
            if odd is not None:
                raise ValueError(f"it begins as a table of {len(header)} columns and has {len(odd)} in {odd!r:.60}")
            lines = [_cell_text(row[0]) for row in rows]
        ids = tuple(own for own in lines if own.strip(" \t"))
        if not ids:
            raise ValueError("it holds no id")
    except OSError as error:
        raise DataError("unreadable", f"{path_text(path)} cannot be read: {error.strerror or error}") from error
    except (ValueError, csv.Error) as error:
        raise DataError(
            "ids", f"{path_text(path)} cannot be read as a text file of ids in UTF-8, one a line: {error}"
        ) from error
    return ids


def _cell_text(cell: str) -> str:
    try:
        return text_of(cell)
    except UnicodeDecodeError:
        return cell  # not written by brittle
