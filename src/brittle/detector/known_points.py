"""The points of a run of which it is known whether they are brittle: by their margin, or by what noise does to them."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.decisions import decide
from brittle.detector.criterion import Criterion, MarginCriterion, NoiseCriterion
from brittle.detector.results import LeftOut
from brittle.detector.scoring import ScoreReading
from brittle.errors import DataError
from brittle.estimate import Status
from brittle.store.columns import BREAKS, HOLDS, Column, Scored


@dataclass(frozen=True)
class KnownPoints:
    """The points of a run that a detector can be calibrated on, in the order of their ids.

    Attributes:
        ids: `[n]`.
        truth: margin, or probability that the prediction is kept, `[n]`: larger where safer, never NaN.
        brittle: which are brittle, `[n]`.
        robust: which are robust, `[n]`; a point that is neither is undecided.
        left_out: how many points the run holds, and how many of them are not among these.
    """

    ids: pd.Index
    truth: NDArray[np.float64]
    brittle: NDArray[np.bool_]
    robust: NDArray[np.bool_]
    left_out: LeftOut

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Which are neither brittle nor robust, `[n]`."""
        return ~(self.brittle | self.robust)

    def scores(self, rows: pd.DataFrame, reading: ScoreReading) -> NDArray[np.float64]:
        """A score of these points, larger where safer, `[n]`; minus infinity where there is no finite number.

        Args:
            rows: the rows of the score, by point.
            reading: how a detector reads it.

        Raises:
            DataError: one of the points is not among `rows`.
        """
        absent = self.ids[~self.ids.isin(rows.index)]
        if len(absent):
            raise DataError(
                "runs_differ",
                f"{len(absent)} of {self.left_out.points} points that the detector is calibrated on are not in the run "
                f"of the scores, first {absent[0]!r:.60}; score all of them",
            )
        safety = reading.oriented(rows.reindex(self.ids)["value"].to_numpy(np.float64))
        return np.where(np.isfinite(safety), safety, -np.inf)


def by_margin(rows: pd.DataFrame, criterion: MarginCriterion, learned_from: Collection[str] = ()) -> KnownPoints:
    """Points with a margin, which is at most epsilon or larger; doubtful (`masked`) ones are left out.

    Args:
        rows: the rows of the margins, by point.
        criterion: with epsilon.
        learned_from: ids of points that the score was trained on.

    Raises:
        DataError: all of the margins are on one side of epsilon.
    """
    rows = rows.sort_index()
    margins = rows["value"].to_numpy(np.float64)
    masked = (rows["status"] == Status.MASKED.slug).to_numpy(bool)
    used, left_out = _usable(rows.index, np.isnan(margins) & ~masked, masked, learned_from)
    known = margins[used]
    _check_margins(known, criterion.epsilon)
    brittle = known <= criterion.epsilon
    return KnownPoints(rows.index[used], known, brittle, ~brittle, left_out)


def by_decision(
    table: Scored, column: Column, criterion: NoiseCriterion, learned_from: Collection[str] = ()
) -> KnownPoints:
    """Points with a flip probability, that break, hold or are undecided at the limit (`brittle.analysis.decide`).

    Args:
        table: the run.
        column: its flip probability to read.
        criterion: with the limit.
        learned_from: ids of points that the score was trained on.

    Raises:
        DataError: no point breaks, or none holds.
    """
    found = decide(table, criterion.limit, column).set_index("point").sort_index()
    states = found["state"].to_numpy(object)
    nothing = np.array([state is None for state in states], dtype=bool)
    used, left_out = _usable(found.index, nothing, np.zeros_like(nothing), learned_from)
    kept = column.p_robust.reindex(found.index).to_numpy(np.float64)
    points = KnownPoints(found.index[used], kept[used], (states == BREAKS)[used], (states == HOLDS)[used], left_out)
    _check_states(points, criterion)
    return points


def _usable(
    ids: pd.Index, unknown: NDArray[np.bool_], masked: NDArray[np.bool_], learned_from: Collection[str]
) -> tuple[NDArray[np.bool_], LeftOut]:
    """Which points can be used, `[N]`, and how many cannot, counted once each."""
    learned = ids.isin(list(learned_from)) & ~masked & ~unknown
    return ~(masked | unknown | learned), LeftOut(len(ids), int(masked.sum()), int(unknown.sum()), int(learned.sum()))


def _check_margins(margins: NDArray[np.float64], epsilon: float) -> None:
    """Raise where there are points, but all of their margins are on one side of `epsilon`.

    Raises:
        DataError: they are.
    """
    if not margins.size:
        return
    smallest, largest = float(margins.min()), float(margins.max())
    units = "in the units of the inputs, such as 8/255 where they range from 0 to 1"
    if largest <= epsilon:
        raise DataError(
            "too_few_points",
            f"every margin is at most {epsilon:g}, so there is no robust point to tell apart; the largest is "
            f"{largest:.4g}: choose a smaller epsilon, {units}",
        )
    if smallest > epsilon:
        found = f"the smallest is {smallest:.4g}" if math.isfinite(smallest) else "no other prediction was found at all"
        raise DataError(
            "too_few_points",
            f"every margin is larger than {epsilon:g}, so there is no brittle point to calibrate on; {found}: choose a "
            f"larger epsilon, {units}",
        )


def _check_states(points: KnownPoints, criterion: Criterion) -> None:
    """Raise where there are points, but none that breaks or none that holds.

    Raises:
        DataError: there are.
    """
    if not points.truth.size:
        return
    brittle, robust, undecided = (int(kind.sum()) for kind in (points.brittle, points.robust, points.undecided))
    remedy = criterion.remedy(undecided, points.truth.size)
    more = f"; {remedy}" if remedy else ""
    if not brittle:
        raise DataError(
            "too_few_points",
            f"no prediction breaks at {criterion.size} ({robust} hold, {undecided} are undecided), so there is no "
            f"brittle point to calibrate on: choose a higher limit or a larger sigma{more}",
        )
    if not robust:
        raise DataError(
            "too_few_points",
            f"no prediction holds at {criterion.size} ({brittle} break, {undecided} are undecided), so there is no "
            f"robust point to tell apart: choose a lower limit or a smaller sigma{more}",
        )
