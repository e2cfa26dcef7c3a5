"""The first screen: how brittle, where, how sure, and what to do next."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from brittle.analysis.class_votes import has_votes
from brittle.analysis.columns import safety
from brittle.analysis.overview import FROM_SAFE, Overview
from brittle.analysis.overview_text import how_brittle, how_sure, next_steps, where, where_to_run
from brittle.estimate import INPUT_MARGIN
from brittle.extensions.report.chapter import Chapter
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.images import embedded
from brittle.extensions.report.wording import plural, show, signed, small_percent
from brittle.store.columns import Column, Row
from brittle.store.representative import typical
from brittle.store.schemas import unpack_votes

MAX_CLASSES = 12  # number of classes shown; of more, those with the largest and the smallest share of broken points


PICTURED = 4  # points of each kind that are shown with their images


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Return the first screen; None for a run that speaks of expected changes alone.

    `groups` has the points of each kind and state, `bars` of each class the parts of its bar: state, points, and in per
    cent the start and the width. `left_out` says which classes are not drawn, after the first `gap` bars.
    """
    overview = contents.overview
    if not (contents.tells_robustness or overview.margins):
        return None
    bars = _bars(contents, overview)
    hidden = len(overview.classes) - len(bars) if bars else 0
    return {
        "brittle": show(how_brittle(overview)),
        "where": show(where(overview)),
        "sure": show(how_sure(overview)),
        "near": [show(sentence) for sentence in overview.margins],
        "groups": _groups(overview),
        "pictures": _pictures(contents, overview),
        "bars": bars,
        "left_out": f"{plural(hidden, 'class')} between these not drawn." if hidden else "",
        "gap": MAX_CLASSES // 2 if hidden else 0,
        "steps": [replace(step, command=show(step.command)) for step in next_steps(overview)],
        "folder": show(where_to_run(overview)),
    }


CHAPTER = Chapter("overview", "In short", summarize, "first")


def _groups(overview: Overview) -> list[dict[str, str]]:
    rated = max(overview.points - overview.without_number, 1)
    kinds = [kind for kind in overview.groups.index if sum(overview.groups.loc[kind].tolist())]
    counts = [(kind, state, overview.count(state, kind)) for kind in kinds for state in FROM_SAFE]
    return [
        {"kind": kind, "state": state, "share": small_percent(count / rated), "points": f"{count:,}"}
        for kind, state, count in counts
    ]


def _bars(contents: Contents, overview: Overview) -> list[dict[str, Any]]:
    rows = {int(row["class"]): row for row in overview.classes.to_dict("records")}
    if len(rows) < 2:
        return []
    half = MAX_CLASSES // 2
    shown = [*rows] if len(rows) <= MAX_CLASSES else [*[*rows][:half], *[*rows][-half:]]
    names = contents.class_labels(shown)
    bars = []
    for number in shown:
        start, parts = 0.0, []
        for state in FROM_SAFE:
            points = int(rows[number][state])
            width = 100.0 * points / rows[number]["points"]
            parts.append((state, points, round(start, 2), round(width, 2)))
            start += width
        parts_text = ", ".join(f"{state} {points}" for state, points, _, _ in parts)
        bars.append({"name": names[number], "parts": parts, "alt_text": f"{names[number]}: {parts_text}"})
    return bars


