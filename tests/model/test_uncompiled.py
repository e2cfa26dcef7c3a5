"""A network that `torch.compile` made is measured as the network itself, and is compiled again afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.laws import estimate
from helpers.problems import inputs, small_network
from helpers.threads import Worker

import brittle
from brittle.model.uncompiled import uncompiled
from brittle.scores import InputMargin, Moments

SCORES = [Moments(sigma=0.1), InputMargin("l2", effort="fast", certify=True)]


class Backend:
    """Compiles nothing, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, graph: Any, example: Any) -> Callable[..., Any]:
        self.asked += 1
        return graph.forward


def whole(network: Any, backend: Backend) -> Any:
    return torch.compile(network, backend=backend)


def one_layer(network: Any, backend: Backend) -> Any:
    network[0] = torch.compile(network[0], backend=backend)
    return network


@pytest.mark.parametrize("compiled", [whole, one_layer])
def test_what_was_compiled_is_measured_as_the_network_itself(compiled: Callable[[Any, Backend], Any]) -> None:
    backend, x = Backend(), inputs(3)
    model = compiled(small_network(), backend)
    for score in SCORES:
        found, alone = (estimate(brittle.Classifier(one), x, score) for one in (model, small_network()))
        assert torch.equal(found.value, alone.value)
        assert torch.allclose(found.low, alone.low, rtol=1e-6)
        assert found.status.tolist() == alone.status.tolist()
    assert backend.asked == 0
    model(x)
    assert backend.asked > 0


def test_the_last_thread_to_leave_switches_back() -> None:
    backend, x = Backend(), inputs(3)
    model = whole(small_network(), backend)
    first, second = uncompiled(), uncompiled()
    with Worker() as one, Worker() as other:
        for worker, step in ((one, first.__enter__), (other, second.__enter__)):
            worker(step)
        one(lambda: first.__exit__(None, None, None))
        other(lambda: model(x))
        assert backend.asked == 0
        other(lambda: second.__exit__(None, None, None))
        other(lambda: model(x))
        assert backend.asked > 0
