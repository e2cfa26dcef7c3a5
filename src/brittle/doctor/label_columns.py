"""Columns of a table that hold what is right, and were read as features because nobody named them."""

from __future__ import annotations

import re

import torch

from brittle.data.points import Points
from brittle.decisions import Decision
from brittle.doctor.shapes import runs
from brittle.errors import DataError
from brittle.model.classifier import Classifier

MOST = 64
"""Columns that are at most taken for labels."""

CALLED = re.compile(r"(label|target|class|y)s?(\W|_|\d|$)", re.IGNORECASE)
"""How a column is often called that holds what is right."""


def labels_among_features(
    classifier: Classifier, inputs: torch.Tensor, points: Points | None, decision: Decision
) -> DataError | None:
    """The error for a table of which the model takes fewer columns than it has; None where that is not so.

    Args:
        classifier: the model, called for its numbers as they are.
        inputs: rows of the table, `[V, D]`.
        points: all of them, or None.
        decision: what is decided.
    """
    known = {} if points is None else points.provenance
    if known.get("format") != "table" or known.get("label_column") is not None or inputs.dim() != 2:
        return None
    width = inputs.shape[1]
    most = min(MOST, width - 1) if decision.targets else 1
    counts = range(min(most, width - 1) + 1)
    extra = next((count for count in counts if runs(classifier, inputs[:, : width - count])), 0)
    if not extra:
        return None
    names = [str(name) for name in known.get("feature_names") or range(width)]
    found = _likely(names, inputs, extra)
    listed, typed = ", ".join(map(repr, found)), ",".join(found)
    what = "they look like what is right for a row" if extra > 1 else "it looks like what is right for a row"
    return DataError(
        "labels",
        f"the model takes {width - extra} numbers a row and {known['path']} has {width} columns of features, with "
        f"{listed} among them; {what}: name {'them' if extra > 1 else 'it'} with --label-column {_quoted(typed)} "
        f"(label_column={typed!r})",
    )


def _likely(names: list[str], inputs: torch.Tensor, count: int) -> list[str]:
    """So many columns: those that are called so, else those that hold 0 and 1 alone, else the last ones."""
    yes_no = ((inputs == 0) | (inputs == 1)).all(dim=0).tolist()
    called = [name for name in names if CALLED.match(name)]
    marked = [name for name, fits in zip(names, yes_no, strict=True) if fits]
    return next((found for found in (called, marked) if len(found) == count), names[-count:])


def _quoted(typed: str) -> str:
    return typed if re.fullmatch(r"[\w,.-]+", typed) else f'"{typed}"'
