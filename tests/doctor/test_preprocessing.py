"""A preprocessing that was forgotten, or made twice, is told where labels show it, and never where it is right.

The networks are exact: each predicts the nearest of some points in the units that it was made for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from helpers.examined import examined
from scipy import stats
from torch import Tensor, nn

import brittle
from brittle import doctor
from brittle.data import array_points
from brittle.doctor.data import FALSE_ALARM, GAIN
from brittle.doctor.preprocessing import better_reading, check_preprocessing
from brittle.measure.forward import hold_missing
from brittle.scores import Softmax

CLASSES, SHAPE = 8, (3, 6, 6)
Pair = tuple[tuple[float, ...], tuple[float, ...]]

PLAIN: Pair = ((0.0,), (1.0,))
CIFAR: Pair = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
IMAGENET: Pair = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
MNIST: Pair = ((0.1307,), (0.3081,))
SIGNED: Pair = ((0.5,), (0.5,))
BYTES: Pair = ((0.0,), (1 / 255,))


def changed(x: Tensor, pair: Pair) -> Tensor:
    mean, std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in pair)
    return (x - mean) / std


class Nearest(nn.Module):
    """The class of the nearest of `points`, `[C, *shape]`, in the units of the model."""

    def __init__(self, points: Tensor, own: Pair = PLAIN) -> None:
        super().__init__()
        self.points, self.own = nn.Parameter(points), own

    def forward(self, x: Tensor) -> Tensor:
        weight = self.points.flatten(1)
        return changed(x, self.own).flatten(1) @ weight.T - (weight**2).sum(dim=1) / 2


@dataclass(frozen=True)
class Given:
    """A network for values that were changed by `made`, and a declaration.

    Attributes:
        made: what turns values from 0 to 1 into what the points of the network are in.
        inside: what the network does by itself.
        declared: `mean` and `std` of the declaration.
        before: what was done to the data.
        bounds: of the data.
        count: how many points there are.
    """

    made: Pair = PLAIN
    inside: Pair = PLAIN
    declared: Pair | None = None
    before: Pair = PLAIN
    bounds: tuple[float, float] = (0.0, 1.0)
    count: int = 64
    channels: int = 3


def outcome(given: Given, *, labelled: bool = True, wrong: float = 0.0) -> doctor.Outcome:
    """What is said of it; a share of the labels may be wrong."""
    generator = torch.Generator().manual_seed(0)
    shape = (given.channels, *SHAPE[1:])
    # Classes differ in how bright they are as well as in their pattern, as those of photographs do.
    bright = torch.linspace(0.15, 0.75, CLASSES).view(-1, 1, 1, 1)
    points = (bright + 0.25 * (torch.rand(CLASSES, *shape, generator=generator) - 0.5)).clamp(0, 1)
    labels = torch.arange(given.count) % CLASSES
    x = (points[labels] + 0.08 * torch.randn(given.count, *shape, generator=generator)).clamp(0, 1)
    moved = torch.rand(given.count, generator=generator) < wrong
    labels = torch.where(moved, (labels + 1) % CLASSES, labels)
    network = Nearest(changed(points, given.made), given.inside).eval()
    mean, std = given.declared or (None, None)
    x, y = changed(x, given.before), labels if labelled else None
    subject = examined(network, [Softmax()], x, y, bounds=given.bounds, mean=mean, std=std)
    with subject.classifier.evaluating():
        (found,) = doctor.run_all(subject, [each for each in doctor.CHECKS if each.name == "preprocessing"])
    return found


RIGHT: dict[str, Given] = {
    "values from 0 to 1": Given(),
    "declared": Given(made=CIFAR, declared=CIFAR),
    "made inside": Given(made=IMAGENET, inside=IMAGENET),
    "grey, declared": Given(made=MNIST, declared=MNIST, channels=1),
    "bytes, declared": Given(before=BYTES, bounds=(0.0, 255.0), made=CIFAR, declared=(
        tuple(255 * one for one in CIFAR[0]), tuple(255 * one for one in CIFAR[1]))),
    "done before": Given(before=SIGNED, made=SIGNED, bounds=(-1.0, 1.0)),
    "many points": Given(made=CIFAR, declared=CIFAR, count=300),
    "statistics of other data": Given(made=CIFAR, declared=IMAGENET),
}  # fmt: skip

WRONG: dict[str, tuple[Given, str]] = {
    "CIFAR-10 forgotten": (Given(made=CIFAR), "mean and std of CIFAR-10"),
    "MNIST forgotten": (Given(made=MNIST, channels=1), "--mean 0.1307 --std 0.3081"),
    "-1 to 1 forgotten": (Given(made=SIGNED), "--mean 0.5 --std 0.5 (mean=0.5, std=0.5)"),
    "0 to 255 forgotten": (Given(made=BYTES), "--mean 0 --std 0.003922"),
    "bytes for values from 0 to 1": (Given(before=BYTES, bounds=(0.0, 255.0)), "--mean 0 --std 255"),
    "made twice": (Given(made=CIFAR, inside=CIFAR, declared=CIFAR), "leave --mean and --std"),
    "made before and inside": (
        Given(made=CIFAR, inside=CIFAR, before=CIFAR, bounds=(-3.0, 3.0)),
        "mean and std of CIFAR-10",
    ),
    "other statistics": (Given(made=SIGNED, declared=MNIST), "--mean 0.5 --std 0.5"),
    "forgotten, many points": (Given(made=CIFAR, count=300), "mean and std of CIFAR-10"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_said_where_the_preprocessing_is_right(name: str) -> None:
    """With wrong labels, too, which leave something to gain."""
    said = outcome(RIGHT[name], wrong=0.3)
    assert (said.state, said.code) == ("ok", None), said.sentence


@pytest.mark.parametrize("name", WRONG)
def test_what_was_forgotten_is_named_with_what_to_type(name: str) -> None:
    given, typed = WRONG[name]
    said = outcome(given, wrong=0.3)
    assert (said.state, said.code) == ("note", "preprocessing"), said.sentence
    assert typed in said.sentence


def test_without_labels_nothing_is_said() -> None:
    assert outcome(Given(made=CIFAR), labelled=False).state == "ok"


ORDER, BRIGHTNESS = False, True


def test_what_one_class_alone_gains_by_another_brightness_does_not_count() -> None:
    """A model that was trained on more of the other class gets right more of it when it is shifted towards it."""
    labels = torch.arange(256) % 2
    own, shifted = labels == 1, (labels == 1) | (torch.arange(256) < 120)
    assert better_reading(own, shifted, ORDER, labels, 10)
    assert not better_reading(own, shifted, BRIGHTNESS, labels, 10)
    assert better_reading(own, (labels == 1) | (torch.arange(256) < 200), BRIGHTNESS, labels, 10), "more than a quarter"
    both = torch.arange(256) % 8 < 6
    assert better_reading(torch.arange(256) % 8 < 4, both, BRIGHTNESS, labels, 10)


@pytest.mark.every_other
@pytest.mark.parametrize("tries", [1, 7])
@pytest.mark.parametrize(("count", "classes"), [(20, 10), (64, 10), (64, 2), (64, 1)])
def test_the_tests_are_those_of_scipy(count: int, classes: int, tries: int) -> None:
    """A false alarm has at most the probability that is stated, whatever the labels that both get right."""
    labels, said = torch.arange(count) % classes, set()
    for gained in range(count + 1):
        for lost in range(0, count + 1 - gained, 3):
            own, other = torch.zeros(count, dtype=torch.bool), torch.zeros(count, dtype=torch.bool)
            other[:gained], own[gained : gained + lost] = True, True
            paired = stats.binomtest(gained, max(gained + lost, 1), 0.5, "greater").pvalue
            guessed = stats.binomtest(gained, count, int(labels.bincount().max()) / count, "greater").pvalue
            expected = max(paired, guessed) * 2 * tries <= FALSE_ALARM and gained - lost >= GAIN * count
            assert better_reading(own, other, ORDER, labels, tries) == expected, (gained, lost)
            said.add(expected)
    assert said == ({False} if classes == 1 else {False, True})


def test_what_the_first_points_leave_open_the_others_decide() -> None:
    """A gain that 64 points do not make sure of is sure with more."""
    found = {count: outcome(Given(made=CIFAR, count=count), wrong=0.65) for count in (64, 300)}
    assert found[64].code is None, found[64].sentence
    assert found[300].code == "preprocessing", found[300].sentence
    assert "of 300 labels" in found[300].sentence


def test_missing_values_are_missing_to_the_model_that_is_asked_how_many_are_right() -> None:
    """The class is whether a value is missing, which no number in its place tells."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    generator = np.random.default_rng(0)
    x = generator.normal(size=(64, 3))
    x[generator.random(64) < 0.4, 1] = np.nan
    estimator = ensemble.HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5).fit(x, np.isnan(x[:, 1]))
    y = np.isnan(x[:, 1]) ^ (generator.random(64) < 0.3)  # so many labels are wrong that other readings are tried
    classifier = brittle.Classifier(estimator, "none")
    points = hold_missing(classifier, array_points(x, y.astype(int), bounds="none"))
    batch = next(iter(points.batches(doctor.GUARD_ROWS)))
    subject = doctor.Subject(classifier, batch, points.labels, [Softmax()], 0, 64, points)
    (sentence,) = check_preprocessing(subject)
    assert f"{(estimator.predict(x) == y).sum()} of 64 labels" in str(sentence)


