"""Stored inputs of a user are copies: a buffer that is overwritten afterwards changes no number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.data import Batch, array_points
from brittle.decisions import Custom
from brittle.noise import (
    DiagonalGaussian,
    FactorGaussian,
    Noise,
    Swap,
    Transform,
    Transforming,
)
from brittle.scores import FirstOrderMargin, Moments, MonteCarlo, Score, Shrinkage, Taylor

COUNT, SIZE = 20, 6
X = torch.rand(COUNT, SIZE, generator=torch.Generator().manual_seed(0))
Y = torch.arange(COUNT) % 3
ROWS = torch.rand(9, SIZE, generator=torch.Generator().manual_seed(1))
PRECISIONS = (torch.float32, torch.float64, torch.bool)


def network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(SIZE, 8), nn.ReLU(), nn.Linear(8, 3))


NETWORK = network()


class Kept:
    """A buffer per precision for all values: a tensor, or an array of NumPy."""

    def __init__(self, as_array: bool = False) -> None:
        self.as_array, self.buffers = (
            as_array,
            {precision: torch.zeros(1 << 14, dtype=precision) for precision in PRECISIONS},
        )

    def __call__(self, value: Tensor) -> Any:
        buffer = self.buffers[value.dtype][: value.numel()].view(value.shape).copy_(value.detach())
        return buffer.numpy() if self.as_array else buffer


def fresh(value: Tensor) -> Tensor:
    return value.clone()


def numbers(
    *scores: Score, model: Any = NETWORK, data: Any = None, rows: int = 8, **declared: Any
) -> list[tuple[str, float | None, float | None, float | None]]:
    """Return point, value and interval of every row; few `rows` make several batches, many draw several at once."""
    classifier = brittle.Classifier(model, bounds=(0, 1), **declared)
    table = brittle.score(classifier, (X, Y) if data is None else data, scores, batch_size=rows)
    columns = table.scores.select(["point", "value", "low", "high"]).to_pydict()
    return [*zip(*columns.values(), strict=True)]


@dataclass(frozen=True)
class Shaky(Transforming):
    """Noise of a user's family that writes each copy over the previous one."""

    write: Callable[[Tensor], Tensor] = field(default=fresh, compare=False)
    name = "shaky"

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return self.write(x + 0.3 * torch.randn(x.shape, generator=generator))


@dataclass(frozen=True)
class Added(Noise):
    """Added noise that writes each draw over the previous one."""

    write: Callable[[Tensor], Tensor] = field(default=fresh, compare=False)
    name = "written"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return self.write(torch.randn(size, generator=generator))

    def covariance(self, vectors: Tensor) -> Tensor:
        return self.write(vectors)


class Mine:
    """Points of a user whose batches are one tensor."""

    def __init__(self, write: Callable[[Tensor], Tensor]) -> None:
        self.points, self.write = array_points(X, Y), write
        self.labels, self.class_names, self.provenance = self.points.labels, None, self.points.provenance

    def __len__(self) -> int:
        return len(self.points)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        for batch in self.points.batches(size, start, stop):
            yield replace(batch, inputs=self.write(batch.inputs))


