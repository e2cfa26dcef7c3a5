"""Dead points are no masked gradients, and masked gradients are found in every form: two tables, counted.

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
"""Factor of the inputs of a dead point: no unit is active there, and many are with noise."""

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
    """A dim network with a change to its input or to its features."""

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
    """Return a change of the darker half of the rows."""

    def change_dark(x: Tensor) -> Tensor:
        dark = x.flatten(1).mean(dim=1) < 0.5
        return torch.where(dark.view(-1, *[1] * (x.dim() - 1)), change(x), x)

    return change_dark


def dim(count: int) -> Tensor:
    """Return points, the first `count` of them dead."""
    x = inputs(COUNT)
    x[:count] *= DIMMED
    return x


HEALTHY: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "none dead": (Dim, 0),
    "a quarter dead": (Dim, 16),
    "half dead": (Dim, 32),
    "hard sigmoids": (lambda: Dim(lambda z: nn.functional.hardsigmoid(z - 3)), 4),
}
"""Networks without masked gradients, and how many of the 64 points are dimmed."""

MASKED: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "dead at most points": (Dim, 40),
    "detach but for a thousandth": (lambda: Changed(lambda z: z.detach() + 1e-3 * z), 0),
    "round beside dead points": (lambda: Changed(lambda z: (4 * z).round() / 4), 8),
    "a made-up gradient": (lambda: Changed(MadeUp.apply), 0),  # type: ignore[arg-type]
    "no_grad in dark rows": (lambda: Changed(dark_only(without_grad), at_input=True), 0),
    "a fifth of two networks": (lambda: Wrapped(lambda x, z: 0.8 * z + 0.2 * small_network(1)(x).detach()), 0),
}
"""Networks whose gradients differ from those of their function, and how many of the 64 points are dimmed."""


def constant_around(model: nn.Module, x: Tensor) -> int:
    """Count the points around which the output stays the same to the last digit, in steps along random signs."""
    generator = torch.Generator().manual_seed(5)
    steps = [1e-3 * (torch.randint(0, 2, x.shape, generator=generator) * 2 - 1) for _ in range(8)]
    with torch.no_grad():
        is_constant = torch.stack([(model(x + step) == model(x)).all(dim=1) for step in steps])
    return int(is_constant.all(dim=0).sum())


def check_gradients(make: Callable[[], nn.Module], dead: int) -> doctor.Outcome:
    """Return the outcome of the check of the gradients."""
    model = make()
    x = dim(dead).to(next(model.parameters()).dtype)
    subject = examined(model, [Taylor(0.2)], x)
    with subject.classifier.evaluating():
        (outcome,) = doctor.run_all(subject, [check for check in doctor.CHECKS if check.name == "gradients"])
    return outcome


@pytest.mark.parametrize("name", HEALTHY)
def test_dead_points_are_counted_and_not_called_masked(name: str) -> None:
    make, dim_points = HEALTHY[name]
    dead = constant_around(make().float(), dim(dim_points))
    assert dead >= dim_points
    outcome = check_gradients(make, dim_points)
    assert (outcome.state, outcome.code) == (("note", "dead_points") if dead > 3 else ("ok", None)), outcome.sentence
    assert f"0 in {dead} of 64 rows" in outcome.sentence


@pytest.mark.parametrize("name", MASKED)
def test_masked_gradients_are_found_beside_dead_points_too(name: str) -> None:
    make, dead = MASKED[name]
    outcome = check_gradients(make, dead)
    assert (outcome.state, outcome.code) == ("failed", "masked_gradient"), outcome.sentence
