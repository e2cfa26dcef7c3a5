"""Branch and bound: no radius is beyond the truth of odd networks, and some are near it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.bounded_networks import lively
from torch import Tensor, nn

import brittle
from brittle.extensions.certificates.radius import Certified
from brittle.measure.base import PROOFS, take
from brittle.measure.forward import look

GRID = 301


class Net(nn.Module):
    """A function of the output of two hidden layers."""

    def __init__(self, function: Callable[[Tensor], Tensor], hidden: nn.Module) -> None:
        super().__init__()
        self.function, self.first, self.hidden, self.last = function, nn.Linear(2, 8), hidden, nn.Linear(8, 3)
        self.middle = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.last(self.hidden(self.middle(self.hidden(self.first(x))))))


class Twice(nn.Module):
    """A value beside the sum of itself: differences of large numbers cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(2, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        return self.last(torch.relu(h + 1000.0) - torch.relu(h + 999.0) + torch.relu(h) - torch.relu(-h) * 0.5)


class Largest(nn.Module):
    """The larger of two numbers each, below rectifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.middle, self.last = (nn.Linear(*sizes) for sizes in ((2, 6), (2, 6), (6, 6), (6, 3)))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.middle(torch.maximum(self.one(x), self.other(x))).relu())


class Pooled(nn.Module):
    """The largest of windows with padding between rectifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(2, 8), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x)) - 0.5
        return self.last(torch.relu(nn.functional.max_pool1d(h[:, None], 2, 2, 1)[:, 0]))


def _dead(seed: int) -> nn.Module:
    network = lively(Net(lambda z: z, nn.ReLU()), seed)
    with torch.no_grad():
        network.first.bias[:3] = -50.0  # type: ignore[union-attr, operator]
        network.middle.weight[2:4] = 0.0  # type: ignore[union-attr, operator]
        network.middle.bias[2:4] = 0.0  # type: ignore[union-attr, operator]
    return network


ZOO: dict[str, Callable[[int], nn.Module]] = {
    "rectifiers": lambda seed: lively(Net(lambda z: z, nn.ReLU()), seed),
    "leaky, falling": lambda seed: lively(Net(lambda z: z, nn.LeakyReLU(-0.5)), seed),
    "softmax": lambda seed: lively(Net(lambda z: z.softmax(1), nn.ReLU()), seed),
    "cancelling": lambda seed: lively(Twice(), seed),
    "pooled": lambda seed: lively(Pooled(), seed),
    "largest": lambda seed: lively(Largest(), seed),
    "dead and constant units": _dead,
    "clamped": lambda seed: lively(Net(lambda z: z.clamp(max=4.0) + 0.01 * z, nn.ReLU6()), seed),
}


def balanced(network: nn.Module) -> nn.Module:
    """Make the classes' scores equal on average over [0, 1]^2, so that predictions change inside."""
    network = network.double()
    last = network.last
    assert isinstance(last, nn.Linear)
    inputs_of_last: list[Tensor] = []
    handle = last.register_forward_hook(lambda *values: inputs_of_last.append(values[2].detach()))
    network(torch.rand(500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    handle.remove()
    with torch.no_grad():
        last.bias.sub_(inputs_of_last[0].mean(0))
    return network


def nearest_on_grid(network: nn.Module, points: Tensor, norm: str) -> Tensor:
    """Return the distance of the nearest place of a fine grid on [0, 1]^2 with another class, an upper bound."""
    line = torch.linspace(0, 1, GRID, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        grid_classes, point_classes = network(grid).argmax(1), network(points).argmax(1)
    away = torch.cdist(points, grid, p=torch.inf if norm == "linf" else 2)
    return away.where(grid_classes != point_classes[:, None], torch.inf).amin(1)


@pytest.mark.every_other
@pytest.mark.parametrize("name", ZOO)
def test_no_radius_is_beyond_what_a_grid_finds(name: str) -> None:
    """In two dimensions; where inputs of other classes are fat, the radius is near their distance."""
    shares = []
    for seed, norm in enumerate(("linf", "l2")):
        network = balanced(ZOO[name](seed))
        points = torch.rand(2, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        classifier = brittle.Classifier(network, bounds=(0, 1))
        clean = look(classifier, points, ["a", "b"], 0)
        truth = nearest_on_grid(network, points, norm)
        radii_by_proof = take([Certified(norm, proof=proof) for proof in PROOFS], classifier, clean)
        fast, middle, full = reversed(radii_by_proof.values())
        assert full.unsupported is None
        assert (full.radius <= truth).all()
        assert (fast.radius <= middle.radius).all()
        assert (middle.radius <= truth).all()
        assert (full.radius >= 0.98 * fast.radius).all()
        shares += (full.radius / truth)[truth.isfinite()].tolist()
    assert max(shares) > 0.9
