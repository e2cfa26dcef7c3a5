"""This run beside another one: what differs, score by score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from brittle.analysis.columns import LAPLACIAN
from brittle.analysis.comparison import ACCURACY, BOUNDED, MEDIAN, compare, more_robust, most_drawn
from brittle.analysis.label_flips import FLIPS
from brittle.report.chapters.other_runs.drawn import differences, spreads
from brittle.report.chapters.other_runs.result import OtherRun
from brittle.report.contents import Contents
from brittle.report.parts import Entry, Grid, Number
from brittle.report.wording import (
    MISSING,
    draws_text,
    fixed,
    p_value,
    percent,
    plural,
    reach,
    show,
    signed,
    small_percent,
)
from brittle.store.columns import Column, Row
from brittle.store.settings import Setting

_HEAD = ("Score", "Points", "This run", "The other", "This − other", "This larger", "p")


def summarize_pair(contents: Contents, name: str, other: Contents, flips: Setting | None, drawn: bool) -> OtherRun:
    """This run beside another one.

    Args:
        contents: this run.
        name: of the other run.
        other: the other run.
        flips: the noise setting whose flips are shown.
        drawn: whether it gets figures of its own.

    Raises:
        DataError: the points of the runs cannot be paired.
    """
    frame = compare(contents, other)
    known = {column.label: column for column in contents.columns}
    rows = most_drawn(frame, contents.columns).to_dict("records")
    names = {row["score"]: _score_name(contents, known.get(row["score"]), row) for row in rows}
    return OtherRun(
        name=name,
        entries=(
            Entry("Robustness", more_robust(frame.to_dict("records"), "this run", "the other")),
            *_entries(contents, other, rows),
        ),
        numbers=_numbers(contents, rows, known, flips),
        differences=differences(rows if drawn else (), names, known),
        spreads=spreads(contents, name, other, flips) if drawn else (),
        grid=Grid(_HEAD, (False, *[True] * 6), tuple(_row(row, names[row["score"]]) for row in rows)),
        note=_note(rows, len(frame) - len(rows)),
    )


def _score_name(contents: Contents, column: Column | None, row: Row) -> tuple[str, str]:
    """The score as the table writes it, and its noise."""
    if column is None:
        return "accuracy", ""
    name = show(column.variant, 40)
    name = f"|{name}|" if row["quantity"] == LAPLACIAN else name
    name = f"{name} *" if row["statistic"] == MEDIAN else name
    if column.setting.sigma is None:
        return name, ""
    parts = (contents.noise_text(column.setting), draws_text(column.most_draws, column.stops))
    return name, ", ".join(filter(None, parts))


def _entries(contents: Contents, other: Contents, rows: Sequence[Row]) -> tuple[Entry, ...]:
    this, that = contents.record, other.record
    models = this.model.sha256, that.model.sha256
    if this.model.state_sha256 is not None and that.model.state_sha256 is not None:
        models = this.model.state_sha256, that.model.state_sha256
    return (
        Entry("Model", _difference_text(*models, that.model.spec)),
        Entry("Data", _difference_text(this.data.sha256, that.data.sha256, that.data.path)),
        Entry("Points", _pairing_text(rows)),
    )


def _difference_text(here: str | None, there: str | None, name: str | None) -> str:
    """Whether a part of the two runs is the same by its digests, and what the other one is called."""
    called = show(name, 80)
    if here is None or there is None:
        return f"{called}; no digest tells whether it is the same."
    if here == there:
        return f"The same, {called} ({show(there, 12)})."
    return f"Another one, {called} ({show(there, 12)}; here {show(here, 12)})."


def _pairing_text(rows: Sequence[Row]) -> str:
    if not rows:
        return "The two runs share no score, so there is nothing to compare."
    row = rows[0]
    by = "id" if row["pairing"] == "point" else "row, as their ids differ"
    alone = [f"{row[f'only_{key}']:,} only {where}" for key, where in (("first", "here"), ("second", "there"))
             if row[f"only_{key}"]]  # fmt: skip
    return "; ".join([f"{plural(row['points'] + row['dropped'], 'point')} in both, paired by {by}", *alone]) + "."


def _numbers(
    contents: Contents, rows: Sequence[Row], known: Mapping[str, Column], flips: Setting | None
) -> tuple[Number, ...]:
    """Accuracy, Laplacian and robustness of both runs, as far as they share them."""
    spoken = {
        "Accuracy": next((row for row in rows if row["score"] == ACCURACY), None),
        "Median |Laplacian|": next(
            (row for row in rows if row["quantity"] == LAPLACIAN and _is(known, row, None)), None
        ),
        f"Mean p_robust, {contents.noise_text(flips)}" if flips else "": next(
            (row for row in rows if flips is not None and _is(known, row, flips)), None
        ),
    }
    return tuple(_number(title, row) for title, row in spoken.items() if row is not None and row["points"])


def _is(known: Mapping[str, Column], row: Row, flips: Setting | None) -> bool:
    """Whether a row is of the plain Laplacian, or of the flips at a noise setting."""
    column = known.get(row["score"])
    if column is None:
        return False
    if flips is None:
        return column.score == LAPLACIAN
    return column.score == FLIPS and column.setting == flips and not (column.stops or column.parameters.get("clip"))


def _number(title: str, row: Row) -> Number:
    bounded = row["quantity"] in BOUNDED
    first, second = (small_percent(row[end]) if bounded else signed(row[end]) for end in ("first", "second"))
    note = f"Difference {_difference(row)}, p {_p_text(row)}."
    return Number(f"{title}, here vs there", f"{first} vs {second}", note)


def _difference(row: Row) -> str:
    return f"{signed(row['difference'])} ({reach(row['difference_low'], row['difference_high'])})"


def _p_text(row: Row) -> str:
    return MISSING if math.isnan(row["p"]) else p_value(row["p"])


def _row(row: Row, name: tuple[str, str]) -> tuple[str, ...]:
    return (
        "\n".join(part for part in name if part),
        f"{row['points']:,}",
        _centre(row, "first"),
        _centre(row, "second"),
        _centre(row, "difference"),
        MISSING if math.isnan(row["first_larger"]) else percent(row["first_larger"]),
        _p_text(row),
    )


def _centre(row: Row, name: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if math.isnan(value):
        return MISSING
    if row["quantity"] in BOUNDED and name != "difference":
        return f"{fixed(value)}\n{fixed(low)} to {fixed(high)}"
    return f"{signed(value)}\n{reach(low, high)}"


def _note(rows: Sequence[Row], left: int) -> str:
    if not rows:
        return ""
    dropped = max(row["dropped"] for row in rows)
    infinite = max(max(row["first_infinite"], row["second_infinite"]) for row in rows)
    return " ".join(
        part
        for part in (
            "Estimators of p_robust by that, so that larger is safer. Means over the paired points, of the scores "
            f"marked * medians, of the absolute value where bars stand around the score, with intervals at "
            f"{percent(rows[0]['confidence'])}. p: of no difference, each for itself; it is below "
            f"{percent(1.0 - rows[0]['confidence'])} where the interval of the difference leaves 0 out.",
            f"Up to {plural(infinite, 'distance')} in a run are infinite." if infinite else "",
            f"Up to {plural(dropped, 'point')} left out for lack of a value in either run." if dropped else "",
            f"{plural(left, 'row')} with fewer draws left out." if left else "",
        )
        if part
    )
