"""Does a score order the points as their distances to the boundary do?"""

from __future__ import annotations

from numpy.typing import ArrayLike

from brittle.analysis.correlation import Correlation, kendall, paired
from brittle.estimate import CONFIDENCE
from brittle.intervals import check_confidence


def margin_consistency(margin: ArrayLike, score: ArrayLike, confidence: float = CONFIDENCE) -> Correlation:
    r"""Kendall's tau-b between input margins and a score, with an interval over points.

    $$\tau_b = \frac{\sum_{ij} a_{ij} b_{ij}}{\sqrt{\sum_{ij} a_{ij}^2 \sum_{ij} b_{ij}^2}}, \qquad
    a_{ij} = \operatorname{sign}(d_i - d_j), \quad b_{ij} = \operatorname{sign}(s_i - s_j).$$

    The interval is Student's, on the scale of `atanh(tau)`, from the jackknife over points (`correlation.kendall`).
    Below 10 points it is the whole range.

    Validity: the interval covers the sampling of points, drawn independently, to first order in `1 / n` (tests measure
    it from 20 points on); not the error of the margins, which from attacks are upper bounds. Points whose margin is
    infinite, because nothing was found, tie as the largest.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 2.2, https://arxiv.org/abs/2406.18451
        A class of statistics with asymptotically normal distribution, Wassily Hoeffding, 1948.
        Jackknifing U-statistics, James N. Arvesen, 1969.

    Args:
        margin: distance to the nearest input with another prediction, `[n]`; may be infinite; NaN or None is left out.
        score: larger where safer, `[n]`; NaN or None is left out.
        confidence: two-sided coverage, such as 0.99.

    Returns:
        `points` compared and `dropped`; `value`, which is 1 for a margin-consistent model and NaN where either is
        constant, with `low` and `high`, -1 and 1 where nothing can be said.

    Raises:
        ParameterError: the arrays differ in length, or the confidence is not between 0 and 1.

    Example:
        >>> round(margin_consistency([0.1, 0.2, 0.3, float("inf")], [1.0, 3.0, 2.0, 4.0]).value, 3)
        0.667
    """
    check_confidence(confidence)
    (margins, scores), dropped = paired(margin=margin, score=score)
    return kendall(margins, scores, confidence)._replace(dropped=dropped)
