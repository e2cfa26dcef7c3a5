"""Which flip probability stands for a run, and under which noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from brittle.store.columns import Column
from brittle.store.settings import NO_NOISE, Setting

TYPICAL_P_ROBUST = 0.7
"""The noise level whose mean robustness is nearest to this tells points apart best: few at 1, few at chance."""

Key = TypeVar("Key", bound=Hashable)


def most_draws_by(
    columns: Iterable[Column],
    key: Callable[[Column], Key],
    standing: Callable[[Column], Any] = lambda column: column.most_draws or 0,
) -> dict[Key, Column]:
    """Of the columns of each key the one with the most draws, or the largest `standing`; of equals the first."""
    best: dict[Key, Column] = {}
    for column in columns:
        known = best.setdefault(key(column), column)
        if standing(column) > standing(known):
            best[key(column)] = column
    return best


def largest_budgets(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Of each estimator and setting, the probability column with the most draws."""
    probabilities = (column for column in columns if column.is_probability)
    return tuple(most_draws_by(probabilities, lambda column: (column.setting, column.variant)).values())


def settings(columns: Sequence[Column]) -> tuple[Setting, ...]:
    """The noise settings of the probability columns, by sigma; one without sigma if no column has any."""
    found = {column.setting for column in columns if column.is_probability and column.value.notna().any()}
    leveled = sorted((setting for setting in found if setting.sigma is not None), key=lambda s: (s.sigma, s.noise))
    return tuple(leveled) or tuple(found)


def preferred(columns: Sequence[Column], setting: Setting, exclude: str | None = None) -> Column | None:
    """The column that speaks for the robustness under `setting`: of those with a value the most preferred.

    One that says no preference speaks where no other can; one that knows no noise level serves under every one. The
    score `exclude` is passed over, to break its ties.
    """
    candidates = [
        column
        for column in largest_budgets(columns)
        if column.setting in (setting, NO_NOISE) and column.value.notna().any() and column.score != exclude
    ]
    return min(candidates, key=lambda one: math.inf if one.preference is None else one.preference, default=None)


def typical(columns: Sequence[Column]) -> Column | None:
    """The preferred column of the setting whose mean robustness is nearest to `TYPICAL_P_ROBUST`."""
    chosen = [column for setting in settings(columns) if (column := preferred(columns, setting)) is not None]
    return min(chosen, key=lambda column: abs(float(column.p_robust.mean()) - TYPICAL_P_ROBUST), default=None)


def representative_column(
    columns: Sequence[Column], limit: float | None = None, sigma: float | None = None
) -> Column | None:
    """The flip probability that answers for `limit`; None where no column holds one with a value.

    It is one that was drawn for the limit, else the typical one; of several that were drawn for it the typical one, or
    one at its noise. With `sigma` only columns at that noise level.
    """
    columns = [one for one in columns if sigma is None or one.setting.sigma == sigma]
    usual = typical(columns)
    drawn_for = [one for one in columns if one.is_probability and one.limit is not None and one.value.notna().any()]
    fitting = [one for one in drawn_for if limit in (None, one.limit)]
    return min(
        fitting,
        key=lambda one: (usual is None or one.setting != usual.setting, one is not usual),
        default=usual,
    )
