"""Decisions of a model: the predicted class, several labels, the best few, a number within a tolerance."""

from brittle.decisions.base import Decision
from brittle.decisions.kinds import Custom, MultiLabel, PredictedClass, SameTop, Within
from brittle.registry import find_attribute

__all__ = ["Custom", "Decision", "MultiLabel", "PredictedClass", "SameTop", "Within"]

__getattr__ = find_attribute(__name__, "decision")
