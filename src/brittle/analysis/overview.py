"""Overview of a run in one screen: points that hold, their kinds and classes, and the evidence."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brittle.analysis.class_bias import ClassBias, class_bias
from brittle.analysis.columns import check_column, class_name, class_of, margin_columns, parameters_text, safety
from brittle.analysis.decisions import numbers_beside
from brittle.analysis.expected_robustness import USUAL, choose_epsilon, expected_robustness
from brittle.estimate import COUNT, LIMIT
from brittle.intervals import check_share
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column, Row
from brittle.store.record import RunRecord
from brittle.store.representative import representative_column
from brittle.store.table import Table
from brittle.text import by_number, number, share_of, span

FROM_SAFE = (HOLDS, UNDECIDED, BREAKS)  # the states of points, the safest first: the order in which they are shown
FAILED = "failed"  # state of a point without a number
RIGHT, WRONG, UNLABELLED = "right", "wrong", "no label"  # kinds of predictions by their labels
SHARES = {"half": 0.5, "one in ten": 0.1}  # shares of the points whose distances the overview gives, in words
DISTANCE_WORDS = {  # norms of a change in words
    "l1": "sum of the changes of all values",
    "l2": "Euclidean distance",
    "linf": "largest change of a value",
}

POINTS_TO_NAME = 30  # points that a class has at least before it is named as the least robust one


@dataclass(frozen=True, eq=False)
class Overview:
    """Overview of the points of a run, for one limit.

    Attributes:
        column: the flip probability that was read; None where the run has none.
        numbers: the flip probability whose values and intervals stand beside the states (`numbers_beside`).
        limit: a prediction holds where `p_robust` is at least this.
        points, labelled, correct: points of the run, those with a label and a prediction, those predicted right.
        groups: how many points are of each kind: one row for `right`, `wrong` and `no label`, one column for `holds`,
            `undecided` and `breaks`. Points without a number are in none.
        without_number: points whose robustness has no number.
        classes: one row per class, that of which the largest share breaks first: `class`, `name`, `points`, `holds`,
            `undecided`, `breaks`.
        bias: whether classes differ; None without classes, and where the column judges no point.
        evidence: how many of the states rest on `counted`, `modelled` and `extrapolated` intervals.
        order: label of the first score that orders the points, for runs without a flip probability; empty for none.
        record: the record of the run.
        margins: how near the nearest other predictions are, in a sentence for each input margin (`margin_sentences`).
    """

    column: Column | None
    numbers: Column | None
    limit: float
    points: int
    labelled: int
    correct: int
    groups: pd.DataFrame
    without_number: int
    classes: pd.DataFrame
    bias: ClassBias | None
    evidence: Mapping[str, int]
    order: str
    record: RunRecord
    margins: tuple[str, ...] = ()

    def count(self, state: str, kind: str | None = None) -> int:
        """Points of a state: those that are right, wrong or without a label, or all."""
        rows = self.groups if kind is None else self.groups.loc[[kind]]
        return sum(rows[state].tolist())

    @property
    def rated(self) -> int:
        """Points whose robustness has a number."""
        return self.points - self.without_number

    @property
    def is_decisive(self) -> bool:
        """True where points can hold or break by the flip probability of the overview."""
        return self.column is not None and self.column.is_decisive

    @property
    def named(self) -> Row | None:
        """The row of `bias.classes` of the one class that is surely the least robust; None where none is."""
        if self.bias is None or not self.bias.differ or len(self.bias.least_robust) != 1:
            return None
        worst = self.bias.classes.iloc[0].to_dict()
        return worst if worst["points"] >= POINTS_TO_NAME else None


def overview(
    table: Table, limit: float | None = None, column: Column | None = None, sigma: float | None = None
) -> Overview:
    """Return the overview of a run; `brittle.analysis.overview_text` words it in sentences.

    States are as of `decide`. A class is named as the least robust one only where it has `POINTS_TO_NAME` points and a
    test over all classes tells it from every other one (`class_bias`).

    Args:
        table: a run.
        limit: between 0 and 1; by default the one that points were drawn for, else `LIMIT`.
        column: the flip probability to read; by default the one drawn for the limit, else the run's representative.
        sigma: where no column is given, one at this noise level.
    """
    check_column("column", column)
    check_share("limit", limit)
    numbers = column
    if column is None and (column := representative_column(table.columns, limit, sigma)) is not None:
        numbers = numbers_beside(table, column)
    limit = limit if limit is not None else (column.limit if column is not None else None) or LIMIT
    frame = _frame(table, limit, column)
    counts = pd.crosstab(frame["kind"], frame["state"])
    groups = counts.reindex(index=[RIGHT, WRONG, UNLABELLED], columns=FROM_SAFE, fill_value=0)
    return Overview(
        column=column, numbers=numbers, limit=limit, points=len(frame), groups=groups, record=table.record,
        labelled=sum(kind != UNLABELLED for kind in frame["kind"]), correct=frame["kind"].tolist().count(RIGHT),
        without_number=len(frame) if column is None else int(column.value.isna().sum()),
        classes=_classes(table, frame), margins=margin_sentences(table),
        bias=class_bias(table, numbers) if column is not None and column.is_decisive else None,
        evidence=frame.loc[frame["state"].notna(), "evidence"].value_counts().to_dict(),
        order=next((column.label for column in table.columns if safety(column) is not None), ""),
    )  # fmt: skip


def _frame(table: Table, limit: float, column: Column | None) -> pd.DataFrame:
    """`kind`, `class`, `state` and `evidence` of every point of the run."""
    frame = table.points.select(["point", "label", "correct"]).to_pandas().set_index("point")
    kind = frame["correct"].map({True: RIGHT, False: WRONG}).astype(object)
    frame["kind"] = kind.where(frame["correct"].notna(), UNLABELLED)
    frame["class"] = class_of(table)[1]
    frame["state"] = None if column is None else column.states(limit)
    frame["evidence"] = None if column is None else column.interval_evidence
    return frame


def _classes(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Count the states of the points by class, the class with the largest share of broken points first."""
    rated = frame.dropna(subset=["class", "state"])
    counts = pd.crosstab(rated["class"], rated["state"]).reindex(columns=FROM_SAFE, fill_value=0)
    counts = counts.rename_axis(index="class", columns=None).assign(points=counts.sum(axis=1)).reset_index()
    counts["class"] = counts["class"].astype(int)
    counts["name"] = [class_name(table, number) for number in counts["class"]]
    shares = {"broken": -counts[BREAKS] / counts["points"], "held": counts[HOLDS] / counts["points"]}
    order = counts.assign(**shares).sort_values(["broken", "held", "class"], ignore_index=True)
    return order.loc[:, ["class", "name", "points", *FROM_SAFE]]


