"""Robustness class by class: figures, tables and images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from brittle.analysis.class_bias import MIN_POINTS, ClassBias, class_bias, class_name
from brittle.analysis.columns import Setting, preferred
from brittle.analysis.extremes import extremes
from brittle.estimate import Evidence
from brittle.report import wording
from brittle.report.subject import Subject
from brittle.report.summary import Classes, Gallery, Grid, Images, Shown
from brittle.report.thumbnails import embedded
from brittle.report.wording import fixed, interval, plural, range_text, short, shown

MAX_CLASSES = 30
"""Classes drawn; of more, the least and the most robust."""

MAX_GALLERIES = 12
"""Classes whose images are shown; of more, the least and the most robust."""

PER_SIDE = 5
"""Images per class and side."""


def class_biases(subject: Subject) -> dict[Setting, ClassBias]:
    """Robustness by class under each setting that is shown."""
    found = {setting: preferred(subject.columns, setting) for setting in subject.panels}
    biases = {s: class_bias(subject.table, column) for s, column in found.items() if column is not None}
    return {setting: bias for setting, bias in biases.items() if bias is not None}


def summarize_classes(subject: Subject, biases: dict[Setting, ClassBias], bias: ClassBias | None) -> Classes:
    """The section on robustness by class."""
    return Classes(_classes_frame(subject, biases, bias), _classes_grid(subject, bias), _classes_note(bias))


def _classes_frame(subject: Subject, biases: dict[Setting, ClassBias], bias: ClassBias | None) -> pd.DataFrame:
    """The classes under each setting, in the order of `bias`."""
    if bias is None:
        return pd.DataFrame(columns=["setting", "name", "order", "mean", "low", "high", "overall"])
    kept = _ends(bias.classes["class"].tolist(), MAX_CLASSES)
    names = _distinct({number: shown(class_name(subject.table, number), 28) for number in kept})
    rows = [
        {name: row[name] for name in ("mean", "low", "high")}
        | {"setting": shown(str(setting)), "name": names[row["class"]], "order": kept.index(row["class"])}
        | {"overall": one.column.p_robust.mean()}
        for setting, one in biases.items()
        for row in one.classes.to_dict("records")
        if row["class"] in names
    ]
    return pd.DataFrame(rows)


def _ends(items: list[Any], limit: int) -> list[Any]:
    """All items, or of more than `limit` the first and the last."""
    return items if len(items) <= limit else items[: limit // 2] + items[len(items) - limit // 2 :]


def _distinct(names: dict[Any, str]) -> dict[Any, str]:
    """Names made distinct by the class's number where two classes share one."""
    times = Counter(names.values())
    return {number: f"{name} ({number})" if times[name] > 1 else name for number, name in names.items()}


def _classes_grid(subject: Subject, bias: ClassBias | None) -> Grid:
    records = bias.classes.to_dict("records") if bias is not None else []
    rows = tuple(
        (
            subject.class_text(row["class"]),
            f"{row['points']:,}",
            fixed(row["mean"]),
            interval(row["low"], row["high"]),
            fixed(row["median"]),
        )
        for row in records
    )
    return Grid(("Class", "Points", "Mean p_robust", "Interval", "Median"), (False, True, True, True, True), rows)


def _classes_note(bias: ClassBias | None) -> str:
    if bias is None:
        return "No point has both a robustness and a class."
    by = "true class" if bias.by == "label" else "predicted class, as the data carry no labels"
    if len(bias.classes) < 2:
        return f"Points by {by}. All belong to one class, so there is nothing to compare."
    sizes = bias.classes["points"]
    left = len(bias.classes) - MAX_CLASSES
    return " ".join(
        part
        for part in (
            f"Points by {by}, {range_text([f'{sizes.min():,}', f'{sizes.max():,}'])} to a class; order and test at "
            f"{shown(str(bias.column.setting))}, where the class means differ by up to {fixed(bias.spread)}.",
            _test_text(bias),
            "Each interval is for its class alone and for the mean over all points that might have been drawn from it.",
            f"{plural(left, 'class')} in the middle not drawn." if left > 0 else "",
        )
        if part
    )


def _test_text(bias: ClassBias) -> str:
    if pd.isna(bias.p_value):
        return f"Fewer than two classes have the {MIN_POINTS} points that a test of the difference needs."
    value = "below 1e-16" if bias.p_value < 1e-16 else short(bias.p_value)
    verdict = "chance alone hardly explains them" if bias.p_value < 0.01 else "chance alone may explain them"
    return (
        f"If p_robust had one distribution in all {bias.tested} classes of at least {MIN_POINTS} points, differences "
        f"as clear would arise with probability {value} (Kruskal–Wallis test): {verdict}."
    )


def summarize_images(subject: Subject, bias: ClassBias | None) -> Images:
    """The section that shows the extremes of each class."""
    if bias is None:
        return Images((), "No point has both a robustness and a class.")
    kept = sorted(_ends(bias.classes["class"].tolist(), MAX_GALLERIES))
    points = extremes(subject.table, PER_SIDE, bias.column).to_dict("records")
    images = dict(zip(subject.table.points["row"].to_pylist(), subject.table.points["image"].to_pylist(), strict=True))
    score = bias.column.score
    galleries = tuple(_gallery(subject, number, points, images, score) for number in kept)
    return Images(galleries, _images_note(subject, bias, galleries))


def _gallery(subject: Subject, number: int, points: list[Any], images: dict[int, bytes | None], score: str) -> Gallery:
    of_class = [row for row in points if row["class"] == number]
    least, most = (
        tuple(_shown(subject, row, images, score) for row in of_class if row["side"] == side)
        for side in ("least", "most")
    )
    return Gallery(subject.class_text(number), least, most)


def _shown(subject: Subject, row: dict[Any, Any], images: dict[int, bytes | None], score: str) -> Shown:
    return Shown(
        name=shown(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        image=embedded(images[row["row"]]),
        robustness=_robustness(row, score),
        predicted=subject.class_text(row["predicted"]),
        wrong=bool(pd.notna(row["label"]) and row["label"] != row["predicted"]),
    )


def _robustness(row: dict[Any, Any], score: str) -> str:
    """A robustness for a caption: `p 0.873`, or the flip probability where that would round to 1."""
    flip, high = row["flip_probability"], row["high"]
    if row["evidence"] == Evidence.EXTRAPOLATED.slug and flip < wording.NEAR_ONE:
        return wording.extrapolated(flip, high, score)
    if flip == 0.0 and high > 0.0:
        return f"flip < {wording.at_most(high)}"
    return f"flip {short(flip)}" if flip < wording.NEAR_ONE else f"p {fixed(1.0 - flip)}"


def _images_note(subject: Subject, bias: ClassBias, galleries: Sequence[Gallery]) -> str:
    images = any(point.image for gallery in galleries for point in (*gallery.least, *gallery.most))
    left = len(bias.classes) - len(galleries)
    return " ".join(
        part
        for part in (
            f"Read from {shown(bias.column.label)}.",
            subject.ties_text(bias.column),
            "" if images else "The run holds no images, so the points are named.",
            f"Shown are the least and the most robust classes; {plural(left, 'class')} between them left out."
            if left
            else "",
        )
        if part
    )
