"""What share of the points is right and surely stays so under nearly all of the noise?"""

from __future__ import annotations

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
        column: the column that says how probably a prediction is kept.
        rho: the probability that is asked for.
        points: points with a label and a prediction.
        right: those of the points that are predicted right.
        holding: right ones that surely hold: their interval lies at or above `rho`.
        undecided: right ones whose interval holds `rho` inside, or that have none.
        lower: share that are right and surely hold; NaN without points.
        upper: the same with the undecided ones.
        low: lower end of the interval of the population's share.
        high: upper end.
        confidence: of that interval, and of those of the points.
    """

    column: Column
    rho: float
    points: int
    right: int
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

    A right point counts as holding where its interval `[1 - high, 1 - low]` of `p_robust` lies at or above `rho`, as
    breaking where it lies below, and as undecided where `rho` lies inside, which more draws may decide. `lower` is the
    share of the holding ones, `upper` that with the undecided ones.

    The interval covers `A_rho` of the population that the points come from, whatever the undecided ones are. With
    `a = (1 - confidence) / 2`, its ends come from the Clopper-Pearson bounds `l` of `lower` and `u` of `upper`, each at
    `a`, and from what intervals of points may miss: a point that does not hold is called holding with probability at
    most `a`, so that `l` less those is `(l - a) / (1 - a)`, and one that holds is called breaking with at most `a`, so
    that `u` with those is `u / (1 - a)`.

    Validity: points drawn independently, and intervals of points that miss on either side with probability at most
    `a`: those of `monte_carlo` do for any network, those of other scores as far as their own validity goes. Robey et
    al. ask that a noisy copy gets the right label, whatever the clean one gets; here the clean one must have it too.

    References:
        Probabilistically robust learning: balancing average- and worst-case performance, Alexander Robey et al., 2022,
        https://arxiv.org/abs/2202.01136

    Args:
        table: a run with labels.
        rho: probability between 0 and 1, such as 0.95.
        column: a probability column; by default the one drawn for `rho`, else the one that speaks for the run.

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
    known = ends.dropna()
    flip = (1.0 - rho) * (1.0 + 1e-12)  # rounded: `1 - 0.95` is not 0.05
    points, confidence = int(correct.notna().sum()), table.record.confidence
    right, holding, breaking = len(ends), int(np.sum(known["high"] <= flip)), int(np.sum(known["low"] > flip))
    possible = right - breaking
    low, high = _interval(holding, possible, points, confidence) if points else (0.0, 1.0)
    lower, upper = (count / points if points else math.nan for count in (holding, possible))
    return ProbabilisticAccuracy(
        column=column,
        rho=float(rho),
        points=points,
        right=right,
        holding=holding,
        undecided=possible - holding,
        lower=lower,
        upper=upper,
        low=low,
        high=high,
        confidence=confidence,
    )


def _interval(holding: int, possible: int, points: int, confidence: float) -> tuple[float, float]:
    missed = (1.0 - confidence) / 2.0
    low = float(clopper_pearson(holding, points, confidence)[0])
    high = float(clopper_pearson(possible, points, confidence)[1])
    return max(0.0, (low - missed) / (1.0 - missed)), min(1.0, high / (1.0 - missed))
