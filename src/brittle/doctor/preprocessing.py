"""Check of the preprocessing: no other usual reading of the points gets far more labels right.

A forgotten mean and std, channels in another order or images that lie on their side leave a network that runs and
predicts badly. With labels that shows: other readings of the first points are tried, and a paired test says whether one
of them is better.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.data.points import Batch, readable
from brittle.doctor.data import GAIN, surely_more
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import ModelError, listed
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs, normalise

FAVOUR = 0.25  # share of the points up to which a gain by another brightness may do no more than favour one class
MOST_POINTS, FINALISTS = 256, 3  # points over which the best readings are compared, where the first leave it open

RANGES = {
    "brought to 0 to 1": ((0.0,), (1.0,)),
    "brought to -1 to 1": ((0.5,), (0.5,)),
    "brought to 0 to 255": ((0.0,), (1 / 255,)),
}
STATISTICS = {
    "shifted and scaled by mean and std of ImageNet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "shifted and scaled by mean and std of CIFAR-10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "shifted and scaled by mean and std of MNIST": ((0.1307,), (0.3081,)),
}
"""Mean and std of values from 0 to 1: what brings them to another range, and those of the channels of known data."""

CHANNELS = {"HWC": ("read with channels first", "CHW"), "CHW": ("read with channels last", "HWC")}
"""Place of the channels of an image, and its opposite."""

CHANGE = "change x, the data or what the model does first, to"
ALIKE = 0.02  # difference of two readings, as a share of the deviation of the values, below which they are one
DIGITS = 4  # digits that a number is written with, and most numbers


class OtherReading(NamedTuple):
    """Another way to read the points."""

    name: str  # what becomes of the values, in words
    change: Callable[[Tensor], Tensor]  # gives the inputs of the declared classifier for it, `[N, *shape]`
    advice: str  # what to type
    brightness: bool = False  # whether values are shifted and scaled, no more


def check_preprocessing(subject: Subject) -> Iterator[Finding | str]:
    """Check that no other usual way of reading the points gets far more labels right."""
    if not subject.decision.of_classes or (subject.extra_inputs and subject.extra_inputs.tensors) or subject.chosen:
        yield "looked at where one tensor goes into a class, and points were not chosen by their ids"
        return
    inputs, labels, extra = _labelled(subject, subject.batch)
    declared = _right(subject, inputs[:LOOKED_AT], labels[:LOOKED_AT], extra)
    if int((~declared).sum()) < GAIN * len(declared) or not len(declared):
        yield f"{int(declared.sum())} of {len(declared)} labels are right as declared, which leaves little to gain"
        return
    candidates = readings = _readings(subject.classifier, inputs[:LOOKED_AT])
    while candidates:
        count = len(declared)
        results = [
            (_right(subject, reading.change(inputs[:count]), labels[:count], extra), reading) for reading in candidates
        ]
        results.sort(key=lambda result: -int(result[0].sum()))
        for correct, best in results:
            if better_reading(declared, correct, best.brightness, labels[:count], len(readings)):
                total = int(correct.sum())
                alike = [reading.name for also, reading in results if reading is not best and int(also.sum()) == total]
                ties = f"; as many are right with values {listed(alike, 2)}" if alike else ""
                before = f"{int(declared.sum())} of {count} labels are right as declared"
                after = f"{total} with values {best.name}; {best.advice}{ties}"
                yield Finding("preprocessing", f"{before}, and {after}")
                return
        if count > LOOKED_AT or int(results[0][0].sum() - declared.sum()) < GAIN * count / 2:
            break
        if subject.points is not None and len(subject.batch) < MOST_POINTS:
            inputs, labels, extra = _labelled(subject, next(iter(subject.points.batches(MOST_POINTS))))
        declared = _right(subject, inputs, labels, extra)
        candidates = [reading for _, reading in results[:FINALISTS]] * (len(labels) > count)
    correct, count = int(declared.sum()), len(declared)
    yield f"{correct} of {count} labels are right as declared, in {len(readings)} other ways not many more"


def better_reading(declared: Tensor, candidate: Tensor, brightness: bool, labels: Tensor, tries: int) -> bool:
    """Return whether `candidate` is right far more often than `declared`, both `[L]`, by a sign test, and than a guess
    of one class, for all `tries`, on the first points and on all. Another `brightness` may do no more than favour one
    class; so below `FAVOUR` no class counts for more than all others."""
    log_tries = math.log(2 * tries)
    if not surely_more(int(candidate.sum()), len(declared), int(labels.bincount().max()) / len(declared), log_tries):
        return False
    by_class, lost = labels[candidate & ~declared].bincount(minlength=1), int((declared & ~candidate).sum())
    gained = int(by_class.sum())
    if brightness and gained - lost < FAVOUR * len(declared):
        gained = min(gained, 2 * (gained - int(by_class.max())))
    return gained - lost >= GAIN * len(declared) and surely_more(gained, gained + lost, 0.5, log_tries)


def _labelled(subject: Subject, batch: Batch) -> tuple[Tensor, Tensor, ExtraInputs | None]:
    """Return the readable points of a batch whose label is a class, their labels, and which values are missing."""
    labels = torch.tensor(batch.labels or [-1] * len(batch))
    valid = readable(batch).cpu() & (labels >= 0) & (labels < subject.classes)
    extra = batch.extra_inputs
    missing = None if extra is None or extra.inputs is None else replace(extra, varies=~extra.inputs.isnan())
    return batch.inputs[valid.to(batch.inputs.device)], labels[valid], missing and missing.only(valid.nonzero()[:, 0])


def _right(subject: Subject, inputs: Tensor, labels: Tensor, extra: ExtraInputs | None) -> Tensor:
    """Tell of each point whether its prediction is its label, `[L]`; all False where the model fails."""
    correct = torch.zeros(len(labels), dtype=torch.bool)
    try:
        for rows in torch.arange(len(labels)).split(subject.rows) if len(labels) else ():
            with torch.no_grad():
                logits = subject.classifier(inputs[rows], extra and extra.only(rows)).cpu()
            correct[rows] = (logits.argmax(dim=1) == labels[rows]) & logits.isfinite().all(dim=1)
    except ModelError:  # on values that another reading makes of the inputs
        return torch.zeros_like(correct)
    return correct


def _readings(classifier: Classifier, inputs: Tensor) -> list[OtherReading]:
    """Return the usual readings of points like `inputs`, `[L, *shape]`, all different, and from the declared one."""
    if not inputs.is_floating_point() or inputs.dim() < 2:
        return []
    total = sum(classifier.bounds.pair or (float(inputs.min()), float(inputs.max())))
    inverted = OtherReading("inverted", lambda x: total - x, f"{CHANGE} {total:.{DIGITS}g} - x")
    distinct, readings = [inputs], []
    for reading in (*_scaled(classifier, inputs), inverted, *_reordered(tuple(inputs.shape[1:]))):
        changed = reading.change(inputs)
        if changed.shape == inputs.shape and not any(
            float((changed - variant).abs().mean()) <= ALIKE * float(variant.std(correction=0)) for variant in distinct
        ):
            distinct.append(changed)
            readings.append(reading)
    return readings


def _scaled(classifier: Classifier, inputs: Tensor) -> Iterator[OtherReading]:
    """Values left as they are, brought from one range to another, or to mean 0 and std 1, or back from there."""
    axes = [axis for axis in range(inputs.dim()) if axis != 1]
    smallest, largest, pair = float(inputs.min()), float(inputs.max()), classifier.bounds.pair
    low, high = pair or (0.0, 1.0 if largest <= 1.0 else 255.0)
    statistics = {
        name: (torch.tensor(mean), torch.tensor(std))
        for name, (mean, std) in STATISTICS.items()
        if inputs.dim() == 2 or len(mean) == inputs.shape[1]
    }
    scales = {"left as they are": (torch.zeros(1), torch.ones(1))}
    if pair is not None or smallest >= 0:
        ranges = {name: (torch.tensor(mean), torch.tensor(std)) for name, (mean, std) in RANGES.items()}
        for name, (mean, std) in (ranges | statistics).items():
            scales[name] = low + (high - low) * mean, (high - low) * std
    std = inputs.std(axes, correction=0)
    scales["shifted and scaled by mean and std of the first points"] = inputs.mean(axes), std.where(std > 0, 1.0)
    if smallest < 0:
        scales["brought from their own range to 0 to 1"] = torch.tensor([smallest]), torch.tensor([largest - smallest])
        for name, (mean, std) in statistics.items():
            scales[f"turned back to 0 to 1, as if they had been {name}"] = -mean / std, 1 / std
    own_mean, own_std = torch.tensor(classifier.mean or (0.0,)), torch.tensor(classifier.std or (1.0,))
    for name, (mean, std) in scales.items():
        if {len(mean), len(std)} <= {1, inputs.shape[1]}:
            # Undone is what the classifier does by itself, so that it sees `(x - mean) / std`.
            yield OtherReading(
                name,
                lambda x, mean=mean, std=std: normalise(
                    normalise(x, mean.to(x), std.to(x)), (-own_mean / own_std).to(x), (1 / own_std).to(x)
                ),
                _typed(mean, std),
                brightness=True,
            )


def _typed(mean: Tensor, std: Tensor) -> str:
    if not mean.any() and bool((std == 1).all()):
        return "leave --mean and --std (mean=, std=) out: the model has its own, or the values have gone through them"
    if len(mean) > DIGITS:
        return "give mean=x.mean(axis=0), std=x.std(axis=0) of the points x that it was trained on"
    means, deviations = ([f"{number:.{DIGITS}g}" for number in numbers.tolist()] for numbers in (mean, std))
    python = [numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})" for numbers in (means, deviations)]
    return f"give --mean {' '.join(means)} --std {' '.join(deviations)} (mean={python[0]}, std={python[1]})"


def _reordered(shape: tuple[int, ...]) -> Iterator[OtherReading]:
    """Images of this shape, flat ones too, with channels, height and width in another order."""
    flat = f".reshape(-1, {shape[0]})" if len(shape) == 1 else ""
    for layout, sizes in _layouts(shape):
        size_by_axis = dict(zip(layout, sizes, strict=True))
        if size_by_axis.get("C") == 3:
            at = layout.index("C") + 1
            view = f"x.reshape{(-1, *sizes)}" if flat else "x"
            yield OtherReading(
                "with channels in the opposite order",
                lambda x, sizes=sizes, at=at: x.reshape(-1, *sizes).flip(at).reshape(x.shape),
                f"{CHANGE} {view}[{':, ' * at}[2, 1, 0]]{flat}",
            )
        orders = [
            ("with height and width swapped", layout, layout.translate(str.maketrans("HW", "WH"))),
            ("read in column-major order", layout[::-1], layout),
        ]
        if layout in CHANNELS:
            orders.append((*CHANNELS[layout], layout))
        for name, before, after in orders:  # what the axes are taken for, and the order that these are brought to
            view, axes = tuple(size_by_axis[axis] for axis in before), (0, *(before.index(axis) + 1 for axis in after))
            reshape = f".reshape{(-1, *view)}" if view != shape else ""
            yield OtherReading(
                name,
                lambda x, view=view, axes=axes: (
                    x.reshape(-1, *view).permute(axes).contiguous().flatten(1 if x.dim() == 2 else -1)
                ),
                f"{CHANGE} x{reshape}.transpose{axes}{flat} (NumPy)",
            )


def _layouts(shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield what the axes of points of a shape may be: channels, height and width."""
    if len(shape) == 3:
        yield "HWC" if shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4) else "CHW", shape
    elif len(shape) == 2:
        yield "HW", shape
    elif len(shape) == 1:
        for layout, channels in (("HW", 1), ("CHW", 3), ("HWC", 3)):
            side = math.isqrt(shape[0] // channels)
            if shape[0] == channels * side**2:
                yield layout, tuple(3 if axis == "C" else side for axis in layout)
