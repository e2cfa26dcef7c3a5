"""How robust the points are on average, and which estimator speaks for a point."""

from __future__ import annotations

from typing import Any

from brittle.analysis.columns import TYPICAL_P_ROBUST, largest_budgets, preferred
from brittle.analysis.mean_interval import mean_interval
from brittle.report.chapter import Chapter, Number
from brittle.report.contents import Contents
from brittle.report.wording import draws_text, fixed, interval, percent, show
from brittle.store.columns import Column
from brittle.store.settings import Setting

FRAGILE = 0.01
"""A prediction whose flip probability exceeds this counts as fragile."""


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Means; None where no point has a robustness.

    `left` counts the noise levels that are left out, `estimators` are those that may speak for a point, in their order.
    """
    if contents.chosen is None:
        return None
    columns = [column for column in largest_budgets(contents.columns) if column.value.notna().any()]
    read = {setting: preferred(contents.columns, setting) for setting in contents.panels}
    return {
        "left": len(contents.settings) - len(contents.panels),
        "means": [_mean(contents, setting, column) for setting, column in read.items() if column is not None],
        "chosen": show(contents.chosen.shown),
        "typical": f"{TYPICAL_P_ROBUST:g}" if len(contents.settings) > 1 else "",
        "estimators": _estimators(columns),
    }


CHAPTER = Chapter("distribution", "How robust the points are on average", summarize, "methods")


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
