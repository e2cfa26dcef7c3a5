"""What makes a prediction brittle, and which points of a run are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from brittle.analysis.decisions import MORE_DRAWS, column_for, decide
from brittle.errors import DataError, ParameterError
from brittle.estimate import INPUT_MARGIN, MOST_DRAWS, Parameter, Status, parameters_json, score_label
from brittle.norms import COUNT, DUAL_ORDER, check_norm
from brittle.store.columns import BREAKS, HOLDS, Column
from brittle.store.keys import column_of
from brittle.store.settings import setting_of
from brittle.store.table import Table


class MarginCriterion(Struct, frozen=True, tag="margin", tag_field="by"):
    """A point is brittle when the nearest input with another prediction is at most `epsilon` away.

    Attributes:
        epsilon: margins up to this are brittle, in the declared pixel units.
        norm: of the margins, `l2`, `linf` or `l1`.
        margin: parameters of the margins: the norm, and how the nearest other decision was looked for.
    """

    epsilon: float
    norm: str
    margin: dict[str, Parameter]

    def __post_init__(self) -> None:
        check_norm(self.norm)
        if not self.epsilon > 0.0:
            raise ParameterError(f"epsilon must be positive; found {self.epsilon!r}")

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        return f"epsilon {self.epsilon:.6g} in {self.norm}"

    def __str__(self) -> str:
        return f"those with margins up to {self.epsilon:.6g} in {self.norm}"


class NoiseCriterion(Struct, frozen=True, tag="noise", tag_field="by"):
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

    def __post_init__(self) -> None:
        if not 0.0 < self.limit < 1.0:
            raise ParameterError(f"limit must lie between 0 and 1; found {self.limit!r}")

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        return f"limit {self.limit:g} under {setting_of(self.noise)}"

    @property
    def remedy(self) -> str:
        """How to score the points so that fewer are undecided."""
        draws = self.noise.get("draws")
        more = MORE_DRAWS * draws if self.noise.get("limit") == self.limit and isinstance(draws, int) else MOST_DRAWS
        return f"fewer are where they are scored with --until decided --limit {self.limit:g} --most-draws {more}"

    def __str__(self) -> str:
        label = score_label(self.column, self.noise)
        return f"those that keep their prediction with a probability below {self.limit:g}, as {label} says"


@dataclass(frozen=True)
class KnownPoints:
    """The points of a run that a detector can be calibrated on, in the order of their ids, and how many are left out.

    Attributes:
        ids: `[n]`.
        truth: margin, or probability that the prediction is kept, `[n]`: larger where safer, never NaN.
        brittle: which are brittle, `[n]`.
        robust: which are robust, `[n]`; a point that is neither is undecided.
        masked: points left out because their margin is doubtful.
        without_number: points left out because they have no margin, or no flip probability.
        learned_from: points left out because the score was trained on them.
    """

    ids: pd.Index
    truth: NDArray[np.float64]
    brittle: NDArray[np.bool_]
    robust: NDArray[np.bool_]
    masked: int = 0
    without_number: int = 0
    learned_from: int = 0

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Which are neither brittle nor robust, `[n]`."""
        return ~(self.brittle | self.robust)

    @property
    def left_out(self) -> dict[str, int]:
        """How many points were left out, by the reason."""
        return {name: getattr(self, name) for name in ("masked", "without_number", "learned_from")}

    def values(self, column: Column) -> NDArray[np.float64]:
        """The values of a score at these points, `[n]`."""
        absent = self.ids[~self.ids.isin(column.rows.index)]
        if len(absent):
            raise DataError(
                "runs_differ",
                f"{len(absent)} of {len(self.ids)} points that the detector is calibrated on are not in the run of the "
                f"scores, first {absent[0]!r:.60}; score all of them",
            )
        return column.value.reindex(self.ids).to_numpy(np.float64)


def by_margin(column: Column, epsilon: float, learned_from: Collection[str] = ()) -> KnownPoints:
    """Points with a margin, which is at most epsilon or larger; doubtful (`masked`) ones are left out.

    Args:
        column: the margins.
        epsilon: margins up to this are brittle.
        learned_from: ids of points that the score was trained on.
    """
    rows = column.rows.sort_index()
    masked = (rows["status"] == Status.MASKED.slug).to_numpy(bool)
    margins = rows["value"].to_numpy(np.float64)
    known = _known(rows.index, margins, margins <= epsilon, margins > epsilon, masked, learned_from)
    if known.truth.size and not (known.brittle.any() and known.robust.any()):
        side, other = ("at most", "a smaller") if known.brittle.any() else ("larger than", "a larger")
        raise DataError(
            "too_few_points",
            f"every margin is {side} {epsilon:g}, so brittle points cannot be told from robust ones; margins lie "
            f"between {known.truth.min():.4g} and {known.truth.max():.4g}: choose {other} epsilon, in the units of the "
            f"inputs, such as 8/255 where they range from 0 to 1",
        )
    return known


