"""This run beside other runs over the same points: other models, or corrupted copies of the data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from brittle.analysis.change_columns import LAPLACIAN, laplacian_column, sampled_columns
from brittle.analysis.columns import Column, Setting, columns
from brittle.analysis.comparison import ACCURACY, BOUNDED, MEAN_ABSOLUTE, MEDIAN, compare
from brittle.analysis.expected_change import CHANGE
from brittle.analysis.label_flips import FLIPS
from brittle.analysis.mean_absolute import mean_absolute
from brittle.analysis.mean_interval import MeanInterval, mean_interval
from brittle.estimate import parameters_json
from brittle.report.subject import Subject
from brittle.report.summary import Fact, Grid, Number, OtherRun, OtherRuns, Panel
from brittle.report.wording import MISSING, fixed, p_value, percent, plural, reach, shown, signed, small_percent
from brittle.store.table import Table

MAX_DRAWN = 2
"""Other runs that get figures of their own; of more, the series is drawn and each has a table."""

MAX_DIFFERENCES = 24
"""Scores in the figure of differences."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles drawn of both runs."""

_DIFFERENCES = ["name", "order", "value", "low", "high"]
_HEAD = ("Score", "Points", "This run", "The other", "This − other", "This larger", "p")
_THIS = "this run"


def summarize_comparison(subject: Subject, against: Mapping[str, Table]) -> OtherRuns | None:
    """The chapter on other runs, by their names; None without any.

    Raises:
        DataError: the points of a run cannot be paired with those of this one.
    """
    if not against:
        return None
    names = _distinct([shown(name, 40) for name in against])
    others = dict(zip(names, against.values(), strict=True))
    flips = _flips_setting(subject)
    runs = tuple(
        _other_run(subject, name, other, flips, drawn=len(others) <= MAX_DRAWN) for name, other in others.items()
    )
    series = _series(subject, others, flips) if len(others) > 1 else ()
    return OtherRuns(runs, series, _series_grid(runs, series), _series_note(len(others), series))


def _distinct(names: Sequence[str]) -> list[str]:
    """Names told apart by their place where several are alike."""
    times = Counter(names)
    return [f"{name} ({place + 1})" if times[name] > 1 else name for place, name in enumerate(names)]


def _flips_setting(subject: Subject) -> Setting | None:
    """The noise setting whose flips are shown: the one that the page speaks of, or the noisiest."""
    known = sampled_columns(subject.columns, FLIPS)
    chosen = subject.chosen.setting if subject.chosen is not None else None
    return chosen if chosen in known else next(reversed(known), None)


# One other run


def _other_run(subject: Subject, name: str, other: Table, flips: Setting | None, drawn: bool) -> OtherRun:
    frame = compare(subject.table, other)
    known = {column.label: column for column in subject.columns}
    rows = most_drawn(frame, subject.columns).to_dict("records")
    names = {row["score"]: _score_name(subject, known.get(row["score"]), row) for row in rows}
    return OtherRun(
        name=name,
        facts=_facts(subject, other, rows),
        numbers=_numbers(subject, rows, known, flips),
        differences=_differences(rows, names) if drawn else pd.DataFrame(columns=_DIFFERENCES),
        spreads=_spreads(subject, name, other, flips) if drawn else (),
        grid=Grid(_HEAD, (False, *[True] * 6), tuple(_row(row, names[row["score"]]) for row in rows)),
        note=_note(rows, len(frame) - len(rows)),
    )


def most_drawn(frame: pd.DataFrame, found: Sequence[Column]) -> pd.DataFrame:
    """The rows of `compare` without those of fewer draws than another that differs by nothing else.

    Args:
        frame: a comparison.
        found: the columns of the first run.
    """
    best: dict[tuple[str, str], Column] = {}
    compared = set(frame["score"])
    for column in found:
        key = column.score, parameters_json({k: v for k, v in column.parameters.items() if k != "draws"})
        if column.label in compared and (key not in best or (column.draws or 0) > (best[key].draws or 0)):
            best[key] = column
    kept = {ACCURACY, *(column.label for column in best.values())}
    return pd.DataFrame(frame[frame["score"].isin(list(kept))].reset_index(drop=True))


