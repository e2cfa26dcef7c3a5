"""Probability that a normal vector is positive in every coordinate, with its complement and the error of both."""

from brittle.orthant.probability import ILL_CONDITIONED_ABOVE, OrthantProbability, orthant_probability, without_rounding
from brittle.orthant.separation import normal_cdf

__all__ = ["ILL_CONDITIONED_ABOVE", "OrthantProbability", "normal_cdf", "orthant_probability", "without_rounding"]
