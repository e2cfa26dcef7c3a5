"""The graph of a network: what cannot be bounded is named."""

from __future__ import annotations

import pytest
import torch
from helpers.bounded_networks import Residual, certified, lively, traced
from helpers.problems import inputs
from torch import Tensor, nn

import brittle
from brittle.measure.certified.graph import UnsupportedLayer
from brittle.measure.certified.radius import ACCURACY


def test_a_module_and_its_exported_program_agree() -> None:
    model, points = lively(Residual(), 0), inputs(5)
    dynamic = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (points,), dynamic_shapes=dynamic).module()
    found = certified(brittle.Classifier(model), points).radius
    # The program may round its scores otherwise; see `test_a_point_does_not_depend_on_its_batch`.
    torch.testing.assert_close(certified(brittle.Classifier(program), points).radius, found, rtol=ACCURACY, atol=0)


class Mixing(nn.Module):
    """Rows that depend on each other."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        return x - x.mean(0, keepdim=True)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 4), nn.Softmax(1)), "softmax"),
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.GELU(), nn.Linear(8, 4)), "gelu"),
        (nn.Sequential(nn.Flatten(), nn.LayerNorm(36), nn.Linear(36, 4)), "layer_norm"),
        (nn.Sequential(nn.MaxPool2d(2, padding=1), nn.Flatten(), nn.Linear(16, 4)), "max_pool2d"),
        (Mixing(), "reproduce"),
        (lambda x: x.flatten(1), "Module"),
    ],
)
def test_what_cannot_be_bounded_is_named(model: nn.Module, words: str) -> None:
    found = certified(brittle.Classifier(model), inputs(3))
    assert found.unsupported is not None
    assert words in found.unsupported
    assert found.radius.tolist() == [0.0] * 3


def test_products_of_two_varying_values_are_refused() -> None:
    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x * x).flatten(1)

    with pytest.raises(UnsupportedLayer, match="mul of two values that both depend on the input"):
        traced(brittle.Classifier(Square()), inputs(2))
