"""Rows of what was found for a batch: some of its points, and points put together again."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

Found = TypeVar("Found")


def pick(record: Found, rows: Tensor) -> Found:
    """Return the points of a result, or of running sums, at the positions `rows`, or where the mask `rows` is True.

    Tensors, in dataclasses, lists and tuples however deep, hold a row for each point. What has a method `only` picks
    its rows itself; what holds none stays as it is.
    """
    if rows.dtype == torch.bool:
        rows = rows.nonzero().flatten()
    if isinstance(record, Tensor):
        return cast("Found", record[rows])
    if isinstance(record, list | tuple):
        return cast("Found", type(record)(pick(part, rows) for part in record))
    if hasattr(record, "only"):
        return cast("Any", record).only(rows)
    if is_dataclass(record) and not isinstance(record, type):
        picked = {member.name: pick(getattr(record, member.name), rows) for member in fields(record)}
        return cast("Found", replace(record, **picked))
    return record


def join(parts: Sequence[Found]) -> Found:
    """Return the points of several results of one kind, one after another; what holds no rows is that of the first."""
    part = parts[0]
    if isinstance(part, Tensor):
        return cast("Found", torch.cat(cast("list[Tensor]", list(parts))))
    if isinstance(part, list | tuple):
        return cast("Found", type(part)(join(field_parts) for field_parts in zip(*cast("Any", parts), strict=True)))
    if isinstance(part, dict):
        return cast("Found", {name: join([cast("Any", part)[name] for part in parts]) for name in part})
    if is_dataclass(part) and not isinstance(part, type):
        joined = {member.name: join([getattr(part, member.name) for part in parts]) for member in fields(part)}
        return cast("Found", replace(part, **joined))
    return part
