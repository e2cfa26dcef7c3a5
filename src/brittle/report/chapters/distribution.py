"""How robustness is distributed: histograms, means, what was asked for, and which estimator speaks for a point."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brittle.analysis.columns import TYPICAL_P_ROBUST, largest_budgets, preferred
from brittle.analysis.mean_interval import mean_interval
from brittle.errors import listed
from brittle.report.chapter import Chapter, Number
from brittle.report.charts import INK, NARROW, STATES, few_ticks, heading, ordered, state_colour
from brittle.report.contents import Contents
from brittle.report.figure import panels
from brittle.report.wording import draws_text, fixed, interval, percent, show
from brittle.store.columns import UNDECIDED, Column
from brittle.store.settings import Setting

FRAGILE = 0.01
"""A prediction whose flip probability exceeds this counts as fragile."""

EDGES = (0.0, 1e-6, 1e-4, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Ends of the bins: each holds what is above its lower end and at most its upper one, the first also 0."""

_BINS = tuple(f"\u2264 {edge:g}" if edge >= 1e-4 else f"\u2264 {edge:.0e}".replace("e-0", "e-") for edge in EDGES[1:])


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Histograms and means; None where no point has a robustness.

    `plain` names the scores that know no noise, `left` counts the noise levels that are not drawn, `estimators` are
    those that may speak for a point, in their order.
    """
    if contents.chosen is None:
        return None
    limit = contents.overview.limit
    columns = [column for column in largest_budgets(contents.columns) if column.value.notna().any()]
    parts = [
        tail_histogram(column, limit).assign(setting=show(str(setting)), estimator=_row_name(column), order=order)
        for setting in contents.panels
        for order, column in enumerate(columns)
        if column.setting == setting or column.setting.sigma is None
    ]
    read = {setting: preferred(contents.columns, setting) for setting in contents.panels}
    means = [_mean(contents, setting, column) for setting, column in read.items() if column is not None]
    spoken = " ".join(f"{one.title}: {one.value}, {one.note}" for one in means)
    plain = list(dict.fromkeys(show(column.variant, 40) for column in columns if column.setting.sigma is None))
    return {
        "most": f"{1.0 - limit:.4g}",
        "figure": panels(
            distribution_chart,
            pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(),
            f"Histograms of the flip probability by estimator and noise level. {spoken}",
        ),
        "plain": listed(plain, 3),
        "left": len(contents.settings) - len(contents.panels),
        "means": means,
        "chosen": show(contents.chosen.shown),
        "typical": f"{TYPICAL_P_ROBUST:g}" if len(contents.settings) > 1 else "",
        "estimators": _estimators(columns),
    }


CHAPTER = Chapter("distribution", "How robustness is distributed", summarize, "methods")


def tail_histogram(column: Column, limit: float) -> pd.DataFrame:
    """Points of a column of flip probabilities by bin, and whether they hold with probability `limit`.

    The bins widen, so that the tail shows beside the bulk.

    Args:
        column: flip probabilities. A score that knows no noise decides nothing: all its points are undecided.
        limit: a prediction holds where its whole interval of p_robust lies at this or above.

    Returns:
        `bin` (its name), `place_of_bin`, `state`, `rank` (of the state), `points` and their `share` of those with a
        number.
    """
    values = column.value.dropna()
    places = np.searchsorted(EDGES[1:], values.to_numpy(dtype=np.float64), side="left").clip(0, len(_BINS) - 1)
    states = column.states(limit)[values.index] if column.judges else [UNDECIDED] * len(values)
    counts = pd.crosstab(places, np.asarray(states)).reindex(
        index=range(len(_BINS)), columns=list(STATES), fill_value=0
    )
    rows = [
        (name, place, state, rank, int(counts.loc[place, state]))
        for place, name in enumerate(_BINS)
        for rank, state in enumerate(STATES)
    ]
    frame = pd.DataFrame(rows, columns=["bin", "place_of_bin", "state", "rank", "points"])
    return frame.assign(share=frame["points"] / max(len(values), 1))


def distribution_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Histograms of the flip probability at one noise level: one row per estimator, bins that widen with it."""
    bins = frame.sort_values("place_of_bin")["bin"].drop_duplicates().tolist()
    scale = alt.Scale(domain=bins, paddingInner=0.06)
    names = alt.Axis(labelAngle=-60, labelColor=INK, ticks=False, labelOverlap=False)
    bars = alt.Chart(frame).mark_bar().encode(
        x=alt.X("bin:N", scale=scale, title="flip probability, further left is safer", axis=names),
        y=alt.Y("share:Q", title=None, axis=few_ticks(2, orient="right", format="%")),
        color=state_colour(),
        order=alt.Order("rank:Q"),
    )  # fmt: skip
    head = alt.Header(
        labelFontSize=12, labelFontWeight=400, labelColor=INK, labelAngle=0, labelOrient="top", labelAnchor="start"
    )
    rows = alt.Row("estimator:N", sort=ordered(), title=None, header=head)
    return bars.properties(width=width - 50, height=56).facet(row=rows, spacing=16, title=heading(frame))


def _row_name(column: Column) -> str:
    """A row of the figure: a score that knows no noise gives no flip probability."""
    name = show(column.variant, 40)
    return name if column.setting.sigma is not None else f"{name}: 1 \u2212 confidence, no flips"


def _mean(contents: Contents, setting: Setting, column: Column) -> Number:
    mean = mean_interval(column.p_robust, contents.confidence)
    fragile = float((column.value.dropna() > FRAGILE).mean())
    return Number(
        f"Mean p_robust, {show(str(setting))}",
        fixed(mean.mean),
        f"{interval(mean.low, mean.high)}. {percent(fragile)} of the points flip with a probability above "
        f"{100.0 * FRAGILE:g}%.",
    )


def _estimators(columns: list[Column]) -> list[str]:
    """The estimators that may speak for the run, the first one that it holds does."""
    ranked = sorted((one for one in columns if one.preference is not None), key=lambda one: (one.preference, one.label))
    names = [(show(one.variant, 40), draws_text(one.most_draws, one.stops)) for one in ranked]
    return list(dict.fromkeys(f"{name} with {draws}" if draws else name for name, draws in names))
