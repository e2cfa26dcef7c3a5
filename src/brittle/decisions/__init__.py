"""What a model decides: the predicted class, one logit, several labels, the best few, a number within a tolerance."""

from brittle.decisions.base import Decision
from brittle.decisions.by_user import Custom
from brittle.decisions.classes import OneLogit, PredictedClass, SameTop
from brittle.decisions.labels import MultiLabel, OneLabel
from brittle.decisions.named import DECISIONS, as_decision
from brittle.decisions.numbers import Within

__all__ = [
    "DECISIONS",
    "Custom",
    "Decision",
    "MultiLabel",
    "OneLabel",
    "OneLogit",
    "PredictedClass",
    "SameTop",
    "Within",
    "as_decision",
]
