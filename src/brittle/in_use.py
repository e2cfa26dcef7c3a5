"""One thread at a time for an object that counts what it does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from brittle.errors import ParameterError

_lock = threading.Lock()
_users: dict[int, list[int]] = {}
"""For each object in use by its `id`: the thread, once for every block that it is inside of."""


@contextmanager
def in_use(one: object) -> Iterator[None]:
    """`one` belongs to this thread inside the block.

    Raises:
        ParameterError: another thread uses it.
    """
    with _lock:
        check_not_in_use(one)
        _users.setdefault(id(one), []).append(threading.get_ident())
    try:
        yield
    finally:
        with _lock:
            _users[id(one)].pop()
            if not _users[id(one)]:
                del _users[id(one)]


def check_not_in_use(one: object) -> None:
    """Raise if another thread uses `one`.

    Raises:
        ParameterError: it does.
    """
    users = _users.get(id(one))
    if users and users[-1:] != [threading.get_ident()]:
        kind = type(one).__name__
        raise ParameterError(
            f"{kind.lower()}_in_use",
            f"another thread measures with this {kind}, whose counts of passes would mix two runs; give each thread a "
            f"{kind} of its own, they may share the model",
        )
