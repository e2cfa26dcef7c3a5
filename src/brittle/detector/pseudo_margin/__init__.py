"""The pseudo-margin: input margins learned from features, for networks whose logit margin does not follow them."""

from brittle.detector.pseudo_margin.learned import PseudoMarginScore, Recipe, Regressor
from brittle.detector.pseudo_margin.pseudo_margin import PseudoMargin

__all__ = [
    "PseudoMargin",
    "PseudoMarginScore",
    "Recipe",
    "Regressor",
]
