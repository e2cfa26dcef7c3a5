"""What tables and reports ask of a score: its class, its parameters, its measurements, and what its estimate returns.

The scores of brittle pass through the same checks as those from outside: the first three at the door of a run or a
call, the last for every batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Parameters, Status
from brittle.measure import Measurement, Nearest, NearestPoint
from brittle.model.classifier import Classifier
from brittle.model.texts import is_text_function
from brittle.noise import Noise
from brittle.scores.options import KEY
from brittle.user_code import check_name, failing, kind_of, refused


class ScoreLike(Protocol):
    """A score, as far as a batch needs one; `brittle.scores.Score` says what each part is."""

    name: ClassVar[str]
    quantity: ClassVar[str]
    serves: ClassVar[str]

    @property
    def needs(self) -> tuple[Measurement, ...]: ...
    @property
    def parameters(self) -> Parameters: ...
    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate: ...
    def counterexamples(self, measured: Mapping[Measurement, Any]) -> NearestPoint | None: ...


CONSTANT = frozenset(
    ("name", "title", "quantity", "cost", "reference", "explanation", "safer", "colour", "preference", "model")
)
"""Class attributes that hold for all scores of a class; as fields, a score could take the name of another."""


@cache
def check_class(kind: Any, where: str) -> None:
    """Raise unless a class of scores, named by `where`, is a frozen dataclass with a name, and says what it serves."""
    check_dataclass(kind, where)
    check_name(where, getattr(kind, "name", None), "name = 'my_score'")
    if varying := CONSTANT & {member.name for member in fields(kind)}:
        field = min(varying)
        raise refused(where, f"has a field {field}; expected a class variable: {field}: ClassVar[...] = ...")
    if kind.serves not in ("counts", "all", "probability", "classes") and not isinstance(kind.serves, property):
        raise refused(where, f"has serves = {kind.serves!r:.60}; brittle.scores.Score says what it may be")


def check_dataclass(kind: type, where: str) -> None:
    """Raise unless `kind`, named by `where`, is a frozen dataclass."""
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise refused(where, "is no frozen dataclass; write @dataclass(frozen=True) above the class")


def check_score(score: ScoreLike) -> None:
    """Raise unless the class of a score is sound, its label tells it from others, and its needs are measurements."""
    check_parameters(score)
    with failing(type(score), "needs"):
        hash((score.needs, *(need.stream for need in score.needs)))


def check_parameters(score: ScoreLike) -> None:
    """Raise unless the class of a score is sound, and every field that decides equality stands in a parameter. One that
    is its default may be left out."""
    kind: Any = type(score)
    check_class(kind, f"{kind.__module__}.{kind.__qualname__}")
    with failing(kind, "parameters"):
        parameters = {**score.parameters}
    hidden = []
    for one in fields(kind):
        if not one.compare or one.metadata.get(KEY, KEY) is None or one.name in parameters:
            continue
        value = getattr(score, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        same = value is None or value is default or value == default
        if getattr(same, "shape", ()) or not same:
            hidden.append(one.name)
    if hidden:
        raise refused(
            kind.__qualname__, f"leaves {', '.join(hidden)} out of its parameters, so no table could tell; add it"
        )


def check_serves(score: ScoreLike, classifier: Classifier) -> None:
    """Raise unless `score` is about what such a model decides."""
    decision = classifier.decision
    if score.serves != "counts":
        classifier.check_margins(score.name)
    noise, of_texts = getattr(score, "noise", None), is_text_function(classifier.model)
    if of_texts and any(isinstance(need, Nearest) for need in score.needs):
        raise ParameterError(f"{score.name} searches among numbers, and the model reads texts; use monte_carlo")
    if isinstance(noise, Noise) and (noise.added if of_texts else getattr(noise, "of_characters", False)):
        raise ParameterError(
            f"noise {noise.name} is for {'numbers' if of_texts else 'texts'}, and the model reads "
            f"{'texts' if of_texts else 'numbers'}; a TextFunction takes Edits and Paraphrases, and nothing else does"
        )
    reads_probability = score.serves == "probability"
    if reads_probability and decision.of_classes and not classifier.has_probability:
        model = getattr(classifier.model, "__name__", "the model")
        raise ParameterError(
            f"{score.name} reads a probability, and {model} has no predict_proba; use shrinkage, monte_carlo, moments, "
            f"logit_margin or another score of margins"
        )
    if not (classifier.has_probability if reads_probability else decision.of_classes or score.serves != "classes"):
        about = "a probability of the decision" if reads_probability else "the scores of classes"
        raise ParameterError(
            f"{score.name} reads {about}, which {decision.label} ({decision.explanation}) does not have; use "
            f"shrinkage, monte_carlo, moments, taylor, input_margin or another score of margins",
        )


def fault_of(found: object, points: int, is_probability: bool) -> str | None:
    """The first thing that is wrong with an estimate of so many points; None where nothing is."""
    if not isinstance(found, Estimate):
        return f"{kind_of(found)}; expected an Estimate, as brittle.scores.base.finish makes it"
    numbers = {"value": found.value, "low": found.low, "high": found.high}
    numbers |= {f"counted[{at}]": end for at, end in enumerate(found.counted or ())}
    whole = {"status": found.status, "passes": found.passes}
    whole |= {} if found.evidence is None else {"evidence": found.evidence}
    for name, one in (numbers | whole).items():
        wanted = "int64" if name in whole else "float64"
        right = isinstance(one, Tensor) and (one.dtype is torch.int64 if name in whole else one.is_floating_point())
        if not right or one.shape != (points,):
            seen = f"{list(one.shape)} of {one.dtype}" if isinstance(one, Tensor) else kind_of(one)
            return f"{name} {seen}; expected [{points}] of torch.{wanted}, one for each point"
    detail = (None,) * points if found.detail is None else found.detail
    if len(detail) != points or not all(isinstance(one, str | None) for one in detail):
        return f"{len(detail)} details; expected {points}, a text or None for each point"
    if found.votes is not None and len(found.votes) != points:
        return f"{len(found.votes)} cells of votes; expected {points}, one for each point"
    for name, codes, known in (("status", found.status, Status), ("evidence", found.evidence, Evidence)):
        strange = set() if codes is None else {*codes.tolist()} - {int(one) for one in known}
        if strange:
            return f"the {name} {min(strange)}; expected a member of brittle.estimate.{known.__name__}"
    if bool((found.passes < 0).any()):
        return f"{int(found.passes.min())} passes; expected 0 or more"
    return _fault_of_numbers(found, is_probability)


def _fault_of_numbers(found: Estimate, is_probability: bool) -> str | None:
    """What is wrong with the numbers of the points whose status promises one."""
    valued = found.status.cpu() < int(Status.NONFINITE_INPUT)
    value, low, high = (each.detach().cpu() for each in (found.value, found.low, found.high))
    ordered = (low <= value) & (value <= high) | low.isnan() & high.isnan() & ~value.isnan()
    within = (value >= 0) & (value <= 1) if is_probability else torch.ones_like(ordered)
    for right, expected in (
        (ordered, "low <= value <= high, or NaN at both ends; a NaN value only under a status that carries no number"),
        (within, "a flip probability within [0, 1]"),
    ):
        wrong = (valued & ~right).nonzero().flatten().tolist()
        if wrong:
            at = wrong[0]
            ends = f"[{float(low[at]):.6g}, {float(high[at]):.6g}]"
            return f"{float(value[at]):.6g} with the interval {ends} for point {at} of the batch; expected {expected}"
    return None
