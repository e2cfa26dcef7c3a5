"""Two runs over the same points: which is more robust, which has the larger scores, and by how much?"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.columns import LAPLACIAN, key_of, margin_columns, question_of
from brittle.analysis.expected_robustness import USUAL, choose_epsilon, surviving_sizes
from brittle.analysis.mean_interval import MeanInterval, mean_interval, median_interval, ranged_interval
from brittle.errors import DataError, listed
from brittle.estimate import INPUT_MARGIN, short_labels
from brittle.store.columns import Column, Row
from brittle.store.representative import most_draws_by, typical
from brittle.store.table import Table
from brittle.text import aligned, named_interval, number, parse_epsilon, with_interval

ACCURACY = "accuracy"  # the row that says how many predictions are right
P_ROBUST = "p_robust"  # compared for a flip probability, so that larger is safer
EXPECTED = "expected_robustness"  # the row of the robust accuracy averaged over sizes of the perturbation
BOUNDED = frozenset({P_ROBUST, "probability", ACCURACY, EXPECTED})  # quantities between 0 and 1
MEAN, MEDIAN = "mean", "median"  # the mean of numbers between 0 and 1, the median of others
SMALLEST = 1e-12  # the smallest p-value that is told apart
HALVINGS = 14  # steps of the search for a p-value, each halving the logarithms that it may have
SHARED, OWN = "shared", "own"  # kinds of noise of two runs: the same at every point, or separate

ALIKE = "Both runs have the same value at every point."
NO_POINTS = "No point has a value in both runs."


FIELDS = (  # columns of a comparison
    "score", "title", "quantity", "pairing", "noise", "statistic", "points", "dropped", "only_first", "only_second",
    "first", "first_low", "first_high", "first_infinite", "second", "second_low", "second_high", "second_infinite",
    "difference", "difference_low", "difference_high", "p", "first_larger", "speaks", "confidence", "reason",
)  # fmt: skip

Values = NDArray[np.float64]
Interval = Callable[[Values, float], tuple[float, float, float]]  # a number that stands for many, with its ends


class Pairing(NamedTuple):
    """Pairs of points of two runs: their ids in both, in the order of the key, and the points left over."""

    by: str  # point or row
    first: list[str]
    second: list[str]
    only_first: int
    only_second: int


def compare(first: Table, second: Table, *, epsilon: float | str | None = None) -> pd.DataFrame:
    r"""Every score that both runs hold, with the same parameters, compared point by point.

    Points are paired by their ids; where the runs share no id but have equally many points, by their row. Of flip
    probabilities `p_robust` is compared, of Laplacians `|value|`, of other scores the value, over the points with a
    value in both runs: of numbers between 0 and 1 the means, and the mean of the differences `first - second`; of all
    others the medians, as no interval of a mean holds where few points may have any value. Infinite distances, where
    nothing was found, take part; two of them count as equal. Two runs with one seed over the same ids send the same
    noisy copies through both models (`noise` says whether), so that fewer draws tell the models apart. The input
    margins of each norm also give the expected robustness (`surviving_sizes`), whose interval leaves masked ones open.

    Intervals, at the larger confidence of the two runs, hold for any law of the points: `mean_interval` of numbers and
    of their differences between -1 and 1, order statistics of medians. The p-value of no difference is the smallest
    `1 - confidence` at which the interval of the difference leaves 0 out. None is corrected for the number of scores.
    They cover the sampling of points, drawn independently, and say nothing of other trainings of the models.

    Validity: points are paired by name only; where both are labelled, their labels must agree.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, sections 4.3, 4.4.

    Args:
        first: a run.
        second: a run over the same points.
        epsilon: largest size of the expected robustness, such as 0.5 or `"8/255"`; by default the usual one, or the
            median of the margins of both runs.

    Returns:
        One row per score, in the order of the first run, after `accuracy` where both are labelled: `score` (its label),
        `title`, `quantity`; `pairing` (`point` or `row`); `noise` (`shared`, `own`, or None without draws); `statistic`
        (`mean` or `median`); `points` compared, `dropped` (without a value in a run), `only_first` and `only_second`
        (without a partner); `first` and `second`, each with its interval and its number of infinite values;
        `difference` with its interval and `p` (at least `SMALLEST`); `first_larger` (share of points, ties half);
        `speaks`, true of the one row that says which run is more robust; `confidence`; `reason` where there is nothing
        to tell apart.

    Raises:
        DataError: the points cannot be paired, paired points have different labels, or inputs have different bounds.
    """
    _check_alike(first, second)
    pairing = pair_points(first, second)
    confidence = max(first.record.confidence, second.record.confidence)
    twins = {question_of(column): column for column in second.columns}
    shared = [(column, twin) for column in first.columns if (twin := twins.get(question_of(column))) is not None]
    first_columns = [column for column, _ in shared]
    representative = typical([column for column in first_columns if column.sources]) or next(
        (column for column in margin_columns(first) if column in first_columns), None
    )
    drawn_alike = pairing.by == "point" and _noise_key(first) == _noise_key(second)
    size, rows, norms = None if epsilon is None else parse_epsilon(epsilon), [], set()
    correct_pair = [
        table.points.select(["point", "correct"]).to_pandas().set_index("point")["correct"] for table in (first, second)
    ]
    is_labelled = [series.notna().any() for series in correct_pair]
    if all(is_labelled):
        names = {"score": ACCURACY, "title": "Accuracy", "quantity": ACCURACY}
        compared = _compared(correct_pair[0], correct_pair[1], ACCURACY, pairing, confidence)
        rows.append(names | compared | {"noise": None, "speaks": False})
    for first_column, second_column in shared:
        quantity = P_ROBUST if first_column.is_probability else first_column.quantity
        x, y = (side.value.abs() if quantity == LAPLACIAN else side.value for side in (first_column, second_column))
        names = {"score": first_column.label, "title": first_column.title, "quantity": quantity}
        alike = drawn_alike and first_column.sources == second_column.sources
        noise = (SHARED if alike else OWN) if first_column.sources else None
        compared = _compared(x, y, quantity, pairing, confidence)
        rows.append(names | compared | {"noise": noise, "speaks": first_column is representative})
        norm = first_column.parameters.get("norm")
        if first_column.score == INPUT_MARGIN and norm in USUAL.keys() - norms and len(set(is_labelled)) == 1:
            norms.add(norm)
            chosen = choose_epsilon(pd.Series([*x, *y]), str(norm), first.record.model.bounds)
            largest, text = (chosen.value, chosen.text) if size is None else (size, f"{size:.4g}")
            before = surviving_sizes(first, first_column, largest)
            after = surviving_sizes(second, second_column, largest)
            compared = _compared(before.value, after.value, EXPECTED, pairing, confidence, (before.low, after.low))
            names = {"score": f"{EXPECTED}(epsilon={text}, norm={norm})", "title": "Expected robustness"}
            rows.append(names | {"quantity": EXPECTED} | compared | {"noise": None, "speaks": False})
    return pd.DataFrame(rows, columns=FIELDS)


def mean_difference(first: Table, second: Table, confidence: float) -> tuple[str, int, MeanInterval]:
    """Return the score that says how robust both runs are, its points, and the mean difference of `p_robust`."""
    _check_alike(first, second)
    pairing, rivals = pair_points(first, second), {question_of(column): column for column in second.columns}
    first_column = typical([column for column in first.columns if column.sources and question_of(column) in rivals])
    if first_column is None:
        raise DataError("runs_differ", "the runs share no flip probability with the same parameters; score both by one")
    comparison = _compared(first_column.value, rivals[question_of(first_column)].value, P_ROBUST, pairing, confidence)
    ends = MeanInterval(comparison["difference"], comparison["difference_low"], comparison["difference_high"])
    return first_column.shown, comparison["points"], ends


def _noise_key(table: Table) -> tuple[int, str]:
    """Return the sources of the draws of a point beside its id: the seed, and the device whose generator makes them."""
    return table.record.seed, table.record.machine.device


def _check_alike(first: Table, second: Table) -> None:
    """Raise where the two runs are about different decisions, or their inputs are in different units."""
    first_model, second_model = first.record.model, second.record.model
    decisions = [(model.decision, model.decision_parameters) for model in (first_model, second_model)]
    if decisions[0] != decisions[1]:
        kinds = " and ".join(model.decision or "class" for model in (first_model, second_model))
        fault = f"the runs are about the decisions {kinds}, or about other parameters of one"
        raise DataError("runs_differ", f"{fault}; score both with one --decision (decision=)")
    rules = [(run.record.model.rules, run.record.data.still) for run in (first, second)]
    if rules[0] != rules[1]:
        raise DataError(
            "runs_differ", "the runs let other columns vary; score both with one --noise, --categories and --rules"
        )
    ends = [(model.bounds, model.lower, model.upper, model.bounds_shape) for model in (first_model, second_model)]
    if ends[0] != ends[1]:
        units = f"{first_model.bounds_text}, those of the second {second_model.bounds_text}"
        raise DataError("runs_differ", f"the inputs of the first run have {units}; score both with the same bounds")


def pair_points(first: Table, second: Table) -> Pairing:
    """Return the pairs of points."""
    places = [table.points.select(["point", "row", "label"]).to_pandas() for table in (first, second)]
    for key in ("point", "row"):
        pairs = places[0].merge(places[1], on=key, suffixes=("_first", "_second")).sort_values(key)
        lonely = [len(place) - len(pairs) for place in places]
        if len(pairs) and (key == "point" or lonely == [0, 0]):
            break
    else:
        if len(places[0]) or len(places[1]):
            sizes = " and ".join(f"{len(place):,}" for place in places)
            fault = f"the runs share no point, by id or by row ({sizes} points)"
            raise DataError("runs_differ", f"{fault}; score the same points")
    labels = pairs[["label_first", "label_second"]].dropna()
    if differ := int((labels["label_first"] != labels["label_second"]).sum()):
        fault = f"{differ:,} of {len(labels):,} paired points have another label in the second run"
        raise DataError("runs_differ", f"{fault}; score the same data")
    names = ("point", "point") if key == "point" else ("point_first", "point_second")
    return Pairing(key, pairs[names[0]].tolist(), pairs[names[1]].tolist(), *lonely)


def _compared(
    first: pd.Series, second: pd.Series, quantity: str, pairing: Pairing, confidence: float,
    least: tuple[pd.Series, pd.Series] | None = None,
) -> Row:  # fmt: skip
    """Two numbers of the same points, beside each other; `least` is the least that each may be, by default itself."""
    pairs, least_pairs = (
        np.array([before.reindex(pairing.first), after.reindex(pairing.second)], dtype=np.float64)
        for before, after in ((first, second), least or (first, second))
    )
    is_paired = ~np.isnan(pairs).any(axis=0)
    x, y = pairs[:, is_paired]
    differences = np.subtract(x, y, out=np.zeros_like(x), where=x != y)
    if quantity == P_ROBUST:  # what tells flip probabilities apart would be lost in differences of p_robust
        x, y, differences = 1.0 - x, 1.0 - y, 0.0 - differences
    bounded = quantity in BOUNDED and bool(((x >= 0.0) & (x <= 1.0) & (y >= 0.0) & (y <= 1.0)).all())
    centre, apart = (mean_interval, _mean_difference) if bounded else (median_interval, median_interval)
    x_centre, y_centre = centre, centre
    if least is not None:
        x_least, y_least = least_pairs[:, is_paired]
        x_centre, y_centre = _between(centre, x_least, x), _between(centre, y_least, y)
        apart = _between(apart, x_least - y, x - y_least)
    difference = apart(differences, confidence)
    differs, size = differences != 0.0, x.size
    return {
        "pairing": pairing.by, "only_first": pairing.only_first, "only_second": pairing.only_second,
        "dropped": int((~is_paired).sum()), "statistic": MEAN if bounded else MEDIAN, "points": size,
        **named_interval("first", *x_centre(x, confidence)), "first_infinite": int(np.isinf(x).sum()),
        **named_interval("second", *y_centre(y, confidence)), "second_infinite": int(np.isinf(y).sum()),
        **named_interval("difference", *difference),
        "p": _p_value(apart, differences, confidence, _leaves_out(difference)) if size else math.nan,
        "first_larger": float(((differences > 0.0) + 0.5 * ~differs).mean()) if size else math.nan,
        "confidence": confidence,
        "reason": NO_POINTS if not size else None if differs.any() else ALIKE,
    }  # fmt: skip


def _between(interval: Interval, least: Values, most: Values) -> Interval:
    """Return an interval that holds the mean of any values between `least` and `most`."""

    def widened(values: Values, confidence: float) -> tuple[float, float, float]:
        return interval(values, confidence)[0], interval(least, confidence)[1], interval(most, confidence)[2]

    return widened


def _mean_difference(differences: Values, confidence: float) -> tuple[float, float, float]:
    return ranged_interval(differences, -1.0, 1.0, confidence)


def _leaves_out(interval: tuple[float, float, float]) -> bool:
    """Return whether an interval leaves 0 out."""
    return interval[1] > 0.0 or interval[2] < 0.0


def _p_value(interval: Interval, differences: Values, confidence: float, differs: bool) -> float:
    """Return the smallest `1 - confidence` at which the interval leaves 0 out, else 1; `differs` at `confidence`."""
    low, high = (SMALLEST, 1.0 - confidence) if differs else (1.0 - confidence, 1.0 - 1e-9)
    if _leaves_out(interval(differences, 1.0 - low)) if differs else not _leaves_out(interval(differences, 1.0 - high)):
        return low if differs else 1.0
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _leaves_out(interval(differences, 1.0 - middle)) else (middle, high)
    return math.sqrt(low * high)


def most_drawn(frame: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """Return the rows of `compare` without those of fewer draws than a column of the first run's `columns` alike."""
    compared = [column for column in columns if column.label in set(frame["score"])]
    fewer = {column.label for column in compared} - {column.label for column in _most_drawn(compared)}
    return pd.DataFrame(frame[~frame["score"].isin(list(fewer))].reset_index(drop=True))


