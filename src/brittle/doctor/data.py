"""Checks of the data: the declared values, the same at every reading, labelled as the model names its classes."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

from brittle.data.arrays import bytes_of
from brittle.data.files import changed_error, file_digest
from brittle.data.points import Batch, Points, check_values
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import DataError, ParameterError, listed
from brittle.estimate import CONFIDENCE
from brittle.intervals import clopper_pearson

GUARD_ROWS = 1000  # labelled points over which accuracy is judged

FALSE_ALARM, BY_CHANCE = 1e-4, 0.005  # largest probabilities of a better reading, and of a guess, by chance
GAIN = 0.05  # share of the points that another way must get right beyond the declared one; fewer are no mistake

LOOK_AT = "check bounds, mean and std, channel order and the order of the classes"
ORDER = "check the order of the classes, and that the model gets what it was made for"  # of a model without weights
Confusion = Mapping[tuple[int, int], int]  # number of points by (label, predicted class)


def check_range(subject: Subject) -> Iterator[Finding | str]:
    """Check that the values lie in the declared range, and use more than a sliver of it."""
    bounds, inputs = subject.classifier.bounds, subject.inputs
    check_values(subject.batch, bounds)
    smallest, largest = float(inputs.min()), float(inputs.max())
    if bounds.pair is not None and largest - smallest < 0.05 * (bounds.pair[1] - bounds.pair[0]):
        span = f"values from {smallest:.4g} to {largest:.4g}, the declared range is {bounds}"
        advice = "sigma and the bounds are in the units of the data (--bounds, bounds=)"
        yield Finding("value_range", f"the first {len(inputs)} rows hold {span}; {advice}")
    still = listed(list(subject.provenance.get("categories") or ()))
    stays = f"; {still} stay as they are under noise and in a search" if still else ""
    yield f"{smallest:.4g} to {largest:.4g} in {len(inputs)} rows, declared bounds: {bounds}{stays}"


def check_same_data(subject: Subject) -> Iterator[Finding | str]:
    """Check that the first points are the same when they are read again."""
    if subject.points is None:
        yield "the data are at hand once only"
        return
    again = next(iter(subject.points.batches(len(subject.batch))))
    before, now = subject.batch.inputs, again.inputs
    differs = "come in another order or shape"
    if again.ids == subject.batch.ids and before.shape == now.shape:
        different = ((before != now) & ~(before.isnan() & now.isnan())).flatten(1).any(dim=1)
        if not bool(different.any()):
            yield f"{len(again)} rows read twice are the same"
            return
        largest = float((before - now).abs().nan_to_num(nan=torch.inf).max())
        differs = f"differ, row {subject.batch.rows[int(different.nonzero()[0])]} and others by up to {largest:.3g}"
    advice = "leave random transforms (crops, flips, noise) out of the data"
    raise DataError("nondeterministic_data", f"the first {len(before)} points {differs} when read again; {advice}")


def digest(batch: Batch) -> str:
    """Return the sha256 over ids and inputs of the first `LOOKED_AT` points."""
    sha256 = hashlib.sha256(repr((batch.ids[:LOOKED_AT], tuple(batch.inputs.shape[1:]))).encode())
    sha256.update(bytes_of(batch.inputs[:LOOKED_AT]))
    return sha256.hexdigest()


def check_unchanged(points: Points, before: str) -> None:
    """Raise where the first points have another `digest` than `before`, or a single file another than at first."""
    path = points.provenance.get("path")
    batch = next(iter(points.batches(LOOKED_AT)))
    if digest(batch) != before:
        raise changed_error(path or "the data", f"the first {min(len(batch), LOOKED_AT)} points hold other values")
    if path is not None and Path(path).is_file():
        now, then = file_digest(Path(path)), points.provenance["sha256"]
        if now != then:
            raise changed_error(path, f"sha256 {now[:16]}… instead of {then[:16]}…")


def check_classes(subject: Subject) -> Iterator[Finding | str]:
    """Check that the labels are classes of the model, and its classes have as many names as it has outputs."""
    called = subject.classifier.class_names
    if called is not None and subject.decision.has_classes and len(called) != subject.classes:
        names = f"{len(called)} names of classes, such as {called[0]!r:.40}"
        advice = "give a name for each, in their order (class_names=)"
        yield Finding("labels", f"the model has {subject.classes} outputs, and {names}; {advice}")
    if subject.batch.targets is not None or subject.labels is None or not subject.decision.has_classes:
        yield f"no labels of classes; {subject.decision.explanation}"
        return
    labels, classes = torch.as_tensor(subject.labels), subject.classes
    if len(labels) and int(labels.min()) >= 1 and int(labels.max()) == classes:
        raise DataError("labels", f"labels {int(labels.min())}..{classes}, the model has 0..{classes - 1}; subtract 1")
    wrong = labels[(labels < 0) | (labels >= classes)]
    if len(wrong) > max(1, 0.01 * len(labels)):
        labels_outside = f"{len(wrong)} of {len(labels)} labels, such as {wrong.unique().tolist()[:5]}, lie outside"
        advice = "correct them, or leave the labels out"
        raise DataError("labels", f"{labels_outside} the model's classes 0..{classes - 1}; {advice}")
    names = None if subject.points is None else subject.points.class_names
    if names is not None and len(names) != classes:
        yield Finding(
            "labels",
            f"the data name {len(names)} classes ({listed([f'{name!r:.40}' for name in names])}) and the model "
            f"has {classes} outputs; give the names of the outputs, one a line, with --class-names FILE "
            f"(class_names=), and labels are mapped by name",
        )
    if not subject.chosen:
        yield from _check_sorted(labels, classes, subject.provenance.get("limit"))
    yield f"{len(labels)} labels, the model has 0..{classes - 1}"


def _check_sorted(labels: torch.Tensor, classes: int, limit: int | None) -> Iterator[Finding]:
    """Yield a finding where points are of the first classes alone; chance sorts ten labels once in a hundred times."""
    held = labels.unique().tolist()
    if len(held) == 1 and len(labels) >= 20:
        has = f"all {len(labels)} points have the label {held[0]}; data sorted by class begin with one"
    elif limit is not None and len(labels) >= 10 and len(held) < classes and bool((labels.diff() >= 0).all()):
        has = f"the first {len(labels)} points hold {len(held)} of {classes} classes, as the data are sorted by class"
    else:
        return
    yield Finding("labels", f"{has}: take points of all with --sample N (sample=), or all points")


def check_rows(subject: Subject) -> Iterator[Finding | str]:
    """Check that the first rows get class scores."""
    batch, scored = subject.batch, set(subject.predicted[0])
    lost = [row for place, row in enumerate(batch.rows) if place not in scored]
    if lost:
        rows = f"{len(lost)} of the first {len(batch)} rows get no score, the first of them row {lost[0]}"
        reason = "they cannot be read, or input or logits are NaN or infinite"
        advice = "a run stops at more than 10 of the first 1,000"
        yield Finding("rows_without_score", f"{rows}: {reason}; {advice}")
    yield f"all of the first {len(batch)} get finite class scores"


def check_accuracy(subject: Subject) -> Iterator[Finding | str]:
    """Check that the accuracy is what the user expects, and not near chance."""
    (correct, labelled), expected, decision = subject.right, subject.expected_accuracy, subject.decision
    if expected is not None and (labelled == 0 or not decision.of_classes):
        reason = f"there are no labels to compare with {decision.explanation}"
        raise ParameterError(f"an accuracy is expected of predicted classes that have labels; {reason}, leave it out")
    if not labelled:
        yield "no labelled points were looked at"
        return
    low, high = (float(end) for end in clopper_pearson(correct, labelled, CONFIDENCE))
    if expected is not None and high < expected:
        advice = next((finding.sentence for finding in subject.findings if finding.code == "preprocessing"), LOOK_AT)
        raise DataError(
            "accuracy_guard",
            f"accuracy {correct / labelled:.3f} on {labelled} labelled rows (at most {high:.3f} with "
            f"{CONFIDENCE:.0%} confidence), expected {expected:g}; {advice}",
        )
    if decision.of_classes and not subject.chosen:
        (rows, outputs), labels = subject.predicted, subject.batch.labels or ()
        pairs = zip((int(labels[row]) for row in rows), outputs.argmax(dim=1).tolist(), strict=True)
        weightless = {} if isinstance(subject.classifier.model, torch.nn.Module) else {"parameters": 0}
        source = {**subject.classifier.source, **weightless}
        yield from about_accuracy(correct, labelled, subject.classes, Counter(pairs), source)
    chosen = ", which were chosen by their ids" if subject.chosen else ""
    interval = f"{low:.1%} to {high:.1%} at {CONFIDENCE:.0%}"
    yield f"{correct / labelled:.1%} of {labelled} labelled points ({interval}){chosen}"


def about_accuracy(
    correct: int, labelled: int, classes: int, confusion: Confusion, source: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield a finding where other names of the classes surely get far more labels right, or the model is near chance.

    Near chance are fewer than twice as many labels as a guess gets right (of few classes, a guess and a tenth), where a
    weak model would surely get more: `P(B <= correct)` is at most `BY_CHANCE` for a binomial `B` of `labelled` and the
    share `max(that share, min(0.25, 0.1 + 1.5 / classes))`. `confusion` has labels and predictions, to see whether
    classes are permuted, and `source` whether a network was made by code alone.
    """
    if labelled == 0:
        return
    chance = 1.0 / classes
    little = chance + min(chance, 0.1)
    weak = max(little, min(0.25, 0.1 + 1.5 * chance))
    near = correct < little * labelled and float(scipy.stats.binom.cdf(correct, labelled, weak)) <= BY_CHANCE
    advice = _other_names(confusion, classes) if labelled - correct >= GAIN * labelled else None
    if advice is None and not near:
        return
    untrained = source.get("format") == "python" and source.get("weights") is None
    load = f"no --weights were given, so load trained weights in {source.get('spec')}, or add --weights; otherwise "
    look_at = ORDER if untrained and source.get("parameters") == 0 else (load if untrained else "") + LOOK_AT
    accuracy = f"accuracy {correct / labelled:.3f} on {labelled} labelled rows"
    accuracy += ", little better than chance or worse" if near else ""
    yield Finding("accuracy_suspicious", f"{accuracy}; {advice or look_at}")


