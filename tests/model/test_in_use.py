"""A classifier serves one thread at a time; what threads share is the model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from helpers.problems import inputs, small_network
from helpers.threads import LIMIT, Worker, with_dropout
from torch import nn

import brittle
from brittle.errors import ParameterError
from brittle.scores import Laplacian, MonteCarlo


def test_a_copy_made_in_the_middle_is_free() -> None:
    classifier = brittle.Classifier(with_dropout())
    with classifier.evaluating():
        twin = copy.copy(classifier)
    with twin.evaluating():
        assert not twin.model.training  # pyright: ignore[reportFunctionMemberAccess] a layer of a known kind
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(twin, inputs(2)).result(LIMIT).shape == (2, 4)


def test_a_classifier_counts_for_one_thread(workers: list[Worker]) -> None:
    classifier = brittle.Classifier(small_network())
    shared = brittle.Classifier(classifier.model)
    with classifier.evaluating():
        for call in (lambda: classifier(inputs(2)), lambda: brittle.linearize(classifier, inputs(2))):
            with pytest.raises(ParameterError, match="give each thread a Classifier of its own") as caught:
                workers[0](call)
            assert caught.value.code == "parameter"
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


def test_two_runs_at_once_say_what_each_spent(workers: list[Worker]) -> None:
    network = small_network()
    scores = [Laplacian("probes", probes=8), MonteCarlo(0.2, draws=20)]

    def spent() -> int:
        return brittle.score(brittle.Classifier(network), (inputs(4), None), scores).record.account.passes

    alone = spent()
    assert [one.result(LIMIT) for one in [worker.submit(spent) for worker in workers]] == [alone] * 3