def _most_drawn(columns: Iterable[Column]) -> Iterable[Column]:
    """Return, of columns that differ by their draws alone, the one with the most."""
    return most_draws_by(columns, lambda column: key_of(column, without_draws=True)).values()


def unpaired(first: Table, second: Table) -> str:
    """Return the scores that `compare` leaves out, as only one run holds them with these parameters; empty for none."""
    parts = []
    for run, counterpart, place in ((first, second, "first"), (second, first, "second")):
        held = {question_of(column) for column in counterpart.columns}
        columns = (column for column in run.columns if question_of(column) not in held)
        alone = [column.label for column in _most_drawn(columns)]
        parts += [f"{listed(alone)} only in the {place}"] if alone else []
    why = "not compared, as a row needs one score with the same parameters in both runs"
    return f"{why}: {', '.join(parts)}" if parts else ""


def format_comparison(frame: pd.DataFrame) -> str:
    """Return the frame of `compare` as plain text for a terminal."""
    if frame.empty:
        return "The two runs share no score, so there is nothing to compare."
    rows, names = frame.to_dict("records"), short_labels(frame["score"])
    row = rows[0]
    by = "id" if row["pairing"] == "point" else "row, as their ids differ"
    alone = [f"{row[f'only_{run}']:,} only in the {run}" for run in ("first", "second") if row[f"only_{run}"]]
    paired = f"{row['points'] + row['dropped']:,} points in both runs, paired by {by}"
    title = "; ".join([paired, *alone, f"intervals at {100 * row['confidence']:.4g}%"])
    header = ["score", "points", "first", "second", "first - second", "p", "first larger"]
    lines = [
        [
            (f"|{names[row['score']]}|" if row["quantity"] == LAPLACIAN else names[row["score"]])
            + (" *" if row["statistic"] == MEDIAN else ""),
            f"{row['points']:,}",
            *(with_interval(row, name) for name in ("first", "second", "difference")),
            number(row["p"]),
            number(row["first_larger"]),
        ]
        for row in rows
    ]
    notes = ["p: of no difference; below 1 minus the confidence where the interval of the difference leaves 0 out"]
    if any(row["statistic"] == MEDIAN for row in rows):
        notes.append("* medians, and the median of the differences; of other scores means")
    notes += remarks(rows)
    return "\n".join([title, more_robust(rows, "the first run", "the second"), *aligned([header, *lines]), *notes])


