"""Seconds of a processor that estimators take, by the papers' procedure: point by point, and all together."""

from __future__ import annotations

import time
from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor, nn

import brittle
from brittle.scores import MMSE, MMSEMVS, Score, Softmax, Taylor, TaylorMVS
from studies.counting import BLOCK, count_flips

PAPER_COPIES = 10_000
"""Noisy copies of a point that the papers count."""

PAPER_DRAWS = 5
"""Draws of MMSE that the papers take for enough."""

PRINTED_DRAWS = 500
"""Draws with which the UAI paper measures the errors of MMSE (section 4.1); the workshop paper takes twice as many."""

TIMED_DRAWS = (2, PAPER_DRAWS, 25)
"""Draws of MMSE that are timed."""

TIMED = 20, 300
"""Points and copies that are timed; the time of `PAPER_COPIES` is scaled up from the copies."""

FASTER = {"taylor": 759, "mmse": 148}
"""Times as long as counting takes on the papers' processor, one point at a time (workshop paper, table 3)."""

ALONE = 5
"""Points that are timed one at a time."""

COUNTING, SERIAL, BATCHED = "counting", "one at a time", "together"


def seconds_of(task: Callable[[], object]) -> float:
    """Processor time of a task, which other programs of the machine hardly change."""
    began = time.process_time()
    task()
    return time.process_time() - began


def runtimes(network: nn.Module, x: Tensor, sigma: float, copies: int) -> pd.DataFrame:
    """Seconds a point: rows `method`, `draws`, `how`, `seconds`; counting for `PAPER_COPIES`, measured over `copies`.

    Counting is plain PyTorch, a copy in a pass (the papers' serial form) or `BLOCK` of them; the others
    are `brittle.score`, for some points each by itself, or for all of them.
    """
    classifier = brittle.Classifier(network, bounds=(0, 1))

    def scored(points: Tensor, score: Score) -> None:
        brittle.score(classifier, points, [score], seed=0, most_failures=None)

    @torch.no_grad()
    def one_by_one() -> None:
        for _ in range(copies):
            network(x[:1] + sigma * torch.randn(1, *x.shape[1:])).argmax(1)

    scored(x[:1], Taylor(sigma))  # what is done once in a process is not timed
    rows: list[tuple[str, int, str, float]] = []
    rows.append((COUNTING, PAPER_COPIES, SERIAL, seconds_of(one_by_one) * PAPER_COPIES / copies))
    together = max(copies, BLOCK)
    counted = seconds_of(lambda: count_flips(network, x[:1], sigma, together, 0))
    rows.append((COUNTING, PAPER_COPIES, BATCHED, counted * PAPER_COPIES / together))
    for (name, draws), score in timed(sigma).items():
        alone = [seconds_of(lambda point=point, score=score: scored(point[None], score)) for point in x[:ALONE]]
        rows.append((name, draws, SERIAL, sum(alone) / len(alone)))
        rows.append((name, draws, BATCHED, seconds_of(lambda score=score: scored(x, score)) / len(x)))
    return pd.DataFrame(rows, columns=["method", "draws", "how", "seconds"])


def timed(sigma: float) -> dict[tuple[str, int], Score]:
    """The estimators of the workshop paper's table 3 by name and draws, 0 for none."""
    found: dict[tuple[str, int], Score] = {
        ("taylor", 0): Taylor(sigma), ("taylor_mvs", 0): TaylorMVS(sigma), ("softmax", 0): Softmax(),
        ("mmse_mvs", PAPER_DRAWS): MMSEMVS(sigma, draws=PAPER_DRAWS, antithetic=False),
    }  # fmt: skip
    for draws in TIMED_DRAWS:
        found["mmse", draws] = MMSE(sigma, draws=draws, antithetic=False, form="linear")
    return found
