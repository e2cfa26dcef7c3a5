"""What `--bounds` stands for: two numbers, none, or a file of those per feature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brittle.errors import UsageError
from brittle.model.bounds import NONE, Bounds

SUFFIX = ".npy"


def bounds_of(words: Sequence[str]) -> Bounds:
    """The bounds that the two words behind `--bounds` stand for; a word that stands alone is there twice.

    Raises:
        UsageError: they stand for none, or the file cannot be read.
        ParameterError: the numbers are no bounds.
    """
    first, last = words
    if first == last == "none":
        return NONE
    if first == last and first.endswith(SUFFIX):
        return _read(Path(first))
    try:
        low, high = float(first), float(last)
    except ValueError as error:
        raise UsageError(
            "--bounds takes two numbers (--bounds 0 255, --bounds 0 inf), none, or a file of those per feature "
            f"(FILE.npy); found {' '.join(dict.fromkeys(words))!r:.60}",
        ) from error
    return Bounds.of((low, high))


def _read(path: Path) -> Bounds:
    try:
        ends = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as the bounds per feature: {error}") from error
    if ends.ndim < 2 or len(ends) != 2 or ends.dtype.kind not in "fiu":
        raise UsageError(
            f"{path} has shape {list(ends.shape)} and type {ends.dtype}; bounds per feature are numbers [2, *shape], "
            f"the lower ones first: np.save({path.name!r}, np.stack([lower, upper]))",
        )
    return Bounds.of((ends[0], ends[1]))
