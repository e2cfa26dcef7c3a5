"""A run that exhausts memory continues with fewer rows in a pass, to the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.errors import ModelError
from brittle.scores import InputMargin, Laplacian, LogitMargin, Score, Shrinkage, Taylor
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("short_search")

COUNT, SIZE, CLASSES = 12, 5, 3
SCORES = [
    Shrinkage(draws=50, sigma=0.1, limit=None),
    Taylor(0.1),
    Laplacian(),
    InputMargin(effort="fast"),
    LogitMargin(),
]
MESSAGE = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 40000000000 bytes."


class Room(torch.autograd.Function):
    """The identity, for a limited number of rows forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, forward: int, backward: int) -> Tensor:
        ctx.room = backward
        return _within(x, forward).clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return Room.apply(gradients[0], ctx.room, ctx.room), None, None


def _within(x: Tensor, room: int) -> Tensor:
    if len(x) > room:
        raise torch.OutOfMemoryError(MESSAGE) if room % 2 else RuntimeError(MESSAGE)
    return x


class Network(nn.Module):
    """A small network on a machine with room for a limited number of rows."""

    def __init__(self, forward: int, backward: int | None = None) -> None:
        super().__init__()
        self.forward_room, self.backward_room = forward, forward if backward is None else backward
        self.first, self.last = nn.Linear(SIZE, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.first(Room.apply(x, self.forward_room, self.backward_room))))


def network(forward: int, backward: int | None = None) -> Network:
    """Make a network with the same weights for any room."""
    torch.manual_seed(5)
    return Network(forward, backward)


def run(model: nn.Module, scores: Any = SCORES, **how: Any) -> Table:
    x = torch.rand(COUNT, SIZE, generator=torch.Generator().manual_seed(6))
    y = torch.arange(COUNT) % CLASSES
    return brittle.score(brittle.Classifier(model, bounds=(0, 1)), (x, y), scores, batch_size=256, **how)


@pytest.fixture(scope="module")
def roomy() -> Table:
    return run(network(10_000))


@pytest.mark.parametrize(
    ("forward", "backward", "skip"),
    [
        (33, None, False),
        (256, 7, True),
        pytest.param(100, None, True, marks=pytest.mark.slow),
        pytest.param(8, None, False, marks=pytest.mark.slow),
    ],
)
def test_fewer_rows_in_a_pass_change_no_number(roomy: Table, forward: int, backward: int, skip: bool) -> None:
    with pytest.warns(brittle.BrittleWarning, match="out_of_memory"):
        tight = run(network(forward, backward), skip_doctor=skip)
    scores, expected = (table.scores.to_pandas() for table in (tight, roomy))
    for column in ("point", "score", "status"):
        assert (scores[column] == expected[column]).all(), column
    searched = scores["score"] == "input_margin"  # rounding may spare a search a pass, as in any other batch
    assert (scores["passes"] == expected["passes"])[~searched].all()
    for column in ("value", "low", "high"):
        torch.testing.assert_close(
            torch.tensor(scores[column]), torch.tensor(expected[column]), rtol=1e-4, atol=1e-6, equal_nan=True
        )
    passes = tight.record.account.passes - scores["passes"][searched].sum()
    assert passes == roomy.record.account.passes - expected["passes"][searched].sum(), "failed tries are not counted"


@pytest.mark.parametrize(
    ("words", "scores", "calls_before"),
    [
        ("MPS backend out of memory (MPS", SCORES[:1], 20),
        ("CUBLAS_STATUS_ALLOC_FAILED", SCORES[:1], 20),
        (MESSAGE, SCORES, 60),
    ],
    ids=["MPS", "CUBLAS", "CPU"],
)
def test_memory_may_run_out_late_and_in_other_words(
    words: str, scores: list[Score], calls_before: int, roomy: Table
) -> None:
    """Other uses of the memory grow during the run: the last checks, too, then run by single rows."""
    model, calls = network(10_000), []
    forward = model.forward

    def later(x: Tensor) -> Tensor:
        calls.append(len(x))
        if len(calls) > calls_before and len(x) > 1:
            raise RuntimeError(words)
        return forward(x)

    model.forward = later  # type: ignore[method-assign]
    tight, expected = run(model, scores), roomy if scores is SCORES else run(network(10_000), scores)
    assert (tight.scores["value"].to_numpy() - expected.scores["value"].to_numpy()) == pytest.approx(0, abs=1e-3)
    assert len(calls) > calls_before
    assert "out_of_memory" in {warning.code for warning in tight.record.warnings}


def test_workers_reduce_their_rows_independently(tmp_path: Path) -> None:
    tight = run(network(33), SCORES[:2], out=tmp_path / "run", workers=1)
    scores, expected = (table.scores.to_pandas() for table in (tight, run(network(10_000), SCORES[:2])))
    assert (scores["status"] == expected["status"]).all()
    assert (scores["value"] - expected["value"]).abs().max() < 1e-5
    assert "out_of_memory" in {warning.code for warning in tight.record.warnings}


def test_no_room_for_one_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        run(network(10_000, 0), [Taylor(0.1)], out=tmp_path / "run")
    assert caught.value.code == "out_of_memory"
    assert not (tmp_path / "run").exists()
