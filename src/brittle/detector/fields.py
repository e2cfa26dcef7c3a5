"""What the file of a detector holds."""

from __future__ import annotations

from dataclasses import dataclass

from brittle.detector.criterion import MarginCriterion, NoiseCriterion
from brittle.detector.identity import Identity
from brittle.detector.results import Counts, Rate, Verdict
from brittle.estimate import Scalar

FORMAT = 1
"""Version of the detector file."""


@dataclass(frozen=True)
class DetectorFields:
    """What the file of a detector holds, in the order of the file.

    Attributes:
        format: version of the file.
        brittle: version of the package that fitted it.
        model: the model it belongs to.
        criterion: what makes a point brittle.
        score: name of the score, one of `READINGS`; larger is safer.
        parameters: of the score.
        head: name of the last linear layer that its features are of, or None where that is found or not needed.
        threshold: a score below it is brittle.
        tpr: true positive rate that the threshold was chosen for.
        confidence: of every interval.
        seed: of the split into calibration and held-out points.
        counts: what became of the points of the run.
        true_positives: share of held-out brittle points that are flagged.
        false_positives: share of robust points that are flagged.
        verdict: whether the score may be trusted for this model.
    """

    format: int
    brittle: str
    model: Identity
    criterion: MarginCriterion | NoiseCriterion
    score: str
    parameters: dict[str, Scalar]
    head: str | None
    threshold: float
    tpr: float
    confidence: float
    seed: int
    counts: Counts
    true_positives: Rate
    false_positives: Rate
    verdict: Verdict
