"""The expected change: which way noise moves the predicted probability, and whether the Laplacian tells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from brittle.analysis.change_columns import laplacian_column, sampled_columns
from brittle.analysis.columns import Column, Setting
from brittle.analysis.expected_change import CHANGE, expected_change_points, expected_change_table
from brittle.analysis.label_flips import CONFIDENCE
from brittle.analysis.location import skewed_mean
from brittle.analysis.mean_absolute import mean_absolute
from brittle.analysis.mean_interval import MeanInterval
from brittle.estimate import Status
from brittle.report.change_flips import CONFIDENT, flips_number, summarize_flips
from brittle.report.subject import Subject, spread
from brittle.report.summary import Drop, Drops, ExpectedChange, Fact, Grid, Number, Prediction
from brittle.report.thumbnails import embedded
from brittle.report.wording import (
    MISSING,
    fixed,
    interval,
    percent_interval,
    plural,
    reach,
    short,
    shown,
    signed,
    small_percent,
)

MAX_DOTS = 1200
"""Points drawn at one noise setting."""

DROPS_SHOWN, DROPS_LISTED = 12, 20
"""Points in the gallery of the largest drops, and rows in its table."""

GOOD_SIGN, GOOD_ORDER = 0.8, 0.8
"""Share of equal signs, and Spearman's correlation, from which on the Laplacian has the sign and keeps the order."""

NEAR = (0.8, 1.25)
"""Ratios of the sampled change to the predicted one that count as the same size."""

SAME, OPEN, OTHER, KINK = "same sign", "sign not decided by sampling", "other sign", "kink of the network"
"""The kinds of points in the figure, in the order of its legend."""

_POINTS = ["setting", "order", "predicted", "sampled", "low", "high", "kind"]
_HEAD = ("Noise", "Points", "Same sign", "Spearman", "Slope", "Median ratio", "Mean sampled change")
_DROPS_HEAD = ("Row", "Name", "Label", "Predicted", "Probability", "Sampled change", "Predicted change", "Laplacian")


@dataclass(frozen=True, eq=False)
class _Case:
    """The columns that the chapter reads, and the noise setting that it speaks of."""

    subject: Subject
    laplacian: Column | None
    sampled: dict[Setting, Column]
    chosen: Setting | None
    sure: Column | None

    def name(self, setting: Setting) -> str:
        """The noise setting as the chapter writes it."""
        return self.subject.noise_text(setting)


def summarize_expected_change(subject: Subject) -> ExpectedChange | None:
    """The chapter; None where neither a Laplacian nor a sampled change has a value."""
    sampled = sampled_columns(subject.columns, CHANGE)
    laplacian = laplacian_column(subject.columns)
    if laplacian is None and not sampled:
        return None
    sure = next((one for one in subject.columns if one.score == CONFIDENCE and one.value.notna().any()), None)
    case = _Case(subject, laplacian, sampled, choose_setting(sampled), sure)
    changes = (_mean_number(case), _laplacian_number(case))
    numbers = tuple(number for number in (*changes, flips_number(subject, case.chosen)) if number is not None)
    return ExpectedChange(
        setting=_setting_text(case),
        numbers=numbers,
        headline=numbers[:1],
        prediction=_prediction(case),
        flips=summarize_flips(subject, case.chosen),
        drops=_drops(case),
    )


def choose_setting(sampled: dict[Setting, Column]) -> Setting | None:
    """The noise setting at which sampling decides the sign of the change for most points; of equals the last."""
    order = list(sampled)
    return max(order, key=lambda setting: (_decided(sampled[setting]), order.index(setting)), default=None)


def _decided(column: Column) -> int:
    return _rising(column) + _falling(column)


def _rising(column: Column) -> int:
    """Points whose change is surely above 0."""
    return int(np.sum(column.rows["low"].to_numpy() > 0.0))


def _falling(column: Column) -> int:
    """Points whose change is surely below 0."""
    return int(np.sum(column.rows["high"].to_numpy() < 0.0))


def _setting_text(case: _Case) -> str:
    if case.chosen is None:
        return ""
    column = case.sampled[case.chosen]
    name = f"{case.name(case.chosen)}{case.subject.radius_text(case.chosen)}"
    if len(case.sampled) == 1:
        return f"The change was sampled at {name}, with {plural(column.draws or 0, 'draw')} per point."
    count = f"{_decided(column):,} of {int(column.value.notna().sum()):,}"
    return (
        f"Where one noise level is needed, it is {name}: there sampling decides for most points ({count}) whether "
        "their probability rises or falls; of levels that tie, the noisiest."
    )


