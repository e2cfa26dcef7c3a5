"""Two runs over the same points: which is more robust, which has the larger scores, and by how much?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.change_columns import LAPLACIAN
from brittle.analysis.columns import typical
from brittle.analysis.location import median_interval
from brittle.analysis.mean_interval import mean_interval, ranged_interval
from brittle.errors import DataError
from brittle.estimate import FLIP_PROBABILITY, INPUT_MARGIN, parameters_json
from brittle.intervals import clopper_pearson
from brittle.store.columns import Column, Row, Scored

ACCURACY = "accuracy"
"""The row that says how many predictions are right."""

BOUNDED = frozenset({FLIP_PROBABILITY, "probability", ACCURACY})
"""Quantities between 0 and 1."""

MEAN, MEDIAN = "mean", "median"
"""What is compared: the mean of numbers between 0 and 1, the median of others."""

SMALLEST = 1e-12
"""The smallest p-value that is told apart."""

HALVINGS = 14
"""Steps of the search for a p-value, each halving the logarithms that it may have."""

SHARED, OWN = "shared", "own"
"""Whether both runs drew the same noise at every point, or each its own."""

ALIKE = "Both runs have the same value at every point."
NO_POINTS = "No point has a value in both runs."


FIELDS = (
    "score", "title", "quantity", "pairing", "noise", "statistic", "points", "dropped", "only_first", "only_second",
    "first", "first_low", "first_high", "first_infinite", "second", "second_low", "second_high", "second_infinite",
    "difference", "difference_low", "difference_high", "p", "first_larger", "differing", "differing_low",
    "differing_high", "speaks", "confidence", "reason",
)  # fmt: skip
"""The columns of a comparison."""

Values = NDArray[np.float64]


Interval = Callable[[Values, float], tuple[float, float, float]]
"""A number that stands for many, and the ends of its interval at a confidence."""


@dataclass(frozen=True)
class Pairing:
    """Which points of two runs are one: their ids in either, in the order of the key, and what was left over."""

    by: Literal["point", "row"]
    first: list[str]
    second: list[str]
    only_first: int
    only_second: int


def compare(first: Scored, second: Scored) -> pd.DataFrame:
    r"""Every score that both runs hold, with the same parameters, compared point by point.

    Two models on one data set, or one model on a data set and on corrupted copies of it. Points are paired by their
    ids; where the runs share no id but have equally many points, by their row. Of Laplacians `|value|` is compared, of
    other scores the value, over the points that have a value in both runs: of numbers between 0 and 1 the means, and
    the mean of the differences `first - second`; of all others the medians, and the median of the differences, as no
    interval of a mean holds where few points may have any value. Infinite distances, where nothing was found, take
    part; two of them count as equal.

    The draws of a point are keyed by the seed and its id, so two runs with one seed over the same ids send the same
    noisy copies through both models (`noise` says whether). What the noise does to both then cancels in the
    differences, and fewer draws tell the models apart.

    Intervals, at the larger confidence of the two runs, hold for any law of the points: of a mean of numbers between 0
    and 1, and of the mean of their differences between -1 and 1, `mean_interval`; of a median, order statistics; of the
    share of points whose values differ, Clopper and Pearson's. The p-value of no difference is the interval turned
    round, the smallest `1 - confidence` at which the interval of the difference leaves 0 out: it is below
    `1 - confidence` where that interval does, and nowhere else. Each stands alone: none is corrected for the number of
    scores. Both cover the sampling of points, drawn independently; they say nothing of other trainings of the models.

    Validity: points are paired by name only; where both are labelled, their labels must agree.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, sections 4.3, 4.4.

    Args:
        first: a run.
        second: a run over the same points.

    Returns:
        One row per score, in the order of the first run, after `accuracy` where both are labelled: `score` (its label),
        `title`, `quantity`; `pairing` (`point` or `row`); `noise` (`shared`, `own`, or None without draws); `statistic`
        (`mean` or `median`); `points` compared, `dropped` (paired, but without a value in one run or both),
        `only_first` and `only_second` (points without a partner); `first` and `second` (mean or median), each with its
        interval and its number of infinite values; `difference` with its interval and `p` (at least `SMALLEST`);
        `first_larger` (share of points, ties half); `differing` (share of points whose values differ) with its
        interval; `speaks`, true of the one row that says which run is more robust, by a flip probability under noise
        or, without any, by a distance; `confidence`; `reason` where there is nothing to tell apart.

    Raises:
        DataError: the points cannot be paired, paired points have different labels, or inputs have different bounds.
    """
    _check_bounds(first, second)
    _check_decisions(first, second)
    pairing = pair_points(first, second)
    confidence = max(first.record.confidence, second.record.confidence)
    rows = [_accuracy(first, second, pairing, confidence)]
    others = {_key(column): column for column in second.columns}
    keyed_alike = pairing.by == "point" and _noise_key(first) == _noise_key(second)
    shared = [column for column in first.columns if _key(column) in others]
    spoken = typical([column for column in shared if column.sources]) or next(
        (column for column in shared if column.score == INPUT_MARGIN), None
    )
    rows += [
        _row(column, others[_key(column)], pairing, confidence)
        | {"noise": _noise(column, others, keyed_alike), "speaks": column is spoken}
        for column in shared
    ]
    return pd.DataFrame([row for row in rows if row is not None], columns=FIELDS)


def _key(column: Column) -> tuple[str, str]:
    return column.score, parameters_json(column.parameters)


def _noise_key(table: Scored) -> tuple[int, str]:
    """What, beside the id of a point, its draws follow from: the seed, and the device whose generator makes them."""
    return table.record.seed, table.record.machine.device


def _noise(column: Column, others: Mapping[tuple[str, str], Column], keyed_alike: bool) -> str | None:
    if not column.sources:
        return None
    return SHARED if keyed_alike and column.sources == others[_key(column)].sources else OWN


def _check_decisions(first: Scored, second: Scored) -> None:
    """Raise where the two runs are about different decisions."""
    decided = [(table.record.model.decision, table.record.model.decision_parameters) for table in (first, second)]
    if decided[0] != decided[1]:
        names = [name or "class" for name, _ in decided]
        unlike = " (with other parameters)" if names[0] == names[1] else ""
        raise DataError(
            "runs_differ",
            f"the first run is about the decision {names[0]}, the second about {names[1]}{unlike}, so their scores "
            f"answer different questions; score both with one --decision (decision=)",
        )


def _check_bounds(first: Scored, second: Scored) -> None:
    """Raise where the inputs of the two runs are in different units."""
    models = [table.record.model for table in (first, second)]
    ends = [(model.bounds, model.lower, model.upper, model.bounds_shape) for model in models]
    bounds = [model.bounds_text for model in models]
    if ends[0] != ends[1]:
        raise DataError(
            "runs_differ",
            f"the inputs of the first run have {bounds[0]}, those of the second {bounds[1]}; score both in one unit "
            f"and with the same bounds",
        )


def pair_points(first: Scored, second: Scored) -> Pairing:
    """The pairs of points.

    Raises:
        DataError: neither ids nor rows agree, or the labels of paired points do not.
    """
    places = [table.points.select(["point", "row", "label"]).to_pandas() for table in (first, second)]
    for key in ("point", "row"):
        both = places[0].merge(places[1], on=key, suffixes=("_first", "_second")).sort_values(key)
        lonely = [len(place) - len(both) for place in places]
        if len(both) and (key == "point" or lonely == [0, 0]):
            break
    else:
        if len(places[0]) or len(places[1]):
            raise DataError(
                "runs_differ",
                f"the runs share no point: their ids differ, and so do their rows ({len(places[0]):,} and "
                f"{len(places[1]):,} points); score the same points",
            )
    _check_labels(both)
    names = ("point", "point") if key == "point" else ("point_first", "point_second")
    return Pairing(key, both[names[0]].tolist(), both[names[1]].tolist(), lonely[0], lonely[1])


def _check_labels(both: pd.DataFrame) -> None:
    labels = both[["label_first", "label_second"]].dropna().to_numpy()
    differ = int((labels[:, 0] != labels[:, 1]).sum())
    if differ:
        raise DataError(
            "runs_differ",
            f"{differ:,} of {len(labels):,} paired points have another label in the second run, so these are not the "
            f"same points; score the same data",
        )


def _accuracy(first: Scored, second: Scored, pairing: Pairing, confidence: float) -> Row | None:
    """The row of the accuracies; None where either run has no labels."""
    right = [
        pd.Series(table.points["correct"].to_pylist(), index=table.points["point"].to_pylist(), dtype=np.float64)
        for table in (first, second)
    ]
    if any(series.isna().all() for series in right):
        return None
    x, y, dropped = _numbers(right[0], right[1], pairing)
    names = {"score": ACCURACY, "title": "Share of predictions that are right", "quantity": ACCURACY, "noise": None}
    return _compared(x, y, names, ACCURACY, confidence) | _counts(pairing, dropped) | {"speaks": False}


def _row(one: Column, other: Column, pairing: Pairing, confidence: float) -> Row:
    x, y, dropped = _numbers(one.value, other.value, pairing)
    if one.quantity == LAPLACIAN:
        x, y = np.abs(x), np.abs(y)
    names = {"score": one.label, "title": one.title, "quantity": one.quantity}
    return _compared(x, y, names, one.quantity, confidence) | _counts(pairing, dropped)


def _numbers(one: pd.Series, other: pd.Series, pairing: Pairing) -> tuple[Values, Values, int]:
    """The values of both at the paired points where both have one, and how many pairs do not."""
    pairs = np.array([one.reindex(pairing.first), other.reindex(pairing.second)], dtype=np.float64)
    known = ~np.isnan(pairs).any(axis=0)
    return pairs[0, known], pairs[1, known], int((~known).sum())


def _counts(pairing: Pairing, dropped: int) -> Row:
    return {
        "pairing": pairing.by,
        "dropped": dropped,
        "only_first": pairing.only_first,
        "only_second": pairing.only_second,
    }


def _compared(x: Values, y: Values, names: Row, quantity: str, confidence: float) -> Row:
    differences = np.subtract(x, y, out=np.zeros_like(x), where=x != y)
    bounded = quantity in BOUNDED and bool(((x >= 0.0) & (x <= 1.0) & (y >= 0.0) & (y <= 1.0)).all())
    centre, apart = (mean_interval, _mean_difference) if bounded else (median_interval, median_interval)
    difference = apart(differences, confidence)
    return {
        **names,
        "statistic": MEAN if bounded else MEDIAN,
        "points": x.size,
        **_named("first", centre(x, confidence)),
        "first_infinite": int(np.isinf(x).sum()),
        **_named("second", centre(y, confidence)),
        "second_infinite": int(np.isinf(y).sum()),
        **_named("difference", difference),
        "p": _p_value(apart, differences, confidence, _leaves_out(difference)) if x.size else math.nan,
        "first_larger": float(((x > y) + 0.5 * (x == y)).mean()) if x.size else math.nan,
        **_named("differing", _share(x != y, confidence)),
        "confidence": confidence,
        "reason": NO_POINTS if not x.size else None if differences.any() else ALIKE,
    }


def _named(name: str, centre: tuple[float, float, float]) -> dict[str, float]:
    value, low, high = centre
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _mean_difference(differences: Values, confidence: float) -> tuple[float, float, float]:
    return ranged_interval(differences, -1.0, 1.0, confidence)


def _leaves_out(interval: tuple[float, float, float]) -> bool:
    """Whether an interval leaves 0 out."""
    return interval[1] > 0.0 or interval[2] < 0.0


def _p_value(interval: Interval, differences: Values, confidence: float, differs: bool) -> float:
    """The smallest `1 - confidence` at which the interval leaves 0 out; 1 where it never does.

    Args:
        interval: of the differences.
        differences: at least one.
        confidence: at which `differs` says whether the interval leaves 0 out.
        differs: so the p-value is below `1 - confidence`, or not.
    """
    low, high = (SMALLEST, 1.0 - confidence) if differs else (1.0 - confidence, 1.0 - 1e-9)
    if _leaves_out(interval(differences, 1.0 - low)) if differs else not _leaves_out(interval(differences, 1.0 - high)):
        return low if differs else 1.0
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _leaves_out(interval(differences, 1.0 - middle)) else (middle, high)
    return math.sqrt(low * high)


def _share(differ: NDArray[np.bool_], confidence: float) -> tuple[float, float, float]:
    """The share of the points that differ; NaN within [0, 1] without points."""
    if not differ.size:
        return math.nan, 0.0, 1.0
    low, high = clopper_pearson(differ.sum(), differ.size, confidence)
    return float(differ.mean()), float(low), float(high)


def most_drawn(frame: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The rows of `compare` without those of fewer draws than another that differs by nothing else.

    Args:
        frame: a comparison.
        columns: those of the first run.
    """
    best: dict[tuple[str, str], Column] = {}
    compared = set(frame["score"])
    for column in columns:
        key = column.score, parameters_json({k: v for k, v in column.parameters.items() if k != "draws"})
        if column.label in compared and (key not in best or (column.most_draws or 0) > (best[key].most_draws or 0)):
            best[key] = column
    kept = {ACCURACY, *(column.label for column in best.values())}
    return pd.DataFrame(frame[frame["score"].isin(list(kept))].reset_index(drop=True))
