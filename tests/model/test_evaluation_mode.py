"""Threads that measure one network at a time: its mode holds for all of them, and nobody's numbers change."""

from __future__ import annotations

import copy
import random
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from helpers.problems import inputs, small_network
from torch import nn

import brittle
from brittle.detector.pseudo_margin import training
from brittle.errors import ModelError, ParameterError
from brittle.model.evaluation_mode import evaluation_mode
from brittle.model.quiet import without_warnings
from brittle.model.turns import Turns
from brittle.scores import InputMargin, Laplacian, MonteCarlo

TRIALS = range(24)

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


@pytest.fixture
def workers():
    made = [Worker() for _ in range(3)]
    yield made
    for worker in made:
        worker.shutdown()


def with_dropout() -> nn.Sequential:
    """A network in training mode, one layer of which is frozen."""
    network = nn.Sequential(small_network(), nn.Dropout(0.5)).train()
    network[0][0].requires_grad_(False).eval()
    return network


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
    assert caught.value.code == "mode_changed"
    assert network.training
    assert network[0][0].training


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
        classifier.model.eval()


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


def test_a_copy_made_in_the_middle_is_free() -> None:
    classifier = brittle.Classifier(with_dropout())
    with classifier.evaluating():
        twin = copy.copy(classifier)
    with twin.evaluating():
        assert not twin.model.training
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(twin, inputs(2)).result(LIMIT).shape == (2, 4)


def test_a_classifier_counts_for_one_thread(workers: list[Worker]) -> None:
    classifier = brittle.Classifier(small_network())
    shared = brittle.Classifier(classifier.model)
    with classifier.evaluating():
        for call in (lambda: classifier(inputs(2)), lambda: brittle.linearize(classifier, inputs(2))):
            with pytest.raises(ParameterError, match="give each thread a Classifier of its own") as caught:
                workers[0](call)
            assert caught.value.code == "classifier_in_use"
        assert workers[0](lambda: brittle.linearize(shared, inputs(2))) is not None
        assert classifier.passes == 0
    workers[0](lambda: classifier(inputs(2)))
    assert (classifier.passes, shared.passes) == (2, 2 * 5)


def test_features_of_another_thread_are_not_taken(workers: list[Worker]) -> None:
    """The pass of a second thread through the same layers, in the middle of the first one's."""

    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = small_network()
            self.other: Callable[[], object] | None = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            logits = self.network(x)
            other, self.other = self.other, None
            if other is not None:
                workers[0](other)
            return logits

    model = Nested()
    expected = brittle.Classifier(model).observe(inputs(3))[1]
    model.other = lambda: brittle.Classifier(model).observe(inputs(3, seed=1))
    assert torch.equal(brittle.Classifier(model).observe(inputs(3))[1], expected)


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


def test_filters_of_warnings_are_put_back(workers: list[Worker]) -> None:
    before = list(warnings.filters)
    blocks = [without_warnings(), without_warnings()]
    for step in (0, 1):
        workers[step](blocks[step].__enter__)
    for step in (0, 1):
        warnings.warn("seen by nobody", stacklevel=1)
        workers[step](partial(blocks[step].__exit__, None, None, None))
    assert warnings.filters == before


def test_the_number_of_threads_is_put_back(workers: list[Worker]) -> None:
    def set_from_a_new_thread(count: int | None = None) -> int:
        found: list[int] = []

        def work() -> None:
            found.append(torch.get_num_threads())
            if count is not None:
                torch.set_num_threads(count)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(LIMIT)
        return found[0]

    before = set_from_a_new_thread(2)
    try:
        blocks = [training._one_thread(), training._one_thread()]
        workers[0](blocks[0].__enter__)
        second = workers[1].submit(blocks[1].__enter__)
        with pytest.raises(TimeoutError):
            second.result(SOON)
        workers[0](lambda: blocks[0].__exit__(None, None, None))
        second.result(LIMIT)
        workers[1](lambda: blocks[1].__exit__(None, None, None))
        assert set_from_a_new_thread() == 2
    finally:
        set_from_a_new_thread(before)


def test_two_runs_at_once_say_what_each_spent(workers: list[Worker]) -> None:
    network = small_network()
    scores = [Laplacian("probes", probes=8), MonteCarlo(0.2, draws=20)]

    def spent() -> int:
        return brittle.score(brittle.Classifier(network), (inputs(4), None), scores).provenance["passes"]

    alone = spent()
    assert [one.result(LIMIT) for one in [worker.submit(spent) for worker in workers]] == [alone] * 3
