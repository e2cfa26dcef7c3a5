"""Mistakes in how trained networks are given are noticed, and healthy set-ups raise no alarm."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from sklearn import datasets
from torch import Tensor, nn

import brittle
from brittle.data import array_points
from brittle.scores import LogitMargin

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class SetUp:
    """A network, labelled points `[N, *shape]` that it was not trained on, and what is declared of them.

    `image` is `(channels, height, width)` of flat points; `mean` and `std` are declared where the network has none.
    """

    name: str
    model: Callable[[Tensor], Tensor]
    x: Tensor
    y: Tensor
    image: tuple[int, ...] | None = None
    mean: Numbers | None = None
    std: Numbers | None = None
    bounds: Any = (0.0, 1.0)

    @property
    def images(self) -> Tensor:
        """The points as images, `[N, C, H, W]`."""
        return self.x if self.image is None else self.x.view(-1, *self.image)

    def of_images(self, images: Tensor) -> SetUp:
        return replace(self, x=images.reshape(self.x.shape))

    @property
    def classifier(self) -> brittle.Classifier:
        return brittle.Classifier(self.model, self.bounds, self.mean, self.std)

    @property
    def accuracy(self) -> float:
        with self.classifier.evaluating(), torch.no_grad():
            return float((self.classifier(self.x).argmax(dim=1) == self.y).double().mean())

    def said(self) -> dict[str, str]:
        """What a run says of it, or why it is refused: sentences by their code."""
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            try:
                points = array_points(self.x, self.y, layout="nchw" if self.x.dim() == 4 else None, bounds=self.bounds)
                brittle.score(self.classifier, points, [LogitMargin()])
            except brittle.errors.BrittleError as error:
                return {error.code: str(error)}
        found = [str(one.message) for one in noted if issubclass(one.category, brittle.BrittleWarning)]
        return {one.partition(":")[0]: one for one in found}


# Mistakes. Each gives the set-up with it, or None where it cannot be made.


def blue_first(it: SetUp) -> SetUp | None:
    return it.of_images(it.images.flip(1)) if _is_image(it) and it.images.shape[1] == 3 else None


def turned(it: SetUp) -> SetUp | None:
    return it.of_images(it.images.mT) if _is_image(it) else None


def column_major(it: SetUp) -> SetUp | None:
    """Of several channels: for one it is the same as `turned`."""
    several = _is_image(it) and it.images.shape[1] > 1
    return it.of_images(it.images.permute(0, 3, 2, 1).contiguous()) if several else None


def inverted(it: SetUp) -> SetUp | None:
    return replace(it, x=1 - it.x) if it.bounds == (0.0, 1.0) else None


def before(name: str) -> Callable[[SetUp], SetUp | None]:
    """Standardised in the data, for a network that does so itself or for which that is declared."""
    mean, std = STATISTICS[name]

    def mistake(it: SetUp) -> SetUp | None:
        if not _is_image(it) or it.bounds != (0.0, 1.0) or len(mean) not in (1, it.images.shape[1]):
            return None
        images = (it.images - _wide(mean)) / _wide(std)
        return replace(it, x=images.reshape(it.x.shape), bounds="none")

    return mistake


def forgotten(it: SetUp) -> SetUp | None:
    return None if it.mean is None else replace(it, mean=None, std=None)


def dark(it: SetUp) -> SetUp | None:
    return replace(it, x=it.x / 255) if it.bounds == (0.0, 1.0) else None


def as_bytes(it: SetUp) -> SetUp | None:
    return replace(it, x=255 * it.x, bounds=(0.0, 255.0)) if it.bounds == (0.0, 1.0) else None


def moved(it: SetUp) -> SetUp | None:
    classes = int(it.y.max()) + 1
    return replace(it, y=(it.y + 1) % classes) if classes > 2 else None


def renamed(it: SetUp) -> SetUp | None:
    """Classes in the order of their names as words."""
    order = torch.randperm(int(it.y.max()) + 1, generator=torch.Generator().manual_seed(1))
    return replace(it, y=order[it.y])


STATISTICS: dict[str, tuple[Numbers, Numbers]] = {
    "ImageNet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "MNIST": ((0.1307,), (0.3081,)),
    "-1 to 1": ((0.5,), (0.5,)),
}

MISTAKES: dict[str, Callable[[SetUp], SetUp | None]] = {
    "red and blue swapped": blue_first,
    "height and width swapped": turned,
    "column-major order": column_major,
    "values inverted": inverted,
    **{f"normalised twice, {name}": before(name) for name in STATISTICS},
    "mean and std forgotten": forgotten,
    "divided by 255 again": dark,
    "bytes": as_bytes,
    "labels moved by one": moved,
    "classes in another order": renamed,
}


def _is_image(it: SetUp) -> bool:
    return it.image is not None or it.x.dim() == 4


def _wide(numbers: Numbers) -> Tensor:
    return torch.tensor(numbers).view(-1, 1, 1)


def wrong_ones(it: SetUp, cost: float) -> Iterator[tuple[str, SetUp]]:
    """The set-up with each mistake that makes at least a share `cost` of the labels wrong, or cannot be run."""
    for name, mistake in MISTAKES.items():
        made = mistake(it)
        if made is not None and made.accuracy <= it.accuracy - cost:
            yield name, made


# Healthy variations, which must raise no alarm.


def noisy_labels(it: SetUp, share: float = 0.3) -> SetUp:
    draw = torch.Generator().manual_seed(2)
    others = torch.randint(0, int(it.y.max()) + 1, it.y.shape, generator=draw)
    return replace(it, y=torch.where(torch.rand(len(it.y), generator=draw) < share, others, it.y))


VARIATIONS: Mapping[str, Callable[[SetUp], SetUp]] = {
    "as it is": lambda it: it,
    "30% of the labels drawn": noisy_labels,
    **{
        f"{count} points": (lambda it, count=count: replace(it, x=it.x[:count], y=it.y[:count]))
        for count in (8, 16, 64)
    },
}


# Networks that are trained within seconds.


def train(network: nn.Module, x: Tensor, y: Tensor, steps: int) -> nn.Module:
    draw = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(network.train().parameters(), 2e-3)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,), generator=draw)
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
        optimiser.step()
    return network.eval().requires_grad_(False)


def dense(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, classes))


def convolutions(classes: int) -> nn.Module:
    layers = [nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.ReLU()]
    body = nn.Sequential(*layers, nn.Flatten())
    return nn.Sequential(body, nn.Linear(body(torch.zeros(1, 1, 8, 8)).shape[1], classes))


def split(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    first, last = order[: len(x) // 2], order[len(x) // 2 :]
    return x[first], y[first], x[last], y[last]


def digits(classes: tuple[int, ...] = tuple(range(10))) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The digits of scikit-learn, `[N, 1, 8, 8]` from 0 to 1, to train on and to look at."""
    found: Any = datasets.load_digits()
    x, y = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16, torch.tensor(found.target)
    kept = torch.isin(y, torch.tensor(classes))
    return split(x[kept], torch.searchsorted(torch.tensor(classes), y[kept]))


