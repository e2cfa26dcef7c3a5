"""Does a score order the points as their distances to the boundary do, and does the geometry say why?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from brittle.analysis.correlation import Correlation, kendall, paired
from brittle.estimate import CONFIDENCE
from brittle.intervals import check_confidence


@dataclass(frozen=True)
class Isometry:
    """How far distances between features follow distances between inputs.

    Attributes:
        points: pairs of distances compared.
        dropped: pairs left out because either is missing or infinite.
        spearman: correlation of the ranks.
        kappa: median of `feature distance / input distance` over the points whose inputs differ.
        kappa_low: lower quartile of the ratios; an isometry has the same three.
        kappa_high: upper quartile.
    """

    points: int
    dropped: int
    spearman: float
    kappa: float
    kappa_low: float
    kappa_high: float


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


def isometry(input_distance: ArrayLike, feature_distance: ArrayLike) -> Isometry:
    r"""Do features move in proportion to inputs, `||h(x) - h(x')|| = kappa ||x - x'||`?

    The paper's conjecture why margins are consistent, checked on points `x` and their nearest inputs `x'` with another
    prediction.

    Validity: descriptive; a correlation over points of one scale each, not a proof of an isometry. A correlation with
    a constant is NaN.

    References:
        Detecting brittle decisions for free, Jonas Ngnawé et al., 2024, section 3.2, figure 6,
        https://arxiv.org/abs/2406.18451

    Args:
        input_distance: `||x - x'||` in units of the input, `[n]`; a point that is NaN, None or infinite is left out.
        feature_distance: `||h(x) - h(x')||` in units of the features, `[n]`; likewise.

    Raises:
        ParameterError: the arrays differ in length.

    Example:
        >>> isometry([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]).kappa
        2.0
    """
    (inputs, features), missing = paired(input_distance=input_distance, feature_distance=feature_distance)
    finite = np.isfinite(inputs) & np.isfinite(features)
    inputs, features = inputs[finite], features[finite]
    varied = min(np.unique(inputs).size, np.unique(features).size) > 1
    moved = inputs > 0.0
    kappa_low, kappa, kappa_high = (
        np.quantile(features[moved] / inputs[moved], [0.25, 0.5, 0.75]).tolist() if moved.any() else [math.nan] * 3
    )
    return Isometry(
        points=inputs.size,
        dropped=missing + int((~finite).sum()),
        spearman=float(scipy.stats.spearmanr(inputs, features).statistic) if varied else math.nan,
        kappa=kappa,
        kappa_low=kappa_low,
        kappa_high=kappa_high,
    )
