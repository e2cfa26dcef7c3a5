"""One batch: look at it, leave out what cannot be measured, measure the rest once, derive every score, write rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from brittle.data import Batch
from brittle.data.images import is_image, thumbnails
from brittle.decisions import Decision, MultiLabel, OneLabel
from brittle.errors import ParameterError, listed
from brittle.estimate import Estimate, Evidence, Status, parameters_json
from brittle.measure import Clean, Measurement, NearestPoint, passes_of, take
from brittle.measure.base import look_for
from brittle.model.bounds import Bounds
from brittle.model.classifier import Classifier
from brittle.scores import Score
from brittle.scores.sound import estimate_of
from brittle.store.inputs import keeps, pack
from brittle.store.schemas import COUNTEREXAMPLES, POINTS, SCORES

_OfScore = tuple[Estimate, "NearestPoint | None", "_There | None"]
"""The estimate of a score, the inputs with another decision that it found, and what is decided there."""


def plan(scores: Iterable[Score]) -> tuple[Measurement, ...]:
    """The measurements that `scores` need, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(score.needs for score in scores)))


def evaluate(
    classifier: Classifier, batch: Batch, scores: Sequence[Score], seed: int, rows: int, confidence: float
) -> dict[str, pa.Table]:
    """The rows of a batch, by the kinds of shard file that hold them."""
    found = _evaluate(classifier, batch, scores, seed, rows, confidence)
    points, table = _rows(found, scores, classifier.decision, classifier.dtype)
    return {
        "points": points,
        "scores": table,
        "counterexamples": _counterexamples(found, scores, classifier.bounds, classifier.dtype),
    }


def look_at(
    classifier: Classifier, batch: Batch, needs: Sequence[Measurement], seed: int, rows: int, confidence: float
) -> Clean | None:
    """The clean pass over a batch, as `evaluate` makes it for `needs`; None where no point can be measured."""
    found = _begun(batch, 0)
    return _look(classifier, found, seed, rows, needs, confidence)


@dataclass
class _Evaluated:
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
    there: list[_There | None]
    measured: list[int]

    def fail(self, position: int, status: Status, found: str) -> None:
        """Say why a point is not measured."""
        self.status[position] = status
        self.detail[position] = f"row {self.batch.rows[position]}: {found}"


def _evaluate(
    classifier: Classifier, batch: Batch, scores: Sequence[Score], seed: int, rows: int, confidence: float
) -> _Evaluated:
    """Look at a batch, leave out what cannot be measured, measure the rest once and derive every score."""
    found = _begun(batch, len(scores))
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
    classifier: Classifier, found: _Evaluated, scores: Sequence[Score], seed: int, rows: int, confidence: float
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
    found.there = [_decided_there(found, nearest, classifier, clean) for nearest in found.nearest]
    found.passes = _passes_of_points(needs, passes_of(measured, clean), classifier.passes - before, clean.passes)
    _note_decisions(found, classifier.decision, clean)
    found.estimates = [estimate_of(score, measured, confidence, len(found.batch)) for score in scores]
    return clean, measured


