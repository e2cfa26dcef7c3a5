"""What makes a prediction brittle, which points of a run are, and which of its scores are meant."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.decisions import MORE_DRAWS, decide
from brittle.detector.results import LeftOut
from brittle.errors import DataError, ParameterError
from brittle.estimate import INPUT_MARGIN, MOST_DRAWS, Parameter, Scalar, Status, parameters_json, score_label
from brittle.norms import COUNT, DUAL_ORDER, check_norm
from brittle.store.columns import BREAKS, HOLDS, Column, Scored
from brittle.store.record import ScoreRecord
from brittle.store.settings import setting_of
from brittle.store.table import Table


@dataclass(frozen=True)
class MarginCriterion:
    """A point is brittle when the nearest input with another prediction is at most `epsilon` away.

    Attributes:
        epsilon: margins up to this are brittle, in the declared pixel units.
        norm: of the margins, `l2`, `linf` or `l1`.
        margin: parameters of the margins: the norm, and how the nearest other decision was looked for.
    """

    epsilon: float
    norm: str
    margin: dict[str, Scalar]

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        return f"epsilon {self.epsilon:.6g} in {self.norm}"

    @property
    def wider(self) -> str:
        """What would make more points brittle."""
        return "a larger epsilon"

    def remedy(self, undecided: int, points: int) -> str:
        """Nothing: every margin decides."""
        return ""

    def __str__(self) -> str:
        return f"those with margins up to {self.epsilon:.6g} in {self.norm}"


@dataclass(frozen=True)
class NoiseCriterion:
    """A point is brittle when its prediction is kept with a probability below `limit` under the noise of a column.

    As far as the column knows (`brittle.analysis.decide`): a point is brittle where it `breaks`, robust where it
    `holds`, and neither where it is `undecided`.

    Attributes:
        limit: probability with which a prediction has to be kept, between 0 and 1.
        column: name of the score that estimated it, such as `monte_carlo`.
        noise: parameters of that score, the noise among them.
    """

    limit: float
    column: str
    noise: dict[str, Parameter]

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        return f"limit {self.limit:g} under {setting_of(self.noise)}"

    @property
    def wider(self) -> str:
        """What would make more points brittle."""
        return "a higher limit"

    def remedy(self, undecided: int, points: int) -> str:
        """How to score the points so that fewer are undecided; empty without any."""
        if not undecided:
            return ""
        said = f"{undecided} of {points} points are undecided, so neither brittle nor robust"
        if {"action", "scale", "factor", "code", "rows", "unit"} & self.noise.keys():
            return f"{said}; draw for this limit, brittle.score(..., until='decided', limit={self.limit:g})"
        draws = self.noise.get("draws")
        drawn = self.noise.get("limit") == self.limit and isinstance(draws, int)
        more = f" --most-draws {MORE_DRAWS * draws}" if drawn and isinstance(draws, int) else ""
        family = f" --noise {self.noise['noise']}" if "noise" in self.noise else ""
        return (
            f"{said}; fewer are where {'more' if drawn else f'up to {MOST_DRAWS:,}'} noisy copies are drawn for this "
            f"limit: brittle score MODEL DATA --scores monte_carlo logit_margin --sigma {self.noise.get('sigma')}"
            f"{family} --until decided --limit {self.limit:g}{more} --out RUN"
        )

    def __str__(self) -> str:
        label = score_label(self.column, self.noise)
        return f"those that keep their prediction with a probability below {self.limit:g}, as {label} says"


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

    def values(self, rows: pd.DataFrame) -> NDArray[np.float64]:
        """The values of a score at these points, `[n]`, from its rows by point."""
        absent = self.ids[~self.ids.isin(rows.index)]
        if len(absent):
            raise DataError(
                "runs_differ",
                f"{len(absent)} of {self.left_out.points} points that the detector is calibrated on are not in the run "
                f"of the scores, first {absent[0]!r:.60}; score all of them",
            )
        return rows.reindex(self.ids)["value"].to_numpy(np.float64)


def by_margin(rows: pd.DataFrame, criterion: MarginCriterion, learned_from: Collection[str] = ()) -> KnownPoints:
    """Points with a margin, which is at most epsilon or larger; doubtful (`masked`) ones are left out.

    Args:
        rows: the rows of the margins, by point.
        criterion: with epsilon.
        learned_from: ids of points that the score was trained on.
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
    """Raise where there are points, but all of their margins are on one side of `epsilon`."""
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


