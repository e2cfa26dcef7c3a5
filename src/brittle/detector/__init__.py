"""A calibrated rule that says from one forward pass whether a prediction is brittle, tied to its model."""

from brittle.detector.calibration import points_needed, steady_rate
from brittle.detector.criterion import Criterion
from brittle.detector.detector import Detector
from brittle.detector.flags import FLAGS, check_out, write_flags
from brittle.detector.identity import Identity, Source
from brittle.detector.network import DetectorNetwork
from brittle.detector.results import Counts, Rate, Verdict
from brittle.detector.scoring import READINGS, kind_of, oriented

__all__ = [
    "FLAGS", "READINGS", "Counts", "Criterion", "Detector", "DetectorNetwork", "Identity", "Rate", "Source", "Verdict",
    "check_out", "kind_of", "oriented", "points_needed", "steady_rate", "write_flags",
]  # fmt: skip
