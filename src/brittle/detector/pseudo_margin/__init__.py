"""The pseudo-margin: input margins learned from features, for networks whose logit margin does not follow them."""

from brittle.detector.pseudo_margin.pseudo_margin import PseudoMargin
from brittle.detector.pseudo_margin.recipe import Recipe
from brittle.detector.pseudo_margin.regressor import Regressor
from brittle.detector.pseudo_margin.score import PseudoMarginScore

__all__ = [
    "PseudoMargin",
    "PseudoMarginScore",
    "Recipe",
    "Regressor",
]
