"""Estimators against Monte Carlo: their errors, and what they cost."""

from typing import Any

import pandas as pd

from brittle.extensions.agreement.agreement import agreement
from brittle.extensions.report.chapter import Chapter, Grid
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.wording import MISSING, fixed, show
from brittle.store.settings import Setting


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Return a table of errors and rank correlations for each noise setting; None without two to compare."""
    frame = agreement(contents)
    if frame.empty or contents.chosen is None:
        return None
    groups: Any = frame.groupby(["sigma", "noise"])
    tables = [_comparison(contents, Setting(*key), rows) for key, rows in groups]
    tables.sort(key=lambda summary: not summary["main"])
    return {"tables": tables, "shared": bool(frame["shares_draws"].any()), "left": max(frame["left_out"])}


CHAPTER = Chapter("agreement", "Estimators against Monte Carlo", summarize, "methods")


def _comparison(contents: Contents, setting: Setting, rows: pd.DataFrame) -> dict[str, Any]:
    widest = rows.loc[rows["reference_draws"].idxmax()]
    names = {column.variant: contents.score_cell(column) for column in contents.columns}
    cells = [
        (
            names[row["estimator"]] + (" *" if row["shares_draws"] else ""),
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
        "title": f"Monte Carlo with {widest['reference_draws']:,} draws at {show(str(setting))}: mean p_robust "
        f"{fixed(widest['mean_p_robust'])}, its own expected error {fixed(widest['floor'], 4)}",
        "grid": Grid(header, cells, colours=[contents.colours[score] for score in rows["score"]]),
        "main": contents.chosen is not None and contents.chosen.setting == setting,
    }
