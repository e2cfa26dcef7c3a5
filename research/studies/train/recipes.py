"""The networks of the studies: data, size, training and its length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from studies.groups import ATTACKED
from studies.train.images import DATASETS
from studies.train.ways.base import Way, number_text
from studies.train.ways.fgsm import FGSM
from studies.train.ways.gaussian import Gaussian
from studies.train.ways.gradient_norm import GradientNorm
from studies.train.ways.logit_pairing import ALP, CLP
from studies.train.ways.mart import Mart
from studies.train.ways.pgd import PGD
from studies.train.ways.plain import Plain
from studies.train.ways.sigmoid import Sigmoid
from studies.train.ways.trades import Trades

Size = Literal["cpu", "paper"]
SIZES: tuple[Size, ...] = get_args(Size)
"""`cpu`: for two cores. `paper`: widths, epochs and optimisers of the papers, for a graphics card."""

WEIGHTS = (1e-4, 1e-3, 1e-2)
"""Weights of the gradient norm (Han et al., ICML workshop 2023, table 2)."""


@dataclass(frozen=True)
class Schedule:
    """How long and by what a network is trained.

    Attributes:
        epochs: passes over the training images.
        points: training images, from the first; None for all.
        optimiser: `adam`, or `sgd` with a momentum of 0.9.
        rate: largest learning rate; it rises over the first quarter of the steps and falls to zero.
        decay: of the weights.
        batch: images a step.
        ramp: share of the steps over which the strength of the way grows from 0; 0 for the whole strength at once.
        augmented: whether images are mirrored and shifted by up to four pixels at random.
        channels_last: whether the channels of a pixel lie side by side: wide convolutions take two thirds of the time
            on a processor, and sums are rounded otherwise.
    """

    epochs: int
    points: int | None = None
    optimiser: Literal["adam", "sgd"] = "adam"
    rate: float = 2e-3
    decay: float = 0.0
    batch: int = 128
    ramp: float = 0.5
    augmented: bool = False
    channels_last: bool = False


@dataclass(frozen=True)
class Recipe:
    """A network to be trained.

    Attributes:
        dataset: one of `DATASETS`.
        architecture: one of `ARCHITECTURES`.
        width: of the architecture.
        way: what is minimised.
        schedule: how long and by what.
        attacked: test images that PGD-10 is run on, from the first; None for all.
    """

    dataset: str
    architecture: str
    width: int
    way: Way
    schedule: Schedule
    attacked: int | None

    @property
    def name(self) -> str:
        """Data set, architecture, way, strength: `mnist_cnn_gradnorm_1e-3`."""
        parts = [self.dataset, self.architecture, self.way.name]
        return "_".join(parts if self.way.strength is None else [*parts, number_text(self.way.strength)])

    @property
    def repeated(self) -> bool:
        """Return whether it is trained from several seeds, as the few behind claims of a paper are."""
        return self.way.name in ATTACKED and self.dataset in ("mnist", "cifar10")


def worst_case(dataset: str, steps: int) -> list[Way]:
    """Return the ways against adversarial examples, and Gaussian augmentation beside them."""
    radius = DATASETS[dataset].epsilon
    return [
        Gaussian(DATASETS[dataset].sigma),
        FGSM(radius),
        PGD(radius, steps),
        Trades(radius, steps),
        Mart(radius, steps),
        ALP(radius, steps),
        CLP(radius, steps),
    ]


def regularised() -> list[Way]:
    """Plain training, and gradient norms with each weight."""
    return [Plain(), *map(GradientNorm, WEIGHTS)]


def recipes(size: Size) -> list[Recipe]:
    """All networks of a size."""
    return CPU if size == "cpu" else PAPER


def _all(
    dataset: str, architecture: str, width: int, methods: Sequence[Way], schedule: Schedule, attacked: int | None
) -> list[Recipe]:
    return [Recipe(dataset, architecture, width, method, schedule, attacked) for method in methods]


def _mnist_cpu() -> list[Recipe]:
    data, tested = DATASETS["mnist"], 1000
    shared = Schedule(epochs=5)
    hardened = Schedule(epochs=8, points=30_000)
    return [
        *_all("mnist", "linear", 0, [Plain()], shared, tested),
        *_all("mnist", "cnn", 10, regularised(), shared, tested),
        *_all("mnist", "lenet_tanh", 6, [Plain(), FGSM(data.epsilon)], shared, tested),
        *_all("mnist", "vit", 32, [Plain()], shared, tested),
        *_all("mnist", "cnn", 10, worst_case("mnist", 5), hardened, tested),
        *_all("mnist", "cnn", 10, [Sigmoid(data.sigma)], shared, tested),
    ]


def _cifar_cpu() -> list[Recipe]:
    data, tested = DATASETS["cifar10"], 1000
    shared = Schedule(epochs=8, points=20_000, augmented=True)
    residual = replace(shared, epochs=5)
    hardened = replace(shared, epochs=6)
    against = [method for method in worst_case("cifar10", 3) if not isinstance(method, FGSM)]
    return [
        *_all("cifar10", "linear", 0, [Plain()], replace(shared, points=None), tested),
        *_all("cifar10", "cnn", 10, regularised(), shared, tested),
        *_all("cifar10", "lenet_tanh", 18, [Plain(), FGSM(data.epsilon)], shared, tested),
        *_all("cifar10", "vit", 48, [Plain()], shared, tested),
        *_all("cifar10", "cnn", 10, against, hardened, tested),
        *_all("cifar10", "cnn", 10, [Sigmoid(data.sigma)], shared, tested),
        *_all("cifar10", "resnet18", 8, [Plain()], residual, tested),
        *_all("cifar10", "resnet3_prelu", 8, [Plain(), FGSM(data.epsilon)], residual, tested),
    ]


def _pneumonia_cpu() -> list[Recipe]:
    data, shared = DATASETS["pneumoniamnist"], Schedule(epochs=20)
    return [
        *_all("pneumoniamnist", "linear", 0, [Plain()], shared, None),
        *_all("pneumoniamnist", "cnn", 10, [*regularised(), PGD(data.epsilon, 5)], shared, None),
        *_all("pneumoniamnist", "lenet_tanh", 6, [Plain()], shared, None),
        *_all("pneumoniamnist", "vit", 32, [Plain()], shared, None),
    ]


def _fashion_cpu() -> list[Recipe]:
    name, shared = "fashion_mnist_900", Schedule(epochs=60)  # of 600 images
    return [
        *_all(name, "linear", 0, [Plain()], shared, None),
        *_all(name, "cnn", 10, [*regularised(), PGD(DATASETS[name].epsilon, 5)], shared, None),
        *_all(name, "lenet_tanh", 6, [Plain()], shared, None),
    ]


def _average_case_paper() -> list[Recipe]:
    """Han et al. (ICML workshop 2023), appendix A.3: stochastic gradient descent, 200 epochs. Rates are ours."""
    small = Schedule(epochs=200, optimiser="sgd", rate=0.02, ramp=0.0)
    large = Schedule(epochs=200, optimiser="sgd", rate=0.1, decay=5e-4, ramp=0.0, augmented=True, channels_last=True)
    attention = replace(large, optimiser="adam", rate=5e-4, decay=0.05)
    grey = [
        recipe
        for dataset in ("mnist", "fashion_mnist")
        for recipe in (
            *_all(dataset, "linear", 0, [Plain()], small, None),
            *_all(dataset, "cnn", 10, [*regularised(), Sigmoid(DATASETS[dataset].sigma)], small, None),
        )
    ]
    coloured = [
        recipe
        for dataset in ("cifar10", "cifar100")
        for recipe in (
            *_all(dataset, "linear", 0, [Plain()], replace(small, rate=1e-3), None),
            *_all(dataset, "cnn", 30, regularised(), replace(small, augmented=True), None),
            *_all(dataset, "resnet18", 64, [*regularised(), Sigmoid(DATASETS[dataset].sigma)], large, 1000),
            *_all(dataset, "vit", 192, [Plain()], attention, None),
        )
    ]
    return [*grey, *_all("mnist", "vit", 64, [Plain()], replace(attention, augmented=False), None), *coloured]


def _worst_case_paper() -> list[Recipe]:
    """Ngnawé et al. (NeurIPS 2024), section 3.1, with the setting of Wang et al. (ICLR 2020): 120 epochs, 10 steps."""
    hardened = Schedule(epochs=120, optimiser="sgd", rate=0.01, decay=3.5e-3, ramp=0.0, augmented=True)
    grey = Schedule(epochs=50, rate=1e-3, ramp=0.2)
    return [
        *_all("mnist", "cnn", 10, worst_case("mnist", 10), grey, None),
        *_all("cifar10", "resnet18", 64, worst_case("cifar10", 10), hardened, None),
    ]


def _expected_change_paper() -> list[Recipe]:
    """Yang, Liu, Bilgic (TMLR 2023), appendix A.3. The epochs on CIFAR-10, which the paper validates, are ours."""
    smooth = Schedule(epochs=20, rate=0.01, batch=500, ramp=0.0)
    residual = Schedule(epochs=100, optimiser="sgd", rate=1e-3, decay=1e-4, ramp=0.0, augmented=True)
    return [
        recipe
        for dataset, architecture, width, schedule in (
            ("mnist", "lenet_tanh", 6, smooth),
            ("cifar10", "lenet_tanh", 6, smooth),
            ("cifar10", "resnet3_prelu", 64, residual),
        )
        for recipe in _all(dataset, architecture, width, [Plain(), FGSM(DATASETS[dataset].epsilon)], schedule, None)
    ]


CPU = [*_mnist_cpu(), *_pneumonia_cpu(), *_fashion_cpu(), *_cifar_cpu()]
PAPER = [*_average_case_paper(), *_worst_case_paper(), *_expected_change_paper()]
