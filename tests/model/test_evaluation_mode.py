"""Threads that measure one network at a time: its mode holds for all of them, and nobody's numbers change."""

from __future__ import annotations

import random
import threading
from functools import partial

import pytest
import torch
from helpers.problems import inputs, small_network
from helpers.threads import LIMIT, Worker, with_dropout
from torch import nn

import brittle
from brittle.errors import ModelError
from brittle.model.evaluation_mode import evaluation_mode
from brittle.scores import MonteCarlo

TRIALS = range(24)


def modes(network: nn.Module) -> list[bool]:
    return [module.training for module in network.modules()] + [one.requires_grad for one in network.parameters()]


@pytest.mark.parametrize("trial", TRIALS)
def test_a_mode_is_held_as_long_as_anybody_evaluates(trial: int, workers: list[Worker]) -> None:
    """Three threads enter and leave in any order, over the network, a part of it, or something it is a part of."""
    network = with_dropout()
    before = modes(network)
    own = {id(module) for module in network[0].modules()}
    choice = random.Random(trial)
    evaluated = [choice.choice([network, network[0], nn.Sequential(network, nn.Softmax(1))]) for _ in workers]
    blocks = [brittle.Classifier(one).evaluating() for one in evaluated]
    inside: set[int] = set()
    steps = [0, 0, 1, 1, 2, 2]
    choice.shuffle(steps)
    for number in steps:
        leaves = number in inside
        workers[number](partial(blocks[number].__exit__, *[None] * 3) if leaves else blocks[number].__enter__)
        inside ^= {number}
        whole = any(evaluated[n] is not network[0] for n in inside)
        for module, was in zip(network.modules(), before, strict=False):
            assert module.training == (was and not (whole or (inside and id(module) in own)))
        if inside:
            assert not any(parameter.requires_grad for parameter in network.parameters())
    assert modes(network) == before


class Gate(nn.Module):
    """A network whose second pass waits until it is let through."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.passes = 0
        self.reached, self.open = threading.Event(), threading.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        if self.passes == 2:
            self.reached.set()
            assert self.open.wait(LIMIT)
        return self.network(x)


def votes(model: nn.Module) -> list[float]:
    table = brittle.score(brittle.Classifier(model), (inputs(4), None), [MonteCarlo(0.2, draws=40)], skip_doctor=True)
    return table.scores["value"].to_pylist()


def test_dropout_does_not_come_back_when_another_run_ends(workers: list[Worker]) -> None:
    """A run that ends while another is in the middle, 24 times."""
    network = with_dropout()
    alone = votes(network)
    for _ in TRIALS:
        gate = Gate(network).train()
        slow = workers[0].submit(lambda gate=gate: votes(gate))
        assert gate.reached.wait(LIMIT)
        assert workers[1](lambda: votes(network)) == alone
        gate.open.set()
        assert slow.result(LIMIT) == alone
        assert network.training


def test_training_in_the_middle_of_a_run_stops_it(workers: list[Worker]) -> None:
    network = with_dropout()
    gate = Gate(network)
    slow = workers[0].submit(lambda: votes(gate))
    assert gate.reached.wait(LIMIT)
    workers[1](network.train)
    gate.open.set()
    with pytest.raises(
        ModelError, match=r"network.* was put into training mode while the model was measured"
    ) as caught:
        slow.result(LIMIT)
    assert caught.value.code == "model_changed"
    assert network.training
    assert network[0][0].training  # pyright: ignore[reportIndexIssue] a layer of a known kind


def test_training_in_the_middle_of_a_pass_stops_it() -> None:
    """Something in `forward` that trains, and switches back once the pass is over."""

    class Trains(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.train()
            return x.flatten(1)

    classifier = brittle.Classifier(Trains())
    with classifier.evaluating():
        with pytest.raises(ModelError, match="by another thread or by the model itself"):
            classifier(inputs(2))
        classifier.model.eval()  # pyright: ignore[reportFunctionMemberAccess] a layer of a known kind


def test_training_at_the_end_of_a_run_stops_it() -> None:
    network = with_dropout()
    with pytest.raises(ModelError, match=r"copy\.deepcopy"), brittle.Classifier(network).evaluating():
        network.train()


def test_a_second_run_does_not_hide_that_the_model_trains() -> None:
    network = with_dropout()
    first = brittle.Classifier(network).evaluating()
    first.__enter__()
    network.train()
    for model in (network, nn.Sequential(network)):
        with pytest.raises(ModelError, match="was put into training mode"), evaluation_mode(model):
            pass
    with pytest.raises(ModelError, match="was put into training mode"):
        first.__exit__(None, None, None)
    with evaluation_mode(network):
        assert not network.training


def test_an_exported_part_leaves_the_others_to_be_switched() -> None:
    exported = torch.export.export(small_network(), (inputs(2),)).module()
    network = nn.Sequential(exported, nn.Dropout(0.5))
    assert network[1].training
    with evaluation_mode(network):
        assert not network[1].training
    assert network[1].training


def test_parameters_that_were_made_in_inference_mode_are_put_back() -> None:
    with torch.inference_mode():
        network = nn.Linear(36, 3)
    with evaluation_mode(network):
        assert not network.weight.requires_grad
    assert network.weight.requires_grad
