"""The scores beside each other: estimators against Monte Carlo, and cheap scores against robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.analysis.agreement import agreement, by_setting
from brittle.analysis.columns import LAPLACIAN, safer
from brittle.analysis.margin_consistency import margin_consistency
from brittle.estimate import INPUT_MARGIN
from brittle.report.chapter import Chapter, Grid
from brittle.report.charts import LOG, NARROW, dashed, heading, legend, score_colour, score_shape
from brittle.report.contents import Contents
from brittle.report.figure import panels
from brittle.report.wording import MISSING, fixed, interval, show
from brittle.store.settings import Setting


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Errors and rank correlations; None where the run holds nothing to compare."""
    estimators, cheap = _estimators(contents), _cheap(contents)
    if estimators is None and cheap is None:
        return None
    return {"estimators": estimators, "cheap": cheap}


CHAPTER = Chapter("agreement", "The scores beside each other", summarize, "methods")


def _estimators(contents: Contents) -> dict[str, Any] | None:
    """Estimators against Monte Carlo, a table for each noise setting."""
    frame = agreement(contents)
    if frame.empty or contents.chosen is None:
        return None
    groups = by_setting(frame)
    tables = [_comparison(contents, setting, rows) for setting, rows in groups.items()]
    drawn = _drawn(contents, frame, groups)
    best = [
        (setting, rows.loc[rows["mae"].idxmin()])
        for setting, rows in drawn.dropna(subset=["mae"]).groupby("setting", sort=False)
    ]
    spoken = " ".join(
        f"At {setting}, the smallest error is {fixed(row['mae'], 4)}, of {row['estimator']}." for setting, row in best
    )
    return {
        "figure": panels(agreement_chart, drawn, f"Mean absolute error and Kendall's tau against passes. {spoken}"),
        "tables": sorted(tables, key=lambda one: not one["main"]),
        "shared": bool(frame["shares_draws"].any()),
        "left": max(frame["left_out"]),
    }


def _drawn(contents: Contents, frame: pd.DataFrame, groups: Mapping[Setting, pd.DataFrame]) -> pd.DataFrame:
    """The rows of the noise settings that are drawn."""
    parts = [
        rows.assign(
            setting=show(str(setting)),
            estimator=[show(name, 40) for name in rows["estimator"]],
            place=[contents.place(score) for score in rows["score"]],
        )
        for setting, rows in groups.items()
        if setting in contents.panels
    ]
    return pd.concat(parts, ignore_index=True) if parts else frame.iloc[:0].assign(setting="", place=0)


def _comparison(contents: Contents, setting: Setting, rows: pd.DataFrame) -> dict[str, Any]:
    widest = rows.loc[rows["reference_draws"].idxmax()]
    cells = [
        (
            show(row["estimator"], 60) + (" *" if row["shares_draws"] else ""),
            MISSING if pd.isna(row["budget"]) else f"{row['budget']:,}",
            f"{row['cost']:,.0f}",
            fixed(row["mae"], 4),
            fixed(row["floor"], 4),
            fixed(row["tau"]),
            f"{row['points']:,}",
        )
        for row in rows.to_dict("records")
    ]
    header = ("Estimator", "Draws", "Passes a point", "Mean abs. error", "Of the reference", "Kendall's tau", "Points")
    return {
        "title": f"{show(str(setting))}: Monte Carlo with {widest['reference_draws']:,} draws, mean p_robust "
        f"{fixed(widest['mean_p_robust'])}, its own expected error {fixed(widest['floor'], 4)}",
        "grid": Grid(header, cells, colours=[contents.colour(score) for score in rows["score"]]),
        "main": contents.chosen is not None and contents.chosen.setting == setting,
    }


def agreement_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Error and rank correlation of every estimator against its cost at one noise level.

    The dashed line is the error of the reference.
    """
    aligned = {"grid": True, "minExtent": 34, "maxExtent": 34}
    error_axis = alt.Axis(values=_ticks([*frame["mae"], *frame["floor"]], (1, 3)), format="~g", **aligned)
    error = alt.Y("mae:Q", title="mean absolute error, lower is better", scale=LOG, axis=error_axis)
    tau_axis = alt.Axis(tickCount=5, **aligned)
    tau = alt.Y("tau:Q", title="Kendall's tau, higher is better", scale=alt.Scale(zero=False), axis=tau_axis)
    above = _against_cost(frame.query("mae > 0"), error, width, dashed(alt.Chart(), y="min(floor):Q"))
    below = _against_cost(frame.dropna(subset=["tau"]), tau, width)
    return alt.vconcat(above, below, spacing=20, title=heading(frame))


def _against_cost(frame: pd.DataFrame, y: alt.Y, width: int, *under: Any) -> Any:
    key = legend(max(width // 160, 1), labelLimit=130)
    axis = alt.Axis(values=_ticks(frame["cost"].tolist(), (1,)), grid=True, format="~s")
    place = alt.Chart().encode(
        x=alt.X("cost:Q", title="passes per point", scale=LOG, axis=axis),
        y=y,
        color=score_colour(frame, key, "estimator"),
    )
    lines = place.mark_line(strokeWidth=1.5)
    marks = place.mark_point(filled=True, size=44, opacity=1).encode(shape=score_shape(frame, key, "estimator"))
    holes = place.mark_circle(size=12, opacity=1).encode(color=alt.value("white"))
    layers = alt.layer(*under, lines, marks, holes.transform_filter("datum.shares_draws"), data=frame)
    return layers.properties(width=min(width - 60, 620), height=210)


def _ticks(values: Sequence[float], digits: Sequence[int]) -> list[float]:
    """The numbers of one of `digits` and zeros within the range of `values`, for a logarithmic axis."""
    ticks = (digit * 10.0**power for power in range(-12, 10) for digit in digits)
    return [tick for tick in ticks if min(values, default=1.0) <= tick <= max(values, default=1.0)]


def _cheap(contents: Contents) -> dict[str, Any] | None:
    """Scores that know no noise against robustness; None where the run lacks either."""
    chosen = contents.chosen
    scores = [
        column
        for column in contents.columns
        if chosen is not None and column is not chosen and column.setting.sigma is None
        if column.setting.of_label == chosen.setting.of_label and column.value.notna().any()
        if column.score not in (INPUT_MARGIN, LAPLACIAN)
    ]
    if chosen is None or not scores:
        return None
    rows = []
    for one in scores:
        oriented = safer(one)
        values = one.value if oriented is None else oriented
        tau = margin_consistency(chosen.p_robust, values, contents.confidence)
        rows.append((show(one.label, 60), fixed(tau.value), interval(tau.low, tau.high), f"{tau.points:,}"))
    turned = [one for one in scores if one.safer == "lower" and not one.is_probability]
    return {
        "grid": Grid(
            ("Score", "Kendall's tau with p_robust", "Interval", "Points"),
            rows,
            colours=[contents.colour(one.score) for one in scores],
        ),
        "chosen": show(chosen.shown),
        "turned": ", ".join(show(one.variant, 40) for one in turned),
    }
