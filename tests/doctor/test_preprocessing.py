"""A forgotten or doubled preprocessing is reported where labels show it, and never where it is right.

The networks are exact: each predicts the nearest of some points in the units of its training.
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


def normalise(x: Tensor, pair: Pair) -> Tensor:
    mean, std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in pair)
    return (x - mean) / std


class Nearest(nn.Module):
    """The class of the nearest of `points`, `[C, *shape]`, in the units of the model."""

    def __init__(self, points: Tensor, inside: Pair = PLAIN) -> None:
        super().__init__()
        self.points, self.inside = nn.Parameter(points), inside

    def forward(self, x: Tensor) -> Tensor:
        weight = self.points.flatten(1)
        return normalise(x, self.inside).flatten(1) @ weight.T - (weight**2).sum(dim=1) / 2


@dataclass(frozen=True)
class Setting:
    """A network trained on normalised values, and a declaration.

    Attributes:
        training: mean and std that map values from 0 to 1 to the units of the points.
        inside: mean and std within the network.
        declared: declared `mean` and `std`.
        before: mean and std applied to the data.
        bounds: bounds of the data.
        count: number of points.
        channels: number of channels of the images.
    """

    training: Pair = PLAIN
    inside: Pair = PLAIN
    declared: Pair | None = None
    before: Pair = PLAIN
    bounds: tuple[float, float] = (0.0, 1.0)
    count: int = 64
    channels: int = 3


def run_check(setting: Setting, *, labelled: bool = True, wrong: float = 0.0) -> doctor.Outcome:
    """Run the check of the preprocessing; a share of the labels may be wrong."""
    generator = torch.Generator().manual_seed(0)
    shape = (setting.channels, *SHAPE[1:])
    # Classes differ in how bright they are as well as in their pattern, as those of photographs do.
    bright = torch.linspace(0.15, 0.75, CLASSES).view(-1, 1, 1, 1)
    points = (bright + 0.25 * (torch.rand(CLASSES, *shape, generator=generator) - 0.5)).clamp(0, 1)
    labels = torch.arange(setting.count) % CLASSES
    x = (points[labels] + 0.08 * torch.randn(setting.count, *shape, generator=generator)).clamp(0, 1)
    is_wrong = torch.rand(setting.count, generator=generator) < wrong
    labels = torch.where(is_wrong, (labels + 1) % CLASSES, labels)
    network = Nearest(normalise(points, setting.training), setting.inside).eval()
    mean, std = setting.declared or (None, None)
    x, y = normalise(x, setting.before), labels if labelled else None
    subject = examined(network, [Softmax()], x, y, bounds=setting.bounds, mean=mean, std=std)
    with subject.classifier.evaluating():
        (verdict,) = doctor.run_all(subject, [check for check in doctor.CHECKS if check.name == "preprocessing"])
    return verdict


RIGHT: dict[str, Setting] = {
    "values from 0 to 1": Setting(),
    "declared": Setting(training=CIFAR, declared=CIFAR),
    "made inside": Setting(training=IMAGENET, inside=IMAGENET),
    "grey, declared": Setting(training=MNIST, declared=MNIST, channels=1),
    "bytes, declared": Setting(before=BYTES, bounds=(0.0, 255.0), training=CIFAR, declared=(
        tuple(255 * number for number in CIFAR[0]), tuple(255 * number for number in CIFAR[1]))),
    "done before": Setting(before=SIGNED, training=SIGNED, bounds=(-1.0, 1.0)),
    "many points": Setting(training=CIFAR, declared=CIFAR, count=300),
    "statistics of other data": Setting(training=CIFAR, declared=IMAGENET),
}  # fmt: skip

WRONG: dict[str, tuple[Setting, str]] = {
    "CIFAR-10 forgotten": (Setting(training=CIFAR), "mean and std of CIFAR-10"),
    "MNIST forgotten": (Setting(training=MNIST, channels=1), "--mean 0.1307 --std 0.3081"),
    "-1 to 1 forgotten": (Setting(training=SIGNED), "--mean 0.5 --std 0.5 (mean=0.5, std=0.5)"),
    "0 to 255 forgotten": (Setting(training=BYTES), "--mean 0 --std 0.003922"),
    "bytes for values from 0 to 1": (Setting(before=BYTES, bounds=(0.0, 255.0)), "--mean 0 --std 255"),
    "made twice": (Setting(training=CIFAR, inside=CIFAR, declared=CIFAR), "leave --mean and --std"),
    "made before and inside": (
        Setting(training=CIFAR, inside=CIFAR, before=CIFAR, bounds=(-3.0, 3.0)),
        "mean and std of CIFAR-10",
    ),
    "other statistics": (Setting(training=SIGNED, declared=MNIST), "--mean 0.5 --std 0.5"),
    "forgotten, many points": (Setting(training=CIFAR, count=300), "mean and std of CIFAR-10"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_correct_preprocessing_raises_no_note(name: str) -> None:
    """Wrong labels, which leave room for a gain, change nothing."""
    verdict = run_check(RIGHT[name], wrong=0.3)
    assert (verdict.state, verdict.code) == ("ok", None), verdict.sentence


@pytest.mark.parametrize("name", WRONG)
def test_forgotten_preprocessing_is_named_with_the_option(name: str) -> None:
    setting, advice = WRONG[name]
    verdict = run_check(setting, wrong=0.3)
    assert (verdict.state, verdict.code) == ("note", "preprocessing"), verdict.sentence
    assert advice in verdict.sentence


def test_without_labels_there_is_no_note() -> None:
    assert run_check(Setting(training=CIFAR), labelled=False).state == "ok"


ORDER, BRIGHTNESS = False, True


def test_a_brightness_gain_of_one_class_does_not_count() -> None:
    """A model trained on more of the second class gets more of it right when the brightness shifts towards it."""
    labels = torch.arange(256) % 2
    correct, correct_shifted = labels == 1, (labels == 1) | (torch.arange(256) < 120)
    assert better_reading(correct, correct_shifted, ORDER, labels, 10)
    assert not better_reading(correct, correct_shifted, BRIGHTNESS, labels, 10)
    assert better_reading(correct, (labels == 1) | (torch.arange(256) < 200), BRIGHTNESS, labels, 10), "over a quarter"
    improved = torch.arange(256) % 8 < 6
    assert better_reading(torch.arange(256) % 8 < 4, improved, BRIGHTNESS, labels, 10)


@pytest.mark.every_other
@pytest.mark.parametrize("tries", [1, 7])
@pytest.mark.parametrize(("count", "classes"), [(20, 10), (64, 10), (64, 2), (64, 1)])
def test_better_readings_agree_with_scipy(count: int, classes: int, tries: int) -> None:
    """A false alarm has at most the stated probability, whatever labels both readings get right."""
    labels, answers = torch.arange(count) % classes, set()
    for gains in range(count + 1):
        for losses in range(0, count + 1 - gains, 3):
            correct, corrected = torch.zeros(count, dtype=torch.bool), torch.zeros(count, dtype=torch.bool)
            corrected[:gains], correct[gains : gains + losses] = True, True
            paired_p = stats.binomtest(gains, max(gains + losses, 1), 0.5, "greater").pvalue
            guess_p = stats.binomtest(gains, count, int(labels.bincount().max()) / count, "greater").pvalue
            expected = max(paired_p, guess_p) * 2 * tries <= FALSE_ALARM and gains - losses >= GAIN * count
            assert better_reading(correct, corrected, ORDER, labels, tries) == expected, (gains, losses)
            answers.add(expected)
    assert answers == ({False} if classes == 1 else {False, True})


def test_more_points_decide_uncertain_gains() -> None:
    """A gain that is uncertain with 64 points is certain with more."""
    verdicts = {count: run_check(Setting(training=CIFAR, count=count), wrong=0.65) for count in (64, 300)}
    assert verdicts[64].code is None, verdicts[64].sentence
    assert verdicts[300].code == "preprocessing", verdicts[300].sentence
    assert "of 300 labels" in verdicts[300].sentence


def test_missing_values_reach_the_model_as_missing() -> None:
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
"""Changes of images, `[N, 3, 6, 6]`, by the words that report them."""

LAST: dict[str, Callable[[Tensor], Tensor]] = {
    "with channels in the opposite order": lambda x: x.flip(3),
    "with height and width swapped": lambda x: x.transpose(1, 2).contiguous(),
    "read in column-major order": reversed_axes,
    "read with channels first": lambda x: x.permute(0, 3, 1, 2).reshape(x.shape),
}
"""The same for images `[N, 6, 6, 3]`."""

FORMS: dict[str, tuple[Callable[[Tensor], Tensor], dict[str, Callable[[Tensor], Tensor]], Callable[[Tensor], Tensor]]]
FORMS = {
    "images": (lambda x: x, ORDERS, lambda x: x),
    "flat": (lambda x: x, ORDERS, lambda x: x.flatten(1)),
    "channels last": (lambda x: x.permute(0, 2, 3, 1), LAST, lambda x: x.contiguous()),
    "flat, channels last": (lambda x: x.permute(0, 2, 3, 1), LAST, lambda x: x.flatten(1)),
}
"""Order of the axes of the points, changes to them, and their final shape."""


@pytest.mark.parametrize(("form", "name"), [(form, name) for form, parts in FORMS.items() for name in parts[1]])
def test_reordered_images_are_named_with_code_that_restores_them(form: str, name: str) -> None:
    order, mistakes, reshape = FORMS[form]
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(128) % CLASSES
    noise = 0.02 * torch.randn(128, *SHAPE, generator=generator)
    points = 0.3 + 0.4 * torch.rand(CLASSES, *SHAPE, generator=generator)
    points += torch.tensor([0.25, 0.0, -0.25]).view(3, 1, 1) * torch.linspace(-1, 1, 36).view(6, 6).exp() / 2
    images, points = order((points[labels] + noise).clamp(0, 1)), reshape(order(points))
    mistaken = reshape(mistakes[name](images))
    data = array_points(mistaken, labels, layout=None if mistaken.dim() == 2 else "nchw")
    weight = points.flatten(1)
    classifier = brittle.Classifier(lambda x: x.flatten(1) @ weight.T - (weight**2).sum(dim=1) / 2)
    subject = doctor.Subject(classifier, next(iter(data.batches(64))), data.labels, [Softmax()], 0, 64, data)
    with classifier.evaluating():
        finding = next(note for note in check_preprocessing(subject) if isinstance(note, doctor.Finding))
    advice = re.search(r"first, to (.*?)(?: \(NumPy\))?(?:;|$)", finding.sentence)
    assert advice is not None
    assert np.allclose(eval(advice[1], {"x": mistaken.numpy()}), reshape(images).numpy(), atol=1e-6)
