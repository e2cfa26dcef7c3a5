"""The share of points that are right and surely stay right under nearly all of the noise."""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from brittle.analysis.columns import check_column
from brittle.errors import DataError, ParameterError
from brittle.intervals import clopper_pearson
from brittle.store.columns import Column
from brittle.store.representative import representative_column
from brittle.store.table import Table


@dataclass(frozen=True, eq=False)
class ProbabilisticAccuracy:
    """Share of labelled points that are predicted right and keep that with probability at least `rho` under noise.

    Attributes:
        column: the column with the probability to keep the prediction.
        rho: the required probability.
        points: number of points with a label and a prediction.
        correct: number of points that are predicted right.
        holding: number of right points that surely hold: their interval lies at or above `rho`.
        undecided: number of right points whose interval contains `rho`, or that have no interval.
        lower: share of points that are right and surely hold; NaN without points.
        upper: the same with the undecided points.
        low: lower end of the interval of the share in the population.
        high: upper end.
        confidence: confidence of that interval, and of the intervals of the points.
    """

    column: Column
    rho: float
    points: int
    correct: int
    holding: int
    undecided: int
    lower: float
    upper: float
    low: float
    high: float
    confidence: float


def probabilistic_accuracy(table: Table, rho: float, column: Column | None = None) -> ProbabilisticAccuracy:
    r"""Probabilistic robust accuracy: the share of points that are right and hold with probability at least `rho`.

    $$A_\rho = P(\mathrm{right\ and\ } p_{robust} \ge \rho)$$

    A right point counts as holding if its interval `[1 - high, 1 - low]` of `p_robust` lies at or above `rho`, as
    breaking if it lies below, and as undecided if `rho` lies inside, which more draws may decide. `lower` is the share
    of holding points, `upper` that of holding and undecided points.

    The interval covers `A_rho` of the population of the points, whatever the undecided points are. With
    `a = (1 - confidence) / 2`, its ends come from the Clopper-Pearson bounds `l` of `lower` and `u` of `upper`, each at
    `a`, and from the misses of the intervals of points: a point that does not hold counts as holding with probability
    at most `a`, so that `l` without these is `(l - a) / (1 - a)`, and a point that holds counts as breaking with
    probability at most `a`, so that `u` with these is `u / (1 - a)`.

    Validity: points drawn independently, and intervals of points that miss on either side with probability at most
    `a`: those of `monte_carlo` for any network, those of other scores within their validity. Robey et al. require that
    a noisy copy gets the right label, whatever the clean input gets; here the clean input must get it too.

    References:
        Probabilistically robust learning: balancing average- and worst-case performance, Alexander Robey et al., 2022,
        https://arxiv.org/abs/2202.01136

    Args:
        table: a run with labels.
        rho: probability between 0 and 1, such as 0.95.
        column: a probability column; by default the one drawn for `rho`, else the representative of the run.

    Raises:
        DataError: the table holds no probability.
        ParameterError: `rho` is not above 0 and at most 1.
    """
    check_column("column", column)
    if not (isinstance(rho, Real) and 0.0 < rho <= 1.0):
        raise ParameterError(f"rho must be a probability above 0 and at most 1; found {rho!r:.60}")
    column = column if column is not None else representative_column(table.columns, rho)
    if column is None or not column.is_probability:
        raise DataError("no_such_score", "the run holds no probability of keeping the prediction; score it by one")
    correct = table.points.select(["point", "correct"]).to_pandas().set_index("point")["correct"]
    ends = column.rows[["low", "high"]].reindex(correct.index[correct.eq(True)])
    intervals = ends.dropna()
    flip = (1.0 - rho) * (1.0 + 1e-12)  # rounded: `1 - 0.95` is not 0.05
    points, confidence = int(correct.notna().sum()), table.record.confidence
    holding, breaking = int(np.sum(intervals["high"] <= flip)), int(np.sum(intervals["low"] > flip))
    possible = len(ends) - breaking
    low, high = _interval(holding, possible, points, confidence) if points else (0.0, 1.0)
    lower, upper = (count / points if points else math.nan for count in (holding, possible))
    return ProbabilisticAccuracy(
        column=column,
        rho=float(rho),
        points=points,
        correct=len(ends),
        holding=holding,
        undecided=possible - holding,
        lower=lower,
        upper=upper,
        low=low,
        high=high,
        confidence=confidence,
    )


def _interval(holding: int, possible: int, points: int, confidence: float) -> tuple[float, float]:
    tail = (1.0 - confidence) / 2.0
    low = float(clopper_pearson(holding, points, confidence)[0])
    high = float(clopper_pearson(possible, points, confidence)[1])
    return max(0.0, (low - tail) / (1.0 - tail)), min(1.0, high / (1.0 - tail))
