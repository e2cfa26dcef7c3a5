"""The names of a model's classes, out of a file; labels of data with names of their own are mapped into them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from brittle.data.files import path_text
from brittle.data.points import Batch, Points
from brittle.errors import DataError, ParameterError, listed

MOST_BYTES = 1 << 22
"""A longer file holds no names of classes."""

SHOWN = 3
"""Names that a message shows."""

WRONG = 0.01
"""Share of labels that may be no classes; such points count as wrong."""


@dataclass(frozen=True)
class NamedPoints:
    """Other points, whose labels are places among other names.

    Attributes:
        points: the points.
        class_names: names of the model's classes, in the order of its outputs.
        places: for each label of `points` the place of its name among these; None where the labels stay.
    """

    points: Points
    class_names: tuple[str, ...]
    places: Mapping[int, int] | None

    @property
    def labels(self) -> Sequence[int] | None:
        """Class index of every point, or None."""
        return _mapped(self.points.labels, self.places)

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the points come from."""
        return self.points.provenance

    def __len__(self) -> int:
        return len(self.points)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The points of the rows `start` up to `stop` (all others) in their order, `size` at a time."""
        for batch in self.points.batches(size, start, stop):
            labels = _mapped(batch.labels, self.places)
            yield replace(batch, labels=None if labels is None else tuple(labels))


def name_classes(points: Points, names: Sequence[str]) -> NamedPoints:
    """`points` under the names of the model's classes, in the order of its outputs.

    Labels of data that name their classes, as folders do, become the places of these names among `names`; other labels
    are class indices already, and stay.

    Raises:
        ParameterError: a name of the data is not among `names`, or two of these are equal.
    """
    own, known = points.class_names, tuple(names)
    if not known or not all(isinstance(name, str) and name for name in known) or len(set(known)) < len(known):
        raise ParameterError(f"expected names of classes, each once; found {known!r:.80}")
    if own is None or points.labels is None:
        return NamedPoints(points, known, None)
    missing = [name for name in own if name not in known]
    if missing:
        alike = _alike(own, known)
        if alike is not None:
            pairs = listed([f"{one!r:.40} is {other!r:.40}" for one, other in alike.items() if one != other], SHOWN)
            raise ParameterError(
                f"the classes of the data are called otherwise than those of the model, but agree with them one by one "
                f"when case, spaces, '-' and '_' are left aside: {pairs}; write the names "
                "(--class-names, class_names=) as the data do",
            )
        some = (listed([f"{name!r:.40}" for name in few], SHOWN) for few in (missing, known))
        raise ParameterError(
            f"{len(missing)} of the {len(own)} classes of the data are not among the {len(known)} names that were "
            f"given: {next(some)}; these are {next(some)}: rename the classes of the data or the names",
        )
    return NamedPoints(points, known, {at: known.index(name) for at, name in enumerate(own)})


def in_classes(points: Points, names: Sequence[str] | None, values: Sequence[int] | None = None) -> Points:
    """`points` with labels that are places among the classes of a model that knows them itself.

    Labels of data that name their classes are mapped by name where a name of the data is one of the model's. Where none
    is, not even in another spelling, the two have other words for them, and labels stay; so they do where the names
    are spelled otherwise and stand at the same places. Labels of data without names are mapped by value where the
    model's classes are whole numbers, such as 1, 2, 3 or -1 and 1. Points whose classes the user has named stay.

    Args:
        points: what is scored.
        names: of the model's classes, in the order of its outputs, or None where it knows none.
        values: the classes themselves where they are whole numbers.

    Raises:
        ParameterError: some names of the data are among those of the model and others are not, or are spelled otherwise
            and stand in another order.
        DataError: more than 1% of the labels (and more than one) are none of `values`.
    """
    if names is None or points.labels is None or isinstance(points, NamedPoints):
        return points
    if points.class_names is not None:
        own = tuple(points.class_names)
        stay = own == tuple(names) or not (set(own).intersection(names) or _in_another_order(own, names))
        return points if stay else name_classes(points, names)
    if values is None or tuple(values) == tuple(range(len(values))):
        return points
    places = {value: at for at, value in enumerate(values)}
    _check_values(points.labels, places)
    return NamedPoints(points, tuple(names), places)


def label_places(labels: Any, names: Sequence[str] | None) -> Any:
    """Text labels as places among the names of a model's classes; other labels, and those of other models, as they are.

    Raises:
        DataError: a label is none of `names`.
    """
    found = np.asarray(labels) if isinstance(labels, list | tuple | np.ndarray) else None
    if names is None or found is None or found.ndim != 1 or not all(isinstance(one, str) for one in found.tolist()):
        return labels
    places = {name: at for at, name in enumerate(names)}
    unknown = sorted(set(found.tolist()) - set(places))
    if unknown:
        some = (listed([f"{name!r:.40}" for name in few], SHOWN) for few in (unknown, list(names)))
        raise DataError("labels", f"labels {next(some)} are no classes of the model; these are {next(some)}")
    return np.array([places[name] for name in found.tolist()], np.int64)


def _check_values(labels: Sequence[int], places: Mapping[int, int]) -> None:
    wrong = [label for label in labels if label not in places]
    if len(wrong) > 1 and len(wrong) > WRONG * len(labels):
        some = listed(sorted(set(wrong)), SHOWN)
        raise DataError(
            "labels",
            f"{len(wrong)} of {len(labels)} labels, such as {some}, are no classes of the model, which was fitted on "
            f"{listed(list(places), SHOWN)}; give the labels that it was fitted on",
        )


def _alike(own: Sequence[str], known: Sequence[str]) -> dict[str, str] | None:
    """For each name of the data the one in `known` that is the same but for spelling; None unless it is one to one."""
    spelled = {_plain(name): name for name in known}
    found = {name: spelled[_plain(name)] for name in own if _plain(name) in spelled}
    one_to_one = len(spelled) == len(known) and len(found) == len(own) == len(set(found.values()))
    return found if one_to_one else None


def _in_another_order(own: Sequence[str], known: Sequence[str]) -> bool:
    """Whether some of these names are the same but for spelling, and do not stand at the same places."""
    ours, theirs = [_plain(name) for name in own], [_plain(name) for name in known]
    return bool(set(ours).intersection(theirs)) and ours != theirs[: len(ours)]


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def read_class_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names in a text file, one a line, in the order of the model's outputs.

    Raises:
        ParameterError: the file cannot be read, is no text in UTF-8, or has an empty line or a name twice.
    """
    where = f"{path_text(path)} (--class-names)"
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise ParameterError(f"{where} has more than {MOST_BYTES:,} bytes; give one name a line")
        names = [line.strip() for line in Path(path).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{where} cannot be read as text in UTF-8: {_reason(error)}") from error
    seen: dict[str, int] = {}
    for line, name in enumerate(names, start=1):
        if not name or name in seen:
            found = f"the name {name!r:.40} of line {seen[name]} again" if name else "no name"
            raise ParameterError(f"line {line} of {where} has {found}; give each class once, one a line")
        seen[name] = line
    if not names:
        raise ParameterError(f"{where} is empty; give one name a line")
    return tuple(names)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _mapped(labels: Sequence[int] | None, places: Mapping[int, int] | None) -> Sequence[int] | None:
    """Labels as places among other names; one that names no class stays outside all."""
    if labels is None or places is None:
        return labels
    return tuple(places.get(label, -1) for label in labels)
