"""Scores: the catalogue, and what they have in common.

A score is a frozen dataclass that names the measurements it needs and turns them into an `Estimate`. Scores are
free; only measurements cost passes through the network.
"""

from brittle.scores.base import NoiseScore, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.input_margin import FeatureDistance, InputMargin
from brittle.scores.laplacian import Laplacian
from brittle.scores.local_change import ChangeBound, FirstOrderChange
from brittle.scores.mmse import MMSE, MMSEMVS
from brittle.scores.moments import Moments
from brittle.scores.monte_carlo import MonteCarlo, SampledScore
from brittle.scores.one_pass import Entropy, FeatureMargin, LogitMargin, MaxProbability, ProbabilityMargin, Softmax
from brittle.scores.probability_change import ProbabilityChange
from brittle.scores.rare_event import RareEvent
from brittle.scores.shrinkage import Shrinkage
from brittle.scores.taylor import FirstOrderMargin, Taylor, TaylorMVS

__all__ = [
    "CATALOGUE", "MMSE", "MMSEMVS", "ChangeBound", "Entropy", "FeatureDistance", "FeatureMargin", "FirstOrderChange",
    "FirstOrderMargin", "InputMargin", "Laplacian", "LogitMargin", "MaxProbability", "Moments", "MonteCarlo",
    "NoiseScore", "ProbabilityChange", "ProbabilityMargin", "RareEvent", "SampledScore", "Score", "Shrinkage",
    "Softmax", "Taylor", "TaylorMVS",
]  # fmt: skip
