"""Threads that do one thing after another when they are told to."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from helpers.problems import small_network
from torch import nn

SOON = 0.2
"""Seconds that a thread gets for what it must not be able to do."""

LIMIT = 30.0
"""Seconds that a thread gets for what it must be able to do."""


class Worker(ThreadPoolExecutor):
    """A thread that does one thing after another when it is told to."""

    def __init__(self) -> None:
        super().__init__(1)

    def __call__(self, task: Callable[[], object]) -> object:
        return self.submit(task).result(LIMIT)


def with_dropout() -> nn.Sequential:
    """A network in training mode, one layer of which is frozen."""
    network = nn.Sequential(small_network(), nn.Dropout(0.5)).train()
    network[0][0].requires_grad_(False).eval()  # pyright: ignore[reportIndexIssue] a layer of a known kind
    return network
