"""Which fields of a record make a run the same run: each says so by its metadata.

`SAME` decides a number, or what it is about; `OTHER` is where things lie, how the run was started, what was found out,
or what became of it. A class with a field that says neither cannot be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SAME: Mapping[str, bool] = {"same_run": True}
"""Metadata of a field that makes a run the same run; of a record in a record, that its fields say so themselves."""

OTHER: Mapping[str, bool] = {"same_run": False}
"""Metadata of a field that does not."""

K = TypeVar("K", bound=type)


def checked(kind: K) -> K:
    """The dataclass `kind`, every field of which says whether it makes a run the same run.

    Raises:
        TypeError: a field does not.
    """
    unknown = [one.name for one in fields(kind) if "same_run" not in one.metadata]
    if unknown:
        raise TypeError(f"fields of {kind.__name__} must be SAME or OTHER; found neither for {', '.join(unknown)}")
    return kind


def decisive_fields(
    record: DataclassInstance, also: tuple[str, ...] = (), inside: str = ""
) -> Iterator[tuple[str, Any]]:
    """The fields that make a run the same run: dotted name and value, records in it opened.

    Args:
        record: of a run, or a part of one.
        also: dotted names of fields to give beyond those.
        inside: what stands before the names.
    """
    for one in fields(record):
        name, value = f"{inside}{one.name}", getattr(record, one.name)
        if not (one.metadata["same_run"] or name in also):
            continue
        if is_dataclass(value) and not isinstance(value, type):
            yield from decisive_fields(value, also, f"{name}.")
        else:
            yield name, value