def _pictures(contents: Contents, overview: Overview) -> list[dict[str, Any]]:
    """Choose the least safe right points and the wrong ones with the least probable labels, or, where no label has a
    probability, the safest ones; each beside what it turns into. Empty for a run without images or without an order."""
    ordered = (column for column in contents.columns if safety(column) is not None and column.value.notna().any())
    column = overview.numbers or next(ordered, None)
    order = None if column is None else safety(column)
    if column is None or order is None or contents.points["image"].null_count == contents.points.num_rows:
        return []
    points = _rows(contents, column, order)
    by = "under noise" if overview.is_decisive else f"by {show(column.title)}"
    wrong = [row for row in points[::-1] if row["correct"] is False]
    odd = [row for row in wrong if row["label_probability"] == row["label_probability"]]
    odd.sort(key=lambda row: row["label_probability"])
    why = "with the least probable labels: are these right?" if odd else f"and the safest {by}: is the label right?"
    kinds = (
        (f"Right, and the least safe {by}", [row for row in points if row["correct"] is True]),
        (f"Wrong, {why}", odd or wrong),
        (f"The least safe {by}", [row for row in points if row["correct"] is None]),
    )
    pictured = [(title, _pictured(contents, column, rows[:PICTURED])) for title, rows in kinds]
    return [{"title": title, "points": shown} for title, shown in pictured if shown]


def _rows(contents: Contents, column: Column, order: pd.Series) -> list[Row]:
    """Return the points with a number, the least safe first, each with its `value`: of a flip probability p_robust."""
    names = ["point", "row", "name", "label", "target", "predicted", "decided", "correct", "label_probability"]
    points = contents.points.select(names).to_pandas().set_index("point", drop=False)
    points["value"] = column.p_robust if column.is_probability else column.value
    return points.loc[order.dropna().sort_values(kind="stable").index].to_dict("records")


def _pictured(contents: Contents, column: Column, rows: list[Row]) -> list[dict[str, Any]]:
    ids = pa.array([row["point"] for row in rows], pa.string())
    stored = contents.points.filter(pc.field("point").isin(ids)).select(["point", "image"]).to_pylist()
    images = {row["point"]: embedded(row["image"]) for row in stored}
    neighbours: dict[str, Row] = {}
    for row in contents.counterexamples.filter(pc.field("point").isin(ids)).to_pylist():
        neighbours.setdefault(row["point"], row)
    places, becomes = contents.points["point"].to_pylist(), _becomes(contents)
    return [
        {"place": places.index(point)}
        | _pair(contents, column, row, images[point], neighbours.get(point), becomes.get(point))
        for row in rows
        if images[point := row["point"]]
    ]


def _becomes(contents: Contents) -> Mapping[str, int]:
    """Return the class that most noisy copies of each point with another prediction get, where some have."""
    column = typical([column for column in contents.columns if has_votes(column)])
    if column is None:
        return {}
    predicted = contents.points["predicted"].to_pandas().fillna(-1).to_numpy("int64")
    classes = unpack_votes(column.votes).most_other(predicted).tolist()
    return {point: code for point, code in zip(contents.points["point"].to_pylist(), classes, strict=True) if code >= 0}


def _pair(contents: Contents, column: Column, row: Row, image: str, neighbour: Row | None, becomes: int | None) -> dict:
    """Show a point and what it turns into: the nearest input found with another prediction, else its copies' class."""
    predicted = contents.answer_text(row["predicted"], row["decided"])
    images, change = [(image, f"{predicted}, the point as it is")], predicted
    if neighbour is not None:
        answer = contents.answer_text(neighbour["predicted"], neighbour["decided"])
        images += [(embedded(neighbour["image"]), f"the nearest input found, predicted {answer}")]
        change += f" → {answer}"
    elif becomes is not None:
        change += f" → {contents.class_text(becomes)}"
    notes = [f"labelled {contents.answer_text(row['label'], row['target'])}"] if row["correct"] is False else []
    return {
        "name": show(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        "images": [pair for pair in images if pair[0]],
        "change": change,
        "notes": [*notes, _value_text(column, row["value"])],
    }


def _value_text(column: Column, value: float) -> str:
    if column.is_probability:
        text = "under 0.001" if value < 1e-3 else "over 0.999" if value > 1 - 1e-3 else f"{value:.3f}"
        return f"{'confidence' if column.setting.sigma is None else 'p_robust'} {text}"
    text = signed(value, 3)
    return f"{text} away" if column.score == INPUT_MARGIN else f"{show(column.title)} {text}"
