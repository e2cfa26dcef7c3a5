"""The input margins in one norm, and the perturbation size at which the page judges them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.report.contents import Contents
from brittle.store.columns import Column

MAX_CASES = 4
"""Norms that get a chapter."""

USUAL = {"linf": (8.0 / 255.0, "8/255"), "l2": (0.5, "0.5"), "l1": (12.0, "12"), "l0": (24.0, "24")}
"""The perturbation sizes that most benchmarks judge at, for inputs from 0 to 1, and how one writes them."""

MIDDLE = (0.05, 0.95)
"""The quantiles of the finite margins between which a usual size serves: outside, nearly all points are on one side."""


class Epsilon(NamedTuple):
    """A perturbation size, how one writes it, and why it is this one."""

    value: float
    text: str
    reason: str


@dataclass(frozen=True, eq=False)
class MarginCase:
    """The input margins in one norm.

    Attributes:
        contents: the run.
        margin: the column that holds them.
        norm: `l2`, `linf` or `l1`.
        epsilon: a point is fragile when its margin is at most this.
    """

    contents: Contents
    margin: Column
    norm: str
    epsilon: Epsilon

    @property
    def distance(self) -> pd.Series:
        """The distance of each point to the nearest input found with another prediction; infinite where none was."""
        return self.margin.value.dropna()

    @property
    def finite(self) -> pd.Series:
        """The distances that were found."""
        return pd.Series(self.distance[np.isfinite(self.distance)])

    @property
    def correct(self) -> NDArray[np.float64]:
        """Whether each point of the run is predicted right, 1 or 0; NaN without a label."""
        return np.asarray(self.contents.points["correct"].to_pylist(), dtype=np.float64)

    @property
    def labelled(self) -> bool:
        """Whether any point with a margin carries a label."""
        return bool((self.margin.value.notna() & ~np.isnan(self.correct)).any())

    def count(self, status: str) -> int:
        """Points whose margin has `status`."""
        return self.margin.rows["status"].tolist().count(status)


def open_cases(contents: Contents) -> tuple[MarginCase, ...]:
    """The first input margins in each norm, judged at the size that was asked for, or at one that suits them."""
    bounds = contents.record.model.bounds
    return tuple(
        MarginCase(
            contents, column, norm, choose_epsilon(column.value, norm, bounds, contents.epsilon, contents.epsilon_text)
        )
        for norm, column in list(contents.margins.items())[:MAX_CASES]
    )


def choose_epsilon(
    margin: pd.Series, norm: str, bounds: tuple[float, float] | None, asked: float | None = None, typed: str = ""
) -> Epsilon:
    """The perturbation size to judge `margin` at: the one asked for, the usual one, or the median margin.

    Args:
        margin: distance of each point; may be infinite or missing.
        norm: `l2`, `linf` or `l1`.
        bounds: the declared range of the inputs, where all features have the same.
        asked: the size that the caller wants.
        typed: how the caller writes it; empty for the number.
    """
    if asked is not None:
        return Epsilon(float(asked), typed or f"{asked:.3g}", "the size that was asked for")
    usual, text = USUAL[norm]
    finite = pd.Series(margin[np.isfinite(margin)])
    if finite.empty:
        return Epsilon(usual, text, "the usual size, as no distance is known that could suggest another")
    unit = bounds == (0.0, 1.0)
    low, high = (float(finite.quantile(share)) for share in MIDDLE)
    if unit and low <= usual <= high:
        return Epsilon(usual, text, "the size that most benchmarks judge at in this norm")
    median = float(f"{finite.median():.2g}")
    why = f"the usual {text} parts hardly any of them" if unit else "the inputs do not range from 0 to 1"
    return Epsilon(median, f"{median:.2g}", f"the median of the distances found, rounded, as {why}")
