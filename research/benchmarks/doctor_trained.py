"""Whether the doctor is silent about healthy networks and names what is wrong with broken ones, on trained networks.

    PYTHONPATH=tests python research/benchmarks/doctor_trained.py DATA

DATA holds what `SETS` names. Networks of seven kinds are trained on each set; no check was made with one. Each is
examined healthy with four right ways of preprocessing (112 combinations), and broken in the ways of `DEFECTS`. Prints
how many healthy ones raise an alarm, and of each defect how many are found under its name.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from helpers.masking import MadeUp, without_grad
from torch import Tensor, nn

import brittle
from brittle import doctor
from brittle.data import array_points, open_points
from brittle.scores import InputMargin, Moments, Taylor

ROWS, LOOKED_AT = 64, 1000
TRAINED_ON, PASSES, BATCH, RATE = 4000, 3, 64, 2e-3

SETS = {
    "mnist": ("mnist", "train", "test"),
    "fashion": ("fashion_mnist_900", "sprite900", None),
    "cifar10": ("cifar10", "train", "test"),
    "x-rays": ("pneumoniamnist/pneumoniamnist.npz", "train", "test"),
}
"""Folder or file, and the splits to train on and to look at; None takes a third of the first."""

FORGOTTEN = 0.2
"""Share of the test images that a forgotten preprocessing must cost to be one."""


@dataclass(frozen=True)
class Case:
    """A network with data and a declaration.

    Attributes:
        model: what is examined.
        x: inputs, `[N, *shape]`.
        y: labels, `[N]`.
        declared: of the classifier.
    """

    model: nn.Module
    x: Tensor
    y: Tensor
    declared: dict[str, Any]


@dataclass(frozen=True)
class Trained:
    """A network for inputs of mean 0 and std 1, with test images from 0 to 1.

    Attributes:
        body: the network up to its features.
        head: the last layer.
        x: `[N, C, H, W]`.
        y: `[N]`.
        mean: of the channels of the training images.
        std: likewise.
    """

    body: nn.Module
    head: nn.Module
    x: Tensor
    y: Tensor
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def changed(self, inside: bool = True, scale: float = 1.0, **change: Callable[[Tensor], Tensor]) -> Changed:
        return Changed(self, inside, scale, change)

    @property
    def healthy(self) -> Case:
        """The network with its preprocessing inside, from 0 to 1."""
        return Case(self.changed(), self.x, self.y, {})

    def normalised(self, x: Tensor) -> Tensor:
        mean, std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in (self.mean, self.std))
        return (x - mean) / std


class Changed(nn.Module):
    """A trained network with something done to its input, features or scores."""

    mean: Tensor
    std: Tensor

    def __init__(self, trained: Trained, inside: bool, scale: float, change: dict[str, Any]) -> None:
        super().__init__()
        self.body, self.head = trained.body, trained.head
        self.register_buffer("mean", torch.tensor(trained.mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(trained.std).view(-1, 1, 1))
        self.inside, self.scale, self.change = inside, scale, change
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        def done(place: str, values: Tensor) -> Tensor:
            return self.change[place](values) if place in self.change else values

        x = done("at_input", x) / self.scale
        x = (x - self.mean) / self.std if self.inside else x
        return done("at_scores", self.head(done("at_features", self.body(x))))


class Tokens(nn.Module):
    """Patches with self-attention among them."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, 32, 4, 4)
        self.place = nn.Parameter(torch.randn(1, (side // 4) ** 2, 32) * 0.1)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.block(self.patches(x).flatten(2).mT + self.place).mean(dim=1)


class Rows(nn.Module):
    """A recurrent network that reads an image row by row."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.cell = nn.GRU(channels * side, 48, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.cell(x.transpose(1, 2).flatten(2))[0][:, -1]


class Shortcut(nn.Module):
    """A convolution beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inside = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.inside(x))


def dense(activation: type[nn.Module]) -> Callable[[int, int], tuple[nn.Module, int]]:
    return lambda channels, side: (
        nn.Sequential(
            nn.Flatten(), nn.Linear(channels * side * side, 64), activation(), nn.Linear(64, 64), activation()
        ),
        64,
    )


def convolutions(channels: int, side: int) -> tuple[nn.Module, int]:
    layers = [nn.Conv2d(channels, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    body = nn.Sequential(*layers)
    return body, body(torch.zeros(1, channels, side, side)).shape[1]


def residual(channels: int, side: int) -> tuple[nn.Module, int]:
    first = [nn.Conv2d(channels, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*first, Shortcut(16), nn.MaxPool2d(2), Shortcut(16), nn.AdaptiveAvgPool2d(2), nn.Flatten()), 64


KINDS: dict[str, Callable[[int, int], tuple[nn.Module, int]]] = {
    "perceptron": dense(nn.ReLU),
    "tanh": dense(nn.Tanh),
    "gelu": dense(nn.GELU),
    "convolutions": convolutions,
    "residual": residual,
    "attention": lambda channels, side: (Tokens(channels, side), 32),
    "recurrent": lambda channels, side: (Rows(channels, side), 48),
}

HEALTHY: dict[str, Callable[[Trained], Case]] = {
    "inside": lambda it: it.healthy,
    "declared": lambda it: Case(it.changed(False), it.x, it.y, {"mean": it.mean, "std": it.std}),
    "bytes": lambda it: Case(it.changed(scale=255.0), 255 * it.x, it.y, {"bounds": (0, 255)}),
    "before": lambda it: Case(it.changed(False), it.normalised(it.x), it.y, {"bounds": "none"}),
}
"""Right ways of preprocessing."""


def half_detached(features: Tensor) -> Tensor:
    half = torch.arange(features.shape[1]) % 2 == 0
    return torch.where(half, features.detach(), features)


def _with(case: Case, **changes: Any) -> Case:
    return replace(case, **changes)


DEFECTS: dict[str, tuple[str, Callable[[Trained], Case]]] = {
    "no_grad": ("masked_gradient", lambda it: _with(it.healthy, model=it.changed(at_features=without_grad))),
    "detach": ("masked_gradient", lambda it: _with(it.healthy, model=it.changed(at_input=lambda x: x.detach()))),
    "half detached": ("masked_gradient", lambda it: _with(it.healthy, model=it.changed(at_features=half_detached))),
    "round": (
        "masked_gradient",
        lambda it: _with(it.healthy, model=it.changed(at_input=lambda x: (9 * x).round() / 9)),
    ),
    "sign": (
        "masked_gradient",
        lambda it: _with(it.healthy, model=it.changed(at_features=lambda z: (z - z.mean()).sign())),
    ),
    "a made-up gradient": ("masked_gradient", lambda it: _with(it.healthy, model=it.changed(at_features=MadeUp.apply))),
    "softmax": ("outputs", lambda it: _with(it.healthy, model=it.changed(at_scores=lambda z: z.softmax(1)))),
    "dropout": (
        "nondeterministic_model",
        lambda it: _with(it.healthy, model=it.changed(at_features=lambda z: nn.functional.dropout(z, 0.3, True))),
    ),
    "batch statistics": (
        "batch_dependent",
        lambda it: _with(it.healthy, model=it.changed(at_features=lambda z: z - z.mean(0))),
    ),
    "a number of rows": (
        "fixed_batch",
        lambda it: _with(it.healthy, model=it.changed(at_features=lambda z: z.view(ROWS, -1))),
    ),
    "another number of rows": (
        "fixed_batch",
        lambda it: _with(it.healthy, model=it.changed(at_features=lambda z: z.view(32, -1))),
    ),
    "channels last": ("layout", lambda it: _with(it.healthy, x=it.x.permute(0, 2, 3, 1))),
    "flat": ("layout", lambda it: _with(it.healthy, x=it.x.flatten(1))),
    "bytes": ("value_range", lambda it: _with(it.healthy, x=255 * it.x)),
    "labels from 1": ("labels", lambda it: _with(it.healthy, y=it.y + 1)),
    "mean and std forgotten": ("preprocessing", lambda it: _with(it.healthy, model=it.changed(False))),
    "mean and std twice": ("preprocessing", lambda it: _with(it.healthy, declared={"mean": it.mean, "std": it.std})),
    "0 to 1 for 0 to 255": ("preprocessing", lambda it: _with(it.healthy, model=it.changed(scale=255.0))),
}
"""The code of each, and how it is made."""


def main() -> None:
    """Every kind of network on every set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    alarms, healthy, found, made = Counter[str](), 0, Counter[str](), Counter[str]()
    for name, trained in networks(given.data):
        own = accuracy(trained.healthy)
        for way, make in HEALTHY.items():
            codes = examine(make(trained))
            healthy += 1
            alarms.update(codes)
            if codes:
                print(f"{name}, {way}: {', '.join(sorted(codes))}")
        for defect, (code, make) in DEFECTS.items():
            case = make(trained)
            if not broken(case, code, own):
                continue
            codes = examine(case)
            made[defect] += 1
            found[defect] += code in codes
            if code not in codes:
                print(f"{name}, {defect}: {', '.join(sorted(codes)) or 'nothing'}")
    print(f"\n{healthy} healthy combinations, {alarms.total()} false alarms {dict(alarms) or ''}\n")
    print(f"{'defect':<26}{'code':<26}{'found':>6}{'of':>5}")
    for defect, (code, _) in DEFECTS.items():
        print(f"{defect:<26}{code:<26}{found[defect]:>6}{made[defect]:>5}")
    print(f"{'all':<52}{found.total():>6}{made.total():>5}")


def networks(data: Path) -> Iterator[tuple[str, Trained]]:
    """Every kind of network trained on every set, with its name and test accuracy."""
    for number, (name, place) in enumerate(SETS.items()):
        x, y, test_x, test_y = _images(data, *place)
        mean, std = x.mean((0, 2, 3)), x.std((0, 2, 3))
        for kind, make in KINDS.items():
            torch.manual_seed(number)
            body, width = make(x.shape[1], x.shape[2])
            network = nn.Sequential(body, nn.Linear(width, int(y.max()) + 1)).train()
            _train(network, (x - mean.view(-1, 1, 1)) / std.view(-1, 1, 1), y)
            network.eval().requires_grad_(False)
            trained = Trained(network[0], network[1], test_x, test_y, tuple(mean.tolist()), tuple(std.tolist()))
            print(f"{kind} on {name}: {accuracy(trained.healthy):.1%} of {len(test_y)}", flush=True)
            yield f"{kind} on {name}", trained


def _images(data: Path, place: str, train: str, test: str | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x, y = _read(data / place, train, TRAINED_ON)
    if test is not None:
        return x, y, *_read(data / place, test, LOOKED_AT)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    first, last = order[: 2 * len(x) // 3], order[2 * len(x) // 3 :]
    return x[first], y[first], x[last], y[last]


def _read(path: Path, split: str, most: int) -> tuple[Tensor, Tensor]:
    points = open_points(path, split=split, limit=most, scale_uint8=path.suffix == ".npz")
    batch = next(iter(points.batches(most)))
    return batch.inputs, torch.tensor(batch.labels)


def _train(network: nn.Module, x: Tensor, y: Tensor) -> None:
    optimiser = torch.optim.Adam(network.parameters(), RATE)
    for _ in range(PASSES * max(1, TRAINED_ON // len(x))):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimiser.step()


def accuracy(case: Case) -> float:
    """Share of the labels that are right."""
    classifier = brittle.Classifier(case.model, **case.declared)
    with classifier.evaluating(), torch.no_grad():
        return float((classifier(case.x).argmax(dim=1) == case.y).double().mean())


def broken(case: Case, code: str, own: float) -> bool:
    """Whether it is broken at all: grey images are the same rows channels last, and some networks lose little.

    Args:
        case: the broken network or data.
        code: what it should be called.
        own: accuracy of the healthy network.
    """
    if code == "preprocessing":
        return accuracy(case) <= own - FORGOTTEN
    if code != "layout":
        return True
    try:
        accuracy(case)
    except brittle.errors.BrittleError:
        return True
    return False


def examine(case: Case) -> set[str]:
    """The codes of what the checks find."""
    points = array_points(case.x, case.y, layout="nchw" if case.x.dim() == 4 else None, bounds="none")
    classifier = brittle.Classifier(case.model, **case.declared)
    batch = next(iter(points.batches(LOOKED_AT)))
    sigma = 0.1 * (classifier.bounds.pair or (0.0, 1.0))[1]
    scores = [Moments(sigma), Taylor(sigma), InputMargin()]
    subject = doctor.Subject(classifier, batch, points.labels, scores, 0, ROWS, points)
    with classifier.evaluating():
        return {outcome.code for outcome in doctor.run_all(subject) if outcome.code}


if __name__ == "__main__":
    main()
