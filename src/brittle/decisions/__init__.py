"""Decisions of a model: the predicted class, several labels, the best few, a number within a tolerance."""

from brittle.decisions.base import Decision
from brittle.decisions.kinds import DECISIONS, Custom, PredictedClass, SameTop, Within, as_decision
from brittle.decisions.labels import MultiLabel
from brittle.registry import find_attribute

__all__ = [
    "DECISIONS", "Custom", "Decision", "MultiLabel", "PredictedClass", "SameTop", "Within", "as_decision",
]  # fmt: skip

__getattr__ = find_attribute(__name__, "decision")
