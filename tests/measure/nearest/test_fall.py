"""Gradients mislead where they do not explain the fall of the margin on the path to the nearest input."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from helpers import problems
from helpers.attacked import clean_pass, run
from torch import Tensor, nn

import brittle
from brittle.measure.nearest.fall import unexplained
from brittle.measure.nearest.norms import NORMS
from brittle.measure.nearest.search import Search


def layers(unit: Callable[[], nn.Module]) -> nn.Sequential:
    """Return a perceptron of random weights with one kind of unit."""
    torch.manual_seed(7)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 32), unit(), nn.Linear(32, 32), unit(), nn.Linear(32, 4))


def network(unit: Callable[[], nn.Module], ending: Callable[[Tensor], Tensor] = lambda logits: logits) -> nn.Module:
    """Return such a perceptron with another end."""
    begin = layers(unit)
    return problems.Wrapped(lambda x, _: ending(4 * begin(x)))


class Passed(nn.Module):
    """A function with the gradient of another one, or of a part of it."""

    def __init__(self, value: Callable[[Tensor], Tensor], smooth: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.value, self.smooth = value, smooth

    def forward(self, x: Tensor) -> Tensor:
        smooth = self.smooth(x)
        return smooth + (self.value(x) - smooth).detach()


def staircase(logits: Tensor) -> Tensor:
    """Return flat steps with narrow, steep, continuous ramps: gradients are true, and large in few places."""
    steps = 4 * logits
    return 0.05 * steps + steps.floor() + ((steps - steps.floor() - 0.5) * 200).clamp(-0.5, 0.5) + 0.5


class InHalf(nn.Module):
    """A network that computes in half precision."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network.bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x.bfloat16()).float()


def rounded(step: float) -> nn.Module:
    """Return rounding to multiples of `step` with the gradient of the identity: right in the mean, nowhere true."""
    return Passed(lambda x: (x / step).round() * step, lambda x: x)


HEALTHY = {
    "relu": network(nn.ReLU),
    "gelu": network(nn.GELU),
    "tanh": network(nn.Tanh),
    "sigmoid": network(nn.Sigmoid),
    "leaky": network(nn.LeakyReLU),
    "softmax": network(nn.ReLU, lambda logits: logits.softmax(dim=1)),
    "sharp softmax": network(nn.ReLU, lambda logits: (10 * logits).softmax(dim=1)),
    "staircase of ramps": network(nn.ReLU, staircase),
    "log softmax": network(nn.Tanh, lambda logits: logits.log_softmax(dim=1)),
    "half precision": InHalf(layers(nn.ReLU)),
}

MASKED = {
    "signs": network(lambda: Passed(torch.sign, lambda x: 0 * x)),
    "steps": network(lambda: Passed(lambda x: (2 * x).round() / 2, lambda x: 0 * x)),
    "detached": network(lambda: Passed(torch.relu, lambda x: 0.2 * torch.relu(x))),
    "a third detached": network(lambda: Passed(torch.relu, lambda x: 0.8 * torch.relu(x))),
    "no gradient": network(lambda: Passed(torch.tanh, lambda x: 0 * x)),
    "units rounded to tenths": network(lambda: nn.Sequential(nn.ReLU(), rounded(0.1))),
    "scores rounded to quarters": network(nn.ReLU, rounded(0.25)),
    "a third detached, half precision": InHalf(layers(lambda: Passed(torch.relu, lambda x: 0.7 * torch.relu(x)))),
}


@pytest.mark.every_other
@pytest.mark.parametrize(("name", "norm"), list(zip(HEALTHY, itertools.cycle(NORMS), strict=False)))
def test_true_gradients_are_not_masked(name: str, norm: str) -> None:
    nearest = run(brittle.Classifier(HEALTHY[name], bounds=(0, 1)), problems.inputs(20), norm=norm, effort="fast")
    assert nearest.distance.isfinite().sum() >= 15
    assert not nearest.masked.any()


@pytest.mark.every_other
@pytest.mark.parametrize(("name", "norm"), list(zip(MASKED, itertools.cycle(NORMS), strict=False)))
@pytest.mark.usefixtures("few_queries")
def test_false_gradients_are_masked(name: str, norm: str) -> None:
    nearest = run(brittle.Classifier(MASKED[name], bounds=(0, 1)), problems.inputs(20), norm=norm, effort="fast")
    is_found = nearest.distance.isfinite() & (nearest.distance > 0)
    assert is_found.any()
    assert nearest.masked[is_found].all()


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.0, 2.5])
def test_a_gradient_times_a_factor_leaves_its_share(factor: float) -> None:
    """A linear function whose gradient is multiplied by `f` leaves the share `|1 - f|` unexplained."""
    linear = problems.linear_network(3, 36, dtype=torch.float64)
    model = nn.Sequential(nn.Flatten(), linear, Passed(lambda x: x, lambda x: factor * x))
    points = problems.inputs(6, dtype=torch.float64)
    classifier = brittle.Classifier(model, bounds=(0, 1))
    search = Search(classifier, clean_pass(classifier, points), NORMS["l2"], False)
    search.look(search.open.repeat(50), torch.randn(50 * len(points), 36, dtype=torch.float64))
    assert search.best.distance.isfinite().all()
    expected = torch.full((6,), abs(1 - factor), dtype=torch.float64)
    torch.testing.assert_close(unexplained(search, search.open), expected, rtol=0, atol=1e-9)
