"""What the worst-case chapter says."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from brittle.report.parts import Grid, Number


@dataclass(frozen=True, eq=False)
class Distances:
    """How far the nearest other decisions are.

    Attributes:
        numbers: to be set large.
        frame: shares of points beyond each epsilon: `kind`, `of`, `epsilon`, `share`, `low`, `high`, `chosen`.
        conclusion: what to take from it.
        warning: why the distances may be too large; empty where nothing hints at it.
        note: what the figure shows.
    """

    numbers: tuple[Number, ...]
    frame: pd.DataFrame
    conclusion: str
    warning: str
    note: str

    @property
    def spoken(self) -> str:
        """The curves in words."""
        return " ".join(f"{number.title}: {number.value}." for number in self.numbers)


@dataclass(frozen=True, eq=False)
class StandIn:
    """How well scores stand in for the distance.

    Attributes:
        scatter: the score spoken of against the margin: `margin`, `value`, `side`, `title`, `chosen`.
        detection: AUROC by epsilon: `title`, `place`, `epsilon`, `auroc`, `auroc_low`, `auroc_high`, `main`, `chosen`.
        grid: all scores.
        conclusion: what to take from it.
        note: what the figures show and leave out.
    """

    scatter: pd.DataFrame
    detection: pd.DataFrame
    grid: Grid
    conclusion: str
    note: str


@dataclass(frozen=True)
class Subset:
    """Robust accuracy by all distances beside the estimate from a few; the table says how far off other sizes are."""

    numbers: tuple[Number, ...]
    study: Grid
    conclusion: str


@dataclass(frozen=True)
class Counterexample:
    """A point beside the nearest input found with another prediction.

    Attributes:
        name: what the data call the point.
        predicted: the class predicted there.
        found: the class predicted at the input that was found.
        distance: between the two.
        images: base64 of PNGs of the point, the input found and their magnified difference; an empty text for one that
            is missing.

    The images are described by `texts`.
    """

    name: str
    predicted: str
    found: str
    distance: str
    images: tuple[str, str, str]

    @property
    def texts(self) -> tuple[str, str, str]:
        """The images in words."""
        return (
            f"{self.predicted}, the point as it is",
            f"changed by {self.distance} and now decided as {self.found}",
            f"what changed between {self.predicted} and {self.found}",
        )


@dataclass(frozen=True)
class Counterexamples:
    """The most fragile predictions with what breaks them, the nearest first.

    Attributes:
        points: the predictions.
        factor: how often their differences are magnified, the same in the whole chapter.
        note: which they are.
    """

    points: tuple[Counterexample, ...]
    factor: int
    note: str


@dataclass(frozen=True)
class WorstCase:
    """What the chapter says of one norm.

    Attributes:
        title: the norm in words.
        epsilon: the perturbation size at which the chapter judges, and why that one.
        headline: what the start of the page says of it.
        distances: how far the nearest other decisions are.
        stand_in: which scores tell.
        subset: robust accuracy from a subset.
        counterexamples: the most fragile predictions.
    """

    title: str
    epsilon: str
    headline: tuple[Number, ...]
    distances: Distances
    stand_in: StandIn
    subset: Subset
    counterexamples: Counterexamples
