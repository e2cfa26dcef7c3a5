"""Checks of a score: its class, its parameters, its measurements, and its estimate.

All scores pass through them, those of brittle too: the first three before a run or a call, the last for every batch.
"""

from dataclasses import MISSING, fields
from functools import cache
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.measure import Nearest
from brittle.model.classifier import Classifier
from brittle.model.texts import is_text_function
from brittle.noise import Noise
from brittle.scores.options import KEY
from brittle.user_code import check_name, failing, kind_of, refused

CONSTANT = {"name", "title", "quantity", "cost", "reference", "explanation", "safer", "colour", "preference", "model"}
"""Class attributes that hold for all scores of a class; as fields, a score could take the name of another."""


@cache
def check_class(kind: Any, source: str) -> None:
    check_dataclass(kind, source)
    check_name(source, getattr(kind, "name", None), "name = 'my_score'")
    if varying := CONSTANT & {member.name for member in fields(kind)}:
        field = min(varying)
        raise refused(source, f"has a field {field}; expected a class variable: {field}: ClassVar[...] = ...")
    if kind.serves not in ("counts", "all", "probability", "classes") and not isinstance(kind.serves, property):
        raise refused(source, f"has serves = {kind.serves!r:.60}; brittle.scores.Score says what it may be")


def check_dataclass(kind: type, source: str) -> None:
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise refused(source, "is no frozen dataclass; write @dataclass(frozen=True) above the class")


def check_score(score: Any) -> None:
    check_parameters(score)
    with failing(type(score), "needs"):
        hash((score.needs, *(need.stream for need in score.needs)))


def check_parameters(score: Any) -> None:
    """Raise unless a score's class is sound and its parameters hold each field that decides equality or its default."""
    kind: Any = type(score)
    check_class(kind, f"{kind.__module__}.{kind.__qualname__}")
    with failing(kind, "parameters"):
        parameters = {**score.parameters}
    hidden = []
    for member in fields(kind):
        if not member.compare or member.metadata.get(KEY, KEY) is None or member.name in parameters:
            continue
        value = getattr(score, member.name)
        default = member.default_factory() if member.default_factory is not MISSING else member.default
        same = value is None or value is default or value == default
        if getattr(same, "shape", ()) or not same:
            hidden.append(member.name)
    if hidden:
        raise refused(kind.__qualname__, f"leaves {', '.join(hidden)} out of its parameters; a table needs them")


def check_serves(score: Any, classifier: Classifier) -> None:
    decision = classifier.decision
    if score.serves != "counts":
        classifier.check_margins(score.name)
    noise, of_texts = getattr(score, "noise", None), is_text_function(classifier.model)
    if of_texts and any(isinstance(need, Nearest) for need in score.needs):
        raise ParameterError(f"{score.name} searches among numbers, and the model reads texts; use monte_carlo")
    if isinstance(noise, Noise) and (noise.added if of_texts else getattr(noise, "of_characters", False)):
        kinds = ("numbers", "texts") if of_texts else ("texts", "numbers")
        taker = "a TextFunction takes Edits and Paraphrases, and nothing else does"
        raise ParameterError(f"noise {noise.name} is for {kinds[0]}, and the model reads {kinds[1]}; {taker}")
    reads_probability, advice = score.serves == "probability", "use shrinkage, monte_carlo or another score of margins"
    if reads_probability and decision.of_classes and not classifier.has_probability:
        model = getattr(classifier.model, "__name__", "the model")
        raise ParameterError(f"{score.name} reads a probability, and {model} has no predict_proba; {advice}")
    if not (classifier.has_probability if reads_probability else decision.of_classes or score.serves != "classes"):
        reads = "a probability of the decision" if reads_probability else "the scores of classes"
        decided = f"{decision.label} ({decision.explanation})"
        raise ParameterError(f"{score.name} reads {reads}, which {decided} does not have; {advice}")


def fault_of(estimate: object, points: int, is_probability: bool) -> str | None:
    """Return the first fault of an estimate of so many points, or None."""
    if not isinstance(estimate, Estimate):
        return f"{kind_of(estimate)}; expected an Estimate, as brittle.scores.base.finish makes it"
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    numbers |= {f"counted[{at}]": end for at, end in enumerate(estimate.counted or ())}
    integers = {"status": estimate.status, "passes": estimate.passes}
    integers |= {} if estimate.evidence is None else {"evidence": estimate.evidence}
    for name, x in (numbers | integers).items():
        dtype = "int64" if name in integers else "float64"
        is_sound = isinstance(x, Tensor) and (x.dtype is torch.int64 if name in integers else x.is_floating_point())
        if not is_sound or x.shape != (points,):
            description = f"{list(x.shape)} of {x.dtype}" if isinstance(x, Tensor) else kind_of(x)
            return f"{name} {description}; expected [{points}] of torch.{dtype}, one for each point"
    detail = (None,) * points if estimate.detail is None else estimate.detail
    if len(detail) != points or not all(isinstance(text, str | None) for text in detail):
        return f"{len(detail)} details; expected {points}, a text or None for each point"
    if estimate.votes is not None and len(estimate.votes) != points:
        return f"{len(estimate.votes)} cells of votes; expected {points}, one for each point"
    for name, codes, members in (("status", estimate.status, Status), ("evidence", estimate.evidence, Evidence)):
        strange = set() if codes is None else {*codes.tolist()} - {int(member) for member in members}
        if strange:
            return f"the {name} {min(strange)}; expected a member of brittle.estimate.{members.__name__}"
    if bool((estimate.passes < 0).any()):
        return f"{int(estimate.passes.min())} passes; expected 0 or more"
    return _fault_of_numbers(estimate, is_probability)


def _fault_of_numbers(estimate: Estimate, is_probability: bool) -> str | None:
    valued = estimate.status.cpu() < int(Status.NONFINITE_INPUT)
    value, low, high = (tensor.detach().cpu() for tensor in (estimate.value, estimate.low, estimate.high))
    ordered = (low <= value) & (value <= high) | low.isnan() & high.isnan() & ~value.isnan()
    within = (value >= 0) & (value <= 1) if is_probability else torch.ones_like(ordered)
    for is_sound, expected in (
        (ordered, "low <= value <= high, or NaN at both ends; a NaN value only under a status that carries no number"),
        (within, "a flip probability within [0, 1]"),
    ):
        wrong = (valued & ~is_sound).nonzero().flatten().tolist()
        if wrong:
            at = wrong[0]
            ends = f"[{float(low[at]):.6g}, {float(high[at]):.6g}]"
            return f"{float(value[at]):.6g} with the interval {ends} for point {at} of the batch; expected {expected}"
    return None
