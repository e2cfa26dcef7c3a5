"""The comparison of two runs as plain text for a terminal."""

from __future__ import annotations

import pandas as pd

from brittle.analysis.comparison import ACCURACY, ALIKE, MEAN, MEAN_ABSOLUTE, MEDIAN, OWN, SHARED, is_nowhere
from brittle.analysis.text import aligned, number, with_interval
from brittle.estimate import short_labels
from brittle.store.columns import Row

AT_EVERY_POINT = "0 at every point"
"""The difference where no point differs and no interval of it follows."""


def format_comparison(frame: pd.DataFrame) -> str:
    """The frame of `compare` as plain text for a terminal."""
    if frame.empty:
        return "The two runs share no score, so there is nothing to compare."
    rows, names = frame.to_dict("records"), short_labels(frame["score"])
    header = ["score", "points", "first", "second", "first - second", "first larger", "p"]
    lines = [
        [
            _score_name(row, names[row["score"]]),
            f"{row['points']:,}",
            with_interval(row, "first"),
            with_interval(row, "second"),
            AT_EVERY_POINT if is_nowhere(row) else with_interval(row, "difference"),
            number(row["first_larger"]),
            number(row["p_mcnemar"] if row["quantity"] == ACCURACY else row["p_wilcoxon"]),
        ]
        for row in rows
    ]
    return "\n".join([_title(rows[0]), *aligned([header, *lines]), *_remarks(rows)])


def _title(row: Row) -> str:
    paired = row["points"] + row["dropped"]
    alone = [f"{row[f'only_{run}']:,} only in the {run}" for run in ("first", "second") if row[f"only_{run}"]]
    by = "id" if row["pairing"] == "point" else "row, as their ids differ"
    paired_by = f"{paired:,} points in both runs, paired by {by}"
    return "; ".join([paired_by, *alone, f"intervals at {100 * row['confidence']:.4g}%"])


def _score_name(row: Row, name: str) -> str:
    marks = {MEAN: "{}", MEAN_ABSOLUTE: "|{}|", MEDIAN: "{} *"}
    return marks[row["statistic"]].format(name)


def _remarks(rows: list[Row]) -> list[str]:
    remarks = ["p: McNemar's test of the accuracy, Wilcoxon's of the others"]
    if any(row["statistic"] == MEDIAN for row in rows):
        most = max(max(row["first_infinite"], row["second_infinite"]) for row in rows)
        remarks.append(f"* medians, as up to {most:,} distances are infinite: no other prediction was found there")
    if dropped := max(row["dropped"] for row in rows):
        remarks.append(f"up to {dropped:,} points are left out for lack of a value in one run or both")
    noises = [row["noise"] for row in rows]
    if SHARED in noises:
        remarks.append(f"both runs drew the same noise at every point for {noises.count(SHARED)} of {len(rows)} rows")
    if OWN in noises:
        remarks.append(
            f"{noises.count(OWN)} of {len(rows)} rows read noise of each run's own; one seed makes it the same"
        )
    if any(row["reason"] == ALIKE for row in rows):
        alike = [row for row in rows if row["reason"] == ALIKE]
        most = max(row["differing_high"] for row in alike)
        remarks.append(
            f"{len(alike)} of {len(rows)} rows hold the same value in both runs at every point: of all points like "
            f"these at most {100.0 * most:.3g}% differ, at {100.0 * rows[0]['confidence']:.4g}%"
        )
    return remarks
