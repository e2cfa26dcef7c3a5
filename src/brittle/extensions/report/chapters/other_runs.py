"""This run beside other runs over the same points: other models, or corrupted copies of the data."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brittle.analysis.columns import CHANGE, LAPLACIAN, parameters_text
from brittle.analysis.comparison import BOUNDED, MEDIAN, compare, more_robust, most_drawn
from brittle.extensions.report import charts
from brittle.extensions.report.chapter import Chapter, Grid
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.figure import Figure
from brittle.extensions.report.wording import MISSING, fixed, interval, p_value, percent, plural, show, with_reach
from brittle.store.columns import Column, Row

MAX_DRAWN = 2  # other runs that get figures of their own; of more, each has a table
MAX_DIFFERENCES = 24  # scores in the figure of differences
LONGEST = 290  # widest name of a score in a figure that has room for it, in pixels

THIS = "this run"


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Return the comparison with each run; None without any."""
    if not contents.rivals:
        return None
    names = _number_duplicates([show(name, 40) for name in contents.rivals])
    runs_by_name = dict(zip(names, contents.rivals.values(), strict=True))
    return {"runs": [_run(contents, name, run, len(runs_by_name) <= MAX_DRAWN) for name, run in runs_by_name.items()]}


CHAPTER = Chapter("other-runs", "Compared with other runs", summarize, "part")


def _number_duplicates(names: Sequence[str]) -> list[str]:
    times = Counter(names)
    return [f"{name} ({place + 1})" if times[name] > 1 else name for place, name in enumerate(names)]


def _run(contents: Contents, name: str, rival: Contents, drawn: bool) -> dict[str, Any]:
    """Return this run beside another one, with figures of its own where it is `drawn`."""
    frame = compare(contents, rival, epsilon=contents.epsilon)
    column_by_label = {column.label: column for column in contents.columns}
    rows = most_drawn(frame, contents.columns).to_dict("records")
    names = {row["score"]: _score_name(contents, column_by_label.get(row["score"]), row) for row in rows}
    differences = _differences(rows if drawn else [], names, column_by_label)
    header = ("Score", "Points", "This run", "The other", "This − other", "This larger", "p")
    return {
        "name": name,
        "entries": _entries(contents, rival, frame, rows),
        "differences": Figure(difference_chart, differences, _describe_differences(name, differences)),
        "grid": Grid(header, [_row(row, names[row["score"]]) for row in rows]),
        "confidence": percent(contents.confidence),
        "error": percent(1.0 - contents.confidence),
        "dropped": max((row["dropped"] for row in rows), default=0),
        "infinite": max((max(row["first_infinite"], row["second_infinite"]) for row in rows), default=0),
        "left": len(frame) - len(rows),
    }


def _score_name(contents: Contents, column: Column | None, row: Row) -> tuple[str, str, str]:
    """Return the title of the score, its parameters with its noise, and its draws."""
    if column is None:
        return row["title"], show(row["score"].partition("(")[2].rstrip(")"), 40), ""
    name = show(column.title, 40)
    name = f"|{name}|" if row["quantity"] == LAPLACIAN else name
    name += " *" if row["statistic"] == MEDIAN else ""
    noise = "" if column.setting.sigma is None else contents.noise_text(column.setting)
    details = ", ".join(filter(None, [show(parameters_text(column), 40), noise]))
    if not noise or column.most_draws is None:
        return name, details, ""
    return name, details, f"{'at most ' if column.stops else ''}{plural(column.most_draws, 'draw')}"


