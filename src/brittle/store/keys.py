"""What a column of a run is asked for by."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from brittle.errors import DataError, ParameterError, listed
from brittle.estimate import Parameter, parameters_json
from brittle.store.columns import Column

NEAREST = 5
"""Labels that a message about a column that is not there names at most."""


class Named(Protocol):
    """What names a column, as a `brittle.scores.Score` does: a score's name, its parameters and both in one text."""

    name: ClassVar[str]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Its parameters, as the table writes them."""
        ...

    @property
    def label(self) -> str:
        """Both in one text; raises where they do not tell it from another."""
        ...


Key = Named | str | tuple[str, Parameter]
"""What a column is asked for by: a score; a label or a name; a name and its sigma, or where it has none the value of
another parameter."""


def column_of(columns: Sequence[Column], key: Key) -> Column:
    """The one column that `key` asks for.

    Args:
        columns: of a run.
        key: a score, such as `Moments(sigma=0.1)`; a label, such as `moments(draws=100, sigma=0.1)`; a name that one
            column alone has; or a name and the value of a parameter, such as `("moments", 0.1)`. Where a run asks for
            each label by itself, the column of all labels together goes first; `("moments", "calm")` names one label.

    Raises:
        DataError: no column fits, or several do; the nearest labels are named.
        ParameterError: the key is nothing that asks for a column.
    """
    _check_key(key)
    asked = _describe_key(key)
    fitting = [column for column in columns if _fits(column, key)]
    if len(fitting) == 1:
        return fitting[0]
    together = [column for column in fitting if not column.setting.of_label]
    if len(together) == 1:
        return together[0]
    if fitting:
        labels = listed([column.label for column in fitting], NEAREST)
        raise DataError("no_such_score", f"{asked} is one of {len(fitting)} columns: {labels}; say which by its label")
    near = listed(_nearest(columns, key), NEAREST) or "none"
    raise DataError("no_such_score", f"expected a score of this run, found {asked}; the nearest of its scores: {near}")


def _fits(column: Column, key: Key) -> bool:
    if isinstance(key, str):
        return key in (column.label, column.shown, column.score)
    if isinstance(key, tuple):
        score, value = key
        own = column.parameters
        asked = [one for one in own.values() if not isinstance(one, bool)]
        if "sigma" in own:
            asked = [own["sigma"], *([own["label"]] if isinstance(own.get("label"), str) else [])]
        return column.score == score and value in asked
    same = parameters_json(column.parameters) == parameters_json(key.parameters)
    return same and column.score == key.name


def _check_key(key: object) -> None:
    named = hasattr(key, "name") and hasattr(key, "parameters") and not isinstance(key, type)
    if not (isinstance(key, str) or named or (isinstance(key, tuple) and _is_pair(key))):
        expected = "expected a score such as Moments(sigma=0.1), a label, a name, or a name and its sigma"
        raise ParameterError(f"{expected}; found {key!r:.80}")


def _is_pair(key: tuple[object, ...]) -> bool:
    """Whether a tuple is a name and the value of a parameter."""
    whole = len(key) == 2 and isinstance(key[0], str)
    return whole and isinstance(key[1], int | float | str) and not isinstance(key[1], bool)


def _describe_key(key: Key) -> str:
    if isinstance(key, tuple):
        return ", ".join(map(str, key))
    return key if isinstance(key, str) else key.label


def _nearest(columns: Sequence[Column], key: Key) -> list[str]:
    """Labels like the one asked for: those of the score first."""
    name = key if isinstance(key, str) else key[0] if isinstance(key, tuple) else key.name
    same = [column.label for column in columns if column.score == name.partition("(")[0]]
    near = difflib.get_close_matches(_describe_key(key), [column.label for column in columns], NEAREST, cutoff=0.3)
    return list(dict.fromkeys([*same, *near, *(column.label for column in columns)]))
