"""The results as frames, and means over networks, for the findings and the page."""

from __future__ import annotations

import pandas as pd
import pyarrow.compute as pc

from studies.average_case.estimating import MMSE_, MMSE_MVS, ORDER, TAYLOR_SCALED
from studies.average_case.timing import COUNTING, LIBRARY, PAPER_COPIES, PRINTED
from studies.over_networks import over_networks
from studies.study import Tables
from studies.tables import RUNTIMES, Frame, frames_of

SEED = 0
"""Seed of the bootstrap over networks."""

FLIPPING = 0.001
"""Mean flip probability above which a sigma distinguishes estimators; below it all are right."""

PLAIN, REGULARISED, LINEAR = "plain", "gradnorm", "linear"
"""Kinds of training, and an architecture."""


class Results:
    """Results of a run.

    Attributes:
        frames: every table as a frame.
        networks: a row for each network.
        sigmas: in ascending order.
        telling: those at which more than one copy in a thousand flips, in the mean over networks.
        budgets: draws of MMSE, ascending.
        printed_draws: of MMSE in the table `printed`, as many as the UAI paper takes.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.frames: dict[str, Frame] = frames_of(tables)
        self.networks: Frame = self.frames["networks"]
        errors = self.frames["errors"]
        self.sigmas: list[float] = sorted(set(errors["sigma"]))
        holding = self.frames["robustness"].groupby("sigma")["mean"].mean()
        self.telling: list[float] = [sigma for sigma in self.sigmas if holding[sigma] < 1 - FLIPPING]
        self.budgets: list[int] = sorted(set(errors[errors["estimator"] == MMSE_]["draws"]))
        self.printed_draws = int(self.frames["printed"]["draws"].max())

    def errors(self, estimator: str, draws: int | None = None) -> Frame:
        """Return the errors of an estimator, a row for each network and sigma; MMSE with the most draws unless said."""
        frame = self.frames["errors"]
        sampled = estimator in (MMSE_, MMSE_MVS)
        budget = (self.budgets[-1] if sampled else 0) if draws is None else draws
        return frame[(frame["estimator"] == estimator) & (frame["draws"] == budget)]

    def by_sigma(self, estimator: str, draws: int | None = None) -> Frame:
        """Means over networks of `error`, `bias`, `floor` and `kept`, a row for each sigma, with intervals."""
        return means(self.errors(estimator, draws), ["sigma"], ["error", "bias", "floor", "kept"])

    def telling_error(self, estimator: str, draws: int | None = None) -> Frame:
        """Return the mean error over networks at each sigma that tells."""
        return self.by_sigma(estimator, draws).set_index("sigma")["error"][self.telling]

    def printed(self, estimator: str, draws: int | None = None) -> float:
        """Return the mean error over networks of the table `printed`; MMSE with the draws of the paper unless said."""
        frame, sampled = self.frames["printed"], estimator in (MMSE_, MMSE_MVS)
        budget = (self.printed_draws if sampled else 0) if draws is None else draws
        return float(frame[(frame["estimator"] == estimator) & (frame["draws"] == budget)]["error"].mean())

    def times_as_long(self, method: str, code: str = LIBRARY) -> Frame:
        """As the function of this name."""
        return times_as_long(self.frames[RUNTIMES], method, code)

    def of_a_pass(self, architecture: str) -> float:
        """Seconds of a pass of one point, the median over rounds."""
        counting = self.frames[RUNTIMES].query("architecture == @architecture and method == @COUNTING")
        return float(counting["seconds"].median()) / PAPER_COPIES

    @property
    def least_error(self) -> float:
        """The smallest mean error that the count can show: one copy of one point."""
        example = self.networks.iloc[0]
        return 1 / (example["points"] * example["reference"])

    def parts(self) -> dict[str, Results]:
        """Return the same of each data set alone."""
        return {dataset: Results(_of(self.tables, dataset)) for dataset in sorted(set(self.networks["dataset"]))}

    def at_own_sigma(self, table: str) -> Frame:
        """Rows of a table at the sigma that was chosen for each network."""
        frame = self.frames[table]
        chosen = self.networks.set_index("network")["sigma"]
        return frame[frame["sigma"] == frame["network"].map(chosen)]

    def families(self) -> list[Frame]:
        """Return networks with gradient-norm regularisation and plain ones, by data, architecture and strength."""
        looked = self.networks[self.networks["way"].isin([PLAIN, REGULARISED])]
        groups = [group.sort_values("strength") for _, group in looked.groupby(["dataset", "architecture"], sort=True)]
        return [group for group in groups if {PLAIN, REGULARISED} <= set(group["way"])]


def times_as_long(runtimes: Frame, method: str, code: str = LIBRARY) -> Frame:
    """How many times as long counting takes as an estimator, the median over rounds on each architecture."""
    keys = {"index": ["architecture", "round"], "columns": ["method", "code"], "values": "seconds"}
    seconds = runtimes.pivot_table(**keys, sort=False)
    return (seconds[COUNTING, PRINTED] / seconds[method, code]).groupby("architecture", sort=False).median()


def means(frame: Frame, keys: list[str], names: list[str]) -> pd.DataFrame:
    """Means over networks with intervals, a row for each value of `keys`."""
    return over_networks(frame, keys, names, [], SEED)


def whole(frame: Frame, names: list[str]) -> Frame:
    """Means over all networks with intervals, one row."""
    return means(frame.assign(all=True), ["all"], names).iloc[0]


def _of(tables: Tables, dataset: str) -> Tables:
    """Return the rows of a data set; tables that know of none as they are."""
    return {
        name: table.filter(pc.field("dataset") == dataset) if "dataset" in table.column_names else table
        for name, table in tables.items()
    }


SHOWN = (*ORDER, TAYLOR_SCALED)
"""Estimators of the tables and pictures."""