def by_noise(
    table: Table, limit: float, label: str | None, learned_from: Collection[str] = ()
) -> tuple[NoiseCriterion, KnownPoints]:
    """Points with a flip probability, that break, hold or are undecided at the limit (`brittle.analysis.decide`).

    Args:
        table: the run.
        limit: predictions kept with a smaller probability are brittle.
        label: of the flip probability; by default the one that answers for the limit.
        learned_from: ids of points that the score was trained on.
    """
    column = column_for(table, limit) if label is None else column_of(table.columns, label)
    if not column.is_probability or column.setting.sigma is None:
        raise DataError(
            "no_such_score",
            f"{column.label} does not say what noise does to a prediction; score the points by one that does: "
            f"--scores monte_carlo --until decided --limit {limit:g}",
        )
    criterion = NoiseCriterion(float(limit), column.score, dict(column.parameters))
    states = decide(table, limit, column).set_index("point")["state"].sort_index()
    kept = column.p_robust.reindex(states.index).to_numpy(np.float64)
    breaks, holds = ((states == state).to_numpy(bool) for state in (BREAKS, HOLDS))
    known = _known(states.index, kept, breaks, holds, np.zeros_like(breaks), learned_from)
    brittle, robust, undecided = (int(kind.sum()) for kind in (known.brittle, known.robust, known.undecided))
    if known.truth.size and not (brittle and robust):
        raise DataError(
            "too_few_points",
            f"of the predictions {brittle} break, {robust} hold and {undecided} are undecided at {criterion.size}, so "
            f"brittle points cannot be told from robust ones: choose another limit or another sigma"
            + (f"; {undecided} are undecided, {criterion.remedy}" if undecided else ""),
        )
    return criterion, known


def _known(
    ids: pd.Index,
    truth: NDArray[np.float64],
    brittle: NDArray[np.bool_],
    robust: NDArray[np.bool_],
    masked: NDArray[np.bool_],
    learned_from: Collection[str],
) -> KnownPoints:
    """Those of some points, `[N]`, that can be used, and how many cannot, counted once each."""
    unknown = np.isnan(truth) & ~masked
    learned = ids.isin(list(learned_from)) & ~masked & ~unknown
    used = ~(masked | unknown | learned)
    left_out = (int(kind.sum()) for kind in (masked, unknown, learned))
    return KnownPoints(ids[used], truth[used], brittle[used], robust[used], *left_out)


def margin_column(table: Table, norm: str | None, label: str | None = None) -> Column:
    """The input margins of a run in `norm`, by default the norm that the run holds them in.

    Args:
        table: the run.
        norm: `linf`, `l2`, `l1` or None.
        label: of the margins, where the run holds several.
    """
    column = find_column(table, INPUT_MARGIN, {} if norm is None else {"norm": check_norm(norm)}, label)
    if column.parameters.get("norm") == COUNT:
        raise DataError(
            "no_such_score",
            f"the run holds {INPUT_MARGIN} in {COUNT} alone, for which there is no detector; score the points in one "
            f"of {', '.join(DUAL_ORDER)} (--norm, norm=)",
        )
    return column


def find_column(table: Table, score: str, wanted: Mapping[str, Parameter], label: str | None = None) -> Column:
    """The one column of a run with this score, with these parameters among its own, and with this label if any."""
    fitting = [
        column
        for column in table.columns
        if column.score == score
        and label in (None, column.label)
        and all(column.parameters.get(key) == value for key, value in wanted.items())
    ]
    if len(fitting) == 1:
        return fitting[0]
    asked = label or (f"{score} with {parameters_json(wanted)}" if wanted else score)
    if fitting:
        labels = ", ".join(column.label for column in fitting)
        raise DataError(
            "no_such_score",
            f"the run holds {asked} {len(fitting)} times: {labels}; say which by label or, of margins, --norm (norm=)",
        )
    there = ", ".join(column.label for column in table.columns) or "none"
    raise DataError("no_such_score", f"the run does not hold {asked}; its scores: {there}; score the points by it too")


def check_table(table: Any) -> None:
    """Raise where a parameter is no run."""
    if not isinstance(table, Table):
        raise ParameterError(
            f"expected the brittle.Table of a run, found {type(table).__name__}; brittle.score gives one, and "
            f"brittle.read_table reads one from its folder",
        )
