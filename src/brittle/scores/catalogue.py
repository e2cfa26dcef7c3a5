"""The catalogue: the only list of scores, those of extensions from the registry."""

from collections.abc import Mapping

from brittle.registry import Registry
from brittle.scores.base import Score
from brittle.scores.input_margin import InputMargin
from brittle.scores.moments import Moments
from brittle.scores.monte_carlo import MonteCarlo
from brittle.scores.one_pass import Entropy, FeatureMargin, LogitMargin, MaxProbability, ProbabilityMargin, Softmax
from brittle.scores.shrinkage import Shrinkage
from brittle.scores.taylor import Taylor

_ESTIMATES = (MonteCarlo, Moments, Shrinkage, Taylor, Softmax)
_MARGINS = (InputMargin, LogitMargin, FeatureMargin, MaxProbability, ProbabilityMargin, Entropy)
CATALOGUE: Mapping[str, type[Score]] = Registry("score", {kind.name: kind for kind in _ESTIMATES + _MARGINS}, Score)
