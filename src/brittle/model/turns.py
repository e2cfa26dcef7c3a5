"""Passes through networks side by side, and changes of the whole process, during which no other thread passes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Many threads at once, or one alone.

    A thread that waits to be alone lets no other in, so its turn comes once those inside have left.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._inside = 0
        self._waiting = 0
        self._own = threading.local()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Enter the block together with other threads, once no thread is alone."""
        if self._depth:
            yield
            return
        with self._change:
            self._change.wait_for(lambda: self._inside >= 0 and not self._waiting)
            self._inside += 1
        try:
            with self._deeper():
                yield
        finally:
            with self._change:
                self._inside -= 1
                self._change.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Enter the block once no other thread is inside one, and keep others out.

        Raises:
            RuntimeError: this thread is inside a block with others, which would wait for itself.
        """
        if self._depth:
            raise RuntimeError("a network cannot be measured in this way from within its own forward pass")
        with self._change:
            self._waiting += 1
            try:
                self._change.wait_for(lambda: self._inside == 0)
                self._inside = -1
            finally:
                self._waiting -= 1
                self._change.notify_all()
        try:
            with self._deeper():
                yield
        finally:
            with self._change:
                self._inside = 0
                self._change.notify_all()

    @property
    def _depth(self) -> int:
        """Blocks that this thread is inside of."""
        return getattr(self._own, "depth", 0)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._own.depth = self._depth + 1
        try:
            yield
        finally:
            self._own.depth -= 1


PASSES = Turns()
"""Passes through networks are made together; attention kernels are switched, and networks traced, alone."""
