"""Learning: the same weights from the same arguments."""

from __future__ import annotations

import math
import threading

import pytest
import torch
from helpers.stand_ins import margin, points, small
from helpers.threads import LIMIT, SOON, Worker
from torch import Tensor

from brittle.analysis.correlation import kendall_tau
from brittle.errors import DataError, ParameterError
from brittle.extensions.detector.surrogate import Surrogate
from brittle.model.evaluation_mode import one_thread


def test_features_alone_teach() -> None:
    """In the form of the paper, without a head."""
    x = points(200, seed=2)
    learned = Surrogate.fit(x, margin(x))
    assert (learned.recipe.form, learned.recipe.classes) == ("paper", 0)
    fresh = points(300, seed=3)
    assert kendall_tau(margin(fresh), learned.predict(fresh)) > 0.6


def test_searches_that_end_far_off_do_not_hide_the_others() -> None:
    """One of 50 margins lies 50 times as far as the others: a scale set by it would leave the others at zero."""
    x = points(400, seed=2)
    margins = torch.as_tensor(margin(x)).clone()
    margins[::50] = 50 * margins.max()
    learned = Surrogate.fit(x, margins)
    fresh = points(300, seed=3)
    assert kendall_tau(margin(fresh), learned.predict(fresh)) > 0.5


def test_same_arguments_give_the_same_weights() -> None:
    """On any number of threads, after any draws of the program."""
    x = points(100, seed=0)

    def fit(seed: int, threads: int) -> Surrogate:
        torch.rand(7)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return Surrogate.fit(x, margin(x), seed=seed, **small(epochs=3))
        finally:
            assert torch.get_num_threads() == threads
            torch.set_num_threads(before)

    state = torch.random.get_rng_state()
    single, double, another_seed = fit(0, 1), fit(0, 2), fit(1, 1)
    assert single.digest == double.digest != another_seed.digest
    assert single.recipe == double.recipe
    torch.random.set_rng_state(state)
    expected = torch.rand(7), torch.rand(3)
    torch.random.set_rng_state(state)
    fit(0, 1)
    assert torch.equal(torch.rand(3), expected[1]), "learning draws from the program's own stream"


@pytest.mark.parametrize(
    ("features", "margins", "error"),
    [
        (torch.rand(19, 2), torch.rand(19), DataError),
        (torch.rand(30, 2), torch.full((30,), math.inf), DataError),
        (torch.rand(30, 2), torch.zeros(30), DataError),
        (torch.rand(30, 2), torch.rand(29), ParameterError),
        (torch.rand(30), torch.rand(30), ParameterError),
    ],
)
def test_bad_features_and_margins_are_refused(features: Tensor, margins: Tensor, error: type[Exception]) -> None:
    with pytest.raises(error):
        Surrogate.fit(features, margins)


def test_the_number_of_threads_is_put_back(workers: list[Worker]) -> None:
    def set_from_a_new_thread(count: int | None = None) -> int:
        counts: list[int] = []

        def work() -> None:
            counts.append(torch.get_num_threads())
            if count is not None:
                torch.set_num_threads(count)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(LIMIT)
        return counts[0]

    before = set_from_a_new_thread(2)
    try:
        blocks = [one_thread(), one_thread()]
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


def test_more_weights_than_a_file_holds_are_not_trained() -> None:
    with pytest.raises(ParameterError, match="width="):
        Surrogate.fit(torch.zeros(20, 2**18 + 10), torch.rand(20))
    assert Surrogate.fit(torch.zeros(20, 30), torch.rand(20), width=1, epochs=0).recipe.width == 1
