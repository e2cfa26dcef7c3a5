"""Dead points are no masked gradients, and masked gradients are found wherever they hide: two tables, counted.

The networks have random weights, fixed by a seed, so nothing here can fail by chance.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.examined import COUNT, examined
from helpers.masking import MadeUp, without_grad
from helpers.problems import Wrapped, inputs, small_network
from torch import Tensor, nn

from brittle import doctor
from brittle.scores import Taylor

DIMMED = 0.3
"""What the numbers of a dead point are multiplied by: no unit is on there, and many are with noise."""

BIAS = (2.0, 1.0, 0.0, -1.0)
"""Class scores of a dead point."""


class Dim(nn.Module):
    """A network whose units are all off where an input is dark, and on where it is of ordinary brightness."""

    def __init__(self, activation: Callable[[Tensor], Tensor] = torch.relu) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        weight = torch.rand(16, 36, generator=generator) + 0.5
        self.first = nn.Parameter(12.0 * weight / weight.sum(dim=1, keepdim=True))
        self.last = nn.Parameter(torch.randn(4, 16, generator=generator))
        self.activation = activation
        self.eval()

    def features(self, x: Tensor) -> Tensor:
        return self.activation(x.flatten(1) @ self.first.T - 12.0 * 0.23)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.features(x))

    def scores(self, features: Tensor) -> Tensor:
        return features @ self.last.T + torch.tensor(BIAS).to(features)


class Changed(nn.Module):
    """That network with something done to its input and to its features."""

    def __init__(self, change: Callable[[Tensor], Tensor], at_input: bool = False) -> None:
        super().__init__()
        self.network = Dim()
        self.change, self.at_input = change, at_input
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        if self.at_input:
            return self.network(self.change(x))
        return self.network.scores(self.change(self.network.features(x)))


def dark_only(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A change of the darker half of the rows."""

    def both(x: Tensor) -> Tensor:
        dark = x.flatten(1).mean(dim=1) < 0.5
        return torch.where(dark.view(-1, *[1] * (x.dim() - 1)), change(x), x)

    return both


def dim(count: int) -> Tensor:
    """Points of which the first are dead."""
    x = inputs(COUNT)
    x[:count] *= DIMMED
    return x


HEALTHY: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "none dead": (Dim, 0),
    "a quarter dead": (Dim, 16),
    "half dead": (Dim, 32),
    "hard sigmoids": (lambda: Dim(lambda z: nn.functional.hardsigmoid(z - 3)), 4),
}
"""Networks in which nothing is masked, and how many of the 64 points are dimmed."""

MASKED: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "dead at most points": (Dim, 40),
    "detach but for a thousandth": (lambda: Changed(lambda z: z.detach() + 1e-3 * z), 0),
    "round beside dead points": (lambda: Changed(lambda z: (4 * z).round() / 4), 8),
    "a made-up gradient": (lambda: Changed(MadeUp.apply), 0),  # type: ignore[arg-type]
    "no_grad in dark rows": (lambda: Changed(dark_only(without_grad), at_input=True), 0),
    "a fifth of two networks": (lambda: Wrapped(lambda x, z: 0.8 * z + 0.2 * small_network(1)(x).detach()), 0),
}
"""Networks whose gradients are not those of what they compute, and how many of the 64 points are dimmed."""


def constant_around(model: nn.Module, x: Tensor) -> int:
    """Around how many of the points the output stays the same to the last digit, in steps along random signs."""
    generator = torch.Generator().manual_seed(5)
    steps = [1e-3 * (torch.randint(0, 2, x.shape, generator=generator) * 2 - 1) for _ in range(8)]
    with torch.no_grad():
        same = torch.stack([(model(x + step) == model(x)).all(dim=1) for step in steps])
    return int(same.all(dim=0).sum())


def found(make: Callable[[], nn.Module], dead: int) -> doctor.Outcome:
    """What the check of the gradients says."""
    model = make()
    x = dim(dead).to(next(model.parameters()).dtype)
    subject = examined(model, [Taylor(0.2)], x)
    with subject.classifier.evaluating():
        (found,) = doctor.run_all(subject, [each for each in doctor.CHECKS if each.name == "gradients"])
    return found


@pytest.mark.parametrize("name", HEALTHY)
def test_dead_points_are_counted_and_not_called_masked(name: str) -> None:
    make, dimmed = HEALTHY[name]
    dead = constant_around(make().float(), dim(dimmed))
    assert dead >= dimmed
    said = found(make, dimmed)
    assert (said.state, said.code) == (("note", "dead_points") if dead > 3 else ("ok", None)), said.sentence
    assert f"0 in {dead} of 64 rows" in said.sentence


@pytest.mark.parametrize("name", MASKED)
def test_masked_gradients_are_found_beside_dead_points_too(name: str) -> None:
    make, dead = MASKED[name]
    said = found(make, dead)
    assert (said.state, said.code) == ("failed", "masked_gradient"), said.sentence
