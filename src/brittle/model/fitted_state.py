"""What a fitted estimator has learned, as one digest: a detector is tied to it, as to the weights of a network."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

CHANGES_NOTHING = ("n_jobs", "verbose", "_sklearn_version")
"""Of an estimator: how its predictions are computed, which decides none of them."""

WRITTEN = (type(None), bool, int, float, complex, str, bytes)
"""What is what its `repr` says."""


def estimator_digest(estimator: Any) -> str | None:
    """The sha256 over the types, names and numbers of all that a fitted estimator holds, `CHANGES_NOTHING` left out.

    It is the same in every process, after `pickle` and skops, and after predictions. Functions count by their names, as
    the code of a network does. None where a part of it cannot be taken apart, as for a file that is open.
    """
    digest = hashlib.sha256()
    try:
        _feed(digest.update, estimator, ())
    except (TypeError, AttributeError, RecursionError, pickle.PicklingError):
        return None
    return digest.hexdigest()


def _feed(update: Callable[[bytes], None], value: Any, above: tuple[int, ...]) -> None:
    """Give `value` to `update`, part by part; `above` are the objects that it is a part of."""
    kind = type(value)
    update(f"<{kind.__module__}.{kind.__qualname__}>".encode())
    if id(value) in above:
        return
    if isinstance(value, WRITTEN):
        update(repr(value).encode())
    elif hasattr(value, "__qualname__") or isinstance(value, np.ufunc):  # a class or a function
        update(f"{getattr(value, '__module__', None)}.{value.__name__}".encode())
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject and value.dtype.names is None:
        update(f"{value.dtype.str}{value.shape}".encode())
        update(value.tobytes())
    else:
        for part in _parts(value):
            _feed(update, part, (*above, id(value)))
    update(b"</>")


def _parts(value: Any) -> list[Any]:
    """What an object is made of, in an order that is always the same."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return []  # predictions draw from none
    if isinstance(value, np.ndarray):
        names = value.dtype.names  # fields one by one: between them lies what nobody wrote
        return [value.shape, *(value[name] for name in names)] if names else [value.shape, value.tolist()]
    if isinstance(value, dict):
        return sorted(value.items(), key=lambda one: repr(one[0]))
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return list(value)
    if hasattr(value, "get_arrays"):
        return [value.get_arrays()]  # neighbours in a tree, which counts its look-ups beside them
    if hasattr(value, "get_params"):
        return [{name: part for name, part in value.__getstate__().items() if name not in CHANGES_NOTHING}]
    return [list(one) if hasattr(one, "__next__") else one for one in value.__reduce_ex__(4)]
