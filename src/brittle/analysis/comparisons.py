"""Comparison of a run with several others over the same points, such as clean and corrupted images, a line for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from brittle.analysis.comparison import ACCURACY, FIELDS, compare, remarks
from brittle.errors import DataError
from brittle.estimate import short_labels
from brittle.store.columns import Row
from brittle.store.table import Table
from brittle.text import aligned, number, with_interval

SEVERAL_FIELDS = ("run", "split", *FIELDS)
"""The columns of several comparisons."""


def compare_several(
    table: Table, rivals: Iterable[tuple[str, Table]], epsilon: float | str | None = None
) -> pd.DataFrame:
    """Return the rows of `compare` with each of several rival runs; an error names the rival.

    Raises:
        DataError: as of `compare`; or a run shares no score with the first.
    """
    rows: list[Row] = []
    for name, rival in rivals:
        try:
            frame = compare(table, rival, epsilon=epsilon)
        except DataError as error:
            raise DataError(error.code, f"{name}, as the second run: {error.args[0]}") from error
        if frame.empty:
            raise DataError(
                "runs_differ", f"{name} shares no score with the same parameters with the first run; score both by one"
            )
        rows += frame.assign(run=name, split=rival.record.data.split).to_dict("records")
    return pd.DataFrame(rows, columns=SEVERAL_FIELDS)


def format_comparisons(frame: pd.DataFrame) -> str:
    """Format the frame of `compare_several` as text: the accuracy of each run, and the score that most runs share."""
    rows = frame.to_dict("records")
    has_representative = any(row["speaks"] for row in rows)
    row_by_key, runs = {(row["run"], row["score"]): row for row in rows}, {row["run"]: row for row in rows}
    ((score, _),) = Counter(row["score"] for row in rows if row["speaks"] or not has_representative).most_common(1)
    compared_rows = [row for row in rows if row["score"] == score]
    quantities = {ACCURACY: ACCURACY, score: compared_rows[0]["quantity"]}
    header = [cell for name in quantities.values() for cell in (f"{name}: first", "run", "first - run", "first larger")]
    lines = [["run", "points", *header]]
    for name, row in runs.items():
        cells = [cell for label in quantities for cell in _cells(row_by_key.get((name, label)))]
        run_title = f"{name} ({row['split']})" if row["split"] else name
        lines.append([run_title, f"{row['points'] + row['dropped']:,}", *cells])
    by = "id" if all(row["pairing"] == "point" for row in rows) else "id, or by row where no id is shared"
    levels = ", ".join(sorted({f"{100 * row['confidence']:.4g}%" for row in rows}))
    notes = [
        f"{name}: {compared_rows[0]['statistic']} by {short_labels([label])[label]}"
        for label, name in quantities.items()
    ][1:]
    title = f"{len(runs):,} runs beside the first, points paired by {by}; intervals at {levels}, each on its own"
    notes.append("first larger: share of points that have more of it in the first run, ties half")
    if not has_representative:
        notes.append("nothing that a run shares with the first says how robust it is; score all by shrinkage")
    if any("-" in line for line in lines):
        notes.append("-: no such number in both runs, with the same parameters")
    return "\n".join([title, *aligned(lines), *notes, *remarks(compared_rows)])


def _cells(row: Row | None) -> list[str]:
    if row is None:
        return ["-"] * 4
    first_text, second_text, larger_text = (number(row[name]) for name in ("first", "second", "first_larger"))
    return [first_text, second_text, with_interval(row, "difference"), larger_text]
