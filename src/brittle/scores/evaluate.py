"""One batch: look at it, leave out what cannot be measured, measure the rest once, derive every score.

A score that is called and a run evaluate their batches here. An estimate is checked in `estimate_of` alone, and
loses its numbers where a status carries none in `withhold` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from brittle.data.points import Batch
from brittle.decisions import Decision, MultiLabel, OneLabel
from brittle.errors import ParameterError
from brittle.estimate import FLIP_PROBABILITY, Estimate, Status
from brittle.measure import Clean, Measurement, NearestPoint, passes_of, take
from brittle.measure.base import look_for
from brittle.model.classifier import Classifier
from brittle.model.loading.named_code import failing, refused
from brittle.scores.sound import ScoreLike, fault_of


@dataclass(frozen=True)
class OtherInputs:
    """Inputs with another decision than their points.

    Attributes:
        positions: of these points in the batch, `K` of them.
        inputs: `[K, *shape]`.
        codes: the class there, or what stands for it (`Decision.codes`).
        words: the decision in words where it is no class.
    """

    positions: list[int]
    inputs: Tensor
    codes: Sequence[int | None]
    words: Sequence[str | None]


@dataclass
class Evaluated:
    """A batch with everything that was found out about it.

    Attributes:
        batch: the points.
        status: how each point ended before any score.
        detail: what was found where it failed.
        predicted: class index of each point, or what stands for what was decided (`Decision.codes`), or None.
        decided: what was decided, in words, where it is no class; or None.
        correct: whether what was decided is that; None where the data say nothing of it.
        passes: all passes spent on each point and, where it failed, on what stood in its place.
        estimates: one per score, over all points of the batch.
        counterexamples: for each score, the inputs with another decision that it found, or None.
    """

    batch: Batch
    status: list[Status]
    detail: list[str | None]
    predicted: list[int | None]
    decided: list[str | None]
    correct: list[bool | None]
    passes: list[int]
    estimates: list[Estimate]
    counterexamples: list[OtherInputs | None]

    @classmethod
    def start(cls, batch: Batch) -> Evaluated:
        """Nothing is known but which inputs were read and are finite."""
        unknown: list[Any] = [None] * len(batch)
        parts = (list(batch.status), list(batch.detail), [*unknown], [*unknown], [*unknown], [0] * len(batch))
        found = cls(batch, *parts, [], [])
        finite = batch.inputs.flatten(1).isfinite()
        for position in (~finite.all(dim=1)).nonzero().flatten().tolist():
            inputs = batch.inputs[position].flatten()
            nan, total = int(inputs.isnan().sum()), inputs.numel()
            infinite = total - nan - int(inputs.isfinite().sum())
            counts = [f"{number} {what}" for number, what in ((nan, "NaN"), (infinite, "infinite")) if number]
            found.fail(position, Status.NONFINITE_INPUT, f"{' and '.join(counts)} of {total}")
        return found

    @property
    def measured(self) -> list[int]:
        """Positions in the batch of the points that can be measured."""
        return [position for position, status in enumerate(self.status) if status.has_value]

    @property
    def failed(self) -> dict[int, tuple[Status, str | None]]:
        """Why the others cannot be, by their positions."""
        known = enumerate(zip(self.status, self.detail, strict=True))
        return {position: (status, detail) for position, (status, detail) in known if not status.has_value}

    def fail(self, position: int, status: Status, found: str) -> None:
        """Say why a point is not measured."""
        self.status[position] = status
        self.detail[position] = f"row {self.batch.rows[position]}: {found}"


def plan(scores: Iterable[ScoreLike]) -> tuple[Measurement, ...]:
    """The measurements that `scores` need, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(score.needs for score in scores)))


def evaluate(
    classifier: Classifier, batch: Batch, scores: Sequence[ScoreLike], seed: int, rows: int, confidence: float
) -> Evaluated:
    """Everything that `scores` say of a batch, with each measurement taken once.

    Args:
        classifier: the trained model.
        batch: the points, with values inside the bounds.
        scores: of all that is decided, and of single labels (`Score.about`).
        seed: of the noise.
        rows: most rows in one pass through the network.
        confidence: of all intervals.

    Raises:
        ParameterError: a score or a measurement from outside fails, or gives something else than it should.
        ModelError: the model fails on the inputs.
    """
    found = Evaluated.start(batch)
    by_label: dict[OneLabel | None, list[int]] = {None: []}
    for number, score in enumerate(scores):
        by_label.setdefault(score.of_label, []).append(number)
    several = len(by_label) > 1
    parts: dict[int, tuple[Estimate, OtherInputs | None]] = {}
    with classifier.remembering() if several else nullcontext():
        together = [scores[number] for number in by_label.pop(None)]
        needs = plan(together)
        clean = _look(classifier, found, needs, seed, rows, confidence)
        if clean is None:
            found.estimates = [_without_numbers(found, classifier.device) for _ in scores]
            found.counterexamples = [None] * len(scores)
            return found
        before = classifier.passes
        measured = take(needs, classifier, clean)
        others = [_counterexamples(score, measured, found, classifier, clean) for score in together]
        found.passes = _passes_of_points(needs, passes_of(measured, clean), classifier.passes - before, clean.passes)
        _note_decisions(found, classifier.decision, clean)
        estimates = [estimate_of(score, measured, confidence, len(batch), found.failed) for score in together]
        all_labels = [number for number, score in enumerate(scores) if score.of_label is None]
        parts |= zip(all_labels, zip(estimates, others, strict=True), strict=True)
        for label, numbers in by_label.items():
            assert label is not None
            own = [scores[number] for number in numbers]
            parts |= zip(numbers, _evaluate_label(classifier, found, own, label, clean, measured), strict=True)
    found.estimates = [parts[number][0] for number in range(len(scores))]
    found.counterexamples = [parts[number][1] for number in range(len(scores))]
    return found


