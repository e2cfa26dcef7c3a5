"""Passes side by side, and switches of the process by one thread alone."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from helpers.problems import inputs, small_network
from helpers.threads import LIMIT, SOON, Worker
from torch import nn

import brittle
from brittle.model.turns import Turns
from brittle.scores import InputMargin


@pytest.mark.parametrize("trial", range(4))
def test_turns(trial: int) -> None:
    """Threads together and threads alone: nobody is inside with one that is alone, and all come to their turn."""
    turns, inside, seen = Turns(), [], []

    def visit(number: int) -> None:
        alone = (number + trial) % 3 == 0
        for _ in range(20):
            with turns.alone() if alone else turns.together():
                inside.append(alone)
                seen.append((alone, len(inside), any(inside)))
                time.sleep(1e-4)  # the others get the time to come in, if they could
                with turns.together():
                    inside.remove(alone)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(visit, range(6), timeout=LIMIT))
    assert len(seen) == 6 * 20
    assert all(count == 1 if alone else not any_alone for alone, count, any_alone in seen)
    with turns.together(), pytest.raises(RuntimeError, match="from within its own forward pass"), turns.alone():
        pass


class Attention(nn.Module):
    """A smooth network that notes whether fused attention is allowed when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Linear(6, 6)
        self.out = nn.Linear(6, 3)
        self.fused: list[tuple[int, bool]] = []
        self.elementary, self.passed = threading.Event(), threading.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fused = torch.backends.cuda.flash_sdp_enabled()
        self.fused.append((threading.get_ident(), fused))
        if not fused and not self.elementary.is_set():
            self.elementary.set()
            self.passed.wait(SOON)
        seen = self.read(x.reshape(-1, 1, 6, 6))
        return self.out(nn.functional.scaled_dot_product_attention(seen, seen, seen).mean(dim=(1, 2)))


def test_attention_is_elementary_for_nobody_else(workers: list[Worker]) -> None:
    model = Attention()
    curved = workers[0].submit(lambda: brittle.laplacian(brittle.Classifier(model), inputs(2)))
    assert model.elementary.wait(LIMIT)
    workers[1](lambda: brittle.Classifier(model)(inputs(2)))
    model.passed.set()
    curved.result(LIMIT)
    assert torch.backends.cuda.flash_sdp_enabled()
    other = workers[1](threading.get_ident)
    assert [fused for thread, fused in model.fused if thread == other] == [True]


def test_nobody_passes_through_a_network_that_is_traced(workers: list[Worker], monkeypatch) -> None:
    network, traced = small_network(), []
    export = torch.export.export

    def watched(*arguments, **options):
        passing = workers[0].submit(lambda: brittle.Classifier(network)(inputs(2)))
        with pytest.raises(TimeoutError):
            passing.result(SOON)
        traced.append(passing)
        return export(*arguments, **options)

    monkeypatch.setattr(torch.export, "export", watched)
    score = InputMargin("linf", effort="fast", certify=True)
    brittle.score(brittle.Classifier(network), (inputs(1), None), [score], skip_doctor=True)
    assert [len(passing.result(LIMIT)) for passing in traced] == [2]
