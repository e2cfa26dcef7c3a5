"""The command that compares two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from brittle.cli.common import check_own, check_place
from brittle.errors import StorageError

if TYPE_CHECKING:
    import pandas as pd

GUARDED = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Starts of text that a spreadsheet would run as a formula."""


def compare(first: Path, second: Path, *, out: Path | None = None) -> int:
    """Compare the scores of two runs over the same points: two models, or clean and corrupted copies.

    Points are paired by id, or by row where no id is shared and the runs have equally many points. Every score that
    both runs hold with the same parameters takes part: its mean in either run (of the absolute value for Laplacians),
    the mean difference, the share of points where the first is larger, and the p-value of no difference.

    Parameters
    ----------
    first
        A folder that `brittle score` wrote.
    second
        Another one.
    out
        A .csv file to write the comparison to, one row per score; no file but an earlier comparison is replaced.
    """
    from brittle.analysis import compare as compare_runs
    from brittle.analysis import format_comparison
    from brittle.analysis.comparison import FIELDS
    from brittle.table import read_table

    if out is not None:
        check_place(out, ".csv")
        check_own(out, ",".join(FIELDS), "comparison")
    frame = compare_runs(read_table(first), read_table(second))
    print(format_comparison(frame))
    if out is not None:
        print(_write(frame, out))
    return 0


def _write(frame: pd.DataFrame, path: Path) -> Path:
    """Write the frame; text that a spreadsheet would run as a formula starts with an apostrophe."""
    safe = frame.map(lambda cell: f"'{cell}" if isinstance(cell, str) and cell.startswith(GUARDED) else cell)
    try:
        safe.to_csv(path, index=False)
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror}); choose another") from error
    return path
