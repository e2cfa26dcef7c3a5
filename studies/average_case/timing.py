"""Seconds of a processor that estimators take, by the papers' procedure: point by point, and all together."""

from __future__ import annotations

import time
from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor, nn

import brittle
from brittle.scores import MMSE, Score, Taylor
from studies.counting import BLOCK, count_flips

PAPER_COPIES = 10_000
"""Noisy copies of a point that the papers count."""

PAPER_DRAWS = 5
"""Draws of MMSE that the papers take for enough."""

PRINTED_DRAWS = 500
"""Draws with which the UAI paper measures the errors of MMSE (section 4.1); the workshop paper takes twice as many."""

COUNTING, SERIAL, BATCHED = "counting", "one at a time", "together"


def seconds_of(task: Callable[[], object]) -> float:
    """Processor time of a task, which other programs of the machine hardly change."""
    began = time.process_time()
    task()
    return time.process_time() - began


def runtimes(network: nn.Module, x: Tensor, sigma: float, copies: int) -> pd.DataFrame:
    """Seconds a point: rows `method`, `how`, `seconds`; counting for `PAPER_COPIES`, measured over `copies`.

    Counting is plain PyTorch, a copy in a pass (the papers' serial form) or `BLOCK` of them; the others
    are `brittle.score`, for some points each by itself, or for all of them.
    """
    classifier = brittle.Classifier(network, bounds=(0, 1))

    def scored(points: Tensor, score: Score) -> None:
        brittle.score(classifier, points, [score], seed=0, most_failures=None)

    @torch.no_grad()
    def one_by_one() -> None:
        for point in x[:1]:
            for _ in range(copies):
                network(point[None] + sigma * torch.randn(1, *point.shape)).argmax(1)

    scored(x[:1], Taylor(sigma))  # what is done once in a process is not timed
    rows = [(COUNTING, SERIAL, seconds_of(one_by_one) * PAPER_COPIES / copies)]
    together = max(copies, BLOCK)
    counted = seconds_of(lambda: count_flips(network, x[:1], sigma, together, 0))
    rows.append((COUNTING, BATCHED, counted * PAPER_COPIES / together))
    mmse = MMSE(sigma, draws=PAPER_DRAWS, antithetic=False, form="linear")
    for name, score in (("taylor", Taylor(sigma)), ("mmse", mmse)):
        alone = [seconds_of(lambda point=point, score=score: scored(point[None], score)) for point in x[:5]]
        rows.append((name, SERIAL, sum(alone) / len(alone)))
        rows.append((name, BATCHED, seconds_of(lambda score=score: scored(x, score)) / len(x)))
    return pd.DataFrame(rows, columns=["method", "how", "seconds"])
