"""What a calibration came to: rates with their intervals, counts of points, and a verdict on the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brittle.analysis.detection import GOOD_AUROC
from brittle.detector.ranges import check_interval
from brittle.errors import ParameterError
from brittle.intervals import clopper_pearson


@dataclass(frozen=True)
class Rate:
    """A share of points that were flagged, with its exact interval (Clopper-Pearson).

    Attributes:
        flagged: points flagged.
        points: points looked at.
        value: their ratio, or None where there are none.
        low: lower end of the interval.
        high: upper end.

    Raises:
        ParameterError: these are not the numbers of one rate.
    """

    flagged: int
    points: int
    value: float | None
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.flagged <= self.points or not 0.0 <= self.low <= self.high <= 1.0:
            raise ParameterError("rate", f"{self.flagged} of {self.points} in [{self.low}, {self.high}] is no rate")
        if self.value != (self.flagged / self.points if self.points else None):
            raise ParameterError("value", f"{self.flagged} of {self.points} is no rate of {self.value!r}")

    @classmethod
    def of(cls, flagged: NDArray[np.bool_], confidence: float) -> Rate:
        """The share of True in `flagged`, `[n]`."""
        hits, points = int(flagged.sum()), flagged.size
        low, high = clopper_pearson(hits, points, confidence) if points else (0.0, 1.0)
        return cls(hits, points, hits / points if points else None, float(low), float(high))

    def __str__(self) -> str:
        value = "unknown" if self.value is None else f"{self.value:.1%}"
        return f"{value} [{self.low:.1%}, {self.high:.1%}], {self.flagged} of {self.points} points"


@dataclass(frozen=True)
class Counts:
    """How many points of the run were used for what, and how many were left out for which reason.

    Attributes:
        points: all of them.
        brittle: with a margin of at most epsilon, the positive class.
        robust: with a larger or infinite one.
        masked: left out, because vanishing gradients or disagreeing attacks make their margin doubtful.
        without_margin: left out, because they have none.
        learned_from: left out, because a pseudo-margin was trained on them.
        without_score: among `brittle` and `robust`, those without a number in the score; they are always flagged.
        calibration: brittle points that the threshold was chosen on.
        held_out: brittle points that it was checked on.

    Raises:
        ParameterError: they do not add up.
    """

    points: int
    brittle: int
    robust: int
    masked: int
    without_margin: int
    learned_from: int
    without_score: int
    calibration: int
    held_out: int

    def __post_init__(self) -> None:
        used = self.brittle + self.robust
        whole = used + self.masked + self.without_margin + self.learned_from
        halves = self.calibration == (self.brittle + 1) // 2 and self.held_out == self.brittle // 2
        if min(vars(self).values()) < 0 or self.points != whole or self.without_score > used or not halves:
            raise ParameterError("counts", f"the counts do not add up: {vars(self)}")


@dataclass(frozen=True)
class Verdict:
    """Whether a score tells brittle points of this model at all.

    Attributes:
        trusted: whether `auroc_low` is at least `GOOD_AUROC`.
        tau: Kendall's tau-b between score and margin, or None where either is constant.
        tau_low: lower end of its interval.
        tau_high: upper end.
        auroc: probability that a brittle point scores lower than a robust one, or None where a class is empty.
        auroc_low: lower end of its interval.
        auroc_high: upper end.

    Raises:
        ParameterError: an interval does not hold its number, or it is trusted though the AUROC may be too low.
    """

    trusted: bool
    tau: float | None
    tau_low: float
    tau_high: float
    auroc: float | None
    auroc_low: float
    auroc_high: float

    def __post_init__(self) -> None:
        check_interval("tau", self.tau, self.tau_low, self.tau_high, (-1.0, 1.0))
        check_interval("auroc", self.auroc, self.auroc_low, self.auroc_high, (0.0, 1.0))
        if self.trusted and (self.auroc is None or self.auroc_low < GOOD_AUROC):
            raise ParameterError(
                "trusted", f"no score is trusted whose AUROC may be below {GOOD_AUROC}; found {self.auroc_low!r}"
            )

    def __str__(self) -> str:
        measured = (
            f"AUROC {_as_text(self.auroc)} [{self.auroc_low:.3f}, {self.auroc_high:.3f}], "
            f"Kendall's tau {_as_text(self.tau)} [{self.tau_low:.3f}, {self.tau_high:.3f}]"
        )
        if self.trusted:
            return f"trusted: {measured}"
        return (
            f"weak: {measured}; the lower end of the AUROC is below {GOOD_AUROC}, so this score flags many robust "
            f"points for this model; learn a pseudo-margin (brittle.detector.pseudo_margin) or calibrate on more points"
        )


@dataclass(frozen=True)
class LeftOut:
    """How many points a run holds, and how many of them cannot be calibrated on.

    Attributes:
        points: all of them.
        masked: with a doubtful margin, because of vanishing gradients or disagreeing attacks.
        without_margin: with no margin.
        learned_from: that a pseudo-margin was trained on.
    """

    points: int = 0
    masked: int = 0
    without_margin: int = 0
    learned_from: int = 0


def left_out_sentence(counts: Counts | LeftOut) -> str:
    """How many points were left out and why, as the end of a sentence; empty where there are none."""
    reasons = (
        (counts.masked, "masked"),
        (counts.without_margin, "without margin"),
        (counts.learned_from, "learned from"),
    )
    parts = [f"{count} {reason}" for count, reason in reasons if count]
    return f" (left out: {', '.join(parts)})" if parts else ""


def _as_text(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.3f}"
