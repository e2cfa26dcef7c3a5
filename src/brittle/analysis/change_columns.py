"""The columns that the Laplacian and what it is compared with are read from."""

from __future__ import annotations

from collections.abc import Iterable

from brittle.store.columns import Column
from brittle.store.settings import Setting

LAPLACIAN = "laplacian"
"""The score that predicts the change of the predicted probability."""

METHODS = ("exact", "auto", "probes", "gram")
"""Which Laplacian speaks for a run that holds several, the first of these; of others the first recorded."""


def laplacian_column(found: Iterable[Column]) -> Column | None:
    """The Laplacian of the predicted class that speaks for the run; that of one of several labels does not."""
    candidates = [
        column
        for column in found
        if column.score == LAPLACIAN and "target" not in column.parameters and column.value.notna().any()
        if not column.setting.of_label
    ]
    order = {method: place for place, method in enumerate(METHODS)}
    return min(
        candidates, key=lambda column: order.get(str(column.parameters.get("method")), len(METHODS)), default=None
    )


def sampled_columns(found: Iterable[Column], score: str) -> dict[Setting, Column]:
    """The column of `score` that speaks for each noise setting, by sigma: not clipped rather, and of most draws.

    A column whose points have different numbers of draws speaks for none: who is decided early has few.
    """
    best: dict[Setting, Column] = {}
    for column in found:
        if column.score != score or column.setting.sigma is None or column.stops or column.value.isna().all():
            continue
        if column.parameters.get("statistic", "mean") != "mean":
            continue
        known = best.get(column.setting)
        if known is None or _standing(column) > _standing(known):
            best[column.setting] = column
    return {setting: best[setting] for setting in sorted(best, key=lambda one: (one.sigma or 0.0, one.noise))}


def _standing(column: Column) -> tuple[bool, int]:
    return not column.parameters.get("clip"), column.draws or 0