def of_digits() -> Iterator[SetUp]:
    """Networks of small images."""
    torch.manual_seed(0)
    x, y, test_x, test_y = digits()
    yield SetUp("digits, convolutions", train(convolutions(10), x, y, 300), test_x, test_y)
    flat, test_flat = x.flatten(1), test_x.flatten(1)
    yield SetUp("digits, flat", train(dense(64, 10), flat, y, 300), test_flat, test_y, image=(1, 8, 8))
    linear = train(nn.Linear(64, 10), flat, y, 40)
    yield SetUp("digits, weak and flat", linear, test_flat, test_y, image=(1, 8, 8))
    mean, std = (float(x.mean()),), (float(x.std()),)
    given = train(convolutions(10), (x - mean[0]) / std[0], y, 300)
    yield SetUp("digits, declared", given, test_x, test_y, mean=mean, std=std)
    x, y, test_x, test_y = digits((0, 1, 8))
    yield SetUp("digits 0, 1, 8", train(convolutions(3), x, y, 150), test_x, test_y)
    x, y, test_x, test_y = digits((4, 9))
    yield SetUp("digits 4, 9, weak", train(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), x, y, 12), test_x, test_y)


def of_tables() -> Iterator[SetUp]:
    """Networks of tables, with the standardisation declared."""
    torch.manual_seed(1)
    for name, load in (("breast cancer", datasets.load_breast_cancer), ("wine", datasets.load_wine)):
        found: Any = load()
        x, y, test_x, test_y = split(torch.tensor(found.data, dtype=torch.float32), torch.tensor(found.target))
        mean, std = x.mean(0), x.std(0).clamp(min=1e-6)
        network = train(dense(x.shape[1], int(y.max()) + 1), (x - mean) / std, y, 200)
        yield SetUp(name, network, test_x, test_y, None, tuple(mean.tolist()), tuple(std.tolist()), "none")


# The law.

NAMES = (
    "digits, convolutions", "digits, flat", "digits, weak and flat", "digits, declared", "digits 0, 1, 8",
    "digits 4, 9, weak", "breast cancer", "wine",
)  # fmt: skip


@pytest.fixture(scope="module")
def known() -> dict[str, SetUp]:
    """All of them, trained once."""
    return {it.name: it for it in (*of_digits(), *of_tables())}


@pytest.fixture(params=NAMES)
def set_up(request: pytest.FixtureRequest, known: dict[str, SetUp]) -> SetUp:
    return known[request.param]


def test_all_are_looked_at(known: dict[str, SetUp]) -> None:
    assert list(known) == list(NAMES)


def test_a_healthy_set_up_raises_no_alarm(set_up: SetUp) -> None:
    assert {name: said for name, vary in VARIATIONS.items() if (said := vary(set_up).said())} == {}


def test_mistakes_that_cost_a_sixth_of_the_labels_are_noticed(set_up: SetUp) -> None:
    """Of two classes none by which values are shifted and scaled: that may favour one class, and do no more."""
    made = dict(wrong_ones(set_up, cost=1 / 6))
    unsaid = [name for name, wrong in made.items() if not wrong.said()]
    assert made
    assert all(name.startswith("normalised") and int(set_up.y.max()) == 1 for name in unsaid), unsaid
