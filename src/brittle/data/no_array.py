"""What to write in place of data that are no arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.errors import DataError

_ARRAYS = "a tensor or a NumPy array"


def what_to_give(x: object) -> str:
    """What was found where an array of inputs is expected, and what to write instead, in words."""
    for known, advice in _KINDS:
        if known(x):
            return advice
    return f"a {type(x).__name__}; give {_ARRAYS}, such as numpy.asarray(x, dtype='float32')"


def plain_array(x: Any, where: str) -> np.ndarray:
    """A tensor, an array or a list as a plain array on the CPU.

    Raises:
        DataError: it is a masked array that hides some of its entries, or nothing that an array can be made of.
    """
    hidden = int(np.ma.count_masked(x)) if isinstance(x, np.ma.MaskedArray) else 0
    if hidden:
        raise DataError(
            "dtype",
            f"{where} is a masked array that hides {hidden:,} of {x.size:,} entries; leave these points out, or say "
            f"what stands there: numpy.ma.filled",
        )
    try:
        if isinstance(x, Tensor):
            x = (x.float() if x.dtype == torch.bfloat16 else x).detach().cpu().numpy()
        return np.asarray(x)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError("dtype", f"{where} is no array of numbers or texts ({reason}); give {_ARRAYS}") from error


def is_frame(x: object) -> bool:
    """Whether it is a table or a column of pandas, which is not imported to find out."""
    return type(x).__module__.partition(".")[0] == "pandas"


def _is_nested(x: Any) -> bool:
    return isinstance(x, list | tuple) and bool(x)


_KINDS = (
    (
        is_frame,
        "a table of pandas; give its features and labels as arrays: (frame.drop(columns='label').to_numpy('float32'), "
        "frame['label'].to_numpy()), or write it to a .csv file and open that with brittle.data.open_points",
    ),
    (
        lambda x: isinstance(x, Mapping),
        "a dictionary; give the pair (x, y) of its inputs and labels",
    ),
    (
        lambda x: isinstance(x, Iterator),
        "a generator, which can be read once only; give the arrays (x, y), or a torch.utils.data.Dataset",
    ),
    (
        lambda x: _is_nested(x) and len(x) == 2 and all(hasattr(part, "shape") for part in x),
        "a list of two arrays; give a tuple, (x, y), for inputs and labels, or stack them for two points",
    ),
    (
        lambda x: isinstance(x, tuple) and len(x) > 2,
        "a tuple of more than two; give (x, y), and ids or names by brittle.data.array_points(x, y, ids=...)",
    ),
    (
        lambda x: _is_nested(x) and all(isinstance(part, Tensor) for part in x),
        "a list of tensors; give one tensor, torch.stack(x)",
    ),
    (
        lambda x: _is_nested(x) and all(isinstance(part, np.ndarray) for part in x),
        "a list of arrays; give one array, numpy.stack(x)",
    ),
    (
        lambda x: _is_nested(x) and isinstance(x[0], tuple),
        "a list of pairs; give the pair of arrays (x, y), or a torch.utils.data.Dataset",
    ),
)
"""What people give instead of arrays, each with what to write; the first that fits is told."""
