"""Which of the scores of a run speaks for it, and under which noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from brittle.errors import ParameterError
from brittle.estimate import INPUT_MARGIN
from brittle.store.columns import Column, Scored
from brittle.store.keys import column_of
from brittle.store.settings import Setting

TYPICAL_P_ROBUST = 0.7
"""The noise level whose mean robustness is nearest to this tells points apart best: few at 1, few at chance."""


def check_column(name: str, column: object) -> None:
    """Raise unless `column` is a column of a table, or None.

    Raises:
        ParameterError: it is something else.
    """
    if not isinstance(column, Column | None):
        raise ParameterError(f"{name} must be a column such as table['moments', 0.1]; found {column!r:.60}")


def probability_columns(table: Scored) -> tuple[Column, ...]:
    """The columns of `table` that hold flip probabilities."""
    return tuple(column for column in table.columns if column.is_probability)


def settings(columns: Sequence[Column]) -> tuple[Setting, ...]:
    """The noise settings of the probability columns, by sigma; one without sigma if no column has any."""
    found = {column.setting for column in columns if column.is_probability and column.value.notna().any()}
    leveled = sorted((setting for setting in found if setting.sigma is not None), key=lambda s: (s.sigma, s.noise))
    return tuple(leveled) or tuple(found)


def largest_budgets(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Of each estimator and setting, the probability column with the most draws."""
    best: dict[tuple[Setting, str], Column] = {}
    for column in columns:
        key = (column.setting, column.variant)
        if column.is_probability and (key not in best or (column.most_draws or 0) > (best[key].most_draws or 0)):
            best[key] = column
    return tuple(best.values())


def preferred(columns: Sequence[Column], setting: Setting, exclude: str | None = None) -> Column | None:
    """The column that speaks for the robustness under `setting`: of those with a value the most preferred.

    One that says no preference speaks where no other can.

    Args:
        columns: the columns of a table.
        setting: the noise; a column that knows no noise level serves under every one.
        exclude: name of a score to pass over, to break the ties of another.
    """
    candidates = [
        (math.inf if column.preference is None else column.preference, column)
        for column in largest_budgets(columns)
        if column.setting in (setting, setting.without_noise) and column.value.notna().any() and column.score != exclude
    ]
    return min(candidates, key=lambda pair: pair[0], default=(None, None))[1]


def typical(columns: Sequence[Column]) -> Column | None:
    """The preferred column of the setting whose mean robustness is nearest to `TYPICAL_P_ROBUST`.

    One of a single label speaks only where none is of all labels together.
    """
    known = settings(columns)
    together = [setting for setting in known if not setting.of_label]
    chosen = [column for setting in together or known if (column := preferred(columns, setting)) is not None]
    return min(chosen, key=lambda column: abs(float(column.p_robust.mean()) - TYPICAL_P_ROBUST), default=None)


def safer(column: Column) -> pd.Series | None:
    """The values of `column` so that larger is safer, NaN where there is none; None for a score of no known direction.

    Flip probabilities are negated, not taken from 1, so that the smallest still differ.
    """
    if column.safer is None:
        return None
    return column.value if column.safer == "higher" else -column.value


def safety(column: Column) -> pd.Series | None:
    """As `safer`, and of an input margin the distance, which has a safer direction but is compared with no other."""
    return column.value if column.score == INPUT_MARGIN else safer(column)


def named_column(columns: Sequence[Column], name: str) -> Column:
    """The column of a score by its name or its label; of several under a name, the one that stands beside the rest.

    That is the one at the noise that speaks for the run, with the most draws.

    Raises:
        DataError: no column fits, or several do that differ in something else.
    """
    spoken = typical(columns)
    beside = [column for column in columns if spoken is not None and column.setting == spoken.setting]
    most = max((column.most_draws or 0 for column in beside if column.score == name), default=0)
    fitting = [column for column in beside if column.score == name and (column.most_draws or 0) == most]
    return fitting[0] if len(fitting) == 1 else column_of(columns, name)