def _score_name(subject: Subject, column: Column | None, row: dict[Any, Any]) -> tuple[str, str]:
    """The score as the table writes it, and its noise."""
    if column is None:
        return "accuracy", ""
    marks = {MEAN_ABSOLUTE: "|{}|", MEDIAN: "{} *"}
    name = marks.get(row["statistic"], "{}").format(shown(column.variant, 40))
    if column.setting.sigma is None:
        return name, ""
    draws = f", {plural(column.draws, 'draw')}" if column.draws is not None else ""
    return name, f"{subject.noise_text(column.setting)}{draws}"


def _facts(subject: Subject, other: Table, rows: Sequence[dict[Any, Any]]) -> tuple[Fact, ...]:
    def part(name: str) -> dict[str, Any]:
        found = other.provenance.get(name)
        return found if isinstance(found, dict) else {}

    return (
        Fact("Model", _difference_text(subject.part("model"), part("model"), ("state_sha256", "sha256"), "spec")),
        Fact("Data", _difference_text(subject.part("data"), part("data"), ("sha256",), "path")),
        Fact("Points", _pairing_text(rows)),
    )


def _difference_text(this: dict[str, Any], other: dict[str, Any], digests: Sequence[str], name: str) -> str:
    """Whether a part of the two records is the same by its digest, and what the other one is called."""
    called = shown(other.get(name), 80)
    digest = next((one for one in digests if this.get(one) is not None and other.get(one) is not None), None)
    if digest is None:
        return f"{called}; no digest tells whether it is the same."
    here, there = shown(this[digest], 12), shown(other[digest], 12)
    same = this[digest] == other[digest]
    return f"The same, {called} ({there})." if same else f"Another one, {called} ({there}; here {here})."


def _pairing_text(rows: Sequence[dict[Any, Any]]) -> str:
    if not rows:
        return "The two runs share no score, so there is nothing to compare."
    row = rows[0]
    by = "id" if row["pairing"] == "point" else "row, as their ids differ"
    alone = [f"{row[f'only_{key}']:,} only {where}" for key, where in (("first", "here"), ("second", "there"))
             if row[f"only_{key}"]]  # fmt: skip
    return "; ".join([f"{plural(row['points'] + row['dropped'], 'point')} in both, paired by {by}", *alone]) + "."


def _numbers(
    subject: Subject, rows: Sequence[dict[Any, Any]], known: Mapping[str, Column], flips: Setting | None
) -> tuple[Number, ...]:
    """Accuracy, Laplacian and flips of both runs, as far as they share them."""
    spoken = {
        "Accuracy": next((row for row in rows if row["score"] == ACCURACY), None),
        "Mean |Laplacian|": next((row for row in rows if row["quantity"] == LAPLACIAN and _is(known, row, None)), None),
        f"Mean flip probability, {subject.noise_text(flips)}" if flips else "": next(
            (row for row in rows if flips is not None and _is(known, row, flips)), None
        ),
    }
    return tuple(_number(title, row) for title, row in spoken.items() if row is not None and row["points"])


def _is(known: Mapping[str, Column], row: dict[Any, Any], flips: Setting | None) -> bool:
    """Whether a row is of the plain Laplacian, or of the flips at a noise setting."""
    column = known.get(row["score"])
    if column is None:
        return False
    if flips is None:
        return column.score == LAPLACIAN and "target" not in column.parameters
    return column.score == FLIPS and column.setting == flips and not column.parameters.get("clip")


