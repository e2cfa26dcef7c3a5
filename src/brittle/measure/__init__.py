"""The only code that runs the network.

A measurement is a frozen dataclass, called on a batch of points that the network has already classified (`Clean`).
Equal measurements are one key in a dictionary, so a run takes each of them once per batch. Those that differ in the
number of draws alone share their passes: `take` measures the largest and reads the others off on the way.
"""

from brittle.measure.base import Features, Forward, HeadInputs, Measurement, NetworkTraits, Passes, passes_of, take
from brittle.measure.forward import Clean
from brittle.measure.linearize import Linearization, Linearize
from brittle.measure.nearest import Nearest, NearestPoint
from brittle.measure.noisy_margins import NoisyMargins, Spread, Votes
from brittle.measure.sample_sums import ProbabilityChanges, Sampled
from brittle.measure.sampling import Sample
from brittle.measure.stopping import SampleUntil

__all__ = [
    "Clean", "Features", "Forward", "HeadInputs", "Linearization", "Linearize", "Measurement", "Nearest",
    "NearestPoint", "NetworkTraits", "NoisyMargins", "Passes", "ProbabilityChanges", "Sample", "SampleUntil",
    "Sampled", "Spread", "Votes", "passes_of", "take",
]  # fmt: skip