def margin_sentences(table: Table) -> tuple[str, ...]:
    """Return a sentence for each input margin: within which distances half and one in ten of the points have another
    prediction, the `ceil(s N)`-th smallest for a share `s`, up to which half of them are certified, and
    the expected robustness."""
    columns = [column for column in margin_columns(table) if column.value.notna().any()]
    norms = Counter(column.parameters.get("norm") for column in columns)
    return tuple(_sentences(table, column, norms[column.parameters.get("norm")] > 1) for column in columns)


def _sentences(table: Table, column: Column, has_sibling: bool) -> str:
    rows = column.rows[column.value.notna()].astype({"value": float, "low": float})
    distances, radii = np.sort(rows["value"]), np.sort(rows["low"])
    nearest = {words: distances[math.ceil(share * len(rows)) - 1] for words, share in SHARES.items()}
    (share_text, distance), *further = [pair for pair in nearest.items() if math.isfinite(pair[1])] or [("", math.nan)]
    text = f"For {share_text} of the points the nearest input with another prediction is at most "
    text += f"{_length(column, distance)} away"
    text += "".join(f", for {words} at most {_length(column, distance)}" for words, distance in further)
    if not share_text:
        text = "An input with another prediction was found for fewer than one in ten points"
    search = f"search: {parameters_text(column)}" if has_sibling else ""
    brackets = "; ".join(filter(None, [_distance_text(table, column) if share_text else "", search]))
    sentences = [f"{text}{brackets and f' ({brackets})'}."]
    if missed := int(np.isinf(distances).sum()):
        sentences.append(f"None was found for {share_of(missed, len(distances), 'point')}.")
    if exact := int(np.count_nonzero(rows["value"] == rows["low"])):
        sentences.append(f"It is the exact distance of {share_of(exact, len(rows), 'point')}.")
    radius = radii[math.ceil(len(rows) / 2) - 1]
    if radius > 0.0:
        sentences.append(f"Certified: for half of the points none is nearer than {number(radius)}.")
    elif column.parameters.get("certify") or (radii > 0.0).any():
        sentences.append("Fewer than half of the points have a certificate.")
    if column.parameters.get("norm") in USUAL:
        sentences.append(_expected_robustness(table, column))
    return " ".join(sentences)


def _expected_robustness(table: Table, column: Column) -> str:
    """Return the expected robustness in a sentence, up to the size that the page chooses, too."""
    norm = str(column.parameters.get("norm"))
    epsilon = choose_epsilon(column.value, norm, table.record.model.bounds)
    expected = expected_robustness(table, column, epsilon.value, table.record.confidence)
    mean, low, high = expected.interval
    doubtful = expected.open_points
    wide = f"; {doubtful:,} {by_number(doubtful, 'margin is', 'margins are')} open" if doubtful else ""
    kept = f"{'right predictions' if expected.labelled else 'predictions'} with no other found"
    median = "" if epsilon.text == USUAL[norm][1] else ", the median"
    upper = "" if expected.proved == mean else "; an upper estimate"
    return (
        f"Expected robustness: {number(mean)} ({span(low, high)}{wide}), the share of {kept}, averaged over distances "
        f"from 0 to {epsilon.text}{median}{upper}."
    )


def _distance_text(table: Table, column: Column) -> str:
    """Return the norm of a distance and its unit."""
    norm, bounds = str(column.parameters.get("norm")), table.record.model.bounds
    if norm == COUNT:
        return ""
    values = "pixels" if len(table.record.data.input_shape or ()) == 3 else "values"
    ends = "" if bounds is None else f", {values} from {bounds[0]:g} to {bounds[1]:g}"
    return f"{DISTANCE_WORDS.get(norm, norm)} in the units of the inputs{ends}"


def _length(column: Column, distance: float) -> str:
    unit = by_number(int(distance), " changed value", " changed values") if distance == distance else ""
    return f"{number(distance)}{unit if column.parameters.get('norm') == COUNT else ''}"
