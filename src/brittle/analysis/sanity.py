"""Do the margins say what a strong attack says of the share of points that is right and stays right?"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from brittle.analysis.robust_accuracy import RobustAccuracy, direct_robust_accuracy
from brittle.errors import ParameterError
from brittle.estimate import CONFIDENCE


@dataclass(frozen=True)
class Sanity:
    """Do the margins agree with a strong attack at one perturbation size?

    Attributes:
        epsilon: the perturbation size.
        points: points with a margin and a label.
        robust_accuracy: share of them that are correct with a larger margin; NaN without points.
        low: lower end of its interval.
        high: upper end.
        attacked: the robust accuracy under the attack.
        difference: `robust_accuracy - attacked`; positive where the margins miss what the attack finds.
        agrees: whether the interval holds the attack's.
        verdict: in words.
    """

    epsilon: float
    points: int
    robust_accuracy: float
    low: float
    high: float
    attacked: float
    difference: float
    agrees: bool
    verdict: str


def sanity(
    margin: ArrayLike,
    correct: ArrayLike,
    epsilon: float,
    attacked_robust_accuracy: float,
    confidence: float = CONFIDENCE,
) -> Sanity:
    """The share of correct points with a margin above `epsilon` against the robust accuracy under a strong attack.

    Both estimate the same, and both from above: the smaller of the two is the nearer.

    Validity: they agree when the interval of the share holds the attack's number, which allows for the sampling of
    the points alone and takes that number as known; attacked on the very same points, a smaller difference tells.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.1 and appendix B.1, https://arxiv.org/abs/2406.18451

    Args:
        margin: distance to the nearest input with another prediction, `[n]`.
        correct: whether the prediction is the label, `[n]`.
        epsilon: perturbation size of both, in the unit of `margin`.
        attacked_robust_accuracy: share of points that are correct and withstand the attack, between 0 and 1.
        confidence: of the interval.

    Raises:
        ParameterError: as `direct_robust_accuracy`, or the attack's share is not between 0 and 1.
    """
    if not 0.0 <= attacked_robust_accuracy <= 1.0:
        raise ParameterError(
            f"the attack's robust accuracy must be a share between 0 and 1; found {attacked_robust_accuracy}",
        )
    found = direct_robust_accuracy(margin, correct, epsilon, confidence)
    return Sanity(
        epsilon=found.epsilon,
        points=found.points,
        robust_accuracy=found.robust_accuracy,
        low=found.low,
        high=found.high,
        attacked=float(attacked_robust_accuracy),
        difference=found.robust_accuracy - attacked_robust_accuracy,
        agrees=found.points > 0 and found.low <= attacked_robust_accuracy <= found.high,
        verdict=_verdict(found, attacked_robust_accuracy),
    )


def _verdict(found: RobustAccuracy, attacked: float) -> str:
    if found.points == 0:
        return "No point has both a margin and a label, so nothing can be compared."
    numbers = (
        f"by margins {found.robust_accuracy:.1%} ({found.low:.1%} to {found.high:.1%}) are correct and robust at "
        f"{found.epsilon:g}, under the attack {attacked:.1%}"
    )
    if attacked < found.low:
        return f"The margins are too large: {numbers}, so the search missed perturbations that the attack found."
    if attacked > found.high:
        return f"The attack is the weaker: {numbers}, so the search found perturbations that the attack missed."
    return f"The margins agree with the attack: {numbers}."
