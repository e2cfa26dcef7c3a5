"""The comparison of two runs as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from brittle.analysis.change_columns import LAPLACIAN
from brittle.analysis.comparison import ALIKE, MEDIAN, OWN, SHARED
from brittle.analysis.text import aligned, number, with_interval
from brittle.estimate import FLIP_PROBABILITY, short_labels
from brittle.store.columns import Row


def format_comparison(frame: pd.DataFrame) -> str:
    """The frame of `compare` as plain text for a terminal."""
    if frame.empty:
        return "The two runs share no score, so there is nothing to compare."
    rows, names = frame.to_dict("records"), short_labels(frame["score"])
    header = ["score", "points", "first", "second", "first - second", "p", "first larger"]
    lines = [
        [
            _score_name(row, names[row["score"]]),
            f"{row['points']:,}",
            with_interval(row, "first"),
            with_interval(row, "second"),
            with_interval(row, "difference"),
            number(row["p"]),
            number(row["first_larger"]),
        ]
        for row in rows
    ]
    said = more_robust(rows, "the first run", "the second")
    return "\n".join([_title(rows[0]), said, *aligned([header, *lines]), *_remarks(rows)])


def more_robust(rows: Iterable[Row], first: str, second: str) -> str:
    """Which of two runs is more robust and by how much, or that the data cannot tell, in one sentence.

    Args:
        rows: of `compare`.
        first: what the first run is called.
        second: what the second is called.
    """
    row = next((row for row in rows if row["speaks"] and row["points"]), None)
    if row is None:
        return f"Nothing that both hold says whether {first} or {second} is more robust; score both by shrinkage."
    flips = row["quantity"] == FLIP_PROBABILITY
    ends = [row["difference_low"], row["difference_high"]]
    apart, low, high = (0.0 - row["difference"], -ends[1], -ends[0]) if flips else (row["difference"], *ends)
    mine, other = (1.0 - row[run] if flips else row[run] for run in ("first", "second"))
    said = f"The data cannot tell whether {first} or {second} is more robust"
    if low > 0.0 or high < 0.0:
        said = f"{first if low > 0.0 else second} is more robust".capitalize()
    what = "mean probability to keep a prediction" if flips else "median distance to another prediction"
    difference = f"{number(apart)} ({number(low)} to {number(high)} at {100 * row['confidence']:.4g}%)"
    return (
        f"{said}: the {what} is {number(mine)} in {first} and {number(other)} in {second}, the {row['statistic']} "
        f"difference {difference}, by {row['score']}."
    )


def _title(row: Row) -> str:
    paired = row["points"] + row["dropped"]
    alone = [f"{row[f'only_{run}']:,} only in the {run}" for run in ("first", "second") if row[f"only_{run}"]]
    by = "id" if row["pairing"] == "point" else "row, as their ids differ"
    paired_by = f"{paired:,} points in both runs, paired by {by}"
    return "; ".join([paired_by, *alone, f"intervals at {100 * row['confidence']:.4g}%"])


def _score_name(row: Row, name: str) -> str:
    name = f"|{name}|" if row["quantity"] == LAPLACIAN else name
    return f"{name} *" if row["statistic"] == MEDIAN else name


def _remarks(rows: list[Row]) -> list[str]:
    remarks = ["p: of no difference; below 1 minus the confidence where the interval of the difference leaves 0 out"]
    if any(row["statistic"] == MEDIAN for row in rows):
        remarks.append("* medians, and the median of the differences; of other scores means")
    if most := max(max(row["first_infinite"], row["second_infinite"]) for row in rows):
        remarks.append(f"up to {most:,} distances are infinite: no other prediction was found there")
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
