"""Texts in CSV: harmless in a spreadsheet and a terminal, and read back unchanged."""

from __future__ import annotations

import csv as python_csv
import io
import re
from pathlib import Path

import pandas as pd
import pyarrow.csv as csv
import pytest
from helpers.damaged import SOURCE
from hypothesis import given
from hypothesis import strategies as st

from brittle.extensions.detector.flags import FLAGS, write_flags
from brittle.store.export import cell, text_of


def test_every_writer_of_csv_guards_its_texts() -> None:
    """Every writer of CSV writes its texts by one function."""
    writers = [
        path for path in SOURCE.rglob("*.py") if re.search(r"\.to_csv\(|write_csv\(|csv\.writer", path.read_text())
    ]
    assert {path.name for path in writers} == {"runs.py", "export.py", "commands.py"}
    for path in writers:
        assert path.name == "export.py" or "from brittle.store.export import cell" in path.read_text()


CELLS = [
    *("=1+1", "+1", "-1", "@x", "\t=1", "\n=1", "\uff1d1", "'=1", "'", "plain", "", "caf\u00e9", "\U0001f4a5"),
    *("x;=1+1;y", ";=1", 'x;"=1"', "x; @y", "a,b;=1", "x;'y", ";;-1", "x;y"),
    *("\x1b[31mred", "a\\x1b", "a\x1b", "\\", "\\\\", "\u202egnp", "\u2028", "\x9b1m", "\0", "a\u00a0b"),
]
"""Texts that a terminal or a spreadsheet would obey, and some that look like the escapes of others."""


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d")


def make_flags(names: list[str]) -> pd.DataFrame:
    """Return a row of flags for each name."""
    rows, count = range(len(names)), len(names)
    columns = {"point": names, "row": rows, "name": names, "label": rows, "predicted": rows, "score": [0.5] * count}
    constants = {"brittle": [True] * count, "status": ["ok"] * count}
    return pd.DataFrame(columns | constants)


def test_texts_in_csv_are_harmless_and_come_back(tmp_path: Path) -> None:
    path = write_flags(make_flags(CELLS), tmp_path / "flags.csv")
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert len(lines) == 1 + len(CELLS)
    assert all(line.isprintable() for line in lines)
    options = csv.ConvertOptions(column_types=FLAGS, strings_can_be_null=False)
    cells = csv.read_csv(path, convert_options=options)["point"].to_pylist()
    assert not any(text.startswith(FORMULA) for text in cells if text not in ("+1", "-1"))  # numbers run nothing
    assert [text_of(text) for text in cells] == CELLS
    assert len(set(cells)) == len(CELLS)


@given(st.text() | st.text("=+-@'\";, \t\na\\\uff1d"))
def test_any_text_comes_back_from_csv_and_runs_nowhere(text: str) -> None:
    """Split a line at commas, semicolons or tabs, as spreadsheets do."""
    assert cell(text).isprintable()
    assert text_of(cell(text)) == text
    sink = io.StringIO()
    python_csv.writer(sink).writerow(["id", cell(text), "ok"])
    for delimiter in ",;\t":
        (fields,) = python_csv.reader(io.StringIO(sink.getvalue(), newline=""), delimiter=delimiter)
        assert not any(field.startswith(FORMULA) for field in fields)


@pytest.mark.parametrize("text", ["x;y", "a=b", "1;2", "a-b;c", "x = y; z", '"', "0.5"])
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert cell(text) == text
