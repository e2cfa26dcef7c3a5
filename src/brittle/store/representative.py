"""Representative flip probability of a run, and its noise."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from brittle.store.columns import Column
from brittle.store.settings import NO_NOISE, Setting

TYPICAL_P_ROBUST = 0.7  # a mean robustness near this tells points apart best: few are at 1, few at chance

Key = TypeVar("Key", bound=Hashable)


def most_draws_by(
    columns: Iterable[Column],
    key: Callable[[Column], Key],
    rank: Callable[[Column], Any] = lambda column: column.most_draws or 0,
) -> dict[Key, Column]:
    """Return, per key, the column with the most draws, or with the largest `rank`; the first wins ties."""
    best: dict[Key, Column] = {}
    for column in columns:
        leader = best.setdefault(key(column), column)
        if rank(column) > rank(leader):
            best[key(column)] = column
    return best


def largest_budgets(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return, per estimator and setting, the probability column with the most draws."""
    probabilities = (column for column in columns if column.is_probability)
    return tuple(most_draws_by(probabilities, lambda column: (column.setting, column.variant)).values())


def settings(columns: Iterable[Column]) -> tuple[Setting, ...]:
    """Return the noise settings of the probability columns, by sigma; those without sigma if no column has any."""
    distinct = {column.setting for column in columns if _has_probability(column)}
    with_sigma = (setting for setting in distinct if setting.sigma is not None)
    return tuple(sorted(with_sigma, key=lambda setting: (setting.sigma, setting.noise))) or tuple(distinct)


def preferred(columns: Iterable[Column], setting: Setting, exclude: str | None = None) -> Column | None:
    """Return the column of the first preference with values under `setting` or without noise, but for `exclude`."""
    candidates = (
        column
        for column in largest_budgets(columns)
        if column.setting in (setting, NO_NOISE) and _has_probability(column) and column.score != exclude
    )
    rank = {column: math.inf if column.preference is None else column.preference for column in candidates}
    return min(rank, key=rank.__getitem__, default=None)


def typical(columns: Sequence[Column]) -> Column | None:
    """Return the preferred column of the setting whose mean robustness is nearest to `TYPICAL_P_ROBUST`."""
    candidates = (column for setting in settings(columns) if (column := preferred(columns, setting)) is not None)
    return min(candidates, key=lambda column: abs(float(column.p_robust.mean()) - TYPICAL_P_ROBUST), default=None)


def representative_column(
    columns: Sequence[Column], limit: float | None = None, sigma: float | None = None
) -> Column | None:
    """Return the flip probability that answers for `limit`, drawn for it if any is, else typical."""
    columns = [column for column in columns if sigma is None or column.setting.sigma == sigma]
    usual = typical(columns)

    def is_far(column: Column) -> tuple[bool, bool]:
        return usual is None or column.setting != usual.setting, column is not usual

    limited = [column for column in columns if column.limit is not None and _has_probability(column)]
    return min((column for column in limited if limit in (None, column.limit)), key=is_far, default=usual)


def _has_probability(column: Column) -> bool:
    """Tell whether a column holds a flip probability of any point."""
    return column.is_probability and bool(column.value.notna().any())
