"""Parts of odd networks: their declaration and functions that build them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from helpers import truth
from helpers.truth import Network
from torch import Tensor, nn

from brittle.decisions import Decision

WIDTH, STEPS = 16, 5

SHAPE, SERIES = (4,), (STEPS, 3)
"""Shapes of an input: plain numbers, and a short series."""

BOUNDS = (-1.0, 1.0)
"""Bounds of all inputs."""

COMPANY = ("batch_dependent",)
"""Codes for networks whose rows depend on each other."""

STATE = ("nondeterministic_model", "nondeterministic_model", "model_changed", "batch_dependent")
"""Codes for networks with a memory."""

GRADIENTS = ("masked_gradient", "masked_gradient", "not_differentiable")
"""Codes for networks with useless gradients, in runs of scores with gradients."""

Step = Callable[[Any, Tensor], Tensor]
"""Function from a `Custom` network and its input to class scores."""


@dataclass(frozen=True)
class OddNetwork:
    """An odd network with its declaration.

    Attributes:
        name: its oddity.
        family: one of the six families.
        build: makes the network, in its state before any call.
        shape: shape of one input.
        sigma: the larger of the two standard deviations of the run.
        refused: codes by which it may be refused.
        without_gradients: codes by which it may be refused where scores with gradients are asked for.
        outputs: the declared kind of output.
        decision: the decision made from it; None is the predicted class.
        meaning: turns its output into class scores, whatever was declared.
        points: number of inputs in a run.
        rows: largest number of rows in a batch; None leaves it to `brittle`.
        fresh: whether the truth needs a new network for every copy.
        place: moves inputs, uniform in the bounds, to where the network is odd.
    """

    name: str
    family: str
    build: Callable[[], Network]
    shape: tuple[int, ...] = SHAPE
    sigma: float = 0.3
    refused: tuple[str, ...] = ()
    without_gradients: tuple[str, ...] = ()
    outputs: str = "logits"
    decision: Decision | str | None = None
    meaning: Callable[[Tensor], Tensor] = truth.logits_of
    points: int = 24
    rows: int | None = None
    fresh: bool = False
    place: Callable[[Tensor], Tensor] | None = None

    def inputs(self) -> Tensor:
        """Return the inputs of a run, `[points, *shape]`, the same in every call."""
        x = torch.rand(self.points, *self.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
        return x if self.place is None else self.place(x)


# Parts.


def seeded(make: Callable[[], nn.Module], seed: int = 0, gain: float = 1.0) -> nn.Module:
    """Make a network with the random weights of a seed, times `gain`, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(gain)
    return network


@cache
def small(classes: int = 3, size: int = 4, seed: int = 0) -> nn.Module:
    """Return a sound network with one hidden layer; noise of 0.3 flips some of its predictions."""
    return seeded(lambda: nn.Sequential(nn.Linear(size, WIDTH), nn.Tanh(), nn.Linear(WIDTH, classes)), seed, 3.0)


class Custom(nn.Module):
    """A network with an odd step and a memory.

    Attributes:
        base: a sound network.
        step: function from this network and its input to class scores.
        memory: memory that is no parameter and no buffer.
    """

    def __init__(self, step: Step, base: nn.Module | None = None) -> None:
        super().__init__()
        self.base = small() if base is None else base
        self.step = step
        self.memory = SimpleNamespace(calls=0, rows=0, known={}, value=None)

    def forward(self, x: Tensor) -> Tensor:
        return self.step(self, x)


def custom(step: Step, base: Callable[[], nn.Module] = small) -> Callable[[], nn.Module]:
    return lambda: Custom(step, base())


def on_logits(change: Callable[[Tensor], Tensor], classes: int = 3) -> Callable[[], nn.Module]:
    """Return a builder of the small network with its class scores changed."""
    return custom(lambda m, x: change(m.base(x)), lambda: small(classes))


def company(name: str, build: Callable[[], nn.Module], **more: Any) -> OddNetwork:
    return OddNetwork(name, "company", build, **({"refused": COMPANY, "points": 40} | more))


def state(name: str, step: Step, **more: Any) -> OddNetwork:
    base = more.pop("base", small)
    return OddNetwork(name, "state", custom(step, base), **({"refused": STATE, "fresh": True, "points": 40} | more))


def outputs(name: str, build: Callable[[], nn.Module], *refused: str, **more: Any) -> OddNetwork:
    return OddNetwork(name, "outputs", build, refused=refused, **more)


def gradients(name: str, step: Step, base: Callable[[], nn.Module] = small, **more: Any) -> OddNetwork:
    options: dict[str, Any] = {"without_gradients": GRADIENTS} | more
    return OddNetwork(name, "gradients", custom(step, base), **options)


def sound(name: str, build: Callable[[], Network], shape: tuple[int, ...] = SHAPE, **more: Any) -> OddNetwork:
    return OddNetwork(name, "geometry", build, shape, **more)


def margin(name: str, of: Callable[[Tensor], Tensor], size: int = 2, **more: Any) -> OddNetwork:
    """Return a network of two classes with a margin that is a function of the input, `[B, size]` to `[B]`."""
    return sound(name, two_classes(of), (size,), **more)


def two_classes(of: Callable[[Tensor], Tensor]) -> Callable[[], Network]:
    def network(x: Tensor) -> Tensor:
        half = of(x) / 2
        return torch.stack((half, -half), dim=1)

    return lambda: network