# Numbers


def _mean_number(case: _Case) -> Number | None:
    if case.chosen is None:
        return None
    column = case.sampled[case.chosen]
    mean, low, high = _mean_change(column, case.subject.confidence)
    points = int(column.value.notna().sum())
    falls, rises = _falling(column) / points, _rising(column) / points
    return Number(
        f"Mean change of the predicted probability, {case.name(case.chosen)}",
        signed(mean),
        f"{reach(low, high)}. Sampling finds a fall at {small_percent(falls)} of {plural(points, 'point')}, a rise at "
        f"{small_percent(rises)}.",
    )


def _mean_change(column: Column, confidence: float) -> MeanInterval:
    """Mean over points with its interval; a change of a probability lies between -1 and 1."""
    mean, low, high = skewed_mean(column.value.to_numpy(), confidence)
    return MeanInterval(mean, max(low, -1.0), min(high, 1.0))


def _laplacian_number(case: _Case) -> Number | None:
    if case.laplacian is None:
        return None
    values = case.laplacian.value.dropna()
    if np.isinf(values).any():
        return Number("Mean |Laplacian|", "∞", f"{plural(int(np.isinf(values).sum()), 'point')} without a finite one.")
    found = mean_absolute(case.subject.table, case.laplacian)
    negative = small_percent(float((values < 0.0).mean()))
    return Number(
        "Mean |Laplacian|",
        short(found.mean, 3),
        f"{reach(found.low, found.high, 3)}, per squared pixel unit. It is negative for {negative} of "
        f"{plural(found.points, 'point')}.",
    )


# The Laplacian against the sampled change


def _prediction(case: _Case) -> Prediction:
    frame = expected_change_table(case.subject.table)
    rows = {Setting(row["sigma"], row["noise"]): row for row in frame.to_dict("records")}
    drawn = spread(tuple(rows), case.chosen)
    grid = Grid(_HEAD, (False, *[True] * 6), tuple(_prediction_row(case, setting, rows[setting]) for setting in rows))
    if case.laplacian is None or not rows:
        lacking = "Laplacian" if case.laplacian is None else "sampled change (probability_change)"
        return Prediction(
            pd.DataFrame(columns=_POINTS), grid, f"This run holds no {lacking}, so there is nothing to compare.", (), ""
        )
    drawing = pd.concat([_dots(case, setting, order) for order, setting in enumerate(drawn)], ignore_index=True)
    spoken = case.chosen or drawn[0]
    readings = tuple(Fact(case.name(setting), _sentence(_reading(rows[setting]))) for setting in drawn)
    return Prediction(
        frame=drawing,
        grid=grid,
        conclusion=f"At {case.name(spoken)}: {_reading(rows[spoken])}",
        readings=readings if len(readings) > 1 else (),
        note=_prediction_note(case, rows, len(drawn)),
    )


