"""What the chapter on other runs says."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from brittle.report.parts import Entry, Grid, Number


@dataclass(frozen=True, eq=False)
class Panel:
    """A frame for a figure and what the figure is of."""

    title: str
    frame: pd.DataFrame


@dataclass(frozen=True, eq=False)
class OtherRun:
    """This run beside another one.

    Attributes:
        name: of the other run.
        entries: what differs between the runs, and how their points were paired.
        numbers: to be set large.
        differences: mean paired differences between 0 and 1: `name`, `order`, `value`, `low`, `high`; empty where they
            are not drawn.
        spreads: quantiles of both runs, one panel per score: `run`, `order`, `q05`, `q25`, `q50`, `q75`, `q95`.
        grid: all scores of both runs.
        note: what the table says.
    """

    name: str
    entries: tuple[Entry, ...]
    numbers: tuple[Number, ...]
    differences: pd.DataFrame
    spreads: tuple[Panel, ...]
    grid: Grid
    note: str


@dataclass(frozen=True)
class OtherRuns:
    """What the chapter says.

    Attributes:
        runs: in the order given.
        series: means over the runs, one panel per score: `name`, `order`, `value`, `low`, `high`, `this`; empty for a
            single run.
        grid: the series as a table.
        note: what the figures of the series show.
    """

    runs: tuple[OtherRun, ...]
    series: tuple[Panel, ...]
    grid: Grid
    note: str
