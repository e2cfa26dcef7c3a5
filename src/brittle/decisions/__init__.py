"""What a model decides: the predicted class, one logit, several labels, the best few, a number within a tolerance."""

from brittle.decisions.base import Decision
from brittle.decisions.by_user import Custom
from brittle.decisions.kinds import OneLogit, PredictedClass, SameTop, Within, as_decision
from brittle.decisions.labels import MultiLabel, OneLabel

__all__ = [
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
