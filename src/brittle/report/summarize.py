"""From a table to everything the page says."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from brittle.analysis.agreement import agreement, by_setting
from brittle.analysis.class_bias import MIN_POINTS, ClassBias, class_bias, class_name
from brittle.analysis.columns import PREFERENCE, TYPICAL_P_ROBUST, Column, Setting, preferred
from brittle.analysis.distribution import FRAGILE, histogram
from brittle.analysis.extremes import extremes, ranked, tie_breaker
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.rank_correlation import rank_correlation
from brittle.report import wording
from brittle.report.scored import summarize_repeat, summarize_scored, summarize_warnings
from brittle.report.subject import Subject, open_table
from brittle.report.summary import (
    Agreement,
    Classes,
    Comparison,
    Distribution,
    Fragile,
    Gallery,
    Grid,
    Headline,
    Images,
    Margins,
    Number,
    Shown,
    Summary,
)
from brittle.report.wording import MISSING, fixed, interval, percent, plural, range_text, short, shown
from brittle.table import Table

MAX_CLASSES = 30
"""Classes drawn; of more, the least and the most robust."""

MAX_GALLERIES = 12
"""Classes whose images are shown; of more, the least and the most robust."""

PER_SIDE = 5
"""Images per class and side."""

MOST_FRAGILE = 20
"""Rows in the table of the most fragile points."""

MAX_DOTS = 1200
"""Points drawn in one scatter plot."""

MAX_THUMBNAIL = 1 << 18
"""Bytes beyond which an image is left out of the page."""

_PNG = b"\x89PNG\r\n\x1a\n"


def summarize(table: Table) -> Summary:
    """Everything that the page says of `table`."""
    subject = open_table(table)
    biases = _biases(subject)
    bias = biases.get(subject.chosen.setting) if subject.chosen is not None else None
    return Summary(
        title=_title(subject),
        subtitle=_subtitle(subject),
        warnings=summarize_warnings(subject),
        headline=_headline(subject, bias),
        scored=summarize_scored(subject),
        distribution=_distribution(subject),
        classes=_classes(subject, biases, bias),
        images=_images(subject, bias),
        agreement=_agreement(subject),
        margins=_margins(subject),
        fragile=_fragile(subject),
        repeat=summarize_repeat(subject),
    )


def _title(subject: Subject) -> str:
    spec = str(subject.part("model").get("spec") or "the model")
    return f"How easily do the predictions of {shown(spec.rpartition('/')[2] or spec, 48)} break?"


def _subtitle(subject: Subject) -> str:
    created = shown(subject.provenance.get("created"), 60)[:16].replace("T", " ")
    state = "" if subject.provenance.get("finished") else " The run had not finished: the page shows what it had."
    return f"Scored {created} with brittle {shown(subject.provenance.get('brittle'))}.{state}"


def _biases(subject: Subject) -> dict[Setting, ClassBias]:
    """Robustness by class under each setting that is shown."""
    found = {setting: preferred(subject.columns, setting) for setting in subject.panels}
    biases = {s: class_bias(subject.table, column) for s, column in found.items() if column is not None}
    return {setting: bias for setting, bias in biases.items() if bias is not None}


# In short


def _headline(subject: Subject, bias: ClassBias | None) -> Headline:
    found = [(setting, preferred(subject.columns, setting)) for setting in subject.panels]
    means = [_mean_number(subject, setting, column) for setting, column in found if column is not None]
    return Headline((*means, *_class_numbers(subject, bias)), _choice(subject))


def _mean_number(subject: Subject, setting: Setting, column: Column) -> Number:
    mean = mean_interval(column.p_robust, subject.confidence)
    fragile = float((column.value.dropna() > FRAGILE).mean())
    return Number(
        title=f"Mean p_robust, {shown(str(setting))}",
        value=fixed(mean.mean),
        note=f"{interval(mean.low, mean.high)}. {percent(fragile)} of the points flip with a probability above "
        f"{100.0 * FRAGILE:g}%.",
    )


def _class_numbers(subject: Subject, bias: ClassBias | None) -> tuple[Number, ...]:
    if bias is None or len(bias.classes) < 2:
        return ()
    ends = (("Least robust class", bias.classes.iloc[0]), ("Most robust class", bias.classes.iloc[-1]))
    return tuple(
        Number(
            f"{title}, {shown(str(bias.column.setting))}",
            subject.class_text(row["class"]),
            f"Mean p_robust {fixed(row['mean'])} ({interval(row['low'], row['high'])}) over "
            f"{plural(int(row['points']), 'point')}.",
        )
        for title, row in ends
    )


def _choice(subject: Subject) -> str:
    if subject.chosen is None:
        return "No point of this run has a robustness, so there is little to show beyond what was scored."
    order = ", ".join(f"{score} with at least {draws} draws" if draws else score for score, draws in PREFERENCE)
    level = (
        f" Its noise level is the one whose mean p_robust is nearest to {TYPICAL_P_ROBUST:g}, where points differ most."
        if len(subject.settings) > 1
        else ""
    )
    return (
        f"Where one number per point is wanted, this page reads {shown(subject.chosen.label)}.{level} Its estimator is "
        f"the first in this list that the run holds: {order}."
    )


# Distribution


def _distribution(subject: Subject) -> Distribution:
    """The histograms, with an estimator that knows no noise level repeated under every one."""
    frame = histogram(subject.table)
    order = {variant: place for place, variant in enumerate(dict.fromkeys(c.variant for c in subject.columns))}
    parts = [frame.iloc[:0].assign(setting="")]
    for setting in subject.panels:
        same = frame["sigma"].eq(setting.sigma) & frame["noise"].eq(setting.noise)
        parts.append(frame[same | frame["sigma"].isna()].assign(setting=shown(str(setting))))
    shown_frame = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    shown_frame = shown_frame.assign(
        order=[order[name] for name in shown_frame["estimator"]],
        estimator=[shown(name, 40) for name in shown_frame["estimator"]],
    )
    repeats = "" if all(frame["sigma"].notna()) else "An estimator that knows no noise level repeats in every column. "
    left = len(subject.settings) - len(subject.panels)
    omitted = f"{plural(left, 'further noise level')} of the run not drawn here." if left else ""
    return Distribution(shown_frame, repeats + omitted)


# Classes


def _classes(subject: Subject, biases: dict[Setting, ClassBias], bias: ClassBias | None) -> Classes:
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


# Images


def _images(subject: Subject, bias: ClassBias | None) -> Images:
    if bias is None:
        return Images((), "No point has both a robustness and a class.")
    kept = sorted(_ends(bias.classes["class"].tolist(), MAX_GALLERIES))
    points = extremes(subject.table, PER_SIDE, bias.column).to_dict("records")
    images = dict(zip(subject.table.points["row"].to_pylist(), subject.table.points["image"].to_pylist(), strict=True))
    galleries = tuple(_gallery(subject, number, points, images) for number in kept)
    return Images(galleries, _images_note(subject, bias, galleries))


def _gallery(subject: Subject, number: int, points: list[Any], images: dict[int, bytes | None]) -> Gallery:
    of_class = [row for row in points if row["class"] == number]
    least, most = (
        tuple(_shown(subject, row, images) for row in of_class if row["side"] == side) for side in ("least", "most")
    )
    return Gallery(subject.class_text(number), least, most)


def _shown(subject: Subject, row: dict[Any, Any], images: dict[int, bytes | None]) -> Shown:
    return Shown(
        name=shown(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        image=_encoded(images[row["row"]]),
        robustness=_robustness(row),
        predicted=subject.class_text(row["predicted"]),
        wrong=bool(pd.notna(row["label"]) and row["label"] != row["predicted"]),
    )


def _encoded(image: bytes | None) -> str:
    """Base64 of `image` if it is a PNG small enough to embed."""
    if image is None or len(image) > MAX_THUMBNAIL or not image.startswith(_PNG):
        return ""
    return base64.b64encode(image).decode("ascii")


def _robustness(row: dict[Any, Any]) -> str:
    """A robustness for a caption: `p 0.873`, or the flip probability where that would round to 1."""
    flip, high = row["flip_probability"], row["high"]
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
            _ties_text(subject, bias.column),
            "" if images else "The run holds no images, so the points are named.",
            f"Shown are the least and the most robust classes; {plural(left, 'class')} between them left out."
            if left
            else "",
        )
        if part
    )


def _ties_text(subject: Subject, column: Column) -> str:
    if not column.value.dropna().duplicated().any():
        return ""
    second = tie_breaker(subject.columns, column)
    by = f"{shown(second.label)}, then by " if second is not None else ""
    return f"Points that tie are ordered by {by}their place in the data."


# Agreement


def _agreement(subject: Subject) -> Agreement:
    frame = agreement(subject.table)
    main = subject.chosen.setting if subject.chosen is not None else None
    groups = by_setting(frame)
    comparisons = [_comparison(setting, rows, setting == main) for setting, rows in groups.items()]
    panels = [
        rows.assign(setting=shown(str(setting)), estimator=[shown(name, 40) for name in rows["estimator"]])
        for setting, rows in groups.items()
        if setting in subject.panels
    ]
    drawn = pd.concat(panels, ignore_index=True) if panels else frame.iloc[:0].assign(setting="")
    return Agreement(drawn, tuple(sorted(comparisons, key=lambda one: not one.main)), _agreement_note(frame))


def _comparison(setting: Setting, rows: pd.DataFrame, main: bool) -> Comparison:
    widest = rows.loc[rows["reference_draws"].idxmax()]
    title = (
        f"{shown(str(setting))}: Monte Carlo with {widest['reference_draws']:,} draws, mean p_robust "
        f"{fixed(widest['mean_p_robust'])}, its own expected error {fixed(widest['floor'], 4)}"
    )
    cells = tuple(
        (
            shown(row["estimator"], 60) + (" *" if row["shares_draws"] else ""),
            MISSING if pd.isna(row["budget"]) else f"{row['budget']:,}",
            f"{row['cost']:,.0f}",
            fixed(row["mae"], 4),
            fixed(row["floor"], 4),
            fixed(row["tau"]),
            f"{row['points']:,}",
        )
        for row in rows.to_dict("records")
    )
    head = ("Estimator", "Draws", "Passes per point", "Mean abs. error", "Of the reference", "Kendall's tau", "Points")
    return Comparison(title, Grid(head, (False, *[True] * 6), cells, tuple(rows["score"])), main)


def _agreement_note(frame: pd.DataFrame) -> str:
    if frame.empty:
        return "This run holds no Monte Carlo, or nothing beside it, so there is nothing to compare."
    left = max(frame["left_out"])
    return " ".join(
        part
        for part in (
            "An estimator that read some of the reference's own draws is compared with the votes of the others, so "
            "that no draw is on both sides.",
            "* Too few others remained, so the whole reference was used and the error is understated."
            if any(frame["shares_draws"])
            else "",
            f"Points without a value on either side, at most {left:,}, are left out." if left else "",
        )
        if part
    )


# Margins


def _margins(subject: Subject) -> Margins:
    """Softmax and the margins, which know no noise level, against the robustness chosen."""
    scores = tuple(
        column
        for column in subject.columns
        if column.setting.sigma is None and column is not subject.chosen and column.value.notna().any()
    )
    grid = _margins_grid(subject, scores)
    if subject.chosen is None or not scores:
        empty = pd.DataFrame(columns=["title", "score", "order", "value", "p_robust"])
        return Margins(empty, grid, "This run holds no softmax or margin beside a robustness to compare it with.")
    frames = [_margin(subject.chosen, column, order) for order, column in enumerate(scores)]
    note = (
        f"p_robust is that of {shown(subject.chosen.label)}. Of more than {MAX_DOTS:,} points a regular selection is "
        "drawn; tau is over all, its interval approximate."
    )
    return Margins(pd.concat(frames, ignore_index=True), grid, note)


def _margin(chosen: Column, column: Column, order: int) -> pd.DataFrame:
    value = column.p_robust if column.is_probability else column.value
    pairs = pd.DataFrame({"value": value, "p_robust": chosen.p_robust})
    pairs = pairs.replace([float("inf"), float("-inf")], float("nan")).dropna().reset_index(drop=True)
    step = max(-(-len(pairs) // MAX_DOTS), 1)
    return pairs.iloc[::step].assign(title=shown(column.variant, 40), score=column.score, order=order)


def _margins_grid(subject: Subject, scores: Sequence[Column]) -> Grid:
    frame = rank_correlation(subject.table, scores, subject.chosen)
    cells = tuple(
        (
            shown(row["label"], 60),
            fixed(row["tau"]),
            MISSING if pd.isna(row["low"]) else interval(row["low"], row["high"]),
            f"{row['points']:,}",
        )
        for row in frame.to_dict("records")
    )
    head = ("Score", "Kendall's tau with p_robust", "Interval", "Points")
    return Grid(head, (False, True, True, True), cells, tuple(frame["score"]))


# The most fragile points


def _fragile(subject: Subject) -> Fragile:
    order = ranked(subject.table, subject.chosen)
    head = ("Row", "Name", "Id", "Label", "Predicted", "p_robust", "Flip probability", "Interval", "Status")
    rows = tuple(_fragile_row(subject, row) for row in order.head(MOST_FRAGILE).to_dict("records"))
    grid = Grid(head, (True, False, False, False, False, True, True, True, False), rows)
    if subject.chosen is None or order.empty:
        return Fragile(grid, "No point has a robustness.")
    ties = _ties_text(subject, subject.chosen)
    note = f"{len(rows)} of {plural(len(order), 'point')}, by {shown(subject.chosen.label)}. {ties}"
    return Fragile(grid, note.strip())


def _fragile_row(subject: Subject, row: dict[Any, Any]) -> tuple[str, ...]:
    return (
        f"{row['row']:,}",
        shown(row["name"], 48),
        shown(row["point"], 16),
        subject.class_text(row["label"]),
        subject.class_text(row["predicted"]),
        wording.p_robust(row["flip_probability"]),
        short(row["flip_probability"], 3),
        wording.flip_interval(row["low"], row["high"]),
        shown(row["status"]),
    )