def _number(title: str, row: dict[Any, Any]) -> Number:
    bounded = row["quantity"] in BOUNDED
    first, second = (small_percent(row[end]) if bounded else signed(row[end]) for end in ("first", "second"))
    note = f"Difference {_difference(row)}, p {_p_text(row)}."
    return Number(f"{title}, here vs there", f"{first} vs {second}", note)


def _difference(row: dict[Any, Any]) -> str:
    low, high = row["difference_low"], row["difference_high"]
    return f"{signed(row['difference'])} ({reach(low, high)})"


def _p_text(row: dict[Any, Any]) -> str:
    value = row["p_mcnemar"] if row["quantity"] == ACCURACY else row["p_wilcoxon"]
    return MISSING if math.isnan(value) else p_value(value)


def _row(row: dict[Any, Any], name: tuple[str, str]) -> tuple[str, ...]:
    return (
        "\n".join(part for part in name if part),
        f"{row['points']:,}",
        _centre(row, "first"),
        _centre(row, "second"),
        _centre(row, "difference"),
        MISSING if math.isnan(row["first_larger"]) else percent(row["first_larger"]),
        _p_text(row),
    )


def _centre(row: dict[Any, Any], name: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if math.isnan(value):
        return MISSING
    if row["quantity"] in BOUNDED and name != "difference":
        return f"{fixed(value)}\n{fixed(low)} to {fixed(high)}"
    return f"{signed(value)}\n{reach(low, high)}"


def _note(rows: Sequence[dict[Any, Any]], left: int) -> str:
    if not rows:
        return ""
    dropped = max(row["dropped"] for row in rows)
    infinite = max(max(row["first_infinite"], row["second_infinite"]) for row in rows)
    return " ".join(
        part
        for part in (
            "Means over the paired points, of the absolute value where bars stand around the score, with intervals "
            f"at {percent(rows[0]['confidence'])}. p: of no difference, by McNemar's test of the accuracy and "
            "Wilcoxon's of the others, each for itself.",
            f"* medians, as up to {plural(infinite, 'distance')} in a run are infinite."
            if any(row["statistic"] == MEDIAN for row in rows)
            else "",
            f"Up to {plural(dropped, 'point')} left out for lack of a value in either run." if dropped else "",
            f"{plural(left, 'row')} with fewer draws left out." if left else "",
        )
        if part
    )


def _differences(rows: Sequence[dict[Any, Any]], names: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Of the scores that are, or change, a probability: their differences share one scale."""
    chosen = [row for row in rows if row["quantity"] in BOUNDED or _is_mean_change(row)]
    chosen = [row for row in chosen if math.isfinite(row["difference"])][:MAX_DIFFERENCES]
    texts = _distinct([_named(names[row["score"]]) for row in chosen])
    found = [
        {"name": text, "order": order, "value": row["difference"]}
        | {"low": row["difference_low"], "high": row["difference_high"]}
        for order, (text, row) in enumerate(zip(texts, chosen, strict=True))
    ]
    return _finite(pd.DataFrame(found, columns=_DIFFERENCES))


def _named(name: tuple[str, str]) -> str:
    """The score with its noise, without the draws."""
    level = name[1].partition(", ")[0] if name[1] else ""
    return f"{name[0]}, {level}" if level else name[0]


def _is_mean_change(row: dict[Any, Any]) -> bool:
    return row["quantity"] == CHANGE and "statistic=mean" in row["score"]


def _finite(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` without the ends that nothing is known of."""
    if frame.empty:
        return frame
    low, high = (frame[end].where(np.isfinite(frame[end]), frame["value"]) for end in ("low", "high"))
    return frame.assign(low=low, high=high)


def _spreads(subject: Subject, name: str, other: Table, flips: Setting | None) -> tuple[Panel, ...]:
    """|Laplacian| and flip probability of both runs, where both have them."""
    theirs = columns(other)
    pairs = {"|Laplacian|": (laplacian_column(subject.columns), laplacian_column(theirs))}
    if flips is not None:
        title = f"flip probability, {subject.noise_text(flips)}"
        pairs[title] = (sampled_columns(subject.columns, FLIPS).get(flips), sampled_columns(theirs, FLIPS).get(flips))
    runs = _distinct([_THIS, name])
    panels = []
    for title, both in pairs.items():
        values = [_absolute(column) for column in both]
        if all(value.size for value in values):
            panels.append(Panel(title, _spread_frame(runs, values, title)))
    return tuple(panels)


def _absolute(column: Column | None) -> np.ndarray:
    values = np.abs(column.value.to_numpy(dtype=np.float64)) if column is not None else np.empty(0)
    return values[np.isfinite(values)]


def _spread_frame(runs: Sequence[str], values: Sequence[np.ndarray], title: str) -> pd.DataFrame:
    ends = [f"q{100 * share:02.0f}" for share in QUANTILES]
    found = [
        {"run": run, "order": order, "title": title} | dict(zip(ends, np.quantile(one, QUANTILES), strict=True))
        for order, (run, one) in enumerate(zip(runs, values, strict=True))
    ]
    return pd.DataFrame(found)


# Several other runs


def _series(subject: Subject, others: Mapping[str, Table], flips: Setting | None) -> tuple[Panel, ...]:
    """Mean |Laplacian| and mean flip probability of each run, each over all points that it has a value for."""
    level = f"mean flip probability, {subject.noise_text(flips)}" if flips is not None else ""
    kinds = {"mean |Laplacian|": _mean_laplacian, level: lambda table: _mean_flips(table, flips)}
    panels = []
    for title, mean in kinds.items():
        this, found = mean(subject.table), {name: mean(other) for name, other in others.items()}
        known = {name: value for name, value in found.items() if value is not None}
        if title and this is not None and known:
            rows = [
                {"name": name, "order": order, "value": value, "low": low, "high": high}
                | {"this": this[0], "this_low": this[1], "this_high": this[2]}
                for order, (name, (value, low, high)) in enumerate(known.items())
            ]
            panels.append(Panel(title, _finite(pd.DataFrame(rows)).assign(title=title)))
    return tuple(panels)


def _mean_laplacian(table: Table) -> tuple[float, float, float] | None:
    column = laplacian_column(columns(table))
    if column is None or np.isinf(column.value).any():
        return None
    mean = mean_absolute(table, column)
    return mean.mean, mean.low, mean.high


def _mean_flips(table: Table, flips: Setting | None) -> MeanInterval | None:
    column = None if flips is None else sampled_columns(columns(table), FLIPS).get(flips)
    if column is None:
        return None
    return mean_interval(column.value, float(table.provenance.get("confidence") or 0.99))


def _series_grid(runs: Sequence[OtherRun], series: Sequence[Panel]) -> Grid:
    """The means of the series, one row per run."""
    head = ("Run", *(panel.title[0].upper() + panel.title[1:] for panel in series))
    found = [{row["name"]: row for row in panel.frame.to_dict("records")} for panel in series]
    this = (_THIS, *(_series_cell(panel.frame.iloc[0].to_dict(), "this") for panel in series))
    rows = [(run.name, *(_series_cell(one.get(run.name)) for one in found)) for run in runs]
    return Grid(head, (False, *[True] * len(series)), (this, *rows) if series else ())


def _series_cell(row: dict[Any, Any] | None, of: str = "") -> str:
    """The mean of another run, or `of` this one, with its interval."""
    if row is None:
        return MISSING
    low, high = (row[f"{of}_{end}" if of else end] for end in ("low", "high"))
    return f"{signed(row[of or 'value'], 3)}\n{reach(low, high, 3)}"


def _series_note(count: int, series: Sequence[Panel]) -> str:
    if count < 2:
        return ""
    if not series:
        return "The runs share neither a Laplacian nor flips, so no series is drawn."
    return (
        "The other runs in the order given, each mean over all points of the run that have a value, with its interval; "
        "the dashed line is this run."
    )
