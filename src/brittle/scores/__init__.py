"""Scores: the catalogue, and what they have in common.

A score is a frozen dataclass that names the measurements it needs and turns them into an `Estimate`. Scores are
free; only measurements cost passes through the network.
"""

from brittle.registry import find_attribute
from brittle.scores.base import NoiseScore, Score
from brittle.scores.input_margin import InputMargin
from brittle.scores.moments import Moments
from brittle.scores.monte_carlo import MonteCarlo
from brittle.scores.one_pass import Entropy, FeatureMargin, LogitMargin, MaxProbability, ProbabilityMargin, Softmax
from brittle.scores.shrinkage import Shrinkage
from brittle.scores.taylor import Taylor

__all__ = [
    "Entropy", "FeatureMargin", "InputMargin", "LogitMargin", "MaxProbability", "Moments", "MonteCarlo", "NoiseScore",
    "ProbabilityMargin", "Score", "Shrinkage", "Softmax", "Taylor",
]  # fmt: skip

__getattr__ = find_attribute(__name__, "score")
