"""What a calibration came to: rates with their intervals, counts of points, and a verdict on the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brittle.analysis.detection import GOOD_AUROC
from brittle.detector.ranges import check_interval
from brittle.errors import ParameterError
from brittle.intervals import clopper_pearson

CHANCE = 0.5
"""AUROC of a score that tells nothing."""


@dataclass(frozen=True)
class Rate:
    """A share of points that were flagged, with its exact interval (Clopper-Pearson).

    Points that may or may not belong to the kind that is counted are *undecided*. The share without them is `value`;
    it is `lowest` where of the undecided those belong that are not flagged, and `highest` where those do that are. The
    interval reaches from the lower end of the interval of the lowest share to the upper end of that of the highest: it
    holds that of every way in which the undecided may belong.

    Attributes:
        flagged: points flagged.
        points: points looked at.
        value: their ratio, or None where there are none.
        low: lower end of the interval.
        high: upper end.
        undecided: points beside these that may or may not belong to them.
        undecided_flagged: how many of those are flagged.
    """

    flagged: int
    points: int
    value: float | None
    low: float
    high: float
    undecided: int = 0
    undecided_flagged: int = 0

    @classmethod
    def of(cls, flagged: NDArray[np.bool_], confidence: float, undecided: NDArray[np.bool_] | None = None) -> Rate:
        """The share of True in `flagged`, `[n]`, beside the flags of undecided points, `[m]`."""
        others = np.zeros(0, dtype=bool) if undecided is None else undecided
        return cls.counted(int(flagged.sum()), flagged.size, confidence, others.size, int(others.sum()))

    @classmethod
    def counted(
        cls, flagged: int, points: int, confidence: float, undecided: int = 0, undecided_flagged: int = 0
    ) -> Rate:
        """The rate of these counts."""
        most = points + undecided - undecided_flagged
        low = float(clopper_pearson(flagged, most, confidence)[0]) if most else 0.0
        more = undecided_flagged
        high = float(clopper_pearson(flagged + more, points + more, confidence)[1]) if points + more else 1.0
        return cls(flagged, points, _ratio(flagged, points), low, high, undecided, undecided_flagged)

    @property
    def lowest(self) -> float | None:
        """The share where of the undecided points those belong that are not flagged."""
        return _ratio(self.flagged, self.points + self.undecided - self.undecided_flagged)

    @property
    def highest(self) -> float | None:
        """The share where of the undecided points those belong that are flagged."""
        return _ratio(self.flagged + self.undecided_flagged, self.points + self.undecided_flagged)

    def without_undecided(self, confidence: float) -> Rate:
        """The rate of the decided points alone."""
        return Rate.counted(self.flagged, self.points, confidence)

    def __str__(self) -> str:
        said = f"{_percent(self.value)} [{self.low:.1%}, {self.high:.1%}], {self.flagged} of {self.points} points"
        if not self.undecided:
            return said
        return (
            f"{said}; between {_percent(self.lowest)} and {_percent(self.highest)} with {self.undecided} undecided "
            f"ones, {self.undecided_flagged} of them flagged, counted either way"
        )


@dataclass(frozen=True)
class Counts:
    """How many points of the run were used for what, and how many were left out for which reason.

    Attributes:
        points: all of them.
        brittle: the positive class: with a margin of at most epsilon, or a prediction that breaks under the noise.
        robust: with a larger or infinite margin, or a prediction that holds.
        undecided: neither: the interval of their flip probability reaches over the limit.
        masked: left out, because vanishing or misleading gradients make their margin doubtful.
        without_number: left out, because they have no margin, or no flip probability.
        learned_from: left out, because a pseudo-margin was trained on them.
        without_score: among those used, the ones without a number in the score; they are always flagged.
        choice: points that the score was chosen on, a fifth of every kind; 0 where it was named.
        calibration: brittle points that the threshold was chosen on.
        held_out: brittle points that it was checked on.
    """

    points: int
    brittle: int
    robust: int
    undecided: int
    masked: int
    without_number: int
    learned_from: int
    without_score: int
    choice: int
    calibration: int
    held_out: int

    def __post_init__(self) -> None:
        used = self.brittle + self.robust + self.undecided
        whole = used + self.masked + self.without_number + self.learned_from
        kinds = (self.brittle, self.robust, self.undecided)
        chosen = self.choice in (0, sum(map(choice_of, kinds)))
        halves = (self.calibration, self.held_out) == halves_of(self.left(self.brittle))
        if min(vars(self).values()) < 0 or self.points != whole or self.without_score > used or not (chosen and halves):
            raise ParameterError(f"the counts do not add up: {vars(self)}")

    def left(self, kind: int) -> int:
        """How many of so many points of one kind the score was not chosen on."""
        return kind - choice_of(kind) if self.choice else kind


def choice_of(kind: int) -> int:
    """On how many of so many points of one kind a score is chosen, where it is."""
    return kind // 5


def halves_of(kind: int) -> tuple[int, int]:
    """How many of so many points of one kind are on the side of the calibration, and how many are held out."""
    return kind - kind // 2, kind // 2


@dataclass(frozen=True)
class Verdict:
    """Whether a score tells brittle points of this model at all.

    Attributes:
        trusted: whether `auroc_low` is at least `GOOD_AUROC`.
        tau: Kendall's tau-b between the score and the margin, or the probability that the prediction is kept; None
            where either is constant.
        tau_low: lower end of its interval.
        tau_high: upper end.
        auroc: probability that a brittle point scores lower than a robust one, or None where a class is empty.
        auroc_low: lower end of its interval.
        auroc_high: upper end.
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
            raise ParameterError(f"no score is trusted whose AUROC may be below {GOOD_AUROC}; found {self.auroc_low!r}")

    def __str__(self) -> str:
        measured = (
            f"AUROC {_as_text(self.auroc)} [{self.auroc_low:.3f}, {self.auroc_high:.3f}], "
            f"Kendall's tau {_as_text(self.tau)} [{self.tau_low:.3f}, {self.tau_high:.3f}]"
        )
        if self.trusted:
            return f"trusted: {measured}"
        if self.auroc is None or self.auroc_low <= CHANCE:
            return (
                f"useless: {measured}; an AUROC of {CHANCE} tells nothing, and the interval is not above it, so do not "
                f"deploy this flag: choose another score, learn a pseudo-margin (brittle.detector.pseudo_margin) or "
                f"calibrate on more points"
            )
        return (
            f"weak: {measured}; the lower end of the AUROC is below {GOOD_AUROC}, so this score flags many robust "
            f"points for this model; learn a pseudo-margin (brittle.detector.pseudo_margin) or calibrate on more points"
        )


@dataclass(frozen=True)
class LeftOut:
    """How many points a run holds, and how many of them cannot be calibrated on.

    Attributes:
        points: all of them.
        masked: with a doubtful margin, because of vanishing or misleading gradients.
        without_number: with no margin, or no flip probability.
        learned_from: that a pseudo-margin was trained on.
    """

    points: int = 0
    masked: int = 0
    without_number: int = 0
    learned_from: int = 0


def left_out_sentence(counts: Counts | LeftOut) -> str:
    """How many points were left out and why, as the end of a sentence; empty where there are none."""
    reasons = (
        (counts.masked, "masked"),
        (counts.without_number, "without a number"),
        (counts.learned_from, "learned from"),
    )
    parts = [f"{count} {reason}" for count, reason in reasons if count]
    return f" (left out: {', '.join(parts)})" if parts else ""


def _ratio(flagged: int, points: int) -> float | None:
    return flagged / points if points else None


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"


def _as_text(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.3f}"