def more_robust(rows: Iterable[Row], first: str, second: str) -> str:
    """Return in a sentence which of two runs is more robust and by how much, or that the data cannot tell."""
    row = next((row for row in rows if row["speaks"] and row["points"]), None)
    if row is None:
        return f"Nothing that both hold says whether {first} or {second} is more robust; score both by shrinkage."
    apart, low, high = (row[f"difference{end}"] for end in ("", "_low", "_high"))
    sentence = f"The data cannot tell whether {first} or {second} is more robust"
    if low > 0.0 or high < 0.0:
        sentence = f"{first if low > 0.0 else second} is more robust".capitalize()
    flips = row["quantity"] == P_ROBUST
    quantity = "mean probability to keep a prediction" if flips else "median distance to another prediction"
    difference = f"{number(apart)} ({number(low)} to {number(high)} at {100 * row['confidence']:.4g}%)"
    return (
        f"{sentence}: the {quantity} is {number(row['first'])} in {first} and {number(row['second'])} in {second}, the "
        f"{row['statistic']} difference {difference}, by {row['score']}."
    )


def remarks(rows: list[Row]) -> list[str]:
    """Return the remarks that a reader of the rows needs."""
    infinite = max(max(row["first_infinite"], row["second_infinite"]) for row in rows)
    dropped = max(row["dropped"] for row in rows)
    noises = [row["noise"] for row in rows]
    separate, alike = noises.count(OWN), [row for row in rows if row["reason"] == ALIKE]
    sentences = {
        "of flip probabilities p_robust is compared: larger is safer": any(row["quantity"] == P_ROBUST for row in rows),
        f"up to {infinite:,} distances are infinite: no other prediction was found there": infinite,
        f"up to {dropped:,} points are left out for lack of a value in one run or both": dropped,
        f"in {noises.count(SHARED)} of {len(rows)} rows both runs have the same noise": SHARED in noises,
        f"{separate} of {len(rows)} rows read noise of each run's own; one seed makes it the same": separate,
        f"{len(alike)} of {len(rows)} rows hold the same value in both runs at every point": alike,
    }
    return [text for text, holds in sentences.items() if holds]


SEVERAL_FIELDS = ("run", "split", *FIELDS)  # the columns of several comparisons


def compare_several(
    table: Table, rivals: Iterable[tuple[str, Table]], epsilon: float | str | None = None
) -> pd.DataFrame:
    """Return the rows of `compare` with each of several rival runs; an error names the rival."""
    rows: list[Row] = []
    for name, rival in rivals:
        try:
            frame = compare(table, rival, epsilon=epsilon)
        except DataError as error:
            raise DataError(error.code, f"{name}, as the second run: {error.args[0]}") from error
        if frame.empty:
            fault = f"{name} shares no score with the same parameters with the first run"
            raise DataError("runs_differ", f"{fault}; score both by one")
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
