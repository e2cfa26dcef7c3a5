"""What a run says in one screen: how many points hold, which kinds, which classes, on what evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from brittle.analysis.class_bias import ClassBias, class_bias, class_name, class_of
from brittle.analysis.columns import check_column, safety
from brittle.analysis.copies import TooFew, best_ends, too_few
from brittle.analysis.decisions import asked_of_all, column_if_any, numbers_beside
from brittle.analysis.margin_words import margin_sentences
from brittle.intervals import check_share
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column, Row, Scored

LIMIT = 0.9
"""A prediction holds where it is kept with this probability or more, unless a run or a reader names another one."""

FROM_SAFE = (HOLDS, UNDECIDED, BREAKS)
"""The states of points, the safest first: the order in which they are shown."""

FAILED = "failed"
"""What a point without a number is called among the states."""

RIGHT, WRONG, UNLABELLED = "right", "wrong", "no label"
"""What a prediction is, as far as the labels say."""

NAMED = 30
"""Points that a class has at least before it is named as the least robust one."""


@dataclass(frozen=True, eq=False)
class Overview:
    """What a run says of its points, for one limit.

    Attributes:
        column: the flip probability that was read; None where the run has none. One that no noise was drawn for, such
            as `softmax`, holds and breaks no point (`judges`).
        numbers: the flip probability whose values and intervals stand beside the states (`numbers_beside`).
        limit: a prediction holds where `p_robust` is at least this.
        points: points of the run.
        chosen_from: points of the data, where those of the run were chosen by their ids; else None.
        labelled: those of them with a label and a prediction.
        right: those of the labelled ones that are predicted right.
        groups: how many points are of each kind: one row for `right`, `wrong` and `no label`, one column for `holds`,
            `undecided` and `breaks`. Points without a number are in none.
        without_number: points whose robustness has no number.
        too_few: whether undecided points have too few noisy copies to hold at the limit; None where none has.
        classes: one row per class, that of which the largest share breaks first: `class`, `name`, `points`, `holds`,
            `undecided`, `breaks`.
        bias: whether classes differ; None without classes, and where the column judges no point.
        evidence: how many of the states rest on `counted`, `modelled` and `extrapolated` intervals (`Column.rests_on`).
        confidence: of the intervals.
        order: label of the first score that orders the points, for runs without a flip probability; empty for none.
        command: what made the run, word by word; None where it was run from Python.
        decision: what is decided, as the record of the run holds it; None for the predicted class.
        margins: how near the nearest other predictions are, in a sentence for each input margin (`margin_sentences`).
    """

    column: Column | None
    numbers: Column | None
    limit: float
    points: int
    chosen_from: int | None
    labelled: int
    right: int
    groups: pd.DataFrame
    without_number: int
    too_few: TooFew | None
    classes: pd.DataFrame
    bias: ClassBias | None
    evidence: Mapping[str, int]
    confidence: float
    order: str
    command: tuple[str, ...] | None
    decision: str | None = None
    margins: tuple[str, ...] = ()

    def count(self, state: str, kind: str | None = None) -> int:
        """Points of a state: those that are right, wrong or without a label, or all."""
        rows = self.groups if kind is None else self.groups.loc[[kind]]
        return sum(rows[state].tolist())

    @property
    def judges(self) -> bool:
        """Whether points can hold or break by the flip probability that was read."""
        return self.column is not None and self.column.judges

    @property
    def named(self) -> Row | None:
        """The row of `bias.classes` of the one class that is surely the least robust; None where none is."""
        if self.bias is None or not self.bias.differ or len(self.bias.least) != 1:
            return None
        first = self.bias.classes.iloc[0].to_dict()
        return first if first["points"] >= NAMED else None


def overview(
    table: Scored, limit: float | None = None, column: Column | None = None, sigma: float | None = None
) -> Overview:
    """What a run says in one screen; `brittle.analysis.overview_text` says it in sentences.

    `holds` where the whole interval of `p_robust` lies at `limit` or above, `breaks` where it lies below, `undecided`
    where it reaches over `limit` (see `decide`). A class is named as the least robust one only where it has
    `NAMED` points and a test over all classes tells it from every other one (`class_bias`).

    Args:
        table: a run.
        limit: between 0 and 1; by default the one that points were drawn for, else `LIMIT`.
        column: the flip probability to read; by default the one drawn for the limit, else the one that speaks for the
            run.
        sigma: where no column is given, one at this noise level.

    Raises:
        ParameterError: the limit is not between 0 and 1.
    """
    check_column("column", column)
    check_share("limit", limit)
    numbers = means = column
    if column is None and (column := column_if_any(table, limit, sigma)) is not None:
        numbers, means = numbers_beside(table, column), asked_of_all(table, column)
    limit = limit if limit is not None else (column.limit if column is not None else None) or LIMIT
    frame = _frame(table, limit, column)
    groups = pd.crosstab(frame["kind"], frame["state"]).reindex(
        index=[RIGHT, WRONG, UNLABELLED], columns=FROM_SAFE, fill_value=0
    )
    judging = column if column is not None and column.judges else None
    bias = class_bias(table, means) if judging is not None else None
    evidence = frame["evidence"].where(frame["state"].notna()).dropna().value_counts().to_dict()
    return Overview(
        column=column,
        numbers=numbers,
        limit=limit,
        points=len(frame),
        chosen_from=table.record.data.chosen_from,
        labelled=sum(kind != UNLABELLED for kind in frame["kind"]),
        right=frame["kind"].tolist().count(RIGHT),
        groups=groups,
        without_number=len(frame) if column is None else int(column.value.isna().sum()),
        too_few=None if judging is None else _too_few(judging, limit, table.record.confidence),
        classes=_classes(table, frame),
        bias=bias,
        evidence=evidence,
        confidence=table.record.confidence,
        order=next((one.label for one in table.columns if safety(one) is not None), ""),
        command=table.record.command,
        decision=table.record.model.decision,
        margins=margin_sentences(table),
    )


def _too_few(column: Column, limit: float, confidence: float) -> TooFew | None:
    return too_few(*best_ends(column, confidence), column.states(limit), limit)


def _frame(table: Scored, limit: float, column: Column | None) -> pd.DataFrame:
    """`kind`, `class`, `state` and `evidence` of every point of the run."""
    frame = table.points.select(["point", "label", "correct"]).to_pandas().set_index("point")
    kind = frame["correct"].map({True: RIGHT, False: WRONG}).astype(object)
    frame["kind"] = kind.where(frame["correct"].notna(), UNLABELLED)
    frame["class"] = class_of(table)[1]
    frame["state"] = None if column is None else column.states(limit)
    frame["evidence"] = None if column is None else column.rests_on
    return frame


def _classes(table: Scored, frame: pd.DataFrame) -> pd.DataFrame:
    known = frame.dropna(subset=["class", "state"])
    counts = pd.crosstab(known["class"], known["state"]).reindex(columns=FROM_SAFE, fill_value=0)
    rows = [
        {"class": key, "name": class_name(table, key), "points": sum(row.values()), **row}
        for key, row in zip(map(int, counts.index.tolist()), counts.to_dict("records"), strict=True)
    ]
    found = pd.DataFrame(rows, columns=["class", "name", "points", *FROM_SAFE])
    shares = {"broken": -found[BREAKS] / found["points"], "held": found[HOLDS] / found["points"]}
    return found.assign(**shares).sort_values(["broken", "held", "class"], ignore_index=True).drop(columns=[*shares])
