"""Would far more labels be right if the values were shifted and scaled in another of the usual ways?

A forgotten mean and std, or a second one, leave a network that runs and predicts badly. With labels that shows: the
usual ways of shifting and scaling are tried on the first points, and a paired test says whether one of them is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.data.values import readable
from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.errors import ModelError, listed
from brittle.model.classifier import Classifier

FALSE_ALARM = 1e-4
"""Probability at most with which something is said where no other way is right more often than the declared one."""

GAIN = 0.1
"""Share of the points that another way must get right beyond the declared one; fewer are no forgotten preprocessing."""

Numbers = tuple[float, ...]

RANGES: dict[str, tuple[Numbers, Numbers]] = {
    "brought to 0 to 1": ((0.0,), (1.0,)),
    "brought to -1 to 1": ((0.5,), (0.5,)),
    "brought to 0 to 255": ((0.0,), (1 / 255,)),
}
"""Mean and std of values from 0 to 1 that bring them to another range."""

STATISTICS: dict[str, tuple[Numbers, Numbers]] = {
    "shifted and scaled by mean and std of ImageNet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "shifted and scaled by mean and std of CIFAR-10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "shifted and scaled by mean and std of MNIST": ((0.1307,), (0.3081,)),
}
"""Mean and std of the channels of known data, of values from 0 to 1."""

NAMED = 2
"""Other ways that a message names."""

SHOWN = 4
"""Digits that a mean or std is written with."""


@dataclass(frozen=True)
class Way:
    """A way of shifting and scaling values in the declared units, `(x - mean) / std`.

    Attributes:
        name: what it makes of them, in words.
        mean: one number, or one for each channel.
        std: likewise.
    """

    name: str
    mean: Numbers
    std: Numbers

    def of(self, classifier: Classifier) -> Classifier:
        """The same model with these in place of its own mean and std; its passes are counted there."""
        other = copy(classifier)
        other.mean, other.std = self.mean, self.std
        return other

    @property
    def advice(self) -> str:
        """What to type."""
        if self.mean == (0.0,) and self.std == (1.0,):
            return "leave --mean and --std (mean=, std=) out: the model has its own"
        mean, std = ([f"{number:.{SHOWN}g}" for number in numbers] for numbers in (self.mean, self.std))
        python = ", ".join(
            f"{name}={numbers[0] if len(numbers) == 1 else '(' + ', '.join(numbers) + ')'}"
            for name, numbers in (("mean", mean), ("std", std))
        )
        return f"give --mean {' '.join(mean)} --std {' '.join(std)} ({python})"


def check_preprocessing(subject: Subject) -> Iterator[Finding | str]:
    """No other usual way of shifting and scaling the values gets far more labels right."""
    if not subject.decision.of_classes or (subject.aside and subject.aside.tensors):
        yield "looked at where one tensor goes into a class"
        return
    labels, rows = _labelled(subject)
    first = rows < len(subject.inputs)
    if not bool(first.any()):
        yield "no labels to compare with"
        return
    own = _right(subject, subject.classifier, rows[first], labels[first])
    ways = _ways(subject) if float(own.double().mean()) + GAIN <= 1.0 else []
    if not ways:
        yield f"{int(own.sum())} of {len(own)} labels are right as declared, which leaves little to gain"
        return
    tried = [(_right(subject, way.of(subject.classifier), rows[first], labels[first]), way) for way in ways]
    right, way = max(tried, key=lambda each: int(each[0].sum()))
    alike = [other.name for some, other in tried if other != way and int(some.sum()) == int(right.sum())]
    better = _better(own, right, labels[first], len(ways))
    promising = int(right.sum()) - int(own.sum()) >= GAIN * len(own) / 2
    if promising and not better and bool((~first).any()):
        # Chosen by the first points, compared on the others.
        own = _right(subject, subject.classifier, rows[~first], labels[~first])
        right = _right(subject, way.of(subject.classifier), rows[~first], labels[~first])
        better = _better(own, right, labels[~first], tries=1)
    if better:
        yield Finding(
            "preprocessing",
            f"{int(own.sum())} of {len(own)} labels are right as declared, and {int(right.sum())} where values are "
            f"{way.name}: a preprocessing looks forgotten, or another one given in its place; {way.advice}"
            + (f"; of the first points as many are right where values are {listed(alike, NAMED)}" if alike else ""),
        )
    yield f"{int(own.sum())} of {len(own)} labels are right as declared, in {len(ways)} other ways not many more"


def _better(own: Tensor, other: Tensor, labels: Tensor, tries: int) -> bool:
    """Whether `other` is right far more often than `own`, both `[L]`, and than a guess of one class for all.

    Among the `n` labels that one of them alone gets right, `other` has `b`. Where it is no better, `P(B >= b)` for a
    binomial `B` of `n` and 1/2 is small with that probability (sign test). The same holds of the number that `other`
    gets right, of `L` and the share of the commonest label, where its predictions have nothing to do with the labels.
    Half of `FALSE_ALARM` is for the first points, shared by all `tries`.
    """
    gained, lost, most = int((other & ~own).sum()), int((own & ~other).sum()), FALSE_ALARM / 2 / tries
    commonest = int(labels.bincount().max()) / len(labels)
    by_chance = max(_tail(gained, gained + lost, 0.5), _tail(int(other.sum()), len(other), commonest))
    return by_chance <= most and gained - lost >= GAIN * len(own)


def _tail(least: int, count: int, share: float) -> float:
    """`P(B >= least)` for a binomial `B` of `count` and `share`."""
    return sum(math.comb(count, more) * share**more * (1 - share) ** (count - more) for more in range(least, count + 1))


def _labelled(subject: Subject) -> tuple[Tensor, Tensor]:
    """Labels that are classes, `[L]`, and where their points stand among those of the batch that can be read, `[L]`."""
    known = subject.batch.labels or []
    read = readable(subject.batch).nonzero().flatten().tolist()
    labels = torch.tensor([int(known[row]) for row in read] if known else [], dtype=torch.int64)
    valid = (labels >= 0) & (labels < subject.classes)
    return labels[valid], valid.nonzero().flatten()


def _right(subject: Subject, classifier: Classifier, rows: Tensor, labels: Tensor) -> Tensor:
    """Whether each of these points is predicted as its label says, `[L]`; none is where the model fails."""
    inputs = subject.batch.inputs[readable(subject.batch)]
    try:
        with torch.no_grad():
            logits = torch.cat([classifier(inputs[part]).cpu() for part in rows.split(subject.rows)])
    except ModelError:  # on values that another way makes of the inputs
        return torch.zeros_like(labels, dtype=torch.bool)
    return (logits.argmax(dim=1) == labels) & logits.isfinite().all(dim=1)


def _ways(subject: Subject) -> list[Way]:
    """The usual ways that are neither the declared one nor nearly the same as another of them."""
    classifier, inputs = subject.classifier, subject.inputs
    channels = inputs.shape[1] if inputs.dim() > 2 else 1
    ways, known = [], [_ends(classifier.mean or (0.0,), classifier.std or (1.0,))]
    for way in (Way("left as they are", (0.0,), (1.0,)), *_of_range(subject), *_turned_back(subject)):
        ends = _ends(way.mean, way.std)
        fits = max(len(way.mean), len(way.std)) in (1, channels)
        if fits and not any(
            torch.allclose(*torch.broadcast_tensors(ends, other), rtol=0.02, atol=0.02) for other in known
        ):
            ways.append(way)
            known.append(ends)
    return ways


def _of_range(subject: Subject) -> Iterator[Way]:
    """Values of one range brought to another, and to mean 0 and std 1."""
    if (pair := subject.classifier.bounds.pair) is None:
        return
    low, span = pair[0], pair[1] - pair[0]
    for name, (mean, std) in (RANGES | STATISTICS).items():
        yield Way(name, tuple(low + span * one for one in mean), tuple(span * one for one in std))
    inputs = subject.inputs.double()
    axes = tuple(axis for axis in range(inputs.dim()) if inputs.dim() == 2 or axis != 1)
    mean, std = inputs.mean(axes).reshape(-1).tolist(), inputs.std(axes).reshape(-1).tolist()
    if min(std) > 0:
        yield Way("shifted and scaled by the mean and std of the first points", tuple(mean), tuple(std))


def _turned_back(subject: Subject) -> Iterator[Way]:
    """Values that were shifted and scaled before, turned back to 0 to 1."""
    pair = subject.classifier.bounds.pair
    if pair is not None and pair[0] >= 0:
        return
    for name, (mean, std) in STATISTICS.items():
        shift = tuple(-one / scale for one, scale in zip(mean, std, strict=True))
        yield Way(f"turned back to 0 to 1, as if they had been {name}", shift, tuple(1.0 / scale for scale in std))


def _ends(mean: Numbers, std: Numbers) -> Tensor:
    """What a way makes of 0 and of 1, `[2, 1 or channels]`."""
    wide = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    return (wide - torch.tensor(mean, dtype=torch.float64)) / torch.tensor(std, dtype=torch.float64)
