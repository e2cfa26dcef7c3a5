"""A batch with everything that was found out about it: which points are sound, and what is decided at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from brittle.data import Batch
from brittle.decisions import Decision
from brittle.estimate import Estimate, Status
from brittle.measure import Clean, NearestPoint
from brittle.model.classifier import Classifier


@dataclass
class Evaluated:
    """A batch with everything that was found out about it.

    Attributes:
        batch: the points.
        predicted: class index of each point, or what stands for what was decided (`Decision.codes`), or None.
        decided: what was decided, in words, where it is no class; or None.
        correct: whether what was decided is that; None where the data say nothing of it.
        status: how each point ended before any score.
        detail: what was found where it failed.
        passes: all passes spent on each point and, where it failed, on what stood in its place.
        estimates: one per score, over all points of the batch.
        nearest: for each score, the inputs with another prediction that it found, or None.
        there: for each score what is decided at those of its inputs that a table holds; None where it found none.
        measured: positions in the batch of the points whose estimates count.
    """

    batch: Batch
    predicted: list[int | None]
    decided: list[str | None]
    correct: list[bool | None]
    status: list[Status]
    detail: list[str | None]
    passes: list[int]
    estimates: list[Estimate]
    nearest: list[NearestPoint | None]
    there: list[There | None]
    measured: list[int]

    def fail(self, position: int, status: Status, found: str) -> None:
        """Say why a point is not measured."""
        self.status[position] = status
        self.detail[position] = f"row {self.batch.rows[position]}: {found}"


@dataclass(frozen=True)
class There:
    """What is decided at inputs with another decision than their points.

    Attributes:
        positions: of these points in the batch, `[K]`.
        codes: the class there, or what stands for it (`Decision.codes`), `[K]`.
        words: the decision in words where it is no class, `[K]`.
    """

    positions: list[int]
    codes: Sequence[int | None]
    words: Sequence[str | None]


def begun(batch: Batch, scores: int) -> Evaluated:
    """A batch of which nothing was found out but which inputs are not finite."""
    count = len(batch)
    nothing: list[NearestPoint | None] = [None] * scores
    unknown: list[Any] = [None] * count
    parts = (list(batch.status), list(batch.detail), [0] * count)
    found = Evaluated(batch, [*unknown], [*unknown], [*unknown], *parts, [], nothing, [None] * scores, [])
    _mark_nonfinite_inputs(found)
    return found


def _mark_nonfinite_inputs(found: Evaluated) -> None:
    finite = found.batch.inputs.flatten(1).isfinite()
    for position in (~finite.all(dim=1)).nonzero().flatten().tolist():
        inputs = found.batch.inputs[position].flatten()
        nan, total = int(inputs.isnan().sum()), inputs.numel()
        infinite = total - nan - int(inputs.isfinite().sum())
        counts = [f"{number} {what}" for number, what in ((nan, "NaN"), (infinite, "infinite")) if number]
        found.fail(position, Status.NONFINITE_INPUT, f"{' and '.join(counts)} of {total}")


def mark_bad_outcomes(found: Evaluated, clean: Clean, decision: Decision) -> None:
    """Say of which points the clean pass gave no numbers, or the label is none of the model's."""
    classes, labelled = clean.logits.shape[1], decision.classes_of(clean.logits, clean.aside and clean.aside.decided)
    broken = (~clean.logits.isfinite()).sum(dim=1).tolist()
    for position, count in enumerate(broken):
        label = None if found.batch.labels is None else found.batch.labels[position]
        if not found.status[position].has_value:
            continue
        if count:
            found.fail(position, Status.NONFINITE_LOGITS, f"{count} of {classes} logits are NaN or infinite")
        elif label is not None and labelled is not None and not 0 <= label < labelled:
            found.fail(position, Status.LABEL_RANGE, f"label {label}, the model has 0..{labelled - 1}")


def note_decisions(found: Evaluated, decision: Decision, clean: Clean) -> None:
    """Note what was decided at the points that are measured, and whether the data say the same."""
    batch, decided = found.batch, clean.predicted[:, None]
    labels = None if batch.labels is None else torch.tensor(batch.labels)
    if clean.aside is not None and clean.aside.decided is not None:
        decided = clean.aside.decided
    codes, right = decisions_of(decision, clean), decision.right(decided, labels, batch.targets)
    words = [None] * len(batch) if decision.of_classes else decision.described(decided)
    for position in found.measured:
        found.predicted[position] = codes[position]
        found.decided[position] = words[position]
        found.correct[position] = right[position]


def decided_there(found: Evaluated, nearest: NearestPoint | None, classifier: Classifier, clean: Clean) -> There | None:
    """What is decided at the inputs that a score found; where it is no class, by a pass of these inputs."""
    if nearest is None:
        return None
    known = [position for position in found.measured if int(nearest.predicted[position]) >= 0]
    decision = classifier.decision
    if decision.of_classes or not known:
        return There(known, nearest.predicted[known].tolist(), [None] * len(known))
    rows = torch.tensor(known, device=nearest.points.device)
    beside = None if clean.aside is None else clean.aside.only(rows)
    with torch.no_grad():
        decided = decision.decide(classifier.read(nearest.points[rows], beside))
    return There(known, decision.codes(decided), decision.described(decided))


def decisions_of(decision: Decision, clean: Clean) -> list[int | None]:
    """What was decided at each point as the number that tables hold: the predicted class, or `Decision.codes`."""
    if clean.aside is None or clean.aside.decided is None:
        return clean.predicted.tolist()
    return decision.codes(clean.aside.decided)
