"""What a model decides: the predicted class, several labels, the best few, a number within a tolerance."""

from brittle.decisions.base import Decision
from brittle.decisions.by_user import Custom
from brittle.decisions.kinds import PredictedClass, SameTop, Within, as_decision
from brittle.decisions.labels import MultiLabel

__all__ = [
    "Custom",
    "Decision",
    "MultiLabel",
    "PredictedClass",
    "SameTop",
    "Within",
    "as_decision",
]