def _dots(case: _Case, setting: Setting, order: int) -> pd.DataFrame:
    """The points at one setting, of more than `MAX_DOTS` a regular selection."""
    points = expected_change_points(case.subject.table, setting)
    frame = pd.DataFrame(
        {
            "setting": case.name(setting),
            "order": order,
            "predicted": points["predicted_change"],
            "sampled": points["sampled_change"],
            "low": points["sampled_low"],
            "high": points["sampled_high"],
            "kind": _kinds(points),
        }
    )
    known = frame[np.isfinite(frame[["predicted", "sampled"]]).all(axis=1)].reset_index(drop=True)
    return pd.DataFrame(known.iloc[:: max(-(-len(known) // MAX_DOTS), 1)], columns=_POINTS)


def _kinds(points: pd.DataFrame) -> np.ndarray:
    decided = (points["sampled_low"] > 0.0) | (points["sampled_high"] < 0.0)
    same = np.sign(points["predicted_change"]) == np.sign(points["sampled_change"])
    return np.select([points["kink"], ~decided, same], [KINK, OPEN, SAME], OTHER)


def _prediction_row(case: _Case, setting: Setting, row: dict[Any, Any]) -> tuple[str, ...]:
    column = case.sampled[setting]
    mean, low, high = _mean_change(column, case.subject.confidence)
    share = percent_interval(row["agreement_low"], row["agreement_high"])
    under = case.subject.radius_text(setting).strip(" ()")
    clipped = " *" if row["clipped"] else ""
    return (
        f"{case.name(setting)}{clipped}" + (f"\n{under}" if under else ""),
        f"{row['points']:,}",
        f"{small_percent(row['agreement'])}\n{share} of {row['decided']:,}" if row["decided"] else MISSING,
        _measured(row, "spearman"),
        _measured(row, "slope"),
        _measured(row, "ratio"),
        f"{signed(mean)}\n{reach(low, high)}",
    )


def _measured(row: dict[Any, Any], name: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if math.isnan(value):
        return MISSING
    if name == "spearman":
        return f"{fixed(value)}\n{interval(low, high)}".replace("-", "−")
    return f"{signed(value, 3)}\n{reach(low, high, 3)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reading(row: dict[Any, Any]) -> str:
    """What one noise setting says of this model, in words."""
    if isinstance(row["reason"], str):
        return row["reason"]
    known = _sign_text(row), _order_text(row), _size_text(row)
    return f"{'; '.join(part for part in known if part)}. {_advice(row)}"


def _sign_text(row: dict[Any, Any]) -> str:
    if not row["decided"]:
        return "sampling decides the sign of the change at no point"
    return (
        f"the Laplacian has the sign of the sampled change for {small_percent(row['agreement'])} of the "
        f"{plural(row['decided'], 'point')} where sampling decides it"
    )


def _order_text(row: dict[Any, Any]) -> str:
    if math.isnan(row["spearman"]):
        return ""
    kept = _judged(row, "spearman", (GOOD_ORDER, math.inf))
    verdict = {True: "keeps their order", False: "does not keep their order", None: "may or may not keep their order"}
    return f"it {verdict[kept]} (Spearman {fixed(row['spearman'], 2)})".replace("-", "−")


def _size_text(row: dict[Any, Any]) -> str:
    ratio, slope = row["ratio"], row["slope"]
    if math.isnan(ratio):
        return ""
    typical = _judged(row, "ratio", NEAR)
    as_large = typical or (typical is None and NEAR[0] <= ratio <= NEAR[1])
    size = f"about as large as predicted ({short(ratio)} times)" if as_large else _times(ratio)
    if as_large and _judged(row, "slope", NEAR) is False:
        return f"the typical change is {size}, but the largest are {_times(slope)}"
    return f"the typical change is {size}"


def _times(ratio: float) -> str:
    """A ratio of sampled to predicted change, in words."""
    if ratio <= 0.0:
        return "not in the predicted direction" if ratio < 0.0 else "nothing"
    if not math.isfinite(ratio):
        return "large where next to none was predicted"
    if ratio < 1.0:
        return f"{short(1.0 / ratio)} times smaller than predicted"
    return f"{short(ratio)} times the predicted"


def _advice(row: dict[Any, Any]) -> str:
    if not row["decided"]:
        return "More draws or more noise would tell whether the Laplacian predicts it."
    sign, size = _judged(row, "agreement", (GOOD_SIGN, math.inf)), _judged(row, "ratio", NEAR)
    largest = _judged(row, "slope", NEAR)
    if sign is False:
        return "Trust the sampled change here, not the Laplacian."
    if sign is None:
        return "These points do not decide whether the Laplacian can be trusted here."
    if size is False or largest is False:
        return "Read the direction from the Laplacian, the size from sampling."
    if size is None:
        return "The direction can be read from the Laplacian; these points do not decide whether the size can."
    return "Here the Laplacian can stand in for sampling."


def _judged(row: dict[Any, Any], name: str, good: tuple[float, float]) -> bool | None:
    """Whether the interval of `name` lies within `good`, outside of it, or neither."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low >= good[0] and high <= good[1]:
        return True
    return False if high < good[0] or low > good[1] else None


def _prediction_note(case: _Case, rows: dict[Setting, dict[Any, Any]], drawn: int) -> str:
    kinks = max(row["kinks"] for row in rows.values())
    dropped = max(row["dropped"] for row in rows.values())
    left = len(rows) - drawn
    return " ".join(
        part
        for part in (
            "The dashed line is the theory, sampled = predicted; thin bars are the intervals of the sampled changes. "
            "Scales are linear around 0 and logarithmic further out, the same on both axes.",
            f"{plural(kinks, 'point')} at a kink of the network, where the Laplacian is one of several and sees one "
            "side only."
            if kinks
            else "",
            f"Of more than {MAX_DOTS:,} points a regular selection is drawn."
            if max(row["points"] for row in rows.values()) > MAX_DOTS
            else "",
            f"Up to {plural(dropped, 'point')} left out for lack of a number." if dropped else "",
            f"{plural(left, 'further noise level')} in the table only." if left else "",
            "* of clipped copies, whose noise is not that of the prediction."
            if any(row["clipped"] for row in rows.values())
            else "",
        )
        if part
    )


# The largest drops


def _drops(case: _Case) -> Drops:
    found = _ordered(case)
    by = "sampled" if case.chosen is not None else "laplacian"
    points = tuple(_drop(case, row, by) for row in found.head(DROPS_SHOWN).to_dict("records"))
    rows = tuple(_drop_row(case, row) for row in found.head(DROPS_LISTED).to_dict("records"))
    grid = Grid(_DROPS_HEAD, (True, False, False, False, True, True, True, True), rows)
    return Drops(points, grid, _drops_note(case, points, len(found)))


def _ordered(case: _Case) -> pd.DataFrame:
    """The confident points, or all where no confidence is known, that lose probability, the largest loss first."""
    table, names = case.subject.table, ["point", "row", "name", "label", "predicted", "image"]
    frame = table.points.select(names).to_pandas().set_index("point", drop=False)
    empty = pd.Series(math.nan, index=frame.index)
    curvature = None if case.laplacian is None else case.laplacian.rows
    sampled = None if case.chosen is None else case.sampled[case.chosen].rows
    frame["laplacian"] = empty if curvature is None else curvature["value"]
    frame["kink"] = False if curvature is None else curvature["status"] == Status.KINK.slug
    for name, own in (("sampled", "value"), ("low", "low"), ("high", "high")):
        frame[name] = empty if sampled is None else sampled[own]
    frame["predicted_change"] = empty
    if case.chosen is not None and case.laplacian is not None:
        frame["predicted_change"] = expected_change_points(table, case.chosen)["predicted_change"].to_numpy()
    frame["before"] = empty if case.sure is None else case.sure.value
    chosen = frame if case.sure is None else frame[frame["before"] >= CONFIDENT]
    by = "sampled" if sampled is not None else "laplacian"
    falling = chosen[np.isfinite(chosen[by]) & (chosen[by] < 0.0)]
    return falling.sort_values([by, "row"], ignore_index=True)


def _drop(case: _Case, row: dict[Any, Any], by: str) -> Drop:
    before = row["before"]
    return Drop(
        name=shown(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        image=embedded(row["image"]),
        change=signed(row[by]) if by == "sampled" else f"L {signed(row[by])}",
        before="" if math.isnan(before) else f"from {fixed(before)}",
        predicted=case.subject.class_text(row["predicted"]),
        wrong=bool(pd.notna(row["label"]) and row["label"] != row["predicted"]),
    )


def _drop_row(case: _Case, row: dict[Any, Any]) -> tuple[str, ...]:
    return (
        f"{row['row']:,}",
        shown(row["name"], 48),
        case.subject.class_text(row["label"]),
        case.subject.class_text(row["predicted"]),
        fixed(row["before"]),
        MISSING if math.isnan(row["sampled"]) else f"{signed(row['sampled'], 3)}\n{reach(row['low'], row['high'], 3)}",
        signed(row["predicted_change"], 3),
        signed(row["laplacian"], 3) + ("\nat a kink" if row["kink"] else ""),
    )


def _drops_note(case: _Case, points: tuple[Drop, ...], count: int) -> str:
    sure = f" made with a probability of at least {CONFIDENT:g}" if case.sure is not None else ""
    by = "sampled mean change" if case.chosen is not None else "Laplacian, as no change was sampled"
    unknown = " This run has no max_probability, so these are predictions of any confidence." * (case.sure is None)
    if not points:
        return f"No prediction{sure} loses probability, by its {by}.{unknown}"
    level = f" at {case.name(case.chosen)}" if case.chosen is not None else ""
    images = "" if any(point.image for point in points) else " The run holds no images, so the points are named."
    return (
        f"The {len(points):,} lowest of {plural(count, 'prediction')}{sure} that lose probability, by {by}{level}."
        f"{unknown}{images}"
    )