def _check_states(points: KnownPoints, criterion: NoiseCriterion) -> None:
    """Raise where there are points, but none that breaks or none that holds."""
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


def check_table(table: Any, name: str) -> None:
    """Raise where the parameter `name` is no run."""
    if not isinstance(table, Table):
        raise ParameterError(
            f"expected the brittle.Table of a run, found {type(table).__name__}; brittle.score gives one, and "
            f"brittle.read_table reads one from its folder",
        )


def check_label(name: str, label: str | None, example: str) -> None:
    """Raise unless the parameter `name`, the label of a score such as `example`, is text, or None."""
    if not isinstance(label, str | None):
        raise ParameterError(f"expected the label of a score, such as {example!r}, found {type(label).__name__}")


def norm_of(table: Table, norm: str | None, label: str | None = None) -> str:
    """`norm` itself; where it is None, the norm of the input margins of a run that holds them in one only.

    Args:
        table: the run.
        norm: `linf`, `l2`, `l1` or None.
        label: of the margins, where the run holds several.
    """
    if norm is not None:
        return check_norm(norm)
    margins = [one for one in table.record.scores if one.score == INPUT_MARGIN]
    found = dict.fromkeys(str(one.parameters.get("norm")) for one in margins if label in (None, one.label))
    if not found:
        raise _missing(table, label or INPUT_MARGIN)
    if len(found) > 1:
        raise DataError(
            "no_such_score",
            f"the run holds {INPUT_MARGIN} in {' and '.join(found)}; say which is meant with --norm (norm=)",
        )
    if COUNT in found:
        raise DataError(
            "no_such_score",
            f"the run holds {INPUT_MARGIN} in {COUNT} alone, for which there is no detector; score the points in one "
            f"of {', '.join(DUAL_ORDER)} (--norm, norm=)",
        )
    return check_norm(next(iter(found)))


def margin_entry(table: Table, norm: str, label: str | None) -> ScoreRecord:
    """The margins in `norm`; where the run holds those of another norm alone, the error says how to ask for them."""
    norms = {str(one.parameters.get("norm")) for one in table.record.scores if one.score == INPUT_MARGIN}
    if len(norms) == 1 and norm not in norms:
        other = norms.pop()
        raise DataError(
            "no_such_score",
            f"the run does not hold {INPUT_MARGIN} in {norm}, only in {other}; use --norm {other} (norm={other!r}), "
            f"with an epsilon for that norm",
        )
    return score_entry(table, INPUT_MARGIN, {"norm": norm}, label)


def score_entry(table: Table, score: str, wanted: Mapping[str, Parameter], label: str | None = None) -> ScoreRecord:
    """The one score of that name, parameters and label in the record of a run."""
    named = [entry for entry in table.record.scores if entry.score == score]
    fitting = [
        entry
        for entry in named
        if all(entry.parameters.get(key) == value for key, value in wanted.items()) and label in (None, entry.label)
    ]
    if len(fitting) == 1:
        return fitting[0]
    asked = label or (f"{score} with {parameters_json(wanted)}" if wanted else score)
    if fitting:
        labels = ", ".join(entry.label for entry in fitting)
        raise DataError("no_such_score", f"the run holds {asked} {len(fitting)} times: {labels}; name one by its label")
    raise _missing(table, asked)


def _missing(table: Table, asked: str) -> DataError:
    there = ", ".join(entry.label for entry in table.record.scores) or "none"
    return DataError("no_such_score", f"the run does not hold {asked}; its scores: {there}; score the points by it too")


def rows_by_point(table: Table, entry: ScoreRecord) -> pd.DataFrame:
    """The rows of one score, by point."""
    frame = table.long()
    wanted = (frame["score"] == entry.score) & (frame["parameters"] == parameters_json(entry.parameters))
    return frame[wanted].set_index("point")