def estimate_of(
    score: ScoreLike,
    measured: Mapping[Measurement, Any],
    confidence: float,
    points: int,
    failed: Mapping[int, tuple[Status, str | None]] | None = None,
) -> Estimate:
    """What a score says of a batch, checked, without numbers under a status that carries none.

    Args:
        score: what is estimated.
        measured: the results of its measurements.
        confidence: of the intervals.
        points: how many points there are.
        failed: the status and detail of points that could not be measured, by position.

    Raises:
        ParameterError: the score fails, or returns something else than an estimate of each point.
    """
    with failing(type(score), "estimate"):
        found = score.estimate(measured, confidence)
    fault = fault_of(found, points, score.quantity == FLIP_PROBABILITY)
    if fault:
        raise refused(f"{score.name}.estimate", f"returned {fault}")
    return withhold(found, failed)


def withhold(found: Estimate, failed: Mapping[int, tuple[Status, str | None]] | None = None) -> Estimate:
    """An estimate without numbers under a status that carries none, and where points `failed`, by position."""
    status, passes, detail = found.status.clone(), found.passes.clone(), list(found.detail or [None] * len(found.value))
    for position, (own, text) in (failed or {}).items():
        status[position], passes[position], detail[position] = int(own), 0, text
    without = status >= int(Status.NONFINITE_INPUT)
    value, low, high = (each.masked_fill(without, torch.nan) for each in (found.value, found.low, found.high))
    counted = found.counted and (
        found.counted[0].masked_fill(without, torch.nan),
        found.counted[1].masked_fill(without, torch.nan),
    )
    return Estimate(value, low, high, status, passes, tuple(detail) if any(detail) else None, found.evidence, counted)


def _without_numbers(found: Evaluated, device: torch.device) -> Estimate:
    """The estimate of a batch of which no point could be measured."""
    status = torch.tensor([int(own) for own in found.status], device=device)
    missing = torch.full_like(status, torch.nan, dtype=torch.float64)
    return Estimate(missing, missing, missing, status, torch.zeros_like(status), tuple(found.detail))


def _evaluate_label(
    classifier: Classifier,
    found: Evaluated,
    scores: Sequence[ScoreLike],
    label: OneLabel,
    together: Clean,
    known: Mapping[Measurement, Any],
) -> list[tuple[Estimate, OtherInputs | None]]:
    """The scores of one label, from what is measured already and from what that lacks.

    What these took is dealt out to the points evenly.

    Args:
        classifier: which remembers its passes.
        found: the batch, of which everything is known but this.
        scores: of the label.
        label: which one.
        together: the clean pass, by which all labels are decided.
        known: what was measured of all labels.
    """
    own, before = deciding(classifier, label), classifier.passes
    split = [need for need in plan(scores) if need in known and need.splits(known[need])]
    needs = [need for need in plan(scores) if need not in split]
    clean = of_label(classifier, label, needs, together)
    with own.evaluating():
        measured = {need: need.of_margin(known[need], label.position, own, clean) for need in split}
    measured |= take(needs, own, clean)
    others = [_counterexamples(score, measured, found, classifier, together) for score in scores]
    even, more = divmod(classifier.passes - before, len(found.passes))
    found.passes = [passes + even + (at < more) for at, passes in enumerate(found.passes)]
    given = (measured, together.confidence, len(found.batch), found.failed)
    estimates = [estimate_of(score, *given) for score in scores]
    return [*zip(estimates, others, strict=True)]


def deciding(classifier: Classifier, label: OneLabel | None) -> Classifier:
    """The classifier of one label alone; itself where there is none."""
    if label is None:
        return classifier
    assert isinstance(classifier.decision, MultiLabel)
    return classifier.deciding(classifier.decision.alone(label.position))


