"""The catalogue: the only list of scores.

A score is a frozen dataclass that names the measurements it needs and turns them into an `Estimate`. Scores are
free; only measurements cost passes through the network.
"""

from __future__ import annotations

from brittle.scores.base import Score
from brittle.scores.change_bound import ChangeBound
from brittle.scores.entropy import Entropy
from brittle.scores.feature_distance import FeatureDistance
from brittle.scores.feature_margin import FeatureMargin
from brittle.scores.first_order_change import FirstOrderChange
from brittle.scores.first_order_margin import FirstOrderMargin
from brittle.scores.input_margin import InputMargin
from brittle.scores.laplacian import Laplacian
from brittle.scores.logit_margin import LogitMargin
from brittle.scores.max_probability import MaxProbability
from brittle.scores.mmse import MMSE, MMSEMVS, MMSEMargin
from brittle.scores.moments import Moments
from brittle.scores.monte_carlo import MonteCarlo
from brittle.scores.probability_change import ProbabilityChange
from brittle.scores.probability_margin import ProbabilityMargin
from brittle.scores.rare_event import RareEvent
from brittle.scores.shrinkage import Shrinkage
from brittle.scores.smoothed_laplacian import SmoothedLaplacian
from brittle.scores.softmax import Softmax
from brittle.scores.taylor import Taylor, TaylorMVS

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
        MMSEMargin,
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
        SmoothedLaplacian,
        ProbabilityChange,
        FirstOrderChange,
        ChangeBound,
    )
}
"""Every score by the name that tables and the command line use."""
