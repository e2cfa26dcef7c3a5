"""What the page says, section by section: text, tables of text, and the frames that the figures draw.

Where a run does not hold what a section needs, the section's frame and tables are empty and its note says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Fact:
    """A term and what is to be said of it."""

    term: str
    text: str


@dataclass(frozen=True)
class Number:
    """A number to be set large: what it is of, the number, and what qualifies it."""

    title: str
    value: str
    note: str


@dataclass(frozen=True)
class Grid:
    """A table of text.

    Attributes:
        head: the column heads.
        numeric: for each column, whether its cells are numbers.
        rows: the cells; what follows a line break is set small below.
        scores: for each row, the score whose colour marks it; empty for a table without colours.
    """

    head: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    scores: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shown:
    """A point with its image.

    Attributes:
        name: what the data call it.
        image: base64 of a PNG, or empty.
        robustness: its robustness in short.
        predicted: the predicted class.
        wrong: whether the label is known and is another class.
    """

    name: str
    image: str
    robustness: str
    predicted: str
    wrong: bool


@dataclass(frozen=True)
class Gallery:
    """The least and the most robust points of a class, the extreme one first."""

    name: str
    least: tuple[Shown, ...]
    most: tuple[Shown, ...]


@dataclass(frozen=True)
class Comparison:
    """Estimators against Monte Carlo under one noise: a heading and the table; `main` for the one to open first."""

    title: str
    grid: Grid
    main: bool


@dataclass(frozen=True)
class Scored:
    """What was scored: facts, the scores and what they cost, and statuses other than `ok`."""

    facts: tuple[Fact, ...]
    scores: Grid
    outcomes: Grid
    outcomes_note: str


@dataclass(frozen=True)
class Headline:
    """A few large numbers, and which estimator and noise level speak for a point where one number is wanted."""

    numbers: tuple[Number, ...]
    choice: str


@dataclass(frozen=True, eq=False)
class Distribution:
    """Histograms of p_robust: `setting`, `estimator`, `score`, `order`, `start`, `end`, `share`."""

    frame: pd.DataFrame
    note: str


@dataclass(frozen=True, eq=False)
class Classes:
    """Robustness by class: `setting`, `name`, `order`, `mean`, `low`, `high`, `overall`; and as a table."""

    frame: pd.DataFrame
    grid: Grid
    note: str


@dataclass(frozen=True)
class Images:
    """The least and the most robust points of each class."""

    galleries: tuple[Gallery, ...]
    note: str


@dataclass(frozen=True, eq=False)
class Agreement:
    """Estimators against Monte Carlo: the frame of `brittle.analysis.agreement` with `setting`; and as tables."""

    frame: pd.DataFrame
    comparisons: tuple[Comparison, ...]
    note: str


@dataclass(frozen=True, eq=False)
class Margins:
    """Scores without noise against p_robust: `title`, `score`, `order`, `value`, `p_robust`; and rank correlations."""

    frame: pd.DataFrame
    grid: Grid
    note: str


@dataclass(frozen=True)
class Fragile:
    """The most fragile points."""

    grid: Grid
    note: str


@dataclass(frozen=True, eq=False)
class Nearest:
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


@dataclass(frozen=True, eq=False)
class StandIn:
    """How well scores stand in for the distance.

    Attributes:
        scatter: the score spoken of against the margin: `margin`, `value`, `side`, `title`, `chosen`.
        detection: AUROC by epsilon: `title`, `score`, `epsilon`, `auroc`, `auroc_low`, `auroc_high`, `main`, `chosen`.
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
    """

    name: str
    predicted: str
    found: str
    distance: str
    images: tuple[str, str, str]


@dataclass(frozen=True)
class Counterexamples:
    """The most fragile predictions with what breaks them, the nearest first."""

    points: tuple[Counterexample, ...]
    note: str


@dataclass(frozen=True)
class WorstCase:
    """The chapter on one norm.

    Attributes:
        title: the norm in words.
        epsilon: the perturbation size at which the chapter judges, and why that one.
        headline: what the beginning of the page says of it.
        nearest: how far the nearest other decisions are.
        stand_in: which scores tell.
        subset: robust accuracy from a subset.
        counterexamples: the most fragile predictions.
    """

    title: str
    epsilon: str
    headline: tuple[Number, ...]
    nearest: Nearest
    stand_in: StandIn
    subset: Subset
    counterexamples: Counterexamples


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
    readings: tuple[Fact, ...]
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


@dataclass(frozen=True)
class Drops:
    """The predictions whose probability drops most, and more of them as a table."""

    points: tuple[Drop, ...]
    grid: Grid
    note: str


@dataclass(frozen=True)
class ExpectedChange:
    """The chapter on the expected change.

    Attributes:
        setting: the noise setting that the chapter speaks of, and why that one; empty where nothing was sampled.
        numbers: to be set large.
        headline: those of them that the beginning of the page repeats.
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
        facts: what differs between the runs, and how their points were paired.
        numbers: to be set large.
        differences: mean paired differences between 0 and 1: `name`, `order`, `value`, `low`, `high`; empty where they
            are not drawn.
        spreads: quantiles of both runs, one panel per score: `run`, `order`, `q05`, `q25`, `q50`, `q75`, `q95`.
        grid: all scores of both runs.
        note: what the table says.
    """

    name: str
    facts: tuple[Fact, ...]
    numbers: tuple[Number, ...]
    differences: pd.DataFrame
    spreads: tuple[Panel, ...]
    grid: Grid
    note: str


@dataclass(frozen=True)
class OtherRuns:
    """The chapter on other runs.

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


@dataclass(frozen=True, eq=False)
class Summary:
    """What the page says: its head, and one field per section.

    The sections from `distribution` to `fragile` are the average case, which `average_case` says whether to show; the
    worst case has one entry for every norm, and none in a run without input margins. The expected change is missing
    where neither a Laplacian nor a change has a value, the other runs where none were given.
    """

    title: str
    subtitle: str
    warnings: tuple[Fact, ...]
    headline: Headline
    scored: Scored
    average_case: bool
    distribution: Distribution
    classes: Classes
    images: Images
    agreement: Agreement
    margins: Margins
    fragile: Fragile
    worst_case: tuple[WorstCase, ...]
    expected_change: ExpectedChange | None
    other_runs: OtherRuns | None
    repeat: tuple[Fact, ...]
