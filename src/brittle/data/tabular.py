"""Tables of features: which column holds the labels, and the points that its rows are."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from brittle.data.arrays import LARGEST_LABEL, RightAnswers, index_range, list_points, named_features, number_text
from brittle.data.listed import ListedPoints
from brittle.data.options import ReadingOptions
from brittle.errors import DataError, ParameterError, listed

LABEL_NAMES = ("label", "labels", "target", "targets", "class", "y")
"""A column that is called so holds the labels, if it is the only one and no other is named; case does not matter."""

ID_NAME = "id"
"""A column that is called so holds the ids; case does not matter."""

INDEX_NAME = re.compile(r"(unnamed: \d+|__index_level_\d+__)?", re.IGNORECASE)
"""What pandas calls the column of its index."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Cells of text that stand for no value; case does not matter."""

SHOWN = 8
"""Columns that a message names."""


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are.

    Attributes:
        names: of the columns; None where the table has no header.
        label: place of the labels, or None.
        id: place of the ids, or None.
        features: places of all others.
        targets: places of the numbers that are right for a row, where it has several labels or a number is predicted.
    """

    names: tuple[str, ...] | None
    label: int | None
    id: int | None
    features: tuple[int, ...]
    targets: tuple[int, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """Places of the columns that hold a number in every row: the features, then the targets."""
        return self.features + self.targets

    @property
    def answers(self) -> tuple[int, ...]:
        """Places of the columns that say what is right: the targets, or that of the labels."""
        return self.targets if self.label is None else (self.label,)

    def name(self, place: int) -> str:
        """A column as messages and the record call it: by its name, else by its place."""
        return str(place) if self.names is None else self.names[place]


@dataclass(frozen=True)
class Cells:
    """What the rows of a table hold.

    Attributes:
        numbers: of `Roles.numbers`, `[N, D]`, float64; NaN where there is no value.
        labels: text, numbers or None for each row, or None where no column holds labels.
        ids: of each row, or None.
        place: where a row stands, in words.
    """

    numbers: np.ndarray
    labels: Sequence[Any] | None
    ids: Sequence[str] | None
    place: Callable[[int], str]


def find_roles(names: Sequence[str] | None, width: int, options: ReadingOptions, where: str) -> Roles:
    """What each of the columns is.

    Args:
        names: of the columns, or None.
        width: how many there are.
        options: `label_column` is the name or the place of the labels, the last one being -1; None looks for
            `LABEL_NAMES`. With `targets` it may be several, with commas between them.
        where: what to call the table.

    Raises:
        ParameterError: there is no such column, or several that may hold the labels.
        DataError: two columns share a name, one is an index or has none, or none is left for features.
    """
    if names is not None:
        check_no_index(names, range(len(names)), where)
        check_distinct(names, where)
    asked = options.label_column
    several = asked.split(",") if asked and options.targets and asked not in (names or ()) else [asked]
    found = [place for one in several if (place := _label_place(names, width, one, where)) is not None]
    label = None if options.targets or not found else found[0]
    own = None if names is None else next((at for at, one in enumerate(names) if one.lower() == ID_NAME), None)
    ids = None if own in found else own
    features = tuple(place for place in range(width) if place not in (*found, ids))
    if not features:
        raise DataError("columns", f"{where} has no column of features besides labels and ids; expected at least 1")
    targets = tuple(dict.fromkeys(found)) if options.targets else ()
    return Roles(None if names is None else tuple(names), label, ids, features, targets)


def table_points(
    cells: Cells, roles: Roles, where: str, options: ReadingOptions, provenance: dict[str, Any]
) -> ListedPoints:
    """The points that the rows of a table are, the first `options.limit` of them.

    Raises:
        DataError: there are no rows, or a feature or label is missing or of another kind.
    """
    if not len(cells.numbers):
        raise DataError("empty_dataset", f"{where} holds no rows; expected at least 1")
    right, class_names = right_of(cells, roles, where, options)
    kept = slice(options.limit)
    inputs = torch.from_numpy(np.ascontiguousarray(cells.numbers[kept, : len(roles.features)]))
    ids = [str(row) for row in range(len(inputs))] if cells.ids is None else cells.ids[kept]
    named = None if roles.names is None else np.array([roles.names[place] for place in roles.features])
    known = {
        "split": options.split,
        "points": len(inputs),
        "limit": options.limit,
        "label_column": ",".join(map(roles.name, roles.answers)) or None,
        "columns": [roles.name(place) for place in (*roles.answers, roles.id) if place is not None],
    }
    provenance = known | provenance | named_features(named, f"the header of {where}", inputs)
    return list_points(inputs, right.first(options.limit), tuple(ids), class_names, options, provenance)


def right_of(
    cells: Cells, roles: Roles, where: str, options: ReadingOptions
) -> tuple[RightAnswers, tuple[str, ...] | None]:
    """What is right for each row, with the names of the classes or of several labels, or None.

    Raises:
        DataError: a label or a target is missing or of another kind.
    """
    _check_features(cells, roles, where)
    labels, class_names = (None, None) if roles.label is None else _classes(cells, roles, where)
    if not roles.targets:
        return RightAnswers(labels), class_names
    if len(roles.targets) > 1 and roles.names is not None:
        class_names = tuple(roles.names[place] for place in roles.targets)
    numbers = np.ascontiguousarray(cells.numbers[:, len(roles.features) :])
    return RightAnswers(targets=torch.from_numpy(numbers)), class_names


def bad_cell(place: str, name: str, where: str, seen: Any) -> DataError:
    """The error for a feature that is no number, or that is not there."""
    at = f"{place}, column {name!r:.60} of {where}"
    if seen is None or str(seen).strip().lower() in MISSING:
        return DataError("columns", f"{at} holds no value; fill it, or leave the row or the column out")
    return DataError(
        "columns",
        f"{at} holds {seen!r:.60}, which is no number; if the column holds the labels, name it with --label-column "
        "(label_column=); else write text as numbers first (such as one column of 0 and 1 for each value), or leave "
        "the column out",
    )


def check_no_index(names: Sequence[str], places: Iterable[int], where: str) -> None:
    """Raise where one of the columns at these places is called as pandas calls its index.

    Raises:
        DataError: it is.
    """
    index = next((place for place in places if INDEX_NAME.fullmatch(names[place])), None)
    if index is not None:
        called = f"is called {names[index]!r}" if names[index] else "has no name"
        raise DataError(
            "columns",
            f"column {index} of {where} {called}, as the index that pandas writes; write the table without it "
            "(index=False), or give it a name",
        )


def check_distinct(names: Sequence[str], where: str) -> None:
    """Raise where two columns share a name.

    Raises:
        DataError: they do.
    """
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise DataError("columns", f"{where} has two columns called {twice!r:.60}; give each a name of its own")


def find_place(names: Sequence[str] | None, width: int, asked: str, where: str, code: str) -> int | None:
    """The place of the column that is called so, or that is given by its place; None where there is none.

    Raises:
        ParameterError: one column is called so and another stands at this place; with this `code`.
    """
    counted = re.fullmatch(r"-?\d{1,6}", asked) is not None and -width <= int(asked) < width
    place = int(asked) % width if counted else None
    if names is None or asked not in names:
        return place
    named = names.index(asked)
    if place is None or place == named:
        return named
    one, other = (named, place) if int(asked) < 0 else (named - width, place - width)
    raise ParameterError(
        f"{asked!r} is what column {named} of {where} is called, and the place of {names[place]!r:.60}; count "
        f"places from the other end: {one} is the former, {other} the latter",
    )


def find_label(names: Sequence[str] | None, width: int, asked: str, where: str) -> int:
    """The place of the column that is asked for as that of the labels.

    Raises:
        ParameterError: there is none, or two may be it.
    """
    if (place := find_place(names, width, asked, where, "label_column")) is not None:
        return place
    there = f"it has {width} without a header" if names is None else f"it has {listed(list(names), SHOWN)}"
    several = "several are for --decision multilabel or within:T (decision=); " if "," in asked else ""
    raise ParameterError(
        f"{where} has no column {asked!r:.60}; {there}: {several}name one, or give its place from 0 on",
    )


def _label_place(names: Sequence[str] | None, width: int, asked: str | None, where: str) -> int | None:
    """The place of the labels, or None."""
    if asked is not None:
        return find_label(names, width, asked, where)
    found = [place for place, name in enumerate(names or ()) if name.lower() in LABEL_NAMES]
    if len(found) > 1:
        both = " and ".join(repr((names or ())[place]) for place in found)
        raise ParameterError(
            f"{where} has the columns {both}; name the one with the labels (--label-column, label_column=)",
        )
    return found[0] if found else None


def _check_features(cells: Cells, roles: Roles, where: str) -> None:
    missing = np.argwhere(np.isnan(cells.numbers))
    if len(missing):
        row, place = map(int, missing[0])
        raise bad_cell(cells.place(row), roles.name(roles.numbers[place]), where, None)


def _classes(cells: Cells, roles: Roles, where: str) -> tuple[tuple[int, ...], tuple[str, ...] | None]:
    """The class index of each row, and the names of the classes where labels are text: sorted, as Python sorts text."""
    labels = [_label(one) for one in cells.labels or ()]
    name = f"{roles.name(roles.label or 0)!r:.60} in {where}"
    missing = next((row for row, label in enumerate(labels) if label is None), None)
    if missing is not None:
        raise DataError("labels", f"{cells.place(missing)} of the label column {name} is empty; label all rows or none")
    texts = [isinstance(label, str) for label in labels]
    if all(texts):
        names = sorted(set(labels))
        index = {label: number for number, label in enumerate(names)}
        return tuple(index[label] for label in labels), tuple(names)
    if any(texts):
        text, number = texts.index(True), texts.index(False)
        raise DataError(
            "labels",
            f"the label column {name} holds text and numbers: {labels[text]!r:.60} in {cells.place(text)}, "
            f"{labels[number]:g} in {cells.place(number)}; write all as one, and say with --header (header=) whether "
            "the first row names the columns",
        )
    odd = next((row for row, one in enumerate(labels) if one != math.floor(one) or abs(one) > LARGEST_LABEL), None)
    if odd is not None:
        raise DataError(
            "labels",
            f"{cells.place(odd)} of the label column {name} holds {number_text(labels[odd])}; class indices are "
            f"{index_range(labels[odd])}: name the column of the labels with --label-column (label_column=), or, where "
            "the model predicts a number, say --decision within:T (decision=), T being the tolerance",
        )
    return tuple(map(int, labels)), None


def _label(value: Any) -> Any:
    """A label as text or as a finite number; None where there is none."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = None if "_" in text else float(text)
        except ValueError:
            value = None
        if value is None or math.isinf(value):
            return text or None
    return None if value is None or not math.isfinite(value) else value
