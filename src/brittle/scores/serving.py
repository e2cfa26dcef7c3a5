"""Which decisions a score is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal, Protocol

from brittle.decisions import Decision, MultiLabel
from brittle.errors import ParameterError
from brittle.model.classifier import Classifier

Serves = Literal["all", "probability", "classes"]
"""All decisions, which have margins; those with a probability of their own; the predicted class alone."""


class Serving(Protocol):
    """What is asked of a score."""

    name: ClassVar[str]
    serves: ClassVar[Serves]


def serves(score: Serving | type[Serving], decision: Decision) -> bool:
    """Whether `score` is about such a decision; of all labels and each of them, about each."""
    if isinstance(decision, MultiLabel) and decision.each:
        return serves(score, decision.alone(0))
    if decision.of_classes or score.serves == "all":
        return True
    return score.serves == "probability" and decision.has_probability


def check_serves(score: Serving, classifier: object) -> None:
    """Raise unless `score` is about what `classifier` decides.

    Raises:
        ParameterError: it is not.
    """
    if not isinstance(classifier, Classifier):
        return
    decision = classifier.decision
    if isinstance(decision, MultiLabel) and decision.each:  # alone it answers for all labels together
        decision = replace(decision, each=False)
    if serves(score, decision):
        return
    about = "a probability of the decision" if score.serves == "probability" else "the scores of classes"
    raise ParameterError(
        f"{score.name} reads {about}, which {decision.label} ({decision.explanation}) does not have; use shrinkage, "
        f"monte_carlo, moments, taylor, input_margin or another score of margins",
    )


def check_all_serve(scores: Iterable[Serving], classifier: Classifier) -> None:
    """Raise unless every one of `scores` is about what `classifier` decides.

    Raises:
        ParameterError: one is not.
    """
    for score in scores:
        if not serves(score, classifier.decision):
            check_serves(score, classifier)
