"""A number of rows that is written into a network is named, whatever made it and however many points there are.

The truth is the number that stands in the network.
"""

from __future__ import annotations

import pytest
import torch
from helpers.examined import codes, subject_of
from helpers.problems import inputs
from torch import Tensor, nn

import brittle
from brittle.errors import BrittleError
from brittle.scores import MonteCarlo


class Viewed(nn.Module):
    """Rows that are laid out for so many of them."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows, self.head = rows, nn.Linear(36, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.view(self.rows, -1))


class FirstState(nn.Module):
    """A recurrent network whose first state has so many rows."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(1, rows, 8))
        self.cell, self.head = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x[:, 0], self.state)[0][:, -1])


KINDS: list[type[nn.Module]] = [Viewed, FirstState]


def sound(kind: type[nn.Module], rows: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(rows).eval()


@pytest.mark.parametrize("points", [1, 64])
@pytest.mark.parametrize("rows", [1, 40, 128])
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_rows_is_named(kind: type[nn.Module], rows: int, points: int) -> None:
    model = sound(kind, rows)
    found = codes(subject_of(model, rows=64, count=points))
    assert set(found.values()) == {"fixed_batch"}
    with pytest.raises(BrittleError, match=f"takes batches of {rows} rows and no others") as caught:
        brittle.score(brittle.Classifier(model), inputs(points), [MonteCarlo(0.1, draws=4)])
    assert caught.value.code == "fixed_batch"


def in_eights(x: Tensor) -> Tensor:
    return x.flatten(1).view(-1, 8, 36).sum(dim=2, keepdim=True).expand(-1, 8, 4).reshape(-1, 4)


def test_a_model_that_takes_several_sizes_is_not_said_to_take_one() -> None:
    found = codes(subject_of(in_eights))
    assert "fixed_batch" not in found.values()
    assert found["rows apart"] == "batch_dependent"
