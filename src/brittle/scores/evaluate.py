"""Evaluation of a batch: look at it, leave out what cannot be measured, measure the rest once, derive every score."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from brittle.data.points import Batch
from brittle.decisions import Decision
from brittle.errors import ParameterError
from brittle.estimate import FLIP_PROBABILITY, Estimate, Status
from brittle.measure import Clean, Forward, Measurement, NearestPoint, Sampled, passes_of, take
from brittle.measure.forward import look
from brittle.model.classifier import Classifier
from brittle.scores.sound import fault_of
from brittle.user_code import failing, refused

MOST_SEED = 2**63 - 1  # the largest seed of noise


@dataclass(frozen=True)
class OtherInputs:
    """Inputs with another decision than their points."""

    positions: list[int]  # of the `K` points in the batch
    inputs: Tensor
    codes: Sequence[int | None]  # of the class there (`Decision.codes`)
    words: Sequence[str | None]  # for a decision without classes


class Evaluated:
    """A batch with everything that was found out about it."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.status, self.detail = list(batch.status), list(batch.detail)  # before any score
        self.predicted: list[int | None] = [None] * len(batch)  # `Decision.codes`
        self.decided: list[str | None] = [None] * len(batch)  # in words where that is no class
        self.correct: list[bool | None] = [None] * len(batch)  # where the data tell
        self.label_probability: list[float | None] = [None] * len(batch)  # where the clean passes show it
        self.passes = [0] * len(batch)  # those on what stood in the place of a failed point, too
        self.estimates: list[Estimate] = []  # over all points
        self.counterexamples: list[OtherInputs | None] = []
        inputs = batch.inputs.flatten(1)
        for position in (~inputs.isfinite().all(dim=1)).nonzero().flatten().tolist():
            values = inputs[position]
            kinds = ((int(values.isnan().sum()), "NaN"), (int(values.isinf().sum()), "infinite"))
            counts = " and ".join(f"{number} {kind}" for number, kind in kinds if number)
            self.fail(position, Status.NONFINITE_INPUT, f"{counts} of {values.numel()}")

    @property
    def measured(self) -> list[int]:
        """Positions in the batch of the points that can be measured."""
        return [position for position, status in enumerate(self.status) if status.has_value]

    def fail(self, position: int, status: Status, fault: str) -> None:
        self.status[position] = status
        self.detail[position] = f"row {self.batch.rows[position]}: {fault}"


