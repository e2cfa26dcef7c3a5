"""What makes a prediction brittle, and which points of a run are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.decisions import MORE_DRAWS, column_for, decide
from brittle.errors import DataError, ParameterError
from brittle.estimate import DUAL_ORDER, INPUT_MARGIN, Parameter, Status, check_norm, score_label
from brittle.extensions.detector.identity import Positive
from brittle.intervals import check_share
from brittle.noise import Gaussian
from brittle.store.columns import BREAKS, HOLDS, Column, column_of
from brittle.store.settings import setting_of
from brittle.store.strict_json import Share
from brittle.store.table import Table

LEFT_OUT = ("masked", "without_number", "learned_from")
"""Why points are left out of a calibration."""


@dataclass(frozen=True)
class Criterion:
    """What makes a point brittle: a near input with another prediction, or a prediction that noise changes.

    In the worst case the nearest such input is at most `epsilon` away. In the average case the prediction is kept with
    a probability below `limit`, as far as the column knows (`brittle.analysis.decide`): a point is brittle where it
    `breaks`, robust where it `holds`, and neither where it is `undecided`.

    Attributes:
        epsilon: margins up to this are brittle, in the declared pixel units; None in the average case.
        limit: probability with which a prediction has to be kept, between 0 and 1; None in the worst case.
        column: name of the score that says so, `input_margin` or one such as `monte_carlo`.
        parameters: of that score: the norm and the search, or the noise and the draws.
    """

    epsilon: Positive | None
    limit: Share | None
    column: str
    parameters: dict[str, Parameter]

    def __post_init__(self) -> None:
        if self.limit is None:
            if self.column != INPUT_MARGIN or self.epsilon is None or not self.epsilon > 0.0:
                raise ParameterError(f"epsilon must be positive, of {INPUT_MARGIN}; found {self.epsilon!r}")
            check_norm(str(self.norm))
            return
        check_share("limit", self.limit)
        if self.epsilon is not None:
            raise ParameterError("epsilon and limit exclude each other; found both")
        Gaussian(self.parameters.get("sigma"))  # type: ignore[arg-type] raises unless it is a standard deviation

    @property
    def norm(self) -> str | None:
        """Of the margins, `l2`, `linf` or `l1`; None in the average case."""
        return None if self.limit is not None else str(self.parameters.get("norm"))

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        if self.limit is None:
            return f"epsilon {self.epsilon:.6g} in {self.norm}"
        return f"limit {self.limit:g} under {setting_of(self.parameters)}"

    @property
    def remedy(self) -> str:
        """What to do where points cannot be told apart."""
        if self.limit is None:
            return "choose another epsilon, in the units of the inputs, such as 8/255 where they range from 0 to 1"
        draws, drawn_for = (self.parameters.get(name) for name in ("draws", "limit"))
        if drawn_for == self.limit and isinstance(draws, int):
            return f"draw more copies of these: `brittle more RUN`, or from Python draws={MORE_DRAWS * draws}"
        return f"fewer are undecided in a run with --limit {self.limit:g}"

    def __str__(self) -> str:
        if self.limit is None:
            return f"those with margins up to {self.epsilon:.6g} in {self.norm}"
        label = score_label(self.column, self.parameters)
        return f"those that keep their prediction with a probability below {self.limit:g}, as {label} says"


@dataclass(frozen=True)
class KnownPoints:
    """The points of a run that a detector can be calibrated on, in the order of their ids, and how many are left out.

    `truth`, `[n]`, is the margin, or the probability that the prediction is kept: larger where safer, never NaN. A
    point that is neither `brittle` nor `robust` is undecided. Left out are points whose margin is doubtful (`masked`),
    that have no margin or no flip probability (`without_number`), or that the score was trained on (`learned_from`).
    """

    ids: pd.Index
    truth: NDArray[np.float64]
    brittle: NDArray[np.bool_]
    robust: NDArray[np.bool_]
    left_out: Mapping[str, int]

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Which are neither brittle nor robust, `[n]`."""
        return ~(self.brittle | self.robust)


def known_points(
    table: Table,
    epsilon: float | None,
    limit: float | None,
    norm: str | None,
    label: str | None,
    learned: Collection[str],
) -> tuple[Criterion, KnownPoints]:
    """The criterion, and the points of a run that it applies to, without those that the score has `learned` from."""
    if (epsilon is None) == (limit is None):
        raise ParameterError(
            f"a detector is of the worst case, with epsilon, or of the average case, with limit; found epsilon "
            f"{epsilon!r:.60} and limit {limit!r:.60}; give one of them",
        )
    check_share("limit", limit)
    if not isinstance(label, str | None):
        raise ParameterError(f"column is the label of margins or of a flip probability; found {label!r:.60}")
    if limit is None:
        column = margin_column(table, norm, label)
        rows = column.rows.sort_index()
        truth, masked = rows["value"].to_numpy(np.float64), (rows["status"] == Status.MASKED.slug).to_numpy(bool)
        brittle, robust = truth <= epsilon, truth > epsilon
    else:
        column = column_for(table, limit) if label is None else column_of(table.columns, label)
        if not column.is_probability or column.setting.sigma is None:
            raise DataError(
                "no_such_score",
                f"{column.label} does not say what noise does to a prediction; score the points by one that does: "
                f"--scores monte_carlo --limit {limit:g}",
            )
        rows, states = column.rows.sort_index(), decide(table, limit, column).set_index("point")["state"].sort_index()
        truth, masked = 1.0 - rows["value"].to_numpy(np.float64), np.zeros(len(rows), dtype=bool)
        brittle, robust = ((states == state).to_numpy(bool) for state in (BREAKS, HOLDS))
    criterion = Criterion(epsilon, limit, column.score, dict(column.parameters))
    unknown = np.isnan(truth) & ~masked
    taught = rows.index.isin(list(learned)) & ~masked & ~unknown
    used = ~(masked | unknown | taught)
    left_out = {name: int(kind.sum()) for name, kind in zip(LEFT_OUT, (masked, unknown, taught), strict=True)}
    known = KnownPoints(rows.index[used], truth[used], brittle[used], robust[used], left_out)
    counts = [int(kind.sum()) for kind in (known.brittle, known.robust, known.undecided)]
    if known.truth.size and 0 in counts[:2]:
        raise DataError(
            "too_few_points",
            f"{counts[0]} points are brittle, {counts[1]} robust and {counts[2]} undecided at {criterion.size}, and a "
            f"detector needs some of either kind; what decides it lies between {known.truth.min():.4g} and "
            f"{known.truth.max():.4g}; {criterion.remedy}",
        )
    return criterion, known


def margin_column(table: Table, norm: str | None, label: str | None = None) -> Column:
    """The input margins of a run, by their label or their norm; by default the only ones that it holds."""
    if norm is not None:
        check_norm(norm)
    column = column_of(table.columns, label or (INPUT_MARGIN if norm is None else (INPUT_MARGIN, norm)))
    own = column.parameters.get("norm")
    if column.score != INPUT_MARGIN or own not in DUAL_ORDER or norm not in (None, own):
        raise DataError(
            "no_such_score",
            f"{column.label} holds no {INPUT_MARGIN} in {norm or ' or '.join(DUAL_ORDER)}, which a detector of an "
            f"epsilon needs; score the points by it (--norm, norm=)",
        )
    return column


def check_table(table: Any) -> None:
    if not isinstance(table, Table):
        raise ParameterError(
            f"expected the brittle.Table of a run, found {type(table).__name__}; brittle.score gives one, and "
            f"brittle.read_table reads one from its folder",
        )
