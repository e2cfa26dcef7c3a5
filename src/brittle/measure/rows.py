"""Rows of what was found for a batch: some of its points, and points put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

Found = TypeVar("Found")


def pick(found: Found, rows: Tensor) -> Found:
    """The points of a result, or of running sums, at the positions `rows`, or where the mask `rows` is True.

    Tensors, in dataclasses, lists and tuples however deep, hold a row for each point. What has a method `only` picks
    its rows itself; what holds none stays as it is.
    """
    if rows.dtype == torch.bool:
        rows = rows.nonzero().flatten()
    if isinstance(found, Tensor):
        return cast("Found", found[rows])
    if isinstance(found, list | tuple):
        return cast("Found", type(found)(pick(each, rows) for each in found))
    if hasattr(found, "only"):
        return cast("Any", found).only(rows)
    if is_dataclass(found) and not isinstance(found, type):
        picked = {one.name: pick(getattr(found, one.name), rows) for one in fields(found)}
        return cast("Found", replace(found, **picked))
    return found


def join(parts: Sequence[Found]) -> Found:
    """The points of several results of one kind, one after another; what holds no rows is that of the first."""
    first = parts[0]
    if isinstance(first, Tensor):
        return cast("Found", torch.cat(cast("list[Tensor]", list(parts))))
    if isinstance(first, list | tuple):
        return cast("Found", type(first)(join(each) for each in zip(*cast("Any", parts), strict=True)))
    if isinstance(first, dict):
        return cast("Found", {name: join([cast("Any", part)[name] for part in parts]) for name in first})
    if is_dataclass(first) and not isinstance(first, type):
        joined = {one.name: join([getattr(part, one.name) for part in parts]) for one in fields(first)}
        return cast("Found", replace(first, **joined))
    return first