class Masked(nn.Module):
    """A network that overwrites its mask, or a copy."""

    def __init__(self, write: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.network, self.write = NETWORK, write

    def forward(self, x: Tensor, mask: Tensor, scale: Tensor) -> Tensor:
        logits = self.network(x * mask) * scale[:, None]
        self.write(mask).zero_()
        self.write(scale).mul_(-1)
        return logits


SAMPLED: tuple[Score, ...] = (
    MonteCarlo(0.3, draws=40, limit=None),
    Shrinkage(0.3, draws=40, limit=None),
    Moments(0.3, draws=40),
)


def sampled(noise: Noise) -> tuple[Score, ...]:
    return MonteCarlo(noise=noise, draws=40, limit=None), Shrinkage(noise=noise, draws=40, limit=None)


def beside(write: Callable[[Tensor], Tensor], zero: bool) -> Any:
    """Score points with a mask and another tensor, both overwritten afterwards."""
    mask, scale = (torch.arange(SIZE) < 4).float().expand(COUNT, SIZE).clone(), torch.rand_like(X[:, 0]) * 0 + 1.5
    points = array_points(X, Y, extra_inputs={"mask": mask, "scale": scale}, mask="mask")
    if zero:
        mask.zero_()
        scale.zero_()
    return numbers(*SAMPLED, model=Masked(write), data=points, perturb="x")


def zeroed(make: Callable[[Tensor], Noise], tensor: Tensor, zero: bool) -> Any:
    """Score under noise made with a tensor that is overwritten afterwards."""
    reused = tensor.clone()
    noise = make(reused)
    if zero:
        reused.zero_()
    return numbers(*sampled(noise))


def of_arrays(zero: bool, **arrays: Any) -> Any:
    """Return labels, ids and other answers of points whose arrays are overwritten afterwards."""
    points = array_points(X, **arrays)
    if zero:
        for array in arrays.values():
            if not isinstance(array, bool):
                array[:] = 0
    batch = next(iter(points.batches(COUNT)))
    return batch.ids, batch.labels, None if batch.targets is None else batch.targets.tolist()


def buffered(make: Callable[[Callable[[Tensor], Any]], Any]) -> Callable[[bool], Any]:
    """Use a user's function that returns one buffer, or one that returns a new tensor."""
    return lambda reused: make(Kept() if reused else fresh)


def in_arrays(make: Callable[[Callable[[Tensor], Any]], Any]) -> Callable[[bool], Any]:
    """Do the same with arrays of NumPy."""
    return lambda reused: make(Kept(as_array=True) if reused else lambda value: value.detach().numpy().copy())


def shaken(write: Callable[[Tensor], Any]) -> Any:
    return numbers(*sampled(Transform(lambda x, g: write(x + 0.3 * torch.randn(x.shape, generator=g)), name="own")))


def of_model(write: Callable[[Tensor], Any]) -> Any:
    return numbers(*SAMPLED, model=lambda x: write(NETWORK(x)))


def of_array_model(write: Callable[[Tensor], Any]) -> Any:
    return numbers(*SAMPLED, model=lambda x: write(NETWORK(torch.from_numpy(x))), arrays="numpy")


def of_decision(write: Callable[[Tensor], Any]) -> Any:
    def near(z: Tensor, at_point: Tensor) -> Tensor:
        return write(0.3 - (z - at_point).abs().amax(1))

    return numbers(*SAMPLED[:2], decision=Custom(near))


REUSED: dict[str, Callable[[bool], Any]] = {
    "the copies of a transform": buffered(shaken),
    "the copies of a transform, arrays": in_arrays(shaken),
    "the copies of a family": buffered(lambda write: numbers(*sampled(Shaky(1.0, write)))),
    "the draws of a family": buffered(lambda write: numbers(*sampled(Added(0.3, write)), rows=256)),
    "the covariance of a family": buffered(lambda write: numbers(Taylor(noise=Added(0.3, write)))),
    "the outputs of a model": buffered(of_model),
    "the outputs of a model in a mapping": buffered(
        lambda write: numbers(*SAMPLED, model=lambda x: {"logits": write(NETWORK(x))})
    ),
    "the outputs of a model of arrays": in_arrays(of_array_model),
    "the margins of a decision": buffered(of_decision),
    "the batches of points": buffered(lambda write: numbers(*SAMPLED, FirstOrderMargin(), data=Mine(write))),
    "the batches that a score is called with": buffered(
        lambda write: MonteCarlo(0.3, draws=40, limit=None)(brittle.Classifier(NETWORK), Mine(write)).value.tolist()
    ),
    "the mask of a model": lambda reused: beside((lambda mask: mask) if reused else fresh, zero=False),
    "tensors beside the inputs": lambda reused: beside(fresh, zero=reused),
    "the scales of noise": lambda zero: zeroed(lambda scales: DiagonalGaussian(0.3, scales), ROWS[0], zero),
    "the factor of noise": lambda zero: zeroed(lambda factor: FactorGaussian(0.3, factor), ROWS.T, zero),
    "the rows of swaps": lambda zero: zeroed(lambda rows: Swap(0.5, rows), ROWS, zero),
    "the columns of swaps": lambda zero: zeroed(lambda columns: Swap(0.5, ROWS, columns), torch.arange(SIZE) < 4, zero),
    "labels": lambda zero: of_arrays(zero, y=Y.clone()),
    "labels, arrays": lambda zero: of_arrays(zero, y=Y.numpy().copy()),
    "targets": lambda zero: of_arrays(zero, y=X[:, :2].double().clone(), targets=True),
    "ids": lambda zero: of_arrays(zero, y=Y.clone(), ids=np.arange(5, 5 + COUNT)),
}  # fmt: skip
"""Overwritten inputs: results of a run that overwrites them (True) and of one that does not."""


@pytest.mark.every_other
@pytest.mark.parametrize("name", REUSED)
def test_what_is_written_over_changes_no_number(name: str) -> None:
    """Compare both runs, whose numbers are equal because they share the seed."""
    assert REUSED[name](True) == REUSED[name](False)