def reversed_axes(x: Tensor) -> Tensor:
    return x.permute(0, 3, 2, 1).reshape(x.shape)


ORDERS: dict[str, Callable[[Tensor], Tensor]] = {
    "with channels in the opposite order": lambda x: x.flip(1),
    "with height and width swapped": lambda x: x.mT,
    "read in column-major order": reversed_axes,
    "read with channels last": lambda x: x.permute(0, 2, 3, 1).reshape(x.shape),
    "inverted": lambda x: 1 - x,
}
"""What was done to images, `[N, 3, 6, 6]`, by what is said of them."""

LAST: dict[str, Callable[[Tensor], Tensor]] = {
    "with channels in the opposite order": lambda x: x.flip(3),
    "with height and width swapped": lambda x: x.transpose(1, 2).contiguous(),
    "read in column-major order": reversed_axes,
    "read with channels first": lambda x: x.permute(0, 3, 1, 2).reshape(x.shape),
}
"""Likewise to `[N, 6, 6, 3]`."""

FORMS: dict[str, tuple[Callable[[Tensor], Tensor], dict[str, Callable[[Tensor], Tensor]], Callable[[Tensor], Tensor]]]
FORMS = {
    "images": (lambda x: x, ORDERS, lambda x: x),
    "flat": (lambda x: x, ORDERS, lambda x: x.flatten(1)),
    "channels last": (lambda x: x.permute(0, 2, 3, 1), LAST, lambda x: x.contiguous()),
    "flat, channels last": (lambda x: x.permute(0, 2, 3, 1), LAST, lambda x: x.flatten(1)),
}
"""What makes the points out of images, what is done to them, and in which shape they are given."""


