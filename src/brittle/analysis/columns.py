"""Representative scores of a run, and their noise."""

from collections.abc import Iterable, Sequence
from typing import Literal

import pandas as pd

from brittle.errors import ParameterError
from brittle.estimate import INPUT_MARGIN, parameters_json
from brittle.store.columns import Column, column_of, storable
from brittle.store.representative import most_draws_by, typical
from brittle.store.settings import Setting
from brittle.store.table import Table

MONTE_CARLO, LAPLACIAN, CHANGE = "monte_carlo", "laplacian", "probability_change"
"""The scores that count flips, that predict the mean change of the predicted probability, and that sample it."""

METHODS = ("exact", "auto", "probes", "gram")  # of the Laplacian, the preferred first


def check_column(name: str, column: object) -> None:
    """Raise unless `column` is a column of a table, or None."""
    if not isinstance(column, Column | None):
        raise ParameterError(f"{name} must be a column such as table['moments', 0.1]; found {column!r:.60}")


def key_of(column: Column, *, without_draws: bool = False) -> tuple[str, str]:
    """Return a score and its parameters, as the rows of a table name it."""
    parameters = column.parameters
    if without_draws:
        parameters = {name: value for name, value in parameters.items() if name != "draws"}
    return column.score, parameters_json(parameters)


def question_of(column: Column) -> tuple[str, str]:
    """Return what a column asks, as `key_of`; of a count that stops, without the draws that a point has at most."""
    return key_of(column, without_draws=column.stops)


def safer(column: Column) -> pd.Series | None:
    """Return the values so that larger is safer, flip probabilities negated; None without a direction."""
    if column.safer is None:
        return None
    return column.value if column.safer == "higher" else -column.value


def safety(column: Column) -> pd.Series | None:
    """Return `safer`, or for an input margin its distance, whose direction is safer though no score compares."""
    return column.value if column.score == INPUT_MARGIN else safer(column)


def named_column(columns: Sequence[Column], name: str) -> Column:
    """Return the column of a score by its name or label; of several the representative one."""
    representative = typical(columns)
    key = None if representative is None else (name, representative.setting)
    candidates = [column for column in columns if (column.score, column.setting) == key]
    draws = max((column.most_draws or 0 for column in candidates), default=0)
    fitting = [column for column in candidates if (column.most_draws or 0) == draws]
    return fitting[0] if len(fitting) == 1 else column_of(columns, name)


def laplacian_column(columns: Iterable[Column]) -> Column | None:
    """Return the Laplacian of the predicted class that speaks for the run."""
    columns = [column for column in columns if column.score == LAPLACIAN and "rank" not in column.parameters]
    columns = [column for column in columns if column.value.notna().any()]
    order = {method: place for place, method in enumerate(METHODS)}
    return min(columns, key=lambda column: order.get(str(column.parameters.get("method")), len(METHODS)), default=None)


def sampled_columns(columns: Iterable[Column], score: str) -> dict[Setting, Column]:
    """Return the column of `score` for each noise setting, by sigma, of most draws, rather not clipped."""
    candidates = (
        column
        for column in columns
        if column.score == score and column.setting.sigma is not None and not column.stops
        if column.value.notna().any() and column.parameters.get("statistic", "mean") == "mean"
    )
    best = most_draws_by(
        candidates,
        lambda column: column.setting,
        lambda candidate: (not candidate.parameters.get("clip"), candidate.most_draws or 0),
    )
    return dict(sorted(best.items(), key=lambda pair: (pair[0].sigma or 0.0, pair[0].noise)))


def margin_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns of `table` that hold input margins, in the order of its record.

    A value is a distance in the norm that the parameters name, infinite where nothing was found.
    """
    return tuple(column for column in table.columns if column.score == INPUT_MARGIN)


def parameters_text(column: Column) -> str:
    """Return the parameters but noise and draws that tell a column from others of its score; empty where none does."""
    return column.variant.removeprefix(column.score).strip("()").replace("=", " ")


def class_of(table: Table) -> tuple[Literal["label", "predicted"], pd.Series]:
    """Return the class of each point: its label where any point has one, else the prediction."""
    points = table.points.select(["point", "label", "predicted"]).to_pandas().set_index("point")
    by = "label" if points["label"].notna().any() else "predicted"
    return by, points[by]


def class_name(table: Table, number: int) -> str:
    """Return the name of class `number`, or `class 3` where it has none, or one that is a number, as scikit-learn's."""
    names = table.record.data.names
    name = storable(names[number]) if 0 <= number < len(names) else str(number)
    return f"class {name}" if name.removeprefix("-").isdecimal() else name


def answer_text(table: Table, number: int | None, words: str | None) -> str | None:
    """Return a label or prediction by the name of its class, or by a decision's words; None without any."""
    return words and storable(words) if number is None else class_name(table, number)
