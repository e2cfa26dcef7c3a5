"""The criterion of a brittle prediction, and the points of a run that meet it."""

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
from brittle.scores import MonteCarlo
from brittle.store.columns import BREAKS, HOLDS, Column, column_of
from brittle.store.settings import setting_of
from brittle.store.strict_json import Share
from brittle.store.table import Table

COUNTED = MonteCarlo.name  # the score that counts noisy copies
LEFT_OUT = ("masked", "without_number", "learned_from")  # reasons to leave points out of a calibration


@dataclass(frozen=True)
class Criterion:
    """The criterion of a brittle point: a near input with another prediction, or a prediction that noise changes.

    In the worst case the nearest such input is at most `epsilon` away. In the average case the prediction is kept with
    a probability below `limit`, by the interval of the column (`brittle.analysis.decide`): a point is brittle where it
    `breaks`, robust where it `holds`, and neither where it is `undecided`.

    Attributes:
        epsilon: margins up to this are brittle, in the declared pixel units; None in the average case.
        limit: probability with which a prediction has to be kept, between 0 and 1; None in the worst case.
        column: name of the score that measures it, `input_margin` or a flip probability such as `monte_carlo`.
        parameters: parameters of that score: the norm and the search, or the noise and the draws.
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
        """Norm of the margins, `l2`, `linf` or `l1`; None in the average case."""
        return None if self.limit is not None else str(self.parameters.get("norm"))

    @property
    def size(self) -> str:
        """Text that names the perturbation."""
        if self.limit is None:
            return f"epsilon {self.epsilon:.6g} in {self.norm}"
        return f"limit {self.limit:g} under {setting_of(self.parameters)}"

    @property
    def remedy(self) -> str:
        """Advice for a run with too few points of a class, or with undecided points."""
        if self.limit is None:
            return "choose another epsilon, in the units of the inputs, such as 8/255 where they range from 0 to 1"
        draws, drawn_for = (self.parameters.get(name) for name in ("draws", "limit"))
        if drawn_for == self.limit and isinstance(draws, int):
            return f"draw more copies of these: `brittle more RUN`, or from Python draws={MORE_DRAWS * draws}"
        return f"fewer points are undecided in a run with --limit {self.limit:g}"

    def __str__(self) -> str:
        if self.limit is None:
            return f"those with margins up to {self.epsilon:.6g} in {self.norm}"
        label = score_label(self.column, self.parameters)
        return f"those that keep their prediction with a probability below {self.limit:g}, by {label}"


@dataclass(frozen=True)
class CalibrationPoints:
    """The points of a run that a detector can be calibrated on, in the order of their ids, and counts of the others.

    `truth`, `[n]`, is the margin, or the probability that the prediction is kept: larger where safer, never NaN. A
    point that is neither `brittle` nor `robust` is undecided. `left_out` counts points whose margin is doubtful
    (`masked`), points without a margin or flip probability (`without_number`), and training points (`learned_from`).
    """

    ids: pd.Index
    truth: NDArray[np.float64]
    brittle: NDArray[np.bool_]
    robust: NDArray[np.bool_]
    left_out: Mapping[str, int]

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """True for points that are neither brittle nor robust, `[n]`."""
        return ~(self.brittle | self.robust)


def select_points(
    table: Table,
    epsilon: float | None,
    limit: float | None,
    norm: str | None,
    label: str | None,
    excluded_ids: Collection[str],
) -> tuple[Criterion, CalibrationPoints]:
    """Return the criterion, and the points of a run that it applies to, without `excluded_ids`."""
    if (epsilon is None) == (limit is None):
        raise ParameterError(
            f"a detector needs an epsilon, for the worst case, or a limit, for the average case; found epsilon "
            f"{epsilon!r:.60} and limit {limit!r:.60}; give one of them"
        )
    check_share("limit", limit)
    if not isinstance(label, str | None):
        raise ParameterError(f"column must be the label of margins or of a flip probability; found {label!r:.60}")
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
                f"{column.label} does not say what noise does to a prediction; score the points by a flip probability: "
                f"--scores monte_carlo --limit {limit:g}",
            )
        rows, states = column.rows.sort_index(), decide(table, limit, column).set_index("point")["state"].sort_index()
        truth, masked = 1.0 - rows["value"].to_numpy(np.float64), np.zeros(len(rows), dtype=bool)
        brittle, robust = ((states == state).to_numpy(bool) for state in (BREAKS, HOLDS))
    criterion = Criterion(epsilon, limit, column.score, dict(column.parameters))
    unknown = np.isnan(truth) & ~masked
    taught = rows.index.isin(list(excluded_ids)) & ~masked & ~unknown
    used = ~(masked | unknown | taught)
    left_out = {name: int(kind.sum()) for name, kind in zip(LEFT_OUT, (masked, unknown, taught), strict=True)}
    points = CalibrationPoints(rows.index[used], truth[used], brittle[used], robust[used], left_out)
    counts = [int(kind.sum()) for kind in (points.brittle, points.robust, points.undecided)]
    if points.truth.size and 0 in counts[:2]:
        raise DataError(
            "too_few_points",
            f"{counts[0]} points are brittle, {counts[1]} robust and {counts[2]} undecided at {criterion.size}, and a "
            f"detector needs brittle and robust points; the margins or probabilities lie between "
            f"{points.truth.min():.4g} and {points.truth.max():.4g}; {criterion.remedy}",
        )
    return criterion, points


def margin_column(table: Table, norm: str | None, label: str | None = None) -> Column:
    """Return the input margins of a run, by their label or their norm; by default the only ones of the run."""
    if norm is not None:
        check_norm(norm)
    column = column_of(table.columns, label or (INPUT_MARGIN if norm is None else (INPUT_MARGIN, norm)))
    column_norm = column.parameters.get("norm")
    if column.score != INPUT_MARGIN or column_norm not in DUAL_ORDER or norm not in (None, column_norm):
        raise DataError(
            "no_such_score",
            f"{column.label} holds no {INPUT_MARGIN} in {norm or ' or '.join(DUAL_ORDER)}, which a detector with an "
            f"epsilon needs; score the points by it (--norm, norm=)",
        )
    return column


def noise_columns(table: Table) -> list[Column]:
    """Return the counted flip probabilities of a run under the noise that is representative of it, by rising sigma.

    Of several at one sigma it is the one with most copies, of those that count all copies of each point if there are.
    """
    counted = [column for column in table.columns if column.score == COUNTED and column.setting.sigma is not None]
    noise = column_for(table).setting.noise if counted else None
    columns = [column for column in counted if column.setting.noise == noise]
    if not columns:
        raise DataError("no_such_score", f"the run counts no noisy copies; score the points with --scores {COUNTED}")
    by_sigma = {
        column.setting.sigma: column
        for column in sorted(columns, key=lambda column: (not column.stops, column.most_draws or 0))
    }
    return [by_sigma[sigma] for sigma in sorted(by_sigma, key=float)]  # type: ignore[arg-type] every one has a sigma


def check_table(table: Any) -> None:
    if not isinstance(table, Table):
        raise ParameterError(
            f"expected the brittle.Table of a run, found {type(table).__name__}; brittle.score gives one, and "
            f"brittle.read_table reads one from its folder"
        )