def _evaluate_label(
    classifier: Classifier,
    found: _Evaluated,
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
    there = [_decided_there(found, one, classifier, together) for one in nearest]
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


def _begun(batch: Batch, scores: int) -> _Evaluated:
    """A batch of which nothing was found out but which inputs are not finite."""
    count = len(batch)
    nothing: list[NearestPoint | None] = [None] * scores
    unknown: list[Any] = [None] * count
    parts = (list(batch.status), list(batch.detail), [0] * count)
    found = _Evaluated(batch, [*unknown], [*unknown], [*unknown], *parts, [], nothing, [None] * scores, [])
    _mark_nonfinite_inputs(found)
    return found


def _note_decisions(found: _Evaluated, decision: Decision, clean: Clean) -> None:
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


@dataclass(frozen=True)
class _There:
    """What is decided at inputs with another decision than their points.

    Attributes:
        positions: of these points in the batch, `[K]`.
        codes: the class there, or what stands for it (`Decision.codes`), `[K]`.
        words: the decision in words where it is no class, `[K]`.
    """

    positions: list[int]
    codes: Sequence[int | None]
    words: Sequence[str | None]


def _decided_there(
    found: _Evaluated, nearest: NearestPoint | None, classifier: Classifier, clean: Clean
) -> _There | None:
    """What is decided at the inputs that a score found; where it is no class, by a pass of these inputs."""
    if nearest is None:
        return None
    known = [position for position in found.measured if int(nearest.predicted[position]) >= 0]
    decision = classifier.decision
    if decision.of_classes or not known:
        return _There(known, nearest.predicted[known].tolist(), [None] * len(known))
    rows = torch.tensor(known, device=nearest.points.device)
    beside = None if clean.aside is None else clean.aside.only(rows)
    with torch.no_grad():
        decided = decision.decide(classifier.read(nearest.points[rows], beside))
    return _There(known, decision.codes(decided), decision.described(decided))


def decisions_of(decision: Decision, clean: Clean) -> list[int | None]:
    """What was decided at each point as the number that tables hold: the predicted class, or `Decision.codes`."""
    if clean.aside is None or clean.aside.decided is None:
        return clean.predicted.tolist()
    return decision.codes(clean.aside.decided)


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
            "passes",
            f"the measurements {listed(sorted({type(need).__qualname__ for need in needs}), 5)} say that they took "
            f"{int(said.sum())} passes, and the classifier counted {spent}; expected `passes` of a result to be those "
            f"of each point",
        )
    even, more = divmod(spent - int(said.sum()), len(said))
    return [passes + clean + even + (position < more) for position, passes in enumerate(said.tolist())]


def _mark_nonfinite_inputs(found: _Evaluated) -> None:
    finite = found.batch.inputs.flatten(1).isfinite()
    for position in (~finite.all(dim=1)).nonzero().flatten().tolist():
        inputs = found.batch.inputs[position].flatten()
        nan, total = int(inputs.isnan().sum()), inputs.numel()
        infinite = total - nan - int(inputs.isfinite().sum())
        counts = [f"{number} {what}" for number, what in ((nan, "NaN"), (infinite, "infinite")) if number]
        found.fail(position, Status.NONFINITE_INPUT, f"{' and '.join(counts)} of {total}")


