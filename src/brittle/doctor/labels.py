"""Do the labels fit the model's classes, and does the model predict them?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import scipy
import torch
from torch import Tensor

from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.errors import DataError, ParameterError, listed
from brittle.estimate import CONFIDENCE
from brittle.intervals import clopper_pearson

GUARD_ROWS = 1000
"""Labelled points over which accuracy is judged."""

FALSE_ALARM = 1e-4
"""Probability at most with which another way is said to be better where none is."""

GAIN = 0.05
"""Share of the points that another way must get right beyond the declared one; fewer are no mistake."""

PERMUTED = 0.5
"""Share of the points that are right after renaming the classes, from which on the classes look permuted."""

BY_CHANCE = 0.005
"""Probability at most with which a weak model is said to be near chance."""

ENOUGH = 20
"""Points below which nothing is said of labels that are all alike."""

SHOWN = 5
"""Classes that a message names."""

Confusion = Mapping[tuple[int, int], int]
"""How many points have each (label, predicted class)."""


def check_classes(subject: Subject) -> Iterator[Finding | str]:
    """The labels are classes of the model."""
    classes = subject.logits.shape[1]
    if subject.batch.targets is not None:
        yield f"the data hold what is right: {subject.decision.explanation}"
        return
    if subject.labels is None:
        yield "no labels: nothing is said of correctness"
        return
    if not subject.decision.has_classes:
        yield f"labels of classes say nothing of {subject.decision.explanation}"
        return
    check_labels(torch.as_tensor(subject.labels), classes)
    names = None if subject.points is None else subject.points.class_names
    if names is not None and len(names) != classes:
        yield Finding("class_count", _about_count(subject, names, classes))
    yield from _about_one_label(subject, names)
    yield f"{len(subject.labels)} labels, the model has 0..{classes - 1}"


def _about_count(subject: Subject, names: Sequence[str], classes: int) -> str:
    """What to say where the data name another number of classes than the model has outputs."""
    outputs = _outputs_of(subject.predictions.confusion, len(names))
    found = [] if outputs is None else [f"of {names[own]!r:.40} get output {output}" for own, output in outputs]
    return (
        f"the data name {len(names)} classes ({listed([f'{name!r:.40}' for name in names], SHOWN)}) and the model "
        f"has {classes} outputs, so the place of a name may not be its output; give the names of the outputs, one "
        "a line, with --class-names FILE (class_names=), and labels are mapped by name"
        + (f"; most points {listed(found, SHOWN)} (the first output is 0)" if found else "")
    )


def _outputs_of(confusion: Confusion, names: int) -> list[tuple[int, int]] | None:
    """For every class of the data the output that most of its points get, where no two get the same one; or None."""
    found = []
    for own in range(names):
        predicted = Counter({output: count for (label, output), count in confusion.items() if label == own})
        if not predicted or 2 * predicted.most_common(1)[0][1] <= predicted.total():
            return None
        found.append((own, predicted.most_common(1)[0][0]))
    return found if len({output for _, output in found}) == names else None


def _about_one_label(subject: Subject, names: Sequence[str] | None) -> Iterator[Finding]:
    """A finding where all points have one label, unless they were chosen."""
    labels = subject.labels or ()
    chosen = subject.points is not None and subject.points.provenance.get("chosen_from") is not None
    if not labels or len(labels) < ENOUGH or len(set(labels)) > 1 or chosen:
        return
    own = int(labels[0])
    called = f" ({names[own]!r:.40})" if names is not None and 0 <= own < len(names) else ""
    yield Finding(
        "one_label",
        f"all {len(labels)} points have the label {own}{called}, so nothing is said of other classes; data sorted by "
        f"class begin with one: take points of all with --ids FILE (ids=), or all points",
    )


def check_labels(labels: Tensor, classes: int) -> None:
    """Raise where the labels as a whole do not fit the model's classes.

    Raises:
        DataError: labels count from 1, or more than 1% (and more than one) lie outside `0 .. classes - 1`.
    """
    if len(labels) and int(labels.min()) >= 1 and int(labels.max()) == classes:
        raise DataError("labels", f"labels {int(labels.min())}..{classes}, the model has 0..{classes - 1}; subtract 1")
    wrong = (labels < 0) | (labels >= classes)
    count = int(wrong.sum())
    if count > 1 and count > 0.01 * len(labels):
        wrongly = sorted({int(label) for label in labels[wrong]})[:SHOWN]
        raise DataError(
            "labels",
            f"{count} of {len(labels)} labels lie outside the model's classes 0..{classes - 1}, such as {wrongly}; "
            f"correct them, or leave the labels out",
        )


def confusion_in(points: pa.Table) -> Counter[tuple[int, int]]:
    """Labels and predictions in the rows of a table of points that have both."""
    pairs = zip(points["label"].to_pylist(), points["predicted"].to_pylist(), strict=True)
    return Counter((label, predicted) for label, predicted in pairs if None not in (label, predicted))


def check_expected(expected: float) -> None:
    """Raise unless this is an accuracy that can be expected.

    Raises:
        ParameterError: it is not between 0 and 1.
    """
    if not 0.0 < expected <= 1.0:
        meant = f"; write {expected / 100:g} for {expected:g}%" if 1.0 < expected <= 100.0 else ""
        raise ParameterError(f"the expected accuracy must lie in (0, 1]; found {expected:g}{meant}")


def check_accuracy(expected: float, subject: Subject) -> None:
    """Raise where the accuracy on labelled points is surely below what the user expects.

    Raises:
        ParameterError: the expectation is not between 0 and 1, or there are no labels to compare with.
        DataError: the upper end of the interval of the accuracy lies below `expected`.
    """
    check_expected(expected)
    if not subject.decision.of_classes:
        raise ParameterError(
            f"an accuracy is expected of predicted classes, and {subject.decision.label} decides "
            f"{subject.decision.explanation}; leave it out",
        )
    correct, labelled = subject.predictions.right
    if labelled == 0:
        raise ParameterError("an accuracy is expected, but the rows looked at carry no labels")
    high = float(clopper_pearson(correct, labelled, CONFIDENCE)[1])
    if high < expected:
        raise DataError(
            "accuracy_guard",
            f"accuracy {correct / labelled:.3f} on {labelled} labelled rows (at most {high:.3f} with "
            f"{CONFIDENCE:.0%} confidence), expected {expected:g}; "
            f"check bounds, mean and std, channel order and the order of the classes",
        )


def about_accuracy(
    correct: int, labelled: int, classes: int, confusion: Confusion | None = None, *, unweighted: str | None = None
) -> Iterator[Finding]:
    """A finding where another naming of the classes surely gets far more labels right, or the model is near chance.

    Near chance are fewer than twice as many labels as a guess gets right (of few classes, a guess and a tenth), where a
    weak model would surely get more: `P(B <= correct)` is at most `BY_CHANCE` for a binomial `B` of `labelled` and the
    share `max(that share, min(0.25, 0.1 + 1.5 / classes))`.

    Args:
        correct: labelled points that are predicted right.
        labelled: how many points have a label and a prediction.
        classes: number of classes of the model.
        confusion: labels and predictions of these points, to see whether the classes are permuted.
        unweighted: what made the network, where no file of weights was given with it, or None.
    """
    if labelled == 0:
        return
    chance, known = 1.0 / classes, {pair: count for pair, count in (confusion or {}).items() if 0 <= pair[0] < classes}
    little = chance + min(chance, 0.1)
    weak = max(little, min(0.25, 0.1 + 1.5 * chance))
    near = correct < little * labelled and float(scipy.stats.binom.cdf(correct, labelled, weak)) <= BY_CHANCE
    advice = _other_names(known, classes) if labelled - correct >= GAIN * labelled else None
    if advice is None and not near:
        return
    found = f"accuracy {correct / labelled:.3f} on {labelled} labelled rows"
    check = "check bounds, mean and std, channel order and the order of the classes"
    if advice is None and unweighted is not None:
        advice = (
            f"no --weights were given: if {unweighted} does not load trained weights itself, the network is untrained, "
            f"so add --weights FILE.safetensors; otherwise {check}"
        )
    yield Finding("accuracy_suspicious", f"{found}{', little better than chance or worse' * near}; {advice or check}")


def surely_more(count: int, of: int, share: float, log_tries: float) -> bool:
    """Whether `P(B >= count)`, for a binomial `B` of `of` and `share`, is at most `FALSE_ALARM` after so many tries."""
    return float(scipy.stats.binom.logsf(count - 1, of, share)) + log_tries <= math.log(FALSE_ALARM)


def _other_names(confusion: Confusion, classes: int) -> str | None:
    """What to do where most labels, and surely more of them, are right with 1 added, subtracted, or classes renamed."""
    if not confusion:
        return None
    known: Counter[int] = Counter()
    for (label, _), count in confusion.items():
        known[label] += count
    total, renamed = known.total(), _renaming(confusion, classes)
    moved = [f"{label} as {name}" for label, name in renamed.items() if label != name]
    shift = "when 1 is {} every label: the labels look shifted by one, so give classes that count from 0"
    # Each with the logarithm of how many ways there are to shift, or to rename as many classes.
    ways = [
        (shift.format("subtracted from"), {label: label - 1 for label in known if len(known) > 2}, math.log(2)),
        (shift.format("added to"), {label: label + 1 for label in known if len(known) > 2}, math.log(2)),
        (
            f"when classes are renamed (label {', '.join(moved[:SHOWN])}{', …' * (len(moved) > SHOWN)}): the classes "
            f"of data and model look permuted, map the labels",
            renamed,
            math.log(classes) + math.lgamma(classes + 1) - math.lgamma(classes + 1 - len(moved)),
        ),
    ]
    own, commonest = sum(confusion.get((label, label), 0) for label in known), max(known.values())
    for sentence, names, log_tries in ways:
        right = sum(confusion.get(pair, 0) for pair in names.items())
        both = sum(confusion.get((label, label), 0) for label, name in names.items() if label == name)
        if (
            right >= PERMUTED * total
            and right - own >= GAIN * total
            and surely_more(right - both, right + own - 2 * both, 0.5, math.log(2) + log_tries)
            and surely_more(right, total, commonest / total, math.log(2) + log_tries)
        ):
            return f"{right / total:.1%} are right {sentence}"
    return None


def unweighted(source: Mapping[str, object]) -> str | None:
    """What made a network out of code with which no file of weights was given; None for other models.

    Args:
        source: `spec`, `format` and `weights` of the model, as the record of a run has them.
    """
    made_by_code = source.get("format") == "python" and source.get("weights") is None
    return str(source.get("spec")) if made_by_code else None


def _renaming(confusion: Confusion, classes: int) -> dict[int, int]:
    """The one-to-one renaming of labels under which most points are right, for the labels that occur."""
    counts = np.zeros((classes, classes))
    for (label, predicted), count in confusion.items():
        counts[label, predicted] = count
    rows, columns = scipy.optimize.linear_sum_assignment(counts, maximize=True)
    return {int(row): int(column) for row, column in zip(rows, columns, strict=True) if counts[row, column]}
