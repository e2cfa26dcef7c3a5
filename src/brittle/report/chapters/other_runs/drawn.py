"""What is drawn of this run beside another one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from brittle.analysis.columns import laplacian_column, sampled_columns
from brittle.analysis.comparison import BOUNDED
from brittle.analysis.expected_change import CHANGE
from brittle.analysis.label_flips import FLIPS
from brittle.report.chapters.other_runs.names import THIS, distinct
from brittle.report.chapters.other_runs.result import Panel
from brittle.report.contents import Contents
from brittle.report.wording import short
from brittle.store.columns import Column, Row
from brittle.store.settings import Setting

MAX_DIFFERENCES = 24
"""Scores in the figure of differences."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles drawn of both runs."""

_DIFFERENCES = ["name", "order", "value", "low", "high"]


def differences(rows: Sequence[Row], names: Mapping[str, tuple[str, str]], known: Mapping[str, Column]) -> pd.DataFrame:
    """Of the scores that are, or change, a probability: their differences share one scale, and larger is safer."""
    chosen = [row for row in rows if row["quantity"] in BOUNDED or _is_mean_change(known.get(row["score"]))]
    chosen = [row for row in chosen if math.isfinite(row["difference"])][:MAX_DIFFERENCES]
    texts = distinct([_named(names[row["score"]]) for row in chosen])
    found = [
        {"name": text, "order": order, "value": row["difference"]}
        | {"low": row["difference_low"], "high": row["difference_high"]}
        for order, (text, row) in enumerate(zip(texts, chosen, strict=True))
    ]
    return finite(pd.DataFrame(found, columns=_DIFFERENCES))


def _named(name: tuple[str, str]) -> str:
    """The score with its noise, without the draws."""
    level = name[1].partition(", ")[0] if name[1] else ""
    return f"{name[0]}, {level}" if level else name[0]


def _is_mean_change(column: Column | None) -> bool:
    return column is not None and column.quantity == CHANGE and column.parameters.get("statistic") == "mean"


def finite(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` without the ends that nothing is known of."""
    if frame.empty:
        return frame
    low, high = (frame[end].where(np.isfinite(frame[end]), frame["value"]) for end in ("low", "high"))
    return frame.assign(low=low, high=high)


def spreads(contents: Contents, name: str, other: Contents, flips: Setting | None) -> tuple[Panel, ...]:
    """|Laplacian| and p_robust of both runs, where both have them."""
    theirs = other.columns
    pairs = {"|Laplacian|": (laplacian_column(contents.columns), laplacian_column(theirs))}
    if flips is not None:
        title = f"p_robust, {contents.noise_text(flips)}"
        pairs[title] = (sampled_columns(contents.columns, FLIPS).get(flips), sampled_columns(theirs, FLIPS).get(flips))
    runs = distinct([THIS, name])
    panels = []
    for title, both in pairs.items():
        values = [_values(column) for column in both]
        if all(value.size for value in values):
            bounded = all(column is not None and column.is_probability for column in both)
            medians = ", ".join(
                f"{run} {short(float(np.median(one)), 3)}" for run, one in zip(runs, values, strict=True)
            )
            frame = _spread_frame(runs, values, title).assign(bounded=bounded)
            panels.append(Panel(title, frame, f"{title}, medians: {medians}"))
    return tuple(panels)


def _values(column: Column | None) -> np.ndarray:
    """`p_robust` of a flip probability, of others the absolute value."""
    if column is None:
        return np.empty(0)
    values = np.abs((column.p_robust if column.is_probability else column.value).to_numpy(dtype=np.float64))
    return values[np.isfinite(values)]


def _spread_frame(runs: Sequence[str], values: Sequence[np.ndarray], title: str) -> pd.DataFrame:
    ends = [f"q{100 * share:02.0f}" for share in QUANTILES]
    found = [
        {"run": run, "order": order, "title": title} | dict(zip(ends, np.quantile(one, QUANTILES), strict=True))
        for order, (run, one) in enumerate(zip(runs, values, strict=True))
    ]
    return pd.DataFrame(found)
