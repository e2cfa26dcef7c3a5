"""Two runs over the same points: which has the larger scores, and by how much?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from scipy.special import stdtr

from brittle.analysis.change_columns import LAPLACIAN
from brittle.analysis.location import median_interval, skewed_mean
from brittle.analysis.mean_absolute import absolute_mean
from brittle.analysis.mean_interval import MeanInterval, mean_interval, ranged_interval
from brittle.errors import DataError
from brittle.estimate import FLIP_PROBABILITY, parameters_json
from brittle.intervals import clopper_pearson
from brittle.store.columns import Column, Row, Scored

ACCURACY = "accuracy"
"""The row that says how many predictions are right."""

BOUNDED = frozenset({FLIP_PROBABILITY, "probability", ACCURACY})
"""Quantities between 0 and 1."""

MEAN, MEAN_ABSOLUTE, MEDIAN = "mean", "mean absolute", "median"
"""What is compared: the mean, the mean of `|value|` (of Laplacians), or the median where a value is infinite."""

SHARED, OWN = "shared", "own"
"""Whether both runs drew the same noise at every point, or each its own."""

ALIKE = "Both runs have the same value at every point."
NO_POINTS = "No point has a value in both runs."


FIELDS = (
    "score", "title", "quantity", "pairing", "noise", "statistic", "points", "dropped", "only_first", "only_second",
    "first", "first_low", "first_high", "first_infinite", "second", "second_low", "second_high", "second_infinite",
    "difference", "difference_low", "difference_high", "first_larger", "differing", "differing_low", "differing_high",
    "p_wilcoxon", "p_t", "p_mcnemar", "confidence", "reason",
)  # fmt: skip
"""The columns of a comparison."""

Values = NDArray[np.float64]


class _Centre(NamedTuple):
    value: float
    low: float
    high: float


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
    other scores the value: the means, and the mean of the differences `first - second`, over the points that have a
    value in both runs. Where a distance is infinite, because nothing was found, there is no mean: medians are compared
    instead, and two infinite distances count as equal.

    The draws of a point are keyed by the seed and its id, so two runs with one seed over the same ids send the same
    noisy copies through both models (`noise` says whether). What the noise does to both then cancels in the
    differences, and fewer draws tell the models apart.

    Intervals, at the larger confidence of the two runs: of a mean of numbers between 0 and 1, and of the mean of their
    differences between -1 and 1, `mean_interval`, which holds where few points differ; of other means `skewed_mean`; of
    a median, order statistics; of the share of points whose values differ, Clopper and Pearson's. Where no point
    differs that share is all that the points bound of numbers without bounds: the mean difference is 0 with an interval
    over the whole line. Tests, two-sided: of the differences
    by their signed ranks (Wilcoxon; points that are equal in both are left out) and by their mean (Student), of
    accuracies by the points that one run alone has right (McNemar, exact). Each p-value stands alone: none is
    corrected for the number of scores. Intervals and tests cover the sampling of points, drawn independently; they say
    nothing of other trainings of the same models.

    Validity: points are paired by name only; where both are labelled, their labels must agree.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, sections 4.3, 4.4.
        Individual comparisons by ranking methods, Frank Wilcoxon, 1945.
        Note on the sampling error of the difference between correlated proportions or percentages, Quinn McNemar, 1947.

    Args:
        first: a run.
        second: a run over the same points.

    Returns:
        One row per score, in the order of the first run, after `accuracy` where both are labelled: `score` (its label),
        `title`, `quantity`; `pairing` (`point` or `row`); `noise` (`shared`, `own`, or None without draws); `statistic`
        (`mean`, `mean absolute` or `median`); `points` compared, `dropped` (paired, but without a value in one run or
        both), `only_first` and `only_second` (points without a partner); `first` and `second` (mean or median), each
        with its interval and its number of infinite values; `difference` with its interval; `first_larger` (share of
        points, ties half); `differing` (share of points whose values differ) with its interval; `p_wilcoxon`, `p_t`
        (NaN for medians and for a constant difference other than 0), `p_mcnemar` (of the accuracy alone); `confidence`;
        `reason` where there is nothing to tell apart.

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
    rows += [
        _row(column, others[_key(column)], pairing, confidence) | {"noise": _noise(column, others, keyed_alike)}
        for column in first.columns
        if _key(column) in others
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
            "decisions_differ",
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
            "bounds_differ",
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
                "unpaired_runs",
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
            "labels_differ",
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
    only_x, only_y = int((x > y).sum()), int((y > x).sum())
    names = {"score": ACCURACY, "title": "Share of predictions that are right", "quantity": ACCURACY, "noise": None}
    row = _compared(x, y, names, ACCURACY, confidence)
    test = float(scipy.stats.binomtest(only_x, only_x + only_y).pvalue) if only_x + only_y else 1.0
    none = {"p_wilcoxon": math.nan, "p_t": math.nan, "p_mcnemar": test if x.size else math.nan}
    return row | _counts(pairing, dropped) | none


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
    infinite = bool(np.isinf(x).any() or np.isinf(y).any())
    differences = np.subtract(x, y, out=np.zeros_like(x), where=x != y)
    statistic = MEDIAN if infinite else MEAN_ABSOLUTE if quantity == LAPLACIAN else MEAN
    centre = _bounded if quantity in BOUNDED and not infinite else _CENTRES[statistic]
    alike = x.size > 0 and not differences.any()
    return {
        **names,
        "statistic": statistic,
        "points": x.size,
        **_named("first", centre(x, confidence)),
        "first_infinite": int(np.isinf(x).sum()),
        **_named("second", centre(y, confidence)),
        "second_infinite": int(np.isinf(y).sum()),
        **_named("difference", _difference(differences, infinite, quantity in BOUNDED, confidence)),
        "first_larger": float(((x > y) + 0.5 * (x == y)).mean()) if x.size else math.nan,
        **_named("differing", _share(x != y, confidence)),
        "p_wilcoxon": _wilcoxon(differences),
        "p_t": math.nan if infinite else _student(differences),
        "p_mcnemar": math.nan,
        "confidence": confidence,
        "reason": ALIKE if alike else None if x.size else NO_POINTS,
    }


def _named(name: str, centre: tuple[float, float, float]) -> dict[str, float]:
    value, low, high = centre
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _bounded(values: Values, confidence: float) -> MeanInterval:
    """Of values that ought to lie between 0 and 1; where rounding or a made-up table says otherwise, of any."""
    inside = not values.size or (values.min() >= 0.0 and values.max() <= 1.0)
    return (mean_interval if inside else skewed_mean)(values, confidence)


_CENTRES: dict[str, Callable[[Values, float], tuple[float, float, float]]] = {
    MEAN: skewed_mean,
    MEAN_ABSOLUTE: absolute_mean,
    MEDIAN: median_interval,
}


def _difference(differences: Values, infinite: bool, bounded: bool, confidence: float) -> tuple[float, float, float]:
    """The mean of the differences with its interval, or their median where any is infinite."""
    if infinite:
        return median_interval(differences, confidence)
    inside = not differences.size or np.abs(differences).max() <= 1.0
    if bounded and inside:
        return ranged_interval(differences, -1.0, 1.0, confidence)
    mean, low, high = skewed_mean(differences, confidence)
    return _Centre(mean, max(low, -1.0), min(high, 1.0)) if bounded else _Centre(mean, low, high)


def _share(differ: NDArray[np.bool_], confidence: float) -> _Centre:
    """The share of the points that differ; NaN within [0, 1] without points."""
    if not differ.size:
        return _Centre(math.nan, 0.0, 1.0)
    low, high = clopper_pearson(differ.sum(), differ.size, confidence)
    return _Centre(float(differ.mean()), float(low), float(high))


def is_nowhere(row: Row) -> bool:
    """Whether no point differs in a row of numbers without bounds, so that nothing bounds the mean difference."""
    return row["reason"] == ALIKE and math.isinf(row["difference_low"])


def _wilcoxon(differences: Values) -> float:
    """Two-sided p-value of the signed ranks, which infinite differences share; 1 where all are 0."""
    if not differences.any():
        return 1.0 if differences.size else math.nan
    ranks = np.sign(differences) * scipy.stats.rankdata(np.abs(differences))
    return float(scipy.stats.wilcoxon(ranks[ranks != 0.0]).pvalue)


def _student(differences: Values) -> float:
    """Two-sided p-value of the mean; 1 where all are 0, NaN where they do not vary otherwise."""
    if not differences.any():
        return 1.0 if differences.size else math.nan
    if differences.size < 2 or differences.min() == differences.max():
        return math.nan
    scaled = differences / np.abs(differences).max()
    ratio = scaled.mean() / scaled.std(ddof=1) * math.sqrt(scaled.size)
    return float(2.0 * stdtr(scaled.size - 1.0, -abs(ratio)))


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