def plan(scores: Iterable[Any]) -> tuple[Measurement, ...]:
    """Return the measurements that `scores` need, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(score.needs for score in scores)))


def evaluate(
    classifier: Classifier, batch: Batch, scores: Sequence[Any], seed: int, rows: int, confidence: float
) -> Evaluated:
    """Return all that `scores` say of a batch inside the bounds, of which at most `rows` go through together."""
    evaluated = Evaluated(batch)
    needs = plan(scores)
    with classifier.drawing("clean", seed, batch.ids):
        clean = _look(classifier, evaluated, needs, seed, rows, confidence)
    if clean is None:
        evaluated.counterexamples = [None] * len(scores)
        status = torch.tensor([int(outcome) for outcome in evaluated.status], device=classifier.device)
        none, passes = torch.full_like(status, torch.nan, dtype=torch.float64), torch.zeros_like(status)
        evaluated.estimates = [Estimate(none, none, none, status, passes, tuple(evaluated.detail))] * len(scores)
        return evaluated
    outcomes = enumerate(zip(evaluated.status, evaluated.detail, strict=True))
    failed = {position: outcome for position, outcome in outcomes if not outcome[0].has_value}
    before = classifier.passes
    with classifier.drawing("noisy", seed, batch.ids):
        values = take(needs, classifier, clean)
    evaluated.counterexamples = [_counterexamples(score, values, evaluated, classifier, clean) for score in scores]
    _count_passes(evaluated, values, clean, classifier.passes - before)
    evaluated.estimates = [estimate_of(score, values, confidence, len(batch), failed) for score in scores]
    pairs = zip(evaluated.estimates, scores, strict=True)
    evaluated.estimates = [_describe(value, values[score.needs[0]], classifier.decision) for value, score in pairs]
    _note_decisions(evaluated, classifier, clean)
    _note_label_probability(evaluated, classifier, values.get(Forward(probabilities=True), clean))
    return evaluated


def estimate_of(
    score: Any,
    measured: Mapping[Measurement, Any],
    confidence: float,
    points: int,
    failed: Mapping[int, tuple[Status, str | None]] | None = None,
) -> Estimate:
    """Return the checked estimate of a batch, without numbers under a status that carries none. `failed` has the status
    and detail of points that could not be measured."""
    with failing(type(score), "estimate"):
        estimate = score.estimate(measured, confidence)
    fault = fault_of(estimate, points, score.quantity == FLIP_PROBABILITY)
    if fault:
        raise refused(f"{score.name}.estimate", f"returned {fault}")
    status, passes = estimate.status.clone(), estimate.passes.clone()
    detail: list[str | None] = [*(estimate.detail or [None] * points)]
    for position, (failure, text) in (failed or {}).items():
        status[position], passes[position], detail[position] = int(failure), 0, text
    without = status >= int(Status.NONFINITE_INPUT)
    numbers = (estimate.value, estimate.low, estimate.high, *(estimate.counted or ()))
    value, low, high, *counted = (tensor.masked_fill(without, torch.nan) for tensor in numbers)
    details = tuple(detail) if any(detail) else None
    ends = (counted[0], counted[1]) if counted else None
    return Estimate(value, low, high, status, passes, details, estimate.evidence, ends, estimate.votes)


def _look(
    classifier: Classifier, evaluated: Evaluated, needs: Sequence[Measurement], seed: int, rows: int, confidence: float
) -> Clean | None:
    """Return the clean pass over a batch, None without any point that can be measured. The others are marked, and keep
    their place, filled (`Bounds.filler`), so that points are computed in the same batch as ever."""
    readable = [status.has_value for status in evaluated.status]
    if not any(readable):
        return None
    batch, inputs = evaluated.batch, evaluated.batch.inputs.clone()
    inputs[[not is_readable for is_readable in readable]] = classifier.bounds.filler(inputs)
    extra = batch.extra_inputs
    if extra is not None and extra.inputs is not None:
        held = torch.tensor(readable, device=inputs.device).view(-1, *[1] * (inputs.dim() - 1))
        extra = replace(extra, inputs=torch.where(held, extra.inputs.to(inputs), inputs))
    differentiate, observe = (any(getattr(need, use) for need in needs) for use in ("uses_graph", "uses_features"))
    clean = look(classifier, inputs, batch.ids, seed, rows, differentiate, observe, confidence, extra)
    classes = clean.logits.shape[1]
    labelled = classifier.decision.classes_of(clean.logits, clean.extra_inputs and clean.extra_inputs.decided)
    broken = (~clean.logits.isfinite()).sum(dim=1).tolist()
    for row in evaluated.measured:
        label = None if batch.labels is None else batch.labels[row]
        if broken[row]:
            evaluated.fail(row, Status.NONFINITE_LOGITS, f"{broken[row]} of {classes} logits are NaN or infinite")
        elif label is not None and labelled is not None and not 0 <= label < labelled:
            evaluated.fail(row, Status.LABEL_RANGE, f"label {label}, the model has 0..{labelled - 1}")
    has_value = [status.has_value for status in evaluated.status]
    return replace(clean, is_usable=torch.tensor(has_value, device=clean.logits.device))


def _count_passes(evaluated: Evaluated, measured: Mapping[Measurement, Any], clean: Clean, batch_passes: int) -> None:
    """Add what the results state to the passes of each point, and deal out evenly what is left of `batch_passes`."""
    stated = passes_of(measured, clean).tolist()
    if sum(stated) > batch_passes:
        kinds = ", ".join(sorted({type(need).__qualname__ for need in measured}))
        passes = f"{sum(stated)} passes, and the classifier counted {batch_passes}"
        raise ParameterError(f"the measurements {kinds} state {passes}; expected those of each point")
    even, more = divmod(batch_passes - sum(stated), len(stated))
    evaluated.passes = [clean.passes + point_passes + even + (at < more) for at, point_passes in enumerate(stated)]


def _describe(estimate: Estimate, counts: Any, decision: Decision) -> Estimate:
    if decision.has_margins or not isinstance(counts, Sampled):
        return estimate
    words = decision.describe_copies((counts.votes.margins / counts.draws).tolist())
    if words is None:
        return estimate
    details = estimate.detail or (None,) * len(words)
    return replace(estimate, detail=tuple(detail or text for detail, text in zip(details, words, strict=True)))


def _note_decisions(evaluated: Evaluated, classifier: Classifier, clean: Clean) -> None:
    batch, decision = evaluated.batch, classifier.decision
    labels = None if batch.labels is None else torch.tensor(batch.labels)
    decided, codes = clean.predicted[:, None], clean.predicted.tolist()
    if clean.extra_inputs is not None and clean.extra_inputs.decided is not None:
        decided, codes = clean.extra_inputs.decided, decision.codes(clean.extra_inputs.decided)
    correct = decision.right(decided, labels, batch.targets)
    words = [None] * len(batch) if decision.of_classes else decision.described(decided)
    for position in evaluated.measured:
        evaluated.predicted[position] = codes[position]
        evaluated.decided[position] = words[position]
        evaluated.correct[position] = correct[position]


def _note_label_probability(evaluated: Evaluated, classifier: Classifier, clean: Clean) -> None:
    logarithms = clean.log_probabilities if classifier.own_probability else clean.logits
    labels = evaluated.batch.labels
    if labels is None or logarithms is None or classifier.random or not classifier.decision.of_classes:
        return
    probabilities = logarithms.double().softmax(dim=1)
    for position in evaluated.measured:
        evaluated.label_probability[position] = float(probabilities[position, labels[position]])


def _counterexamples(
    score: Any, measured: Mapping[Measurement, Any], evaluated: Evaluated, classifier: Classifier, clean: Clean
) -> OtherInputs | None:
    """Return the inputs with another decision that a score found; a pass of them tells a decision without classes."""
    nearest: NearestPoint | None = score.counterexamples(measured)
    if nearest is None:
        return None
    rows = [position for position in evaluated.measured if int(nearest.predicted[position]) >= 0]
    inputs, decision = nearest.points[rows], classifier.decision
    beside = None if clean.extra_inputs is None else clean.extra_inputs.only(torch.tensor(rows, device=inputs.device))
    inputs = inputs if beside is None else beside.kept(inputs)
    if decision.of_classes or not rows:
        return OtherInputs(rows, inputs, nearest.predicted[rows].tolist(), [None] * len(rows))
    with torch.no_grad():
        decided = decision.decide(classifier.read(inputs, beside))
    return OtherInputs(rows, inputs, decision.codes(decided), decision.described(decided))


def check_classifier(classifier: object) -> None:
    if not isinstance(classifier, Classifier):
        kind = type(classifier).__name__
        raise ParameterError(f"expected a brittle.Classifier, found {kind}; wrap it: brittle.Classifier(model)")
    if isinstance(classifier.model, type) or not callable(classifier.model):
        expected = "give a torch.nn.Module, or a function from inputs to class scores"
        raise ParameterError(f"the classifier wraps {classifier.model!r:.60}, and not a network; {expected}")


def check_seed(seed: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
        raise ParameterError(f"the seed must be a whole number from 0 to {MOST_SEED}; found {seed!r:.40}")


def concatenate(parts: Sequence[Estimate], places: Tensor | None = None) -> Estimate:
    """Return the estimates of several batches as one, perhaps with the points at these `places`. Where some say no
    evidence, as of no point measured, it is 0, and what they counted is their interval."""
    size = sum(len(part.value) for part in parts)
    order = torch.arange(size) if places is None else places.argsort()

    def joined(tensors: Iterable[Tensor]) -> Tensor:
        rows = torch.cat([*tensors])
        return rows[order.to(rows.device)]

    names = ("value", "low", "high", "status", "passes")
    value, low, high, status, passes = (joined(getattr(part, name) for part in parts) for name in names)
    details = [text for part in parts for text in part.detail or [None] * len(part.value)]
    detail = tuple(details[place] for place in order.tolist()) if any(details) else None
    evidence = counted = None
    if any(part.evidence is not None for part in parts):
        evidence = joined(torch.zeros_like(part.status) if part.evidence is None else part.evidence for part in parts)
    if any(part.counted is not None for part in parts):
        ends = [part.counted or (part.low, part.high) for part in parts]
        counted = joined(low for low, _ in ends), joined(high for _, high in ends)
    votes = None
    if any(part.votes is not None for part in parts):
        cells = [cell for part in parts for cell in part.votes or [b""] * len(part.value)]
        votes = tuple(cells[place] for place in order.tolist())
    return Estimate(value, low, high, status, passes, detail, evidence, counted, votes)
