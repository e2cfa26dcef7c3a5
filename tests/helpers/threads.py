"""Threads that run one task after another on request."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from helpers.problems import small_network
from torch import nn

SOON = 0.2
"""Seconds for a task that a thread must not be able to finish."""

LIMIT = 30.0
"""Seconds for a task that a thread must be able to finish."""


class Worker(ThreadPoolExecutor):
    """A thread that runs one task after another on request."""

    def __init__(self) -> None:
        super().__init__(1)

    def __call__(self, task: Callable[[], object]) -> object:
        return self.submit(task).result(LIMIT)


def with_dropout() -> nn.Sequential:
    """Return a network in training mode with one frozen layer."""
    network = nn.Sequential(small_network(), nn.Dropout(0.5)).train()
    network[0][0].requires_grad_(False).eval()  # pyright: ignore[reportIndexIssue] a layer of a known kind
    return network
