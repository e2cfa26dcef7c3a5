"""False alarms of the doctor on healthy trained networks, and its findings on broken ones.

    PYTHONPATH=tests python research/benchmarks/doctor_trained.py DATA

DATA holds the files of `SETS`. Networks of seven kinds are trained on each set; no check was made with one. Each is
examined healthy with four correct kinds of preprocessing (112 combinations), and with each of `DEFECTS`. Printed: the
number of healthy ones with an alarm, and for each defect the number found under its name.
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
"""Folder or file, and the splits for training and for tests; None takes a third of the first."""

FORGOTTEN = 0.2
"""Smallest loss of accuracy for which a forgotten preprocessing counts."""


@dataclass(frozen=True)
class Case:
    """A network with data and a declaration.

    Attributes:
        model: the examined network.
        x: inputs, `[N, *shape]`.
        y: labels, `[N]`.
        declared: declaration of the classifier.
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
        x: test images, `[N, C, H, W]`.
        y: their labels, `[N]`.
        mean: mean of each channel of the training images.
        std: standard deviation of each channel.
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
        """Return the network with its preprocessing inside, for inputs from 0 to 1."""
        return Case(self.changed(), self.x, self.y, {})

    def normalised(self, x: Tensor) -> Tensor:
        mean, std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in (self.mean, self.std))
        return (x - mean) / std


class Changed(nn.Module):
    """A trained network with a change of its input, features or scores."""

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
    stem = [nn.Conv2d(channels, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, Shortcut(16), nn.MaxPool2d(2), Shortcut(16), nn.AdaptiveAvgPool2d(2), nn.Flatten()), 64


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
"""Correct kinds of preprocessing."""


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
"""Code and maker of each defect."""


def main() -> None:
    """Examine every kind of network on every set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    arguments = parser.parse_args()
    alarms, healthy, detections, trials = Counter[str](), 0, Counter[str](), Counter[str]()
    for name, trained in networks(arguments.data):
        accuracy_healthy = accuracy(trained.healthy)
        for preprocessing, make in HEALTHY.items():
            codes = examine(make(trained))
            healthy += 1
            alarms.update(codes)
            if codes:
                print(f"{name}, {preprocessing}: {', '.join(sorted(codes))}")
        for defect, (code, make) in DEFECTS.items():
            case = make(trained)
            if not broken(case, code, accuracy_healthy):
                continue
            codes = examine(case)
            trials[defect] += 1
            detections[defect] += code in codes
            if code not in codes:
                print(f"{name}, {defect}: {', '.join(sorted(codes)) or 'nothing'}")
    print(f"\n{healthy} healthy combinations, {alarms.total()} false alarms {dict(alarms) or ''}\n")
    print(f"{'defect':<26}{'code':<26}{'found':>6}{'of':>5}")
    for defect, (code, _) in DEFECTS.items():
        print(f"{defect:<26}{code:<26}{detections[defect]:>6}{trials[defect]:>5}")
    print(f"{'all':<52}{detections.total():>6}{trials.total():>5}")


def networks(data: Path) -> Iterator[tuple[str, Trained]]:
    """Train every kind of network on every set, and return it with its name and test accuracy."""
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
    training, testing = order[: 2 * len(x) // 3], order[2 * len(x) // 3 :]
    return x[training], y[training], x[testing], y[testing]


def _read(path: Path, split: str, count: int) -> tuple[Tensor, Tensor]:
    points = open_points(path, split=split, limit=count, scale_uint8=path.suffix == ".npz")
    batch = next(iter(points.batches(count)))
    return batch.inputs, torch.tensor(batch.labels)


def _train(network: nn.Module, x: Tensor, y: Tensor) -> None:
    optimiser = torch.optim.Adam(network.parameters(), RATE)
    for _ in range(PASSES * max(1, TRAINED_ON // len(x))):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimiser.step()


def accuracy(case: Case) -> float:
    """Return the share of correct predictions."""
    classifier = brittle.Classifier(case.model, **case.declared)
    with classifier.evaluating(), torch.no_grad():
        return float((classifier(case.x).argmax(dim=1) == case.y).double().mean())


def broken(case: Case, code: str, healthy_accuracy: float) -> bool:
    """Return whether a defect changes anything: grey images stay the same channels last, and some networks lose little.

    Args:
        case: the broken network or data.
        code: expected code.
        healthy_accuracy: accuracy of the healthy network.
    """
    if code == "preprocessing":
        return accuracy(case) <= healthy_accuracy - FORGOTTEN
    if code != "layout":
        return True
    try:
        accuracy(case)
    except brittle.errors.BrittleError:
        return True
    return False


def examine(case: Case) -> set[str]:
    """Return the codes of the checks' findings."""
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
