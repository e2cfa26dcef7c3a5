"""What odd networks are made of: one with its declaration, and the ways to build it."""

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
"""Of all inputs."""

COMPANY = ("batch_dependent",)
"""What networks may be called whose rows lean on each other."""

STATE = ("nondeterministic_model", "nondeterministic_model", "model_changed", "batch_dependent")
"""What networks may be called that remember."""

GRADIENTS = ("masked_gradient", "masked_gradient", "not_differentiable")
"""What networks may be called whose gradients are of no use, where scores with gradients are asked for."""

Step = Callable[[Any, Tensor], Tensor]
"""From a `Custom` network and its input to class scores."""


@dataclass(frozen=True)
class OddNetwork:
    """One network with its declaration.

    Attributes:
        name: what is odd.
        family: one of the six.
        build: makes the network, as if nothing had been run before.
        shape: of one input.
        sigma: the larger of the two standard deviations at which it is scored.
        refused: codes by which it may be refused.
        without_gradients: codes by which it may be refused where scores with gradients are asked for.
        outputs: what it is declared to return.
        decision: what is decided from that; None is the predicted class.
        meaning: turns what it returns into class scores, whatever was declared.
        points: inputs in a run.
        rows: most rows in a batch; None leaves it to `brittle`.
        fresh: the truth needs a new network for every copy.
        place: moves the inputs, uniform in the bounds, to where the network is odd.
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
        """The inputs of a run, `[points, *shape]`, the same ones every time."""
        x = torch.rand(self.points, *self.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
        return x if self.place is None else self.place(x)


# Parts.


def seeded(make: Callable[[], nn.Module], seed: int = 0, gain: float = 1.0) -> nn.Module:
    """What `make` makes with the random weights of a seed, times `gain`, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = make().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(gain)
    return made


@cache
def small(classes: int = 3, size: int = 4, seed: int = 0) -> nn.Module:
    """A sound network with one hidden layer, lively enough that noise of 0.3 flips some predictions."""
    return seeded(lambda: nn.Sequential(nn.Linear(size, WIDTH), nn.Tanh(), nn.Linear(WIDTH, classes)), seed, 3.0)


class Custom(nn.Module):
    """A network with something done on the way, and a memory.

    Attributes:
        base: a sound network.
        step: from this network and its input to class scores.
        memory: what it remembers, no parameter and no buffer.
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
    """The small network with its class scores changed."""
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
    """Two classes apart by a margin that is given as a function of the input, `[B, size]` to `[B]`."""
    return sound(name, two_classes(of), (size,), **more)


def two_classes(of: Callable[[Tensor], Tensor]) -> Callable[[], Network]:
    def network(x: Tensor) -> Tensor:
        half = of(x) / 2
        return torch.stack((half, -half), dim=1)

    return lambda: network
