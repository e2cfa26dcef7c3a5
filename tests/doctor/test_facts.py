"""What else is known of a model, and what a run would cost."""

from __future__ import annotations

import pytest
import torch
from helpers.examined import examined
from helpers.problems import inputs, linear_network, small_network
from torch import nn

import brittle
from brittle.doctor.facts import gather, passes_per_point
from brittle.scores import MMSE, Laplacian, Moments, MonteCarlo, Score, Softmax, Taylor

PASSES = [
    ([Softmax()], (1, 0)),
    ([MonteCarlo(0.1, draws=30), Moments(0.1, draws=10)], (31, 0)),
    ([Taylor(0.1), Taylor(0.2)], (1, 4)),
    ([MMSE(0.1, draws=6)], (7, 24)),
    ([Taylor(0.1), MonteCarlo(0.1, draws=20)], (21, 4)),
    ([Laplacian()], (3, 8)),
]


@pytest.mark.parametrize(("scores", "expected"), PASSES, ids=lambda value: str(value))
def test_the_passes_of_the_estimate_are_those_of_a_run(scores: list[Score], expected: tuple[int, int]) -> None:
    found = passes_per_point(examined(small_network(), scores))
    assert (found.forward, found.backward) == expected
    record = brittle.score(brittle.Classifier(small_network()), (inputs(16), None), scores).record
    assert record.account.passes / 16 == pytest.approx(found.forward + found.backward, rel=0.1)


def test_smooth_networks_are_told_from_piecewise_linear_ones() -> None:
    smooth = nn.Sequential(nn.Flatten(), nn.Linear(36, 9), nn.Tanh(), nn.Linear(9, 4))
    said = [
        dict(gather(examined(network, [Softmax()])))["shape"]
        for network in (
            small_network(),
            smooth,
            nn.Sequential(nn.Flatten(), linear_network(4, 36, dtype=torch.float32)),
        )
    ]
    assert said[0].startswith("piecewise linear")
    assert said[1].startswith("smooth, it bends")
    assert said[2].startswith("piecewise linear")


def test_what_cannot_be_found_out_is_said() -> None:
    class Detached(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return small_network()(x.detach()).detach()

    found = dict(gather(examined(Detached(), [Softmax()])))
    assert found["shape"].startswith("unknown: not_differentiable")
    assert "parameters" in found["model"]
