"""Warnings of libraries that are not for the user."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_filters: list[warnings.catch_warnings] = []
_inside = 0


@contextmanager
def without_warnings() -> Iterator[None]:
    """No warnings inside the block.

    The filters belong to the process: the first thread inside saves them, the last puts them back. Each on its own
    would put back what another had set, and leave the process without warnings.
    """
    global _inside
    with _lock:
        if not _inside:
            saved = warnings.catch_warnings()
            saved.__enter__()
            warnings.simplefilter("ignore")
            _filters.append(saved)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _filters.pop().__exit__(None, None, None)