def _look(
    classifier: Classifier,
    found: _Evaluated,
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
    clean = look_for(needs, classifier, inputs, found.batch.ids, seed, rows, confidence, found.batch.aside)
    _mark_bad_outcomes(found, clean, classifier.decision)
    wanted = [status.has_value for status in found.status]
    found.measured = [position for position, sound in enumerate(wanted) if sound]
    return replace(clean, wanted=torch.tensor(wanted, device=clean.logits.device))


def _mark_bad_outcomes(found: _Evaluated, clean: Clean, decision: Decision) -> None:
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


def _rows(
    found: _Evaluated, scores: Sequence[Score], decision: Decision, dtype: torch.dtype | None
) -> tuple[pa.Table, pa.Table]:
    """The rows of a batch: one per point, and one per point and score, point by point.

    `dtype` is what the network computes in, as `Classifier.dtype` says it.
    """
    batch = found.batch
    labels = _label_codes(batch, decision)
    points = {
        "point": batch.ids,
        "row": batch.rows,
        "name": batch.names or [None] * len(batch),
        "label": labels,
        "predicted": found.predicted,
        "decided": found.decided,
        "target": [None] * len(batch) if batch.targets is None else decision.target_words(batch.targets),
        "correct": found.correct,
        "status": [status.slug for status in found.status],
        "detail": found.detail,
        "passes": found.passes,
        "image": batch.images or [None] * len(batch),
        "input": _kept(batch, batch.inputs, dtype, [one.has_value for one in batch.status]),
    }
    rows: list[dict[str, Any]] = []
    columns = [cells(estimate) for estimate in found.estimates]
    measured = set(found.measured)
    named = [(score.name, parameters_json(score.parameters)) for score in scores]
    for position, point in enumerate(batch.ids):
        for number, (name, parameters) in enumerate(named):
            own = {"point": point, "score": name, "parameters": parameters}
            if position in measured:
                rows.append(own | {key: values[position] for key, values in columns[number].items()})
            else:
                failed = {"status": found.status[position].slug, "detail": found.detail[position], "passes": 0}
                rows.append(own | failed)
    return pa.Table.from_pydict(points, schema=POINTS), pa.Table.from_pylist(rows, schema=SCORES)


def _label_codes(batch: Batch, decision: Decision) -> Sequence[int | None]:
    """What the data say is right for each point, as the number that tables hold; None where they do not say it."""
    if batch.targets is not None:
        return decision.target_codes(batch.targets)
    return batch.labels or [None] * len(batch)


def _counterexamples(found: _Evaluated, scores: Sequence[Score], bounds: Bounds, dtype: torch.dtype | None) -> pa.Table:
    """A row for every point and score that found an input with another prediction; `dtype` as in `_rows`."""
    rows: list[dict[str, Any]] = []
    for score, nearest, there in zip(scores, found.nearest, found.there, strict=True):
        if nearest is None or there is None:
            continue
        known = there.positions
        inputs, points = found.batch.inputs[known], nearest.points[known].cpu()
        columns = {
            "point": [found.batch.ids[position] for position in known],
            "predicted": there.codes,
            "decided": there.words,
            "image": thumbnails(points, bounds) or [None] * len(known),
            "difference": thumbnails(_magnified(points - inputs, bounds), bounds) or [None] * len(known),
            "input": _kept(found.batch, points, dtype, points.flatten(1).isfinite().all(1).tolist()),
        }
        named = {"score": score.name, "parameters": parameters_json(score.parameters)}
        rows += [named | dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return pa.Table.from_pylist(rows, schema=COUNTEREXAMPLES)


def _kept(batch: Batch, inputs: Tensor, dtype: torch.dtype | None, wanted: Sequence[bool]) -> Sequence[bytes | None]:
    """Inputs `[N, *shape]` of a batch as the network gets them, in cells; None where they are images, large, unwanted.

    They lose no digit: single precision holds what is narrower.
    """
    shape = tuple(inputs.shape[1:])
    if is_image(shape) or not keeps(shape):
        return [None] * len(inputs)
    seen = inputs.to("cpu", dtype or inputs.dtype)
    cells = pack((seen if seen.dtype == torch.float64 else seen.float()).numpy())
    return [cell if keep else None for cell, keep in zip(cells, wanted, strict=True)]


def _magnified(difference: Tensor, bounds: Bounds) -> Tensor:
    """Differences `[N, *shape]` around the middle of the bounds, the largest of each as far as it can go."""
    low, high = bounds.envelope
    largest = difference.flatten(1).abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny)
    return (low + high) / 2 + difference * ((high - low) / 2 / largest).view(-1, *[1] * (difference.dim() - 1))


def cells(estimate: Estimate) -> dict[str, list[Any]]:
    """What the table holds of an estimate, a list over its points for each column."""
    status = [Status(code) for code in estimate.status.tolist()]

    def numbers(values: Tensor) -> list[float | None]:
        return [value if state.has_value else None for value, state in zip(values.tolist(), status, strict=True)]

    return {
        "value": numbers(estimate.value),
        "low": numbers(estimate.low),
        "high": numbers(estimate.high),
        "status": [state.slug for state in status],
        "detail": list(estimate.detail or [None] * len(status)),
        "passes": estimate.passes.tolist(),
    } | _evidence(estimate, status)


def _evidence(estimate: Estimate, status: Sequence[Status]) -> dict[str, list[Any]]:
    """What stands behind the numbers of a flip probability; nothing for other scores."""
    valued = [state.has_value for state in status]
    columns: dict[str, list[Any]] = {}
    if estimate.evidence is not None:
        slugs = [Evidence(code).slug for code in estimate.evidence.tolist()]
        columns["evidence"] = [slug if known else None for slug, known in zip(slugs, valued, strict=True)]
    if estimate.counted is not None:
        for name, end in zip(("counted_low", "counted_high"), estimate.counted, strict=True):
            columns[name] = [number if known else None for number, known in zip(end.tolist(), valued, strict=True)]
    return columns