def of_label(classifier: Classifier, label: OneLabel, needs: Sequence[Measurement], together: Clean) -> Clean:
    """The clean pass of points by which one label is decided, from that by which all are."""
    parts = (together.inputs, together.ids, together.seed, together.rows, together.confidence, together.extra_inputs)
    return replace(look_for(needs, deciding(classifier, label), *parts), wanted=together.wanted)


def _look(
    classifier: Classifier, found: Evaluated, needs: Sequence[Measurement], seed: int, rows: int, confidence: float
) -> Clean | None:
    """The clean pass over a batch; points that cannot be measured are marked, None when there are no others.

    They keep their place, filled with the lower bound (`Bounds.filler`), so that the others are computed in the same
    batch as ever.
    """
    readable = [status.has_value for status in found.status]
    if not any(readable):
        return None
    inputs = found.batch.inputs.clone()
    inputs[[not each for each in readable]] = classifier.bounds.filler(inputs)
    clean = look_for(needs, classifier, inputs, found.batch.ids, seed, rows, confidence, found.batch.extra_inputs)
    _mark_bad_outcomes(found, clean, classifier.decision)
    wanted = [status.has_value for status in found.status]
    return replace(clean, wanted=torch.tensor(wanted, device=clean.logits.device))


def _mark_bad_outcomes(found: Evaluated, clean: Clean, decision: Decision) -> None:
    """Say of which points the clean pass gave no numbers, or the label is none of the model's."""
    decided = clean.extra_inputs and clean.extra_inputs.decided
    classes, labelled = clean.logits.shape[1], decision.classes_of(clean.logits, decided)
    broken = (~clean.logits.isfinite()).sum(dim=1).tolist()
    for position in found.measured:
        label = None if found.batch.labels is None else found.batch.labels[position]
        if broken[position]:
            found.fail(position, Status.NONFINITE_LOGITS, f"{broken[position]} of {classes} logits are NaN or infinite")
        elif label is not None and labelled is not None and not 0 <= label < labelled:
            found.fail(position, Status.LABEL_RANGE, f"label {label}, the model has 0..{labelled - 1}")


def _note_decisions(found: Evaluated, decision: Decision, clean: Clean) -> None:
    """Note what was decided at the points that are measured, and whether the data say the same."""
    batch, decided = found.batch, clean.predicted[:, None]
    labels = None if batch.labels is None else torch.tensor(batch.labels)
    if clean.extra_inputs is not None and clean.extra_inputs.decided is not None:
        decided = clean.extra_inputs.decided
    codes, right = decisions_of(decision, clean), decision.right(decided, labels, batch.targets)
    words = [None] * len(batch) if decision.of_classes else decision.described(decided)
    for position in found.measured:
        found.predicted[position] = codes[position]
        found.decided[position] = words[position]
        found.correct[position] = right[position]


def decisions_of(decision: Decision, clean: Clean) -> list[int | None]:
    """What was decided at each point as the number that tables hold: the predicted class, or `Decision.codes`."""
    if clean.extra_inputs is None or clean.extra_inputs.decided is None:
        return clean.predicted.tolist()
    return decision.codes(clean.extra_inputs.decided)


def _counterexamples(
    score: ScoreLike, measured: Mapping[Measurement, Any], found: Evaluated, classifier: Classifier, clean: Clean
) -> OtherInputs | None:
    """The inputs with another decision that a score found; where it is no class, what it is by a pass of them."""
    nearest: NearestPoint | None = score.counterexamples(measured)
    if nearest is None:
        return None
    known = [position for position in found.measured if int(nearest.predicted[position]) >= 0]
    inputs, decision = nearest.points[known], classifier.decision
    if decision.of_classes or not known:
        return OtherInputs(known, inputs, nearest.predicted[known].tolist(), [None] * len(known))
    extra = None if clean.extra_inputs is None else clean.extra_inputs.only(torch.tensor(known, device=inputs.device))
    with torch.no_grad():
        decided = decision.decide(classifier.read(inputs, extra))
    return OtherInputs(known, inputs, decision.codes(decided), decision.described(decided))


def _passes_of_points(needs: Iterable[Measurement], stated: Tensor, spent: int, clean: int) -> list[int]:
    """Passes of each point, which add up to what the classifier counted.

    Args:
        needs: what was measured, for the message.
        stated: passes beyond the clean one, by the results, `[B]`.
        spent: those that the classifier counted for all points; what no result states is dealt out evenly.
        clean: passes of the clean one per point.
    """
    if int(stated.sum()) > spent:
        raise ParameterError(
            f"the measurements {', '.join(sorted({type(need).__qualname__ for need in needs}))} state "
            f"{int(stated.sum())} passes, and the classifier counted {spent}; expected `passes` of a result to be "
            f"those of each point",
        )
    even, more = divmod(spent - int(stated.sum()), len(stated))
    return [passes + clean + even + (position < more) for position, passes in enumerate(stated.tolist())]
