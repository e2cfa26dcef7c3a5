"""What a table says of its points, as a file for other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from brittle.errors import ParameterError
from brittle.store.csv_text import cell
from brittle.store.writing import check_target, write

if TYPE_CHECKING:
    import pandas as pd


def export(frame: pd.DataFrame, path: Path) -> Path:
    """Write `frame` in the form that the end of `path` names, one of `FORMS`, and give that path.

    Raises:
        ParameterError: there is no such form.
        StorageError: the file cannot be written, or is a link, a pipe, a device or a folder.
    """
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise ParameterError(f"the file must end in {', '.join((*FORMS, CARD))}; found {path.name!r:.80}")
    check_target(path)
    write(path, form(frame))
    return path


def _csv(frame: pd.DataFrame) -> bytes:
    """Text that a spreadsheet would run is guarded, as `cell` does; text that is a number runs nothing."""
    safe = frame.map(lambda one: one if not isinstance(one, str) or _is_number(one) else cell(one)).rename(columns=cell)
    return safe.to_csv(index=False, lineterminator="\n").encode()


def _is_number(text: str) -> bool:
    try:
        return bool(text) and math.isfinite(float(text)) and text == text.strip() and "_" not in text
    except ValueError:
        return False


def _lines(frame: pd.DataFrame) -> bytes:
    return "".join(f"{record}\n" for record in _records(frame)).encode()


def _json(frame: pd.DataFrame) -> bytes:
    return f"[{', '.join(_records(frame))}]\n".encode()


def _records(frame: pd.DataFrame) -> list[str]:
    """Each row as an object, with all digits of its numbers; null for those that JSON has not."""
    known = frame.astype(object).where(frame.notna() & ~frame.isin([math.inf, -math.inf]), None)
    return [json.dumps(row, allow_nan=False, default=lambda one: one.item()) for row in known.to_dict("records")]


def cells_of(frame: pd.DataFrame) -> pa.Table:
    """The cells of `frame` as a table of Arrow, one column each; its index is left out."""
    return pa.Table.from_pandas(frame, preserve_index=False)


def _arrow(frame: pd.DataFrame) -> bytes:
    sink, cells = BytesIO(), cells_of(frame)
    with pa.ipc.new_file(sink, cells.schema) as writer:
        writer.write_table(cells)
    return sink.getvalue()


def _parquet(frame: pd.DataFrame) -> bytes:
    sink = BytesIO()
    pq.write_table(cells_of(frame), sink)
    return sink.getvalue()


FORMS: Mapping[str, Callable[[pd.DataFrame], bytes]] = {
    ".csv": _csv, ".parquet": _parquet, ".arrow": _arrow, ".json": _json, ".jsonl": _lines,
}  # fmt: skip
"""How files are written, by the ends of their names. JSON has no infinite numbers: they are null there."""

CARD = ".md"
"""How a file ends that is a model card."""
