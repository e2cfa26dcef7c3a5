"""What the chapter on the expected change says."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from brittle.report.parts import Entry, Grid, Number
from brittle.report.wording import signed


@dataclass(frozen=True, eq=False)
class Prediction:
    """How well the Laplacian predicts the sampled change.

    Attributes:
        frame: both changes of each point: `setting`, `order`, `predicted`, `sampled`, `low`, `high`, `kind`.
        grid: one row per noise setting.
        conclusion: what it means at the noise setting that the chapter speaks of.
        readings: the same for each noise setting that is drawn.
        note: what the figure shows and leaves out.
    """

    frame: pd.DataFrame
    grid: Grid
    conclusion: str
    readings: tuple[Entry, ...]
    note: str


@dataclass(frozen=True, eq=False)
class LabelFlips:
    """Flips of confident predictions by Laplacian, and Laplacians by whether a point ever flipped.

    Attributes:
        shares: shares of flips: `setting`, `order`, `group`, `value`, `low`, `high`.
        means: mean Laplacians, in the same columns.
        by_laplacian: the shares as a table.
        by_flips: the means as a table.
        conclusion: what to take from it.
        note: what the figures show.
    """

    shares: pd.DataFrame
    means: pd.DataFrame
    by_laplacian: Grid
    by_flips: Grid
    conclusion: str
    note: str

    @property
    def spoken(self) -> str:
        """The means in words."""
        rows = self.means.to_dict("records")
        return " ".join(f"{row['setting']}, {row['group']}: {signed(row['value'], 3)}." for row in rows)


@dataclass(frozen=True)
class Drop:
    """A prediction whose probability drops under noise.

    Attributes:
        name: what the data call the point.
        image: base64 of a PNG, or empty.
        change: its mean change, or its Laplacian where none was sampled.
        before: the probability without noise.
        predicted: the predicted class.
        wrong: whether the label is known and is another class.
    """

    name: str
    image: str
    change: str
    before: str
    predicted: str
    wrong: bool

    @property
    def text(self) -> str:
        """The image in words."""
        kind = "wrongly predicted as" if self.wrong else "predicted as"
        return f"{kind} {self.predicted}, change {self.change}" + (f" {self.before}" if self.before else "")


@dataclass(frozen=True)
class Drops:
    """The predictions whose probability drops most, and more of them as a table."""

    points: tuple[Drop, ...]
    grid: Grid
    note: str


@dataclass(frozen=True)
class ExpectedChange:
    """What the chapter says.

    Attributes:
        setting: the noise setting that the chapter speaks of, and why that one; empty where nothing was sampled.
        numbers: to be set large.
        headline: those of them that the start of the page repeats.
        prediction: the Laplacian against the sampled change.
        flips: the Laplacian against flips.
        drops: the predictions that lose most.
    """

    setting: str
    numbers: tuple[Number, ...]
    headline: tuple[Number, ...]
    prediction: Prediction
    flips: LabelFlips
    drops: Drops
