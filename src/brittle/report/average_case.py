"""The average case: how probably predictions survive noise, by which estimator, and what may stand in for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from brittle.analysis.agreement import agreement, by_setting
from brittle.analysis.change_columns import LAPLACIAN
from brittle.analysis.class_bias import ClassBias
from brittle.analysis.columns import PREFERENCE, TYPICAL_P_ROBUST, Column, Setting, preferred
from brittle.analysis.distribution import FRAGILE, histogram
from brittle.analysis.extremes import ranked
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.rank_correlation import rank_correlation
from brittle.estimate import INPUT_MARGIN, Evidence
from brittle.report import wording
from brittle.report.subject import Subject
from brittle.report.summary import (
    Agreement,
    Comparison,
    Distribution,
    ExpectedChange,
    Fragile,
    Grid,
    Headline,
    Margins,
    Number,
    WorstCase,
)
from brittle.report.wording import MISSING, fixed, interval, percent, plural, short, shown

MOST_FRAGILE = 20
"""Rows in the table of the most fragile points."""

MAX_DOTS = 1200
"""Points drawn in one scatter plot."""


def summarize_headline(
    subject: Subject, bias: ClassBias | None, chapters: Sequence[WorstCase | ExpectedChange]
) -> Headline:
    """A few numbers, and where they come from."""
    found = [(setting, preferred(subject.columns, setting)) for setting in subject.panels]
    means = [_mean_number(subject, setting, column) for setting, column in found if column is not None]
    others = [number for chapter in chapters for number in chapter.headline]
    return Headline((*means, *_class_numbers(subject, bias), *others), _choice(subject))


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


def summarize_distribution(subject: Subject) -> Distribution:
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


def summarize_agreement(subject: Subject) -> Agreement:
    """The estimators against Monte Carlo."""
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


def summarize_margins(subject: Subject) -> Margins:
    """Softmax and the margins, which know no noise level, against the robustness chosen."""
    scores = tuple(
        column
        for column in subject.columns
        if column.setting.sigma is None and column.score not in (INPUT_MARGIN, LAPLACIAN)
        if column is not subject.chosen and column.value.notna().any()
    )
    grid = _margins_grid(subject, scores)
    if subject.chosen is None or not scores:
        empty = pd.DataFrame(columns=["title", "score", "order", "value", "p_robust"])
        return Margins(empty, grid, "This run holds no softmax or margin beside a robustness to compare it with.")
    frames = [_margin(subject.chosen, column, order) for order, column in enumerate(scores)]
    note = (
        f"p_robust is that of {shown(subject.chosen.label)}. Of more than {MAX_DOTS:,} points a regular selection is "
        "drawn; tau is over all, its interval approximate."
        + (" Entropy is smaller where surer, so its tau is negative." if _has_entropy(scores) else "")
    )
    return Margins(pd.concat(frames, ignore_index=True), grid, note)


def _has_entropy(scores: Sequence[Column]) -> bool:
    return any(column.score == "entropy" for column in scores)


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


def summarize_fragile(subject: Subject) -> Fragile:
    """The most fragile points."""
    order = ranked(subject.table, subject.chosen)
    head = ("Row", "Name", "Id", "Label", "Predicted", "p_robust", "Flip probability", "Interval", "Evidence", "Status")
    rows = tuple(_fragile_row(subject, row) for row in order.head(MOST_FRAGILE).to_dict("records"))
    grid = Grid(head, (True, False, False, False, False, True, True, True, False, False), rows)
    if subject.chosen is None or order.empty:
        return Fragile(grid, "No point has a robustness.")
    ties = subject.ties_text(subject.chosen)
    note = f"{len(rows)} of {plural(len(order), 'point')}, by {shown(subject.chosen.label)}. {ties}"
    return Fragile(grid, note.strip())


def _flip_text(subject: Subject, row: dict[Any, Any]) -> str:
    """A flip probability; where a model alone says it, the bound that it gives."""
    flip = row["flip_probability"]
    if _is_extrapolated(row) and subject.chosen is not None:
        return wording.extrapolated(flip, row["high"], subject.chosen.score)
    return short(flip, 3)


def _is_extrapolated(row: dict[Any, Any]) -> bool:
    return row["evidence"] == Evidence.EXTRAPOLATED.slug


def _fragile_row(subject: Subject, row: dict[Any, Any]) -> tuple[str, ...]:
    return (
        f"{row['row']:,}",
        shown(row["name"], 48),
        shown(row["point"], 16),
        subject.class_text(row["label"]),
        subject.class_text(row["predicted"]),
        wording.p_robust(row["flip_probability"], row["high"] if _is_extrapolated(row) else None),
        _flip_text(subject, row),
        wording.flip_interval(row["low"], row["high"]),
        shown(row["evidence"]),
        shown(row["status"]),
    )