@pytest.mark.parametrize(("form", "name"), [(form, name) for form, parts in FORMS.items() for name in parts[1]])
def test_images_in_another_order_are_named_and_what_is_typed_turns_them_back(form: str, name: str) -> None:
    ordered, mistakes, shaped = FORMS[form]
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(128) % CLASSES
    noise = 0.02 * torch.randn(128, *SHAPE, generator=generator)
    points = 0.3 + 0.4 * torch.rand(CLASSES, *SHAPE, generator=generator)
    points += torch.tensor([0.25, 0.0, -0.25]).view(3, 1, 1) * torch.linspace(-1, 1, 36).view(6, 6).exp() / 2
    images, points = ordered((points[labels] + noise).clamp(0, 1)), shaped(ordered(points))
    given = shaped(mistakes[name](images))
    read = array_points(given, labels, layout=None if given.dim() == 2 else "nchw")
    weight = points.flatten(1)
    classifier = brittle.Classifier(lambda x: x.flatten(1) @ weight.T - (weight**2).sum(dim=1) / 2)
    subject = doctor.Subject(classifier, next(iter(read.batches(64))), read.labels, [Softmax()], 0, 64, read)
    with classifier.evaluating():
        found = next(each for each in check_preprocessing(subject) if isinstance(each, doctor.Finding))
    typed = re.search(r"first, to (.*?)(?: \(NumPy\))?(?:;|$)", found.sentence)
    assert typed is not None
    assert np.allclose(eval(typed[1], {"x": given.numpy()}), shaped(images).numpy(), atol=1e-6)
