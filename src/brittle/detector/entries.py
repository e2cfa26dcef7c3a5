"""Which of the scores of a run are meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from brittle.errors import DataError, ParameterError
from brittle.estimate import INPUT_MARGIN, Parameter, parameters_json
from brittle.norms import COUNT, DUAL_ORDER, check_norm
from brittle.store.record import ScoreRecord
from brittle.store.table import Table


def check_table(table: Any, name: str) -> None:
    """Raise where the parameter `name` is no run.

    Raises:
        ParameterError: it is none.
    """
    if not isinstance(table, Table):
        raise ParameterError(
            f"expected the brittle.Table of a run, found {type(table).__name__}; brittle.score gives one, and "
            f"brittle.read_table reads one from its folder",
        )


def check_label(name: str, label: str | None, example: str) -> None:
    """Raise unless the parameter `name`, the label of a score such as `example`, is text, or None.

    Raises:
        ParameterError: it is something else.
    """
    if not isinstance(label, str | None):
        raise ParameterError(f"expected the label of a score, such as {example!r}, found {type(label).__name__}")


def norm_of(table: Table, norm: str | None, label: str | None = None) -> str:
    """`norm` itself; where it is None, the norm of the input margins of a run that holds them in one only.

    Args:
        table: the run.
        norm: `linf`, `l2`, `l1` or None.
        label: of the margins, where the run holds several.

    Raises:
        DataError: the run holds no input margins of that label, or holds them in several norms, or in `l0` alone.
        UnknownNameError: there is no such norm.
    """
    if norm is not None:
        return check_norm(norm)
    margins = [one for one in table.record.scores if one.score == INPUT_MARGIN]
    found = dict.fromkeys(str(one.parameters.get("norm")) for one in margins if label in (None, one.label))
    if not found:
        raise _missing(table, label or INPUT_MARGIN)
    if len(found) > 1:
        raise DataError(
            "no_such_score",
            f"the run holds {INPUT_MARGIN} in {' and '.join(found)}; say which is meant with --norm (norm=)",
        )
    if COUNT in found:
        raise DataError(
            "no_such_score",
            f"the run holds {INPUT_MARGIN} in {COUNT} alone, for which there is no detector; score the points in one "
            f"of {', '.join(DUAL_ORDER)} (--norm, norm=)",
        )
    return check_norm(next(iter(found)))


def margin_entry(table: Table, norm: str, label: str | None) -> ScoreRecord:
    """The margins in `norm`; where the run holds those of another norm alone, the error says how to ask for them."""
    norms = {str(one.parameters.get("norm")) for one in table.record.scores if one.score == INPUT_MARGIN}
    if len(norms) == 1 and norm not in norms:
        other = norms.pop()
        raise DataError(
            "no_such_score",
            f"the run does not hold {INPUT_MARGIN} in {norm}, only in {other}; use --norm {other} (norm={other!r}), "
            f"with an epsilon for that norm",
        )
    return score_entry(table, INPUT_MARGIN, {"norm": norm}, label)


def score_entry(table: Table, score: str, wanted: Mapping[str, Parameter], label: str | None = None) -> ScoreRecord:
    """The one score of that name, parameters and label in the record of a run."""
    named = [entry for entry in table.record.scores if entry.score == score]
    fitting = [
        entry
        for entry in named
        if all(entry.parameters.get(key) == value for key, value in wanted.items()) and label in (None, entry.label)
    ]
    if len(fitting) == 1:
        return fitting[0]
    asked = label or (f"{score} with {parameters_json(wanted)}" if wanted else score)
    if fitting:
        labels = ", ".join(entry.label for entry in fitting)
        raise DataError("no_such_score", f"the run holds {asked} {len(fitting)} times: {labels}; name one by its label")
    raise _missing(table, asked)


def _missing(table: Table, asked: str) -> DataError:
    there = ", ".join(entry.label for entry in table.record.scores) or "none"
    return DataError("no_such_score", f"the run does not hold {asked}; its scores: {there}; score the points by it too")


def rows_by_point(table: Table, entry: ScoreRecord) -> pd.DataFrame:
    """The rows of one score, by point."""
    frame = table.long()
    wanted = (frame["score"] == entry.score) & (frame["parameters"] == parameters_json(entry.parameters))
    return frame[wanted].set_index("point")
