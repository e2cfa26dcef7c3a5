"""A scale for numbers of any sign that differ by orders of magnitude."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

DECADES = 4
"""Orders of magnitude that a scale shows on either side of 0, beyond which it is linear."""

TICKS = 2
"""Most ticks on either side of 0."""


_LABEL = (
    "datum.value == 0 ? '0' : abs(datum.value) < 1e-3 || abs(datum.value) >= 1e5 ? "
    "replace(format(datum.value, '~e'), '+', '') : format(datum.value, ',~f')"
)
"""How a tick is written, from tiny to large."""


class Scale(NamedTuple):
    """A scale that is linear within `constant` around 0 and logarithmic beyond."""

    constant: float
    domain: tuple[float, float]
    ticks: list[float]

    @property
    def scale(self) -> alt.Scale:
        """As the figures use it."""
        return alt.Scale(type="symlog", constant=self.constant, domain=list(self.domain), nice=False, clamp=True)

    @property
    def axis(self) -> alt.Axis:
        """Its axis."""
        return alt.Axis(values=self.ticks, labelExpr=_LABEL, grid=True, labelOverlap="greedy")


def inside(frame: pd.DataFrame, domain: tuple[float, float]) -> pd.DataFrame:
    """`frame` with the ends of its intervals cut at those of the drawing."""
    return frame.assign(low=frame["low"].clip(*domain), high=frame["high"].clip(*domain))


def symlog(values: Iterable[float]) -> Scale:
    """The scale for numbers of any sign that differ by orders of magnitude.

    It is linear up to the tenth of the numbers that are smallest, yet shows at most `DECADES` beyond.
    """
    numbers = np.array([value for value in values if math.isfinite(value)], dtype=np.float64)
    sizes = np.abs(numbers[numbers != 0.0])
    largest = float(sizes.max(initial=0.0)) or 1.0
    smallest = float(np.quantile(sizes, 0.1)) if sizes.size else largest
    constant = float(np.clip(smallest, largest * 10.0**-DECADES, largest / 10.0))
    low, high = min(float(numbers.min(initial=0.0)), 0.0), max(float(numbers.max(initial=0.0)), 0.0)
    margin = 0.04 * (_place(high, constant) - _place(low, constant)) or 1.0
    domain = (_number(_place(low, constant) - margin, constant), _number(_place(high, constant) + margin, constant))
    return Scale(constant, domain, _ticks(constant, largest, domain))


def _place(value: float, constant: float) -> float:
    return math.copysign(math.log1p(abs(value) / constant), value)


def _number(place: float, constant: float) -> float:
    return math.copysign(math.expm1(abs(place)) * constant, place)


def _ticks(constant: float, largest: float, domain: tuple[float, float]) -> list[float]:
    """0 and at most `TICKS` powers of ten on either side, from the largest down."""
    last, first = math.floor(math.log10(largest) + 1e-9), math.ceil(math.log10(1.5 * constant) - 1e-9)
    step = max(-(-(last - first + 1) // TICKS), 1)
    powers = [float(f"1e{power}") for power in range(last, first - 1, -step)] or [float(f"{largest:.0e}")]
    return [0.0, *(tick for power in powers for tick in (-power, power) if domain[0] <= tick <= domain[1])]
