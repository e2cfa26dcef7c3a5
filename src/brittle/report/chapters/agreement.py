"""The scores beside each other: estimators against Monte Carlo, and cheap scores against robustness."""

from __future__ import annotations

from typing import Any

import pandas as pd

from brittle.analysis.agreement import agreement, by_setting
from brittle.analysis.columns import LAPLACIAN, safer
from brittle.analysis.margin_consistency import margin_consistency
from brittle.estimate import INPUT_MARGIN
from brittle.report.chapter import Chapter, Grid
from brittle.report.contents import Contents
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
    tables = [_comparison(contents, setting, rows) for setting, rows in by_setting(frame).items()]
    return {
        "tables": sorted(tables, key=lambda one: not one["main"]),
        "shared": bool(frame["shares_draws"].any()),
        "left": max(frame["left_out"]),
    }


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
        "grid": Grid(header, cells, colours=[contents.colours[score] for score in rows["score"]]),
        "main": contents.chosen is not None and contents.chosen.setting == setting,
    }


def _cheap(contents: Contents) -> dict[str, Any] | None:
    """Scores that know no noise against robustness; None where the run lacks either."""
    chosen = contents.chosen
    scores = [
        column
        for column in contents.columns
        if column is not chosen and column.setting.sigma is None and column.value.notna().any()
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
            colours=[contents.colours[one.score] for one in scores],
        ),
        "chosen": show(chosen.shown),
        "turned": ", ".join(show(one.variant, 40) for one in turned),
    }