def _entries(contents: Contents, rival: Contents, frame: pd.DataFrame, rows: Sequence[Row]) -> list[tuple[str, str]]:
    this, that = contents.record, rival.record
    models = this.model.sha256, that.model.sha256
    if this.model.state_sha256 is not None and that.model.state_sha256 is not None:
        models = this.model.state_sha256, that.model.state_sha256
    points = "The two runs share no score, so there is nothing to compare."
    if rows:
        row = rows[0]
        points = f"{plural(row['points'] + row['dropped'], 'point')} in both, paired by "
        points += "id" if row["pairing"] == "point" else "row, as their ids differ"
        points += f"; {row['only_first']:,} only here" if row["only_first"] else ""
        points += f"; {row['only_second']:,} only there." if row["only_second"] else "."
    return [
        ("Robustness", more_robust(frame.to_dict("records"), THIS, "the other")),
        ("Model", _same_text(*models, that.model.spec)),
        ("Data", _same_text(this.data.sha256, that.data.sha256, that.data.path)),
        ("Points", points),
    ]


def _same_text(digest: str | None, rival_digest: str | None, name: str | None) -> str:
    """Say whether a part of the two runs is the same by its digests, and name the other one."""
    called = show(name, 80)
    if digest is None or rival_digest is None:
        return f"{called}; no digest tells whether it is the same."
    if digest == rival_digest:
        return f"The same, {called} ({show(rival_digest, 12)})."
    return f"Another one, {called} ({show(rival_digest, 12)}; here {show(digest, 12)})."


def _row(row: Row, name: tuple[str, str, str]) -> tuple[str, ...]:
    noise = ", ".join(filter(None, name[1:]))
    bounded = row["quantity"] in BOUNDED
    return (
        f"{name[0]}\n{noise}" if noise else name[0],
        f"{row['points']:,}",
        *(_centre(row, run, bounded) for run in ("first", "second")),
        _centre(row, "difference", False),
        MISSING if math.isnan(row["first_larger"]) else percent(row["first_larger"]),
        p_value(row["p"]),
    )


def _centre(row: Row, name: str, bounded: bool) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    return f"{fixed(value)}\n{interval(low, high)}" if bounded and value == value else with_reach(value, low, high)


def _differences(rows: Sequence[Row], names: Mapping[str, tuple], columns: Mapping[str, Column]) -> pd.DataFrame:
    """Draw the differences of probability scores, on one scale where larger is safer."""
    changes = (column for column in columns.values() if column.quantity == CHANGE)
    means = {column.label for column in changes if column.parameters.get("statistic") == "mean"}
    rated = (row for row in rows if row["quantity"] in BOUNDED or row["score"] in means)
    chosen = [row for row in rated if math.isfinite(row["difference"])][:MAX_DIFFERENCES]
    texts = _number_duplicates([", ".join(filter(None, names[row["score"]][:2])) for row in chosen])
    differences = [
        (text, order, row["difference"], row["difference_low"], row["difference_high"])
        for order, (text, row) in enumerate(zip(texts, chosen, strict=True))
    ]
    frame = pd.DataFrame(differences, columns=["name", "order", "value", "low", "high"])
    low, high = (frame[end].where(np.isfinite(frame[end].astype(float)), frame["value"]) for end in ("low", "high"))
    return frame.assign(low=low, high=high)  # without the ends that nothing is known of


def _describe_differences(name: str, frame: pd.DataFrame) -> str:
    above, below = (frame["low"] > 0.0).sum(), (frame["high"] < 0.0).sum()
    return (
        f"This run minus {name}, larger is safer: safer by {above} of {len(frame)} scores, less safe by {below}, not "
        f"told apart by {len(frame) - above - below}"
    )


def difference_chart(frame: pd.DataFrame, width: int = charts.NARROW) -> Any:
    """Mean paired differences with intervals, one row per score, each turned so that right is safer in this run."""
    names = min(LONGEST, width // 2 - 20)
    zero = charts.dashed(alt.Chart(pd.DataFrame({"zero": [0.0]})), x="zero:Q")
    rows = alt.Y("name:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=charts.names_axis(names))
    place = alt.Chart(frame).encode(y=rows, color=alt.value(charts.ACCENT))
    title = ["this run minus the other,", "right of 0 this run is safer"]
    x = {"title": title, "axis": charts.few_ticks(max(width // 150, 3))}
    layers = alt.layer(zero, *charts.interval_dots(place, **x))
    return layers.properties(width=width - names - 30, height=alt.Step(20))
