"""What libraries tell their developers and not the user: warnings, and what they print where they fail."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

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


class _HeldBack:
    """A stream that keeps what some threads write to it, and passes on what others do."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.kept: dict[int, list[str]] = {}

    def write(self, text: str) -> int:
        kept = self.kept.get(threading.get_ident())
        if kept is None:
            return self.stream.write(text)
        kept.append(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_held: list[_HeldBack] = []
_blocks = 0


@contextmanager
def without_last_words() -> Iterator[None]:
    """What this thread writes to stderr inside the block is written at its end, and is lost where the block raises.

    PyTorch prints the graph of a network that it fails to trace or to run, beside the error that it raises. The stream
    belongs to the process, so the first thread inside puts another in its place, and the last puts it back.
    """
    global _blocks
    own = threading.get_ident()
    with _lock:
        if not _blocks:
            _held.append(_HeldBack(sys.stderr))
            sys.stderr = _held[0]  # type: ignore[assignment]
        _blocks += 1
        held, outer = _held[0], _held[0].kept.get(own)
        held.kept[own] = []
    said: list[str] = []
    try:
        yield
        said = held.kept[own]
    finally:
        with _lock:
            del held.kept[own]
            if outer is not None:
                held.kept[own] = outer
            _blocks -= 1
            if not _blocks:
                _held.clear()
                if sys.stderr is held:
                    sys.stderr = held.stream
        if said:
            held.write("".join(said))
