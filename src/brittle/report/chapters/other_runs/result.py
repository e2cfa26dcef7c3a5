"""What the chapter on other runs says."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from brittle.report.parts import Entry, Grid, Number


@dataclass(frozen=True, eq=False)
class Panel:
    """A frame for a figure, what the figure is of, and what it shows in words."""

    title: str
    frame: pd.DataFrame
    spoken: str


@dataclass(frozen=True, eq=False)
class OtherRun:
    """This run beside another one.

    Attributes:
        name: of the other run.
        entries: what differs between the runs, and how their points were paired.
        numbers: to be set large.
        differences: mean paired differences between -1 and 1, those above 0 where this run is safer: `name`, `order`,
            `value`, `low`, `high`; empty where they are not drawn.
        spreads: quantiles of both runs, one panel per score: `run`, `order`, `title`,
            `bounded` (whether it is a probability of holding), `q05`, `q25`, `q50`, `q75`, `q95`.
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

    @property
    def spoken(self) -> str:
        """The differences in words."""
        above, below = (self.differences["low"] > 0.0).sum(), (self.differences["high"] < 0.0).sum()
        open_ones = len(self.differences) - above - below
        return (
            f"safer by {above} of {len(self.differences)} scores, less safe by {below}, not told apart by {open_ones}"
        )


@dataclass(frozen=True)
class OtherRuns:
    """What the chapter says.

    Attributes:
        runs: in the order given.
        series: means over the runs, one panel per score: `name`, `order`, `value`, `low`, `high`, `this`, `title`,
            `bounded`; empty for a single run.
        grid: the series as a table.
        note: what the figures of the series show.
    """

    runs: tuple[OtherRun, ...]
    series: tuple[Panel, ...]
    grid: Grid
    note: str
