"""The command that compares two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from brittle.cli.common import check_own, check_place, open_run, show
from brittle.store.files.csv_text import cell
from brittle.store.files.writing import write

if TYPE_CHECKING:
    import pandas as pd


def compare(first: Path, second: Path, *, out: Path | None = None) -> int:
    """Compare the scores of two runs over the same points: two models, or clean and corrupted copies.

    Points are paired by id, or by row where no id is shared and the runs have equally many points. One sentence says
    which run is more robust, or that the data cannot tell. Every score that both runs hold with the same parameters
    takes part: its mean in either run (of all but shares and probabilities the median), the difference with its
    interval and the p-value that follows from it, and the share of points where the first is larger. Of flip
    probabilities p_robust is compared, so that larger is safer. What only one of them holds is named.

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
    from brittle.analysis.comparison import FIELDS, unpaired

    if out is not None:
        check_place(out, ".csv")
        check_own(out, ",".join(FIELDS), "comparison")
    tables = open_run(first), open_run(second)
    frame = compare_runs(*tables)
    show("\n".join(one for one in (format_comparison(frame), unpaired(*tables)) if one))
    if out is not None:
        print(_write(frame, out))
    return 0


def _write(frame: pd.DataFrame, path: Path) -> Path:
    """Write the frame, its texts as `brittle.store.files.csv_text.cell` says."""
    safe = frame.map(lambda one: cell(one) if isinstance(one, str) else one)
    write(path, safe.to_csv(index=False, lineterminator="\n").encode())
    return path
