"""The most fragile predictions, and the least and the most robust ones of each class."""

from __future__ import annotations

from typing import Any

import pandas as pd

from brittle.analysis.point_list import extremes, point_list
from brittle.estimate import Evidence
from brittle.report.chapter import Chapter, Grid
from brittle.report.contents import Contents, extreme_classes
from brittle.report.images import embedded
from brittle.report.wording import (
    MISSING,
    NEAR_ONE,
    extrapolated,
    p_robust,
    plural,
    reach,
    short,
    show,
    small_percent,
    under,
)
from brittle.store.columns import Column, Row

HEAD = ("Row", "Name", "Id", "Label", "Predicted", "p_robust", "Flip probability", "Interval", "Evidence", "Status")

MOST_FRAGILE = 20
"""Rows in the table."""

FACES = 12
"""Points shown as images."""

MAX_GALLERIES = 12
"""Classes whose images are shown; of more, the least and the most robust."""

PER_SIDE = 5
"""Images per class and side."""

OPEN = 0.95
"""Upper end of an interval from which on it says nothing of a point."""


def summarize(contents: Contents) -> dict[str, Any] | None:
    """The first points by robustness, as images where there are any; None where no point has a robustness."""
    column = contents.chosen
    order = None if column is None else point_list(contents, column).dropna(subset="value")
    if column is None or order is None or order.empty:
        return None
    images = dict(zip(contents.points["row"].to_pylist(), contents.points["image"].to_pylist(), strict=True))
    faces = [_face(contents, column, row, images) for row in _flips_of(column, order.head(FACES))]
    faces = [face for face in faces if face["image"]]
    rows = [_row(contents, column, row) for row in _flips_of(column, order.head(MOST_FRAGILE))]
    return {
        "faces": faces,
        "grid": Grid(HEAD, rows, frozenset({1, 2, 3, 4, 8, 9})),
        "shown": len(faces) or len(rows),
        "of": plural(len(order), "point"),
        "by": show(column.shown),
        **_galleries(contents, images),
    }


CHAPTER = Chapter("fragile", "The most fragile predictions", summarize)


def _flips_of(column: Column, points: pd.DataFrame) -> list[Row]:
    """Points with the flip probability of a column, its interval and its evidence; near 0 all digits are kept."""
    own = column.rows[["value", "low", "high", "evidence"]]
    return points.drop(columns=["value", "low", "high"]).join(own, on="point").to_dict("records")


def _face(contents: Contents, column: Column, row: Row, images: dict[int, bytes | None]) -> dict[str, Any]:
    """A point with its image."""
    predicted, flips = contents.class_text(row["predicted"]), _flips(row, column)
    wrong = bool(pd.notna(row["label"]) and row["label"] != row["predicted"])
    label = contents.class_text(row["label"]) if wrong else ""
    kind = f"{label}, wrongly predicted as {predicted}" if wrong else f"predicted as {predicted}"
    return {
        "name": contents.point_name(row),
        "image": embedded(images[row["row"]]),
        "flips": flips,
        "predicted": predicted,
        "label": label,
        "text": f"{kind}, flips {flips}",
    }


def _row(contents: Contents, column: Column, row: Row) -> tuple[str, ...]:
    flip, modelled = row["value"], row["evidence"] == Evidence.EXTRAPOLATED.slug
    return (
        f"{row['row']:,}",
        show(row["name"], 48),
        show(row["point"], 16),
        contents.answer_text(row["label"], row["target"]),
        contents.answer_text(row["predicted"], row["decided"]),
        p_robust(flip, row["high"] if modelled else None),
        extrapolated(flip, row["high"], column.model) if modelled else short(flip, 3),
        MISSING if pd.isna(row["low"]) or pd.isna(row["high"]) else reach(row["low"], row["high"]),
        show(row["evidence"]),
        show(row["status"]),
    )


def _flips(row: Row, column: Column) -> str:
    """How often the prediction flips; where a model alone says that it hardly does, the bound that it gives."""
    flip = row["value"]
    if row["evidence"] == Evidence.EXTRAPOLATED.slug and flip < NEAR_ONE:
        return extrapolated(flip, row["high"], column.model)
    return small_percent(flip)


def _galleries(contents: Contents, images: dict[int, bytes | None]) -> dict[str, Any]:
    """The least and the most robust points of each class, or of many of the extreme ones."""
    bias = contents.bias
    if bias is None:
        return {"galleries": []}
    classes = sorted(extreme_classes(bias, MAX_GALLERIES))
    portraits: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in _flips_of(bias.column, extremes(contents, PER_SIDE, bias.column)):
        portraits.setdefault((row["class"], row["side"]), []).append(_portrait(contents, bias.column, row, images))
    galleries = [
        {
            "name": contents.class_text(number),
            "sides": [(side, portraits.get((number, side), [])) for side in ("least", "most")],
        }
        for number in classes
    ]
    left = len(bias.classes) - len(classes)
    return {
        "galleries": galleries,
        "with_images": any(one["image"] for points in portraits.values() for one in points),
        "classes_left": plural(left, "class") if left else "",
        "read_from": show(bias.column.shown),
    }


def _portrait(contents: Contents, column: Column, row: Row, images: dict[int, bytes | None]) -> dict[str, Any]:
    """A point of a class; the most robust with the upper end of how often they flip, by which they are ordered."""
    face = _face(contents, column, row, images)
    flips = f"flips {face['flips']}"
    if row["side"] == "most" or row["value"] == 0.0:
        flips = f"flips {under(row['high'])}" if row["high"] < OPEN else "undecided"
        flips = f"flips {small_percent(row['value'])}" if pd.isna(row["high"]) else flips
    own = f"{contents.class_text(row['class'])}, predicted as " if face["label"] else ""
    return face | {"flips": flips, "text": f"{own}{face['predicted']}, {flips}"}
