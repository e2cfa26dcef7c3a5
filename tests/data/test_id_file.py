"""Files of ids: ids return unchanged from every way to save them, and other files are refused in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from helpers.data_files import refused

from brittle.data import ids
from brittle.data.ids import read_ids
from brittle.extensions.detector.flags import FLAGS, write_flags

IDS = ("0", "17", "ant/003.png", "a b", " c ", "=1+1", "-3", "'d'", 'say "e"', "f,g", r"h\x20", "ü", "\u2028", "point")
"""Ids as arrays, folders and tables have them, and some that a reader might misread."""

SAVED = {
    "lines": "\n".join(IDS),
    "ended lines": "".join(f"{id_}\n" for id_ in IDS),
    "of Windows": "".join(f"{id_}\r\n" for id_ in IDS),
    "with a mark": "\ufeff" + "\n".join(IDS),
    "with empty lines": "\n\n" + "\n\n \t\r\n".join(IDS) + "\n\r\n",
}


@pytest.mark.parametrize("form", SAVED)
def test_lines_come_back(form: str, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_bytes(SAVED[form].encode())
    assert read_ids(tmp_path / "ids.txt") == IDS


def test_the_ids_of_a_table_come_back(tmp_path: Path) -> None:
    """The file that `brittle detector apply` writes escapes cells against spreadsheets."""
    ids = (*IDS, "two\nlines", "\x1b[31m")
    cells = {"row": 0, "brittle": True, "status": "ok"}
    flags = pd.DataFrame({"point": ids} | cells, columns=FLAGS.names)
    write_flags(flags, tmp_path / "flags.csv")
    assert read_ids(tmp_path / "flags.csv") == ids
    flags[["point"]].to_csv(tmp_path / "one.csv", index=False)
    assert read_ids(tmp_path / "one.csv") == ids


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "or no id"),
        (b"\xef\xbb\xbf\n \r\n\n", "or no id"),
        (b"point,value\n", "or no id"),
        (b"\x89PNG\r\n\x1a\n", "UTF-8"),
        ("a\nb\n".encode("utf-16"), "UTF-8"),
        ("a\nb\n".encode("utf-16-le"), "UTF-8"),
        (b"point,value\na,1\nb\n", "table of 2 columns and has 1"),
        (b'point,value\n"a,1\nb,2\n', "unexpected end"),
        (b"12345678901", "at most 10 bytes"),
    ],
)
def test_bad_id_files_are_refused(
    content: bytes, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "at most" in sentence:
        monkeypatch.setattr(ids, "MOST_BYTES", 10)
    (tmp_path / "ids.txt").write_bytes(content)
    refused("ids", f"ids.txt .*{sentence}", read_ids, tmp_path / "ids.txt")


def test_paths_other_than_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused("no_such_path", "nothing.txt does not exist", read_ids, tmp_path / "nothing.txt")
    for path in (tmp_path, tmp_path / "pipe"):
        refused("ids", "no regular file", read_ids, path)