def surely_more(count: int, of: int, share: float, log_tries: float) -> bool:
    """Return whether `P(B >= count)`, for a binomial `B` of `of` and `share`, is at most `FALSE_ALARM` in all tries."""
    return float(scipy.stats.binom.logsf(count - 1, of, share)) + log_tries <= math.log(FALSE_ALARM)


def _other_names(confusion: Confusion, classes: int) -> str | None:
    """Return advice where most labels, and surely more, are right with classes shifted by one or renamed."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for (label, predicted), count in confusion.items():
        if 0 <= label < classes:
            counts[label, predicted] += count
    total, unmoved, commonest = int(counts.sum()), int(counts.trace()), int(counts.sum(axis=1).max())
    labels, renamed = scipy.optimize.linear_sum_assignment(counts, maximize=True)
    moved = [f"{old} as {new}" for old, new in zip(labels, renamed, strict=True) if old != new and counts[old, new]]
    # Each with the logarithm of how many ways there are to shift, or to rename as many classes.
    renamings = math.log(classes) + math.lgamma(classes + 1) - math.lgamma(classes + 1 - len(moved))
    names = f"(label {listed(moved)}): those of data and model look permuted, map the labels"
    renaming = (f"classes are renamed {names}", labels, renamed, renamings)
    text_order = (
        "the outputs of the model are read in the order of text, 0, 1, 10, .., by which torchvision's ImageFolder "
        "sorts folders: name its outputs in that order, --class-names FILE (class_names=), or map the labels"
    )
    numbers = range(classes)
    by_text = (sorted(numbers, key=lambda label: str(label + 1)), sorted(numbers, key=str))
    namings = [*((text_order, np.array(order), np.array(numbers), math.log(2)) for order in by_text), renaming]
    if int((counts.sum(axis=1) > 0).sum()) > 2:
        shifted = "1 is {} every label: they look shifted by one, so give classes that count from 0"
        shifts = (("added to", labels[:-1], labels[1:]), ("subtracted from", labels[1:], labels[:-1]))
        namings = [*((shifted.format(verb), before, after, math.log(2)) for verb, before, after in shifts), *namings]
    for advice, before, after, log_tries in namings:
        correct, unmoved_correct = int(counts[before, after].sum()), int(counts[before, after][before == after].sum())
        gained, lost, log_tries = correct - unmoved_correct, unmoved - unmoved_correct, math.log(2) + log_tries
        if (
            correct >= 0.5 * total  # of fewer nobody knows whether the classes are permuted
            and gained - lost >= GAIN * total
            and surely_more(gained, gained + lost, 0.5, log_tries)
            and surely_more(correct, total, commonest / total, log_tries)
        ):
            return f"{correct / total:.1%} are right when {advice}"
    return None
