"""One batch: look at it, leave out what cannot be measured, measure the rest once, derive every score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from brittle.data import Batch
from brittle.decisions import MultiLabel, OneLabel
from brittle.errors import ParameterError, listed
from brittle.estimate import Estimate
from brittle.measure import Clean, Measurement, NearestPoint, passes_of, take
from brittle.measure.base import look_for
from brittle.model.classifier import Classifier
from brittle.run.evaluated import Evaluated, There, begun, decided_there, mark_bad_outcomes, note_decisions
from brittle.run.rows import counterexamples_of, rows_of
from brittle.scores import Score
from brittle.scores.sound import estimate_of

_OfScore = tuple[Estimate, NearestPoint | None, There | None]
"""The estimate of a score, the inputs with another decision that it found, and what is decided there."""


def plan(scores: Iterable[Score]) -> tuple[Measurement, ...]:
    """The measurements that `scores` need, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(score.needs for score in scores)))


def evaluate(
    classifier: Classifier, batch: Batch, scores: Sequence[Score], seed: int, rows: int, confidence: float
) -> dict[str, pa.Table]:
    """The rows of a batch, by the kinds of shard file that hold them."""
    found = _evaluate(classifier, batch, scores, seed, rows, confidence)
    points, table = rows_of(found, scores, classifier.decision, classifier.dtype)
    return {
        "points": points,
        "scores": table,
        "counterexamples": counterexamples_of(found, scores, classifier.bounds, classifier.dtype),
    }


def look_at(
    classifier: Classifier, batch: Batch, needs: Sequence[Measurement], seed: int, rows: int, confidence: float
) -> Clean | None:
    """The clean pass over a batch, as `evaluate` makes it for `needs`; None where no point can be measured."""
    found = begun(batch, 0)
    return _look(classifier, found, seed, rows, needs, confidence)


def _evaluate(
    classifier: Classifier, batch: Batch, scores: Sequence[Score], seed: int, rows: int, confidence: float
) -> Evaluated:
    """Look at a batch, leave out what cannot be measured, measure the rest once and derive every score."""
    found = begun(batch, len(scores))
    labels = dict.fromkeys(score.of_label for score in scores)
    if [*labels] == [None]:
        _evaluate_all(classifier, found, scores, seed, rows, confidence)
        return found
    with classifier.remembering():
        together = [score for score in scores if score.of_label is None]
        all_labels = _evaluate_all(classifier, found, together, seed, rows, confidence)
        if all_labels is None:
            return found
        parts: dict[OneLabel | None, list[_OfScore]] = {
            None: [*zip(found.estimates, found.nearest, found.there, strict=True)]
        }
        for label in filter(None, labels):
            own = [score for score in scores if score.of_label == label]
            parts[label] = _evaluate_label(classifier, found, own, label, *all_labels)
    ordered = [parts[score.of_label].pop(0) for score in scores]
    found.estimates, found.nearest, found.there = (list(column) for column in zip(*ordered, strict=True))
    return found


def _evaluate_all(
    classifier: Classifier, found: Evaluated, scores: Sequence[Score], seed: int, rows: int, confidence: float
) -> tuple[Clean, dict[Measurement, Any]] | None:
    """Measure the points that can be measured, and derive the scores of all that is decided.

    Gives the clean pass and what was measured; None where no point can be.
    """
    needs = plan(scores)
    clean = _look(classifier, found, seed, rows, needs, confidence)
    if clean is None:
        return None
    before = classifier.passes
    measured = take(needs, classifier, clean)
    found.nearest = [score.counterexamples(measured) for score in scores]
    found.there = [decided_there(found, nearest, classifier, clean) for nearest in found.nearest]
    found.passes = _passes_of_points(needs, passes_of(measured, clean), classifier.passes - before, clean.passes)
    note_decisions(found, classifier.decision, clean)
    found.estimates = [estimate_of(score, measured, confidence, len(found.batch)) for score in scores]
    return clean, measured


def _evaluate_label(
    classifier: Classifier,
    found: Evaluated,
    scores: Sequence[Score],
    label: OneLabel,
    together: Clean,
    known: Mapping[Measurement, Any],
) -> list[_OfScore]:
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
    nearest = [score.counterexamples(measured) for score in scores]
    there = [decided_there(found, one, classifier, together) for one in nearest]
    even, more = divmod(classifier.passes - before, len(found.passes))
    found.passes = [passes + even + (at < more) for at, passes in enumerate(found.passes)]
    estimates = [estimate_of(score, measured, together.confidence, len(found.batch)) for score in scores]
    return [*zip(estimates, nearest, there, strict=True)]


def deciding(classifier: Classifier, label: OneLabel | None) -> Classifier:
    """The classifier of one label alone; itself where there is none."""
    if label is None:
        return classifier
    assert isinstance(classifier.decision, MultiLabel)
    return classifier.deciding(classifier.decision.alone(label.position))


def of_label(classifier: Classifier, label: OneLabel, needs: Sequence[Measurement], together: Clean) -> Clean:
    """The clean pass of points by which one label is decided, from that by which all are."""
    parts = (together.inputs, together.ids, together.seed, together.rows, together.confidence, together.aside)
    return replace(look_for(needs, deciding(classifier, label), *parts), wanted=together.wanted)


def _passes_of_points(needs: Iterable[Measurement], said: Tensor, spent: int, clean: int) -> list[int]:
    """Passes of each point, which add up to what the classifier counted.

    Args:
        needs: what was measured, for the message.
        said: passes beyond the clean one, as the results say, `[B]`.
        spent: those that the classifier counted for all points; what no result says is dealt out evenly.
        clean: passes of the clean one per point.

    Raises:
        ParameterError: the results say more than the classifier counted.
    """
    if int(said.sum()) > spent:
        raise ParameterError(
            f"the measurements {listed(sorted({type(need).__qualname__ for need in needs}), 5)} say that they took "
            f"{int(said.sum())} passes, and the classifier counted {spent}; expected `passes` of a result to be those "
            f"of each point",
        )
    even, more = divmod(spent - int(said.sum()), len(said))
    return [passes + clean + even + (position < more) for position, passes in enumerate(said.tolist())]


def _look(
    classifier: Classifier,
    found: Evaluated,
    seed: int,
    rows: int,
    needs: Sequence[Measurement],
    confidence: float,
) -> Clean | None:
    """The clean pass over a batch; points that cannot be measured are marked, None when there are no others.

    They keep their place, filled with the lower bound (`Bounds.filler`), so that the others are computed in the same
    batch as ever.
    """
    sound = [status.has_value for status in found.status]
    if not any(sound):
        return None
    inputs = found.batch.inputs.clone()
    inputs[[not each for each in sound]] = classifier.bounds.filler(inputs)
    clean = look_for(needs, classifier, inputs, found.batch.ids, seed, rows, confidence, found.batch.extra_inputs)
    mark_bad_outcomes(found, clean, classifier.decision)
    wanted = [status.has_value for status in found.status]
    found.measured = [position for position, sound in enumerate(wanted) if sound]
    return replace(clean, wanted=torch.tensor(wanted, device=clean.logits.device))
