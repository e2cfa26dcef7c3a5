"""Are the data what was declared, the same whenever they are read, and labelled as the model names its classes?"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy
import torch
from torch import Tensor

from brittle.data.files import changed_error, file_digest
from brittle.data.points import Batch, Points, check_values
from brittle.doctor.shapes import labels_among_features
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import DataError, ParameterError, listed
from brittle.estimate import CONFIDENCE
from brittle.intervals import clopper_pearson

NARROW = 0.05
"""Share of the declared range below which the values are noted."""

GUARD_ROWS = 1000
"""Labelled points over which accuracy is judged."""

FALSE_ALARM, BY_CHANCE = 1e-4, 0.005
"""Probabilities at most with which another way is said to be better where none is, and a weak model to be near
chance."""

GAIN = 0.05
"""Share of the points that another way must get right beyond the declared one; fewer are no mistake."""

PERMUTED = 0.5
"""Share of the points that are right after renaming the classes, from which on the classes look permuted."""

ENOUGH = 20
"""Points below which nothing is said of labels that are all alike."""

SHOWN = 5
"""Classes that a message names."""

LOOK_AT = "check bounds, mean and std, channel order and the order of the classes"

Confusion = Mapping[tuple[int, int], int]
"""How many points have each (label, predicted class)."""


def check_range(subject: Subject) -> Iterator[Finding | str]:
    """The values lie in the declared range, and use more than a sliver of it."""
    bounds, inputs = subject.classifier.bounds, subject.inputs
    try:
        check_values(subject.batch, bounds)
    except DataError as error:
        columns = labels_among_features(subject.classifier, inputs, subject.points, subject.decision)
        if columns is None:
            raise
        raise columns from error
    smallest, largest = float(inputs.min()), float(inputs.max())
    if bounds.pair is not None and largest - smallest < NARROW * (bounds.pair[1] - bounds.pair[0]):
        yield Finding(
            "value_range",
            f"the first {len(inputs)} rows hold values from {smallest:.4g} to {largest:.4g}, the declared range is "
            f"{bounds}; sigma and the bounds are in the units of the data (--bounds, bounds=)",
        )
    yield f"{smallest:.4g} to {largest:.4g} in {len(inputs)} rows, declared bounds: {bounds}"


def check_same_data(subject: Subject) -> Iterator[Finding | str]:
    """The first points are the same when they are read again."""
    if subject.points is None:
        yield "the data are at hand once only"
        return
    again = next(iter(subject.points.batches(len(subject.batch))))
    one, other = subject.batch.inputs, again.inputs
    if again.ids != subject.batch.ids or one.shape != other.shape:
        raise DataError(
            "nondeterministic_data",
            f"the first {len(one)} points came in another order or shape when read again; the data must give the same "
            f"points every time",
        )
    different = ((one != other) & ~(one.isnan() & other.isnan())).flatten(1).any(dim=1)
    if bool(different.any()):
        raise DataError(
            "nondeterministic_data",
            f"row {subject.batch.rows[int(different.nonzero()[0])]} read twice, max difference "
            f"{float((one - other).abs().nan_to_num(nan=torch.inf).max()):.3g}; leave random transforms (crops, flips, "
            f"noise) out of the data",
        )
    yield f"{len(again)} rows read twice are the same"


def digest(batch: Batch) -> str:
    """The sha256 over ids and inputs of the first `LOOKED_AT` points."""
    found = hashlib.sha256(repr((batch.ids[:LOOKED_AT], tuple(batch.inputs.shape[1:]))).encode())
    found.update(batch.inputs[:LOOKED_AT].contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def check_unchanged(points: Points, before: str) -> None:
    """Raise where the data are not what they were at the first look.

    The first points are read again; data in one file are also compared by the digest of that file, but for those of a
    format from outside, whose digest may be of anything.

    Args:
        points: the data.
        before: the `digest` of the first points at the first look.

    Raises:
        DataError: they changed.
    """
    path = points.provenance.get("path")
    first = next(iter(points.batches(LOOKED_AT)))
    if digest(first) != before:
        raise changed_error(path or "the data", f"the first {min(len(first), LOOKED_AT)} points hold other values")
    if path is not None and Path(path).is_file() and points.provenance.get("code") is None:
        now, then = file_digest(Path(path)), points.provenance["sha256"]
        if now != then:
            raise changed_error(path, f"sha256 {now[:16]}… instead of {then[:16]}…")


def about_orientation(turned: int, points: int, *, applied: bool) -> Iterator[Finding]:
    """A finding where `turned` of the images say in their EXIF data that they are turned; `applied` where they were."""
    if turned:
        ignored = "the tag was ignored, as torchvision does (--exif apply, exif='apply', turns them)"
        yield Finding(
            "exif_orientation",
            f"{turned:,} of {points:,} images say in their EXIF data that they are turned or mirrored; "
            f"{'they were turned upright' if applied else ignored}",
        )


def check_classes(subject: Subject) -> Iterator[Finding | str]:
    """The labels are classes of the model."""
    if subject.batch.targets is not None or subject.labels is None or not subject.decision.has_classes:
        yield f"no labels of classes; {subject.decision.explanation}"
        return
    check_labels(torch.as_tensor(subject.labels), subject.classes)
    names = None if subject.points is None else subject.points.class_names
    if names is not None and len(names) != subject.classes:
        yield Finding(
            "labels",
            f"the data name {len(names)} classes ({listed([f'{name!r:.40}' for name in names], SHOWN)}) and the model "
            f"has {subject.classes} outputs, so the place of a name may not be its output; give the names of the "
            f"outputs, one a line, with --class-names FILE (class_names=), and labels are mapped by name",
        )
    labels = set(subject.labels)
    if len(labels) == 1 and len(subject.labels) >= ENOUGH and not subject.chosen:
        yield Finding(
            "labels",
            f"all {len(subject.labels)} points have the label {int(labels.pop())}, so nothing is said of other "
            f"classes; data sorted by class begin with one: take points of all with --ids FILE (ids=), or all points",
        )
    yield f"{len(subject.labels)} labels, the model has 0..{subject.classes - 1}"


def check_labels(labels: Tensor, classes: int) -> None:
    """Raise where the labels as a whole do not fit the model's classes.

    Raises:
        DataError: labels count from 1, or more than 1% (and more than one) lie outside `0 .. classes - 1`.
    """
    if len(labels) and int(labels.min()) >= 1 and int(labels.max()) == classes:
        raise DataError("labels", f"labels {int(labels.min())}..{classes}, the model has 0..{classes - 1}; subtract 1")
    wrong = labels[(labels < 0) | (labels >= classes)]
    if len(wrong) > 1 and len(wrong) > 0.01 * len(labels):
        raise DataError(
            "labels",
            f"{len(wrong)} of {len(labels)} labels lie outside the model's classes 0..{classes - 1}, such as "
            f"{wrong.unique().tolist()[:SHOWN]}; correct them, or leave the labels out",
        )


def confusion_in(points: pa.Table) -> Counter[tuple[int, int]]:
    """Labels and predictions in the rows of a table of points that have both."""
    pairs = zip(points["label"].to_pylist(), points["predicted"].to_pylist(), strict=True)
    return Counter((label, predicted) for label, predicted in pairs if None not in (label, predicted))


def check_expected(expected: float) -> None:
    """Raise a `ParameterError` unless this is an accuracy that can be expected, in (0, 1]."""
    if not 0.0 < expected <= 1.0:
        meant = f"; write {expected / 100:g} for {expected:g}%" if 1.0 < expected <= 100.0 else ""
        raise ParameterError(f"the expected accuracy must lie in (0, 1]; found {expected:g}{meant}")


def check_accuracy(expected: float, subject: Subject, findings: Sequence[Finding] = ()) -> None:
    """Raise where the accuracy on labelled points is surely below what the user expects.

    Args:
        expected: the accuracy.
        subject: the first points and the model.
        findings: of the checks, of which one on preprocessing may explain the accuracy.

    Raises:
        ParameterError: the expectation is not between 0 and 1, or there are no labels of classes to compare with.
        DataError: the upper end of the interval of the accuracy lies below `expected`.
    """
    check_expected(expected)
    correct, labelled = subject.right
    if not subject.decision.of_classes or labelled == 0:
        raise ParameterError(
            f"an accuracy is expected of predicted classes that have labels; there are no labels to compare with "
            f"{subject.decision.explanation}, leave it out"
        )
    high = float(clopper_pearson(correct, labelled, CONFIDENCE)[1])
    if high < expected:
        advice = next((found.sentence for found in findings if found.code == "preprocessing"), LOOK_AT)
        raise DataError(
            "accuracy_guard",
            f"accuracy {correct / labelled:.3f} on {labelled} labelled rows (at most {high:.3f} with "
            f"{CONFIDENCE:.0%} confidence), expected {expected:g}; {advice}",
        )


def about_accuracy(
    correct: int, labelled: int, classes: int, confusion: Confusion | None = None, *, unweighted: str | None = None
) -> Iterator[Finding]:
    """A finding where another naming of the classes surely gets far more labels right, or the model is near chance.

    Near chance are fewer than twice as many labels as a guess gets right (of few classes, a guess and a tenth), where a
    weak model would surely get more: `P(B <= correct)` is at most `BY_CHANCE` for a binomial `B` of `labelled` and the
    share `max(that share, min(0.25, 0.1 + 1.5 / classes))`.

    `confusion` holds labels and predictions of the `labelled` points, to see whether the classes are permuted;
    `unweighted` is what made the network where no file of weights was given with it.
    """
    if labelled == 0:
        return
    chance, known = 1.0 / classes, {pair: count for pair, count in (confusion or {}).items() if 0 <= pair[0] < classes}
    little = chance + min(chance, 0.1)
    weak = max(little, min(0.25, 0.1 + 1.5 * chance))
    near = correct < little * labelled and float(scipy.stats.binom.cdf(correct, labelled, weak)) <= BY_CHANCE
    advice = _other_names(known, classes) if known and labelled - correct >= GAIN * labelled else None
    if advice is None and not near:
        return
    untrained = f"no --weights were given, so load trained weights in {unweighted}, or add --weights; otherwise "
    yield Finding(
        "accuracy_suspicious",
        f"accuracy {correct / labelled:.3f} on {labelled} labelled rows"
        f"{', little better than chance or worse' if near else ''}; "
        f"{advice or ('' if unweighted is None else untrained) + LOOK_AT}",
    )


def surely_more(count: int, of: int, share: float, log_tries: float) -> bool:
    """Whether `P(B >= count)`, for a binomial `B` of `of` and `share`, is at most `FALSE_ALARM` after so many tries."""
    return float(scipy.stats.binom.logsf(count - 1, of, share)) + log_tries <= math.log(FALSE_ALARM)


def _other_names(confusion: Confusion, classes: int) -> str | None:
    """What to do where most labels, and surely more of them, are right with 1 added, subtracted, or classes renamed."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for pair, count in confusion.items():
        counts[pair] += count
    labels, total = counts.sum(axis=1), int(counts.sum())
    rows, columns = scipy.optimize.linear_sum_assignment(counts, maximize=True)
    renamed = {int(own): int(other) for own, other in zip(rows, columns, strict=True) if counts[own, other]}
    moved = [f"{label} as {name}" for label, name in renamed.items() if label != name]
    # Each with the logarithm of how many ways there are to shift, or to rename as many classes.
    renamings = math.log(classes) + math.lgamma(classes + 1) - math.lgamma(classes + 1 - len(moved))
    advice = (
        f"classes are renamed (label {listed(moved, SHOWN)}): those of data and model look permuted, map the labels"
    )
    ways = [(advice, renamed, renamings)]
    for done, step in (("added to", 1), ("subtracted from", -1)):
        if int((labels > 0).sum()) > 2:
            shifted = {label: label + step for label in range(classes) if 0 <= label + step < classes}
            advice = f"1 is {done} every label: they look shifted by one, so give classes that count from 0"
            ways.insert(0, (advice, shifted, math.log(2)))
    own, commonest = int(counts.trace()), int(labels.max())
    for advice, names, log_tries in ways:
        right = sum(int(counts[pair]) for pair in names.items())
        both = sum(int(counts[label, label]) for label, name in names.items() if label == name)
        if (
            right >= PERMUTED * total
            and right - own >= GAIN * total
            and surely_more(right - both, right + own - 2 * both, 0.5, math.log(2) + log_tries)
            and surely_more(right, total, commonest / total, math.log(2) + log_tries)
        ):
            return f"{right / total:.1%} are right when {advice}"
    return None
