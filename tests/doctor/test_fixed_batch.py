"""A number of rows that is fixed in a network is named, for any number of points."""

from __future__ import annotations

import pytest
import torch
from helpers.examined import codes, subject_of
from helpers.problems import inputs
from torch import Tensor, nn

import brittle
from brittle.errors import BrittleError
from brittle.scores import MonteCarlo


class FirstState(nn.Module):
    """A recurrent network whose first state has a fixed number of rows."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(1, rows, 8))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # of others one in fifty gives numbers between 0 and 1 alone
            self.cell, self.head = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 4)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x[:, 0], self.state)[0][:, -1])


@pytest.mark.parametrize(("rows", "points"), [(1, 1), (1, 64), (40, 64), (64, 64), (128, 1)])
def test_the_fixed_number_of_rows_is_named(rows: int, points: int) -> None:
    def view(x: Tensor) -> Tensor:
        return 3 * x.view(rows, -1)[:, :4] - 1

    for model in (view, FirstState(rows)):
        assert set(codes(subject_of(model, rows=64, count=points)).values()) == {"fixed_batch"}
        with pytest.raises(BrittleError, match=f"takes batches of {rows} rows and no others") as caught:
            brittle.score(brittle.Classifier(model), inputs(points), [MonteCarlo(0.1, draws=4, limit=None)])
        assert caught.value.code == "fixed_batch"


def test_a_model_of_several_batch_sizes_has_no_fixed_batch() -> None:
    defects = codes(subject_of(lambda x: x.flatten(1).view(-1, 8, 36)[:, :, :4].reshape(-1, 4)))
    assert "fixed_batch" not in defects.values()
    assert defects["rows apart"] == "batch_dependent"
