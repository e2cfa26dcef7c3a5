"""How well the Laplacian predicts the sampled change."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.analysis.expected_change import expected_change_points, expected_change_table
from brittle.report.chapters.expected_change.case import ChangeCase, mean_change
from brittle.report.chapters.expected_change.result import Prediction
from brittle.report.contents import spread
from brittle.report.parts import Entry, Grid
from brittle.report.wording import (
    MISSING,
    fixed,
    interval,
    percent_interval,
    plural,
    reach,
    short,
    signed,
    small_percent,
)
from brittle.store.columns import Row
from brittle.store.settings import Setting

MAX_DOTS = 1200
"""Points drawn at one noise setting."""

GOOD_SIGN, GOOD_ORDER = 0.8, 0.8
"""Share of equal signs, and Spearman's correlation, from which on the Laplacian has the sign and keeps the order."""

NEAR = (0.8, 1.25)
"""Ratios of the sampled change to the predicted one that count as the same size."""

SAME, OPEN, OTHER, KINK = "same sign", "sign not decided by sampling", "other sign", "kink of the network"
"""The kinds of points in the figure, in the order of its legend."""

_POINTS = ["setting", "order", "predicted", "sampled", "low", "high", "kind"]
_HEAD = ("Noise", "Points", "Same sign", "Spearman", "Slope", "Median ratio", "Mean sampled change")


def summarize_prediction(case: ChangeCase) -> Prediction:
    """The section on the Laplacian against the sampled change."""
    frame = expected_change_table(case.contents)
    rows = {Setting(row["sigma"], row["noise"]): row for row in frame.to_dict("records")}
    drawn = spread(tuple(rows), case.chosen)
    grid = Grid(_HEAD, (False, *[True] * 6), tuple(_row(case, setting, rows[setting]) for setting in rows))
    if case.contents.laplacian is None or not rows:
        lacking = "Laplacian" if case.contents.laplacian is None else "sampled change (probability_change)"
        return Prediction(
            pd.DataFrame(columns=_POINTS), grid, f"This run holds no {lacking}, so there is nothing to compare.", (), ""
        )
    drawing = pd.concat([_dots(case, setting, order) for order, setting in enumerate(drawn)], ignore_index=True)
    spoken = case.chosen or drawn[0]
    readings = tuple(Entry(case.name(setting), _sentence(_reading(rows[setting]))) for setting in drawn)
    return Prediction(
        frame=drawing,
        grid=grid,
        conclusion=f"At {case.name(spoken)}: {_reading(rows[spoken])}",
        readings=readings if len(readings) > 1 else (),
        note=_note(case, rows, len(drawn)),
    )


def _dots(case: ChangeCase, setting: Setting, order: int) -> pd.DataFrame:
    """The points at one setting, of more than `MAX_DOTS` a regular selection."""
    points = expected_change_points(case.contents, setting)
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


def _row(case: ChangeCase, setting: Setting, row: Row) -> tuple[str, ...]:
    column = case.contents.changes[setting]
    mean, low, high = mean_change(column, case.contents.confidence)
    share = percent_interval(row["agreement_low"], row["agreement_high"])
    under = case.contents.radius_text(setting).strip(" ()")
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


def _measured(row: Row, name: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if math.isnan(value):
        return MISSING
    if name == "spearman":
        return f"{fixed(value)}\n{interval(low, high)}".replace("-", "−")
    return f"{signed(value, 3)}\n{reach(low, high, 3)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reading(row: Row) -> str:
    """What one noise setting says of this model, in words."""
    if isinstance(row["reason"], str):
        return row["reason"]
    known = _sign_text(row), _order_text(row), _size_text(row)
    return f"{'; '.join(part for part in known if part)}. {_advice(row)}"


def _sign_text(row: Row) -> str:
    if not row["decided"]:
        return "sampling decides the sign of the change at no point"
    return (
        f"the Laplacian has the sign of the sampled change for {small_percent(row['agreement'])} of the "
        f"{plural(row['decided'], 'point')} where sampling decides it"
    )


def _order_text(row: Row) -> str:
    if math.isnan(row["spearman"]):
        return ""
    kept = _judged(row, "spearman", (GOOD_ORDER, math.inf))
    verdict = {True: "keeps their order", False: "does not keep their order", None: "may or may not keep their order"}
    return f"it {verdict[kept]} (Spearman {fixed(row['spearman'], 2)})".replace("-", "−")


def _size_text(row: Row) -> str:
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


def _advice(row: Row) -> str:
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


def _judged(row: Row, name: str, good: tuple[float, float]) -> bool | None:
    """Whether the interval of `name` lies within `good`, outside of it, or neither."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low >= good[0] and high <= good[1]:
        return True
    return False if high < good[0] or low > good[1] else None


def _note(case: ChangeCase, rows: dict[Setting, Row], drawn: int) -> str:
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
