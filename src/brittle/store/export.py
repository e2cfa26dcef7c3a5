"""Tables of points as files for other programs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from brittle.errors import ParameterError, printable
from brittle.store.writing import check_target, replacing

if TYPE_CHECKING:
    import pandas as pd

MARK = "'"  # mark in front of a text that a spreadsheet would run
GUARDED = f"[-=+@\uff1d\uff0b\uff0d\uff20{MARK}]"  # starts of such a text, in both widths, and of one that looks marked
_PLACES = re.compile(rf'^(?={GUARDED})|;(?=[ "]*{GUARDED})')  # of the mark; a quotation mark there begins a cell


def cell(text: str) -> str:
    r"""`text` as it stands in a CSV file: nothing that a terminal or a spreadsheet would run.

    Every character that is not printable (control, bidirectional and other invisible ones, line ends) is written as an
    escape of Python, a backslash as two, and a text that a spreadsheet would take for a formula, or that begins with an
    apostrophe, gets an apostrophe in front. So does what follows a semicolon, at which spreadsheets split a line where
    the comma is in numbers, as in German or French. So no two texts give one cell.
    """
    return _PLACES.sub(rf"\g<0>{MARK}", printable(text.replace("\\", "\\\\")))


def text_of(cell: str) -> str:
    r"""Return the text that `cell` was made of."""
    return re.sub(f"(^|;){MARK}", r"\1", cell).encode("latin-1", "backslashreplace").decode("unicode_escape")


Parts = Iterable[pa.Table]  # parts of a table, one after another
Frames = Callable[[], Iterator["pd.DataFrame"]]  # parts of a table, read anew by each call


def export(frames: Frames, path: Path, *, whole: bool) -> Path:
    """Write a table in the form of `FORMS` that `path` ends in; only `filled_columns` unless `whole`."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise ParameterError(f"the file must end in {', '.join((*FORMS, CARD))}; found {path.name!r:.80}")
    check_target(path)
    names = None if whole else filled_columns(frames())
    schema = _schema(frames(), names)
    with replacing(path) as file:
        form((cells_of(frame.filter(schema.names)).cast(schema) for frame in frames()), schema, file)
    return path


def filled_columns(parts: Iterable[pd.DataFrame]) -> list[str]:
    """Return the columns with a value in some part; ends of an interval (`ends` of a part) only where they differ."""
    filled, ends, names = set[str](), set[str](), list[str]()
    for part in parts:
        names = list(part.columns)
        pairs: list[tuple[str, str]] = part.attrs["ends"]
        ends = {*chain.from_iterable(pairs)}
        filled |= {name for name, has_values in part.notna().any().items() if has_values and name not in ends}
        filled |= {end for low, high in pairs if not part[low].equals(part[high]) for end in (low, high)}
    return [name for name in names if name in filled]


def _schema(parts: Iterable[pd.DataFrame], names: Sequence[str] | None) -> pa.Schema:
    """Return the schema of these columns, by default all, with types that hold the cells of all parts."""
    schemas = (cells_of(part if names is None else part.filter(names)).schema.remove_metadata() for part in parts)
    return reduce(lambda a, b: pa.unify_schemas([a, b], promote_options="permissive"), schemas)


def _csv(parts: Parts, schema: pa.Schema, file: BinaryIO) -> None:
    """Text that a spreadsheet would run is guarded, as `cell` does; text that is a number runs nothing."""
    import pandas as pd  # here alone, as where tables are shown

    header = schema.empty_table().to_pandas().rename(columns=cell)
    file.write(header.to_csv(index=False, lineterminator="\n").encode())
    for part in parts:
        safe = part.to_pandas(integer_object_nulls=True)
        for name in safe.select_dtypes(exclude=["number", "bool"]):  # left as objects: 3 beside none is no 3.0
            safe[name] = pd.Series(map(_guarded, safe[name]), safe.index, object)
        file.write(safe.to_csv(index=False, header=False, lineterminator="\n").encode())


def _guarded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        if math.isfinite(float(value)) and value == value.strip() and "_" not in value:
            return value
    return cell(value)


def _lines(parts: Parts, schema: pa.Schema, file: BinaryIO) -> None:
    for part in parts:
        file.write("".join(f"{record}\n" for record in _records(part.to_pandas(integer_object_nulls=True))).encode())


def _json(parts: Parts, schema: pa.Schema, file: BinaryIO) -> None:
    before = "["
    for record in chain.from_iterable(_records(part.to_pandas(integer_object_nulls=True)) for part in parts):
        file.write(f"{before}{record}".encode())
        before = ", "
    file.write(b"]\n" if before != "[" else b"[]\n")


def _records(frame: pd.DataFrame) -> list[str]:
    """Return each row as a JSON object with all digits of its numbers; null for numbers that JSON lacks."""
    cells = frame.astype(object).where(frame.notna() & ~frame.isin([math.inf, -math.inf]), None)
    return [json.dumps(row, allow_nan=False, default=lambda scalar: scalar.item()) for row in cells.to_dict("records")]


def cells_of(frame: pd.DataFrame) -> pa.Table:
    """Return the cells of `frame` as a table of Arrow, one column each; its index is left out."""
    return pa.Table.from_pandas(frame, preserve_index=False)


def _tables(opened: Callable[[BinaryIO, pa.Schema], Any], parts: Parts, schema: pa.Schema, file: BinaryIO) -> None:
    waiting: list[pa.Table] = []
    with opened(file, schema) as writer:
        for part in parts:
            waiting.append(part)
            if sum(map(len, waiting)) >= GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


GROUP = 1 << 16  # rows at least of a group in Parquet or Arrow, whose end has a record of every group

FORMS: Mapping[str, Callable[[Parts, pa.Schema, BinaryIO], None]] = {
    ".csv": _csv, ".parquet": partial(_tables, pq.ParquetWriter), ".arrow": partial(_tables, pa.ipc.new_file),
    ".json": _json, ".jsonl": _lines,
}  # fmt: skip
"""Writers by the endings of files. JSON has no infinite numbers: they become null."""

CARD = ".md"  # ending of a model card
