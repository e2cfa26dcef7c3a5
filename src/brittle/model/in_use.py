"""One thread at a time for a classifier, because it counts its passes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from brittle.errors import ParameterError

_lock = threading.Lock()
_users: dict[int, list[int]] = {}
"""For each classifier in use by its `id`: the thread, once for every block that it is inside of."""


@contextmanager
def in_use(classifier: object) -> Iterator[None]:
    """`classifier` belongs to this thread inside the block.

    Raises:
        ParameterError: another thread uses it.
    """
    with _lock:
        check_not_in_use(classifier)
        _users.setdefault(id(classifier), []).append(threading.get_ident())
    try:
        yield
    finally:
        with _lock:
            _users[id(classifier)].pop()
            if not _users[id(classifier)]:
                del _users[id(classifier)]


def check_not_in_use(classifier: object) -> None:
    """Raise if another thread uses `classifier`.

    Raises:
        ParameterError: it does.
    """
    users = _users.get(id(classifier))
    if users and users[-1:] != [threading.get_ident()]:
        raise ParameterError(
            "another thread measures with this Classifier, and its counts of passes would mix both; give each thread a "
            "Classifier of its own, they may share the model",
        )
