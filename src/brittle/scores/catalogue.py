"""The catalogue: the only list of scores."""

from __future__ import annotations

from brittle.scores.base import Score
from brittle.scores.input_margin import FeatureDistance, InputMargin
from brittle.scores.laplacian import Laplacian
from brittle.scores.local_change import ChangeBound, FirstOrderChange
from brittle.scores.mmse import MMSE, MMSEMVS
from brittle.scores.moments import Moments
from brittle.scores.monte_carlo import MonteCarlo
from brittle.scores.one_pass import Entropy, FeatureMargin, LogitMargin, MaxProbability, ProbabilityMargin, Softmax
from brittle.scores.probability_change import ProbabilityChange
from brittle.scores.rare_event import RareEvent
from brittle.scores.shrinkage import Shrinkage
from brittle.scores.taylor import FirstOrderMargin, Taylor, TaylorMVS

CATALOGUE: dict[str, type[Score]] = {
    score.name: score
    for score in (
        MonteCarlo,
        Moments,
        Shrinkage,
        Taylor,
        TaylorMVS,
        MMSE,
        MMSEMVS,
        Softmax,
        RareEvent,
        InputMargin,
        LogitMargin,
        FeatureMargin,
        FirstOrderMargin,
        FeatureDistance,
        MaxProbability,
        ProbabilityMargin,
        Entropy,
        Laplacian,
        ProbabilityChange,
        FirstOrderChange,
        ChangeBound,
    )
}
"""Every score by the name that tables and the command line use."""
