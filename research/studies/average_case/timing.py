"""Seconds of a processor that counting and estimators take, one point at a time, on networks of three sizes.

Weights are random: they decide no time. Only the estimators are timed, without the checks and the table of a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor, nn

import brittle
from brittle.scores import MMSE, Taylor
from studies.architectures import resnet_18
from studies.estimators import printed
from studies.train.architectures import build
from studies.train.images import DATASETS

PAPER_COPIES = 10_000
"""Noisy copies of a point that the papers count."""

PAPER_DRAWS = 5
"""Draws of MMSE that the papers take for enough."""

PRINTED_DRAWS = 500
"""Draws with which the UAI paper measures the errors of MMSE (section 4.1); the workshop paper takes twice as many."""

TIMED = 9, 60
"""Rounds, and copies in each; the time of `PAPER_COPIES` is scaled up from the copies."""

FASTER = {"taylor": 759, "mmse": 148}
"""Times as long as counting takes on the papers' processor, one point at a time (workshop paper, table 3)."""

SIGMA = 0.1
"""That of the papers' run times."""

SMALL, NARROW, PAPERS = "CNN", "narrow ResNet-18", "ResNet-18"
"""The networks, the smallest first; the papers time the last."""

LIBRARY, PRINTED = "library", "as printed"
"""Origin of the code: ours, or the papers' formulas without it."""

COUNTING = "counting"


def networks() -> dict[str, nn.Module]:
    """Networks for CIFAR-10: two that the studies train on processors, and that of the papers."""
    data = DATASETS["cifar10"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        networks_by_name = {SMALL: build("cnn", data, 10), NARROW: build("resnet18", data, 8), PAPERS: resnet_18()}
    return {name: network.eval() for name, network in networks_by_name.items()}


def seconds_of(task: Callable[[], object]) -> float:
    """Processor time of a task, which other programs of the machine hardly change."""
    began = time.process_time()
    task()
    return time.process_time() - began


def runtimes(rounds: int, copies: int) -> pd.DataFrame:
    """Seconds a point: rows `architecture`, `parameters`, `round`, `method`, `code`, `seconds`.

    In each round every method has its turn, so that a ratio is of times that lie close together. Counting is plain
    PyTorch, a copy in a pass, `PAPER_COPIES` scaled up from `copies`.
    """
    rows = []
    for name, network in networks().items():
        parameters, tasks = sum(part.numel() for part in network.parameters()), tasks_of(network, copies)
        for number in range(-1, rounds):  # what is done once in a process is not timed
            for (method, code), task in tasks.items():
                seconds = seconds_of(task) * (PAPER_COPIES / copies if method == COUNTING else 1)
                if number >= 0:
                    rows.append((name, parameters, number, method, code, seconds))
    return pd.DataFrame(rows, columns=["architecture", "parameters", "round", "method", "code", "seconds"])


def tasks_of(network: nn.Module, copies: int) -> dict[tuple[str, str], Callable[[], object]]:
    """Return the timed tasks at a point, by method and origin of the code; MMSE in the papers' own form."""
    point, generator = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0)), torch.Generator()
    classifier = brittle.Classifier(network, bounds=(0, 1))
    taylor, mmse = Taylor(SIGMA), MMSE(SIGMA, draws=PAPER_DRAWS, antithetic=False, form="linear")
    return {
        (COUNTING, PRINTED): lambda: count(network, point, copies),
        (taylor.name, LIBRARY): lambda: taylor(classifier, point),
        (mmse.name, LIBRARY): lambda: mmse(classifier, point),
        (taylor.name, PRINTED): lambda: printed.taylor(network, point, SIGMA, 0, generator),
        (mmse.name, PRINTED): lambda: [*printed.mmse_family(network, point, SIGMA, (PAPER_DRAWS,), generator)],
    }


@torch.no_grad()
def count(network: nn.Module, point: Tensor, copies: int) -> None:
    """Count noisy copies of a point, one in a pass, as the papers' serial form does."""
    for _ in range(copies):
        network(point + SIGMA * torch.randn(point.shape)).argmax(1)
