"""What a model decides: the predicted class, several labels, the best few, a number within a
tolerance, masks, boxes."""

from brittle.decisions.base import Decision
from brittle.decisions.by_user import Custom
from brittle.decisions.kinds import PredictedClass, SameTop, Within, as_decision
from brittle.decisions.labels import MultiLabel
from brittle.decisions.regions import Boxes, Masks

__all__ = [
    "Boxes",
    "Custom",
    "Decision",
    "Masks",
    "MultiLabel",
    "PredictedClass",
    "SameTop",
    "Within",
    "as_decision",
]
