"""What a calibration came to: counts of points, the rates that follow from them, and a verdict on the score."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from brittle.analysis.detection import GOOD_AUROC
from brittle.errors import ParameterError
from brittle.intervals import clopper_pearson
from brittle.store.strict_json import Count

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
        confidence: of the interval.
        undecided: points beside these that may or may not belong to them.
        undecided_flagged: how many of those are flagged.
    """

    flagged: int
    points: int
    confidence: float
    undecided: int = 0
    undecided_flagged: int = 0

    @classmethod
    def of(cls, flagged: NDArray[np.bool_], confidence: float, undecided: NDArray[np.bool_] | None = None) -> Rate:
        """The share of True in `flagged`, `[n]`, beside the flags of undecided points, `[m]`."""
        others = np.zeros(0, dtype=bool) if undecided is None else undecided
        return cls(int(flagged.sum()), flagged.size, confidence, others.size, int(others.sum()))

    @property
    def value(self) -> float | None:
        """The share of the decided points, or None where there are none."""
        return _ratio(self.flagged, self.points)

    @property
    def lowest(self) -> float | None:
        """The share where of the undecided points those belong that are not flagged."""
        return _ratio(self.flagged, self.points + self.undecided - self.undecided_flagged)

    @property
    def highest(self) -> float | None:
        """The share where of the undecided points those belong that are flagged."""
        return _ratio(self.flagged + self.undecided_flagged, self.points + self.undecided_flagged)

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        most = self.points + self.undecided - self.undecided_flagged
        return float(clopper_pearson(self.flagged, most, self.confidence)[0]) if most else 0.0

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        flagged, most = self.flagged + self.undecided_flagged, self.points + self.undecided_flagged
        return float(clopper_pearson(flagged, most, self.confidence)[1]) if most else 1.0

    @property
    def without_undecided(self) -> Rate:
        """The rate of the decided points alone."""
        return replace(self, undecided=0, undecided_flagged=0)

    def __str__(self) -> str:
        shown = f"{_percent(self.value)} [{self.low:.1%}, {self.high:.1%}], {self.flagged} of {self.points} points"
        if not self.undecided:
            return shown
        return (
            f"{shown}; between {_percent(self.lowest)} and {_percent(self.highest)} with {self.undecided} undecided "
            f"ones, {self.undecided_flagged} of them flagged, counted either way"
        )


@dataclass(frozen=True)
class Counts:
    """How many points of the run were used for what, how many were flagged, and how many were left out and why.

    Attributes:
        brittle: the positive class: with a margin of at most epsilon, or a prediction that breaks under the noise.
        robust: with a larger or infinite margin, or a prediction that holds.
        undecided: neither: the interval of their flip probability reaches over the limit.
        masked: left out, because vanishing or misleading gradients make their margin doubtful.
        without_number: left out, because they have no margin, or no flip probability.
        learned_from: left out, because a pseudo-margin was trained on them.
        without_score: among those used, the ones without a number in the score; they are always flagged.
        score_chosen: whether the score was chosen, on a fifth of the points of each kind that serve for nothing else.
        flagged_brittle: flagged of the brittle points that are held out.
        flagged_robust: flagged of the robust points that the score was not chosen on.
        flagged_undecided: flagged of the undecided points that the score was not chosen on.
        flagged_undecided_held_out: flagged of that half of these on which the true positives are counted.
    """

    brittle: Count
    robust: Count
    undecided: Count
    masked: Count
    without_number: Count
    learned_from: Count
    without_score: Count
    score_chosen: bool
    flagged_brittle: Count
    flagged_robust: Count
    flagged_undecided: Count
    flagged_undecided_held_out: Count

    def __post_init__(self) -> None:
        for part, whole in (
            ("without_score", self.used),
            ("flagged_brittle", self.held_out),
            ("flagged_robust", self.left(self.robust)),
            ("flagged_undecided", self.left(self.undecided)),
            ("flagged_undecided_held_out", min(self.flagged_undecided, halves_of(self.left(self.undecided))[1])),
        ):
            if getattr(self, part) > whole:
                raise ParameterError(f"{part} is more than there are: {getattr(self, part)} of {whole}")

    @property
    def used(self) -> int:
        """Points that were calibrated on: those of the three kinds."""
        return self.brittle + self.robust + self.undecided

    @property
    def points(self) -> int:
        """All points of the run."""
        return self.used + self.masked + self.without_number + self.learned_from

    @property
    def choice(self) -> int:
        """Points that the score was chosen on; 0 where it was named."""
        return self.used - sum(map(self.left, (self.brittle, self.robust, self.undecided)))

    @property
    def calibration(self) -> int:
        """Brittle points that the threshold was chosen on."""
        return halves_of(self.left(self.brittle))[0]

    @property
    def held_out(self) -> int:
        """Brittle points that it was checked on."""
        return halves_of(self.left(self.brittle))[1]

    def left(self, kind: int) -> int:
        """How many of so many points of one kind the score was not chosen on."""
        return kind - choice_of(kind) if self.score_chosen else kind

    def true_positives(self, confidence: float) -> Rate:
        """Share of held-out brittle points that are flagged."""
        undecided = halves_of(self.left(self.undecided))[1]
        return Rate(self.flagged_brittle, self.held_out, confidence, undecided, self.flagged_undecided_held_out)

    def false_positives(self, confidence: float) -> Rate:
        """Share of robust points that are flagged."""
        robust, undecided = self.left(self.robust), self.left(self.undecided)
        return Rate(self.flagged_robust, robust, confidence, undecided, self.flagged_undecided)


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
        tau: Kendall's tau-b between the score and the margin, or the probability that the prediction is kept; None
            where either is constant.
        tau_low: lower end of its interval.
        tau_high: upper end.
        auroc: probability that a brittle point scores lower than a robust one, or None where a class is empty.
        auroc_low: lower end of its interval.
        auroc_high: upper end.
    """

    tau: float | None
    tau_low: float
    tau_high: float
    auroc: float | None
    auroc_low: float
    auroc_high: float

    def __post_init__(self) -> None:
        for name, least in (("tau", -1.0), ("auroc", 0.0)):
            value, low, high = (getattr(self, f"{name}{end}") for end in ("", "_low", "_high"))
            if not least <= low <= (low if value is None else value) <= high <= 1.0:
                raise ParameterError(f"{name} must lie in its interval, within [{least:g}, 1]; found {value!r} in "
                                     f"[{low!r}, {high!r}]")  # fmt: skip

    @property
    def trusted(self) -> bool:
        """Whether the AUROC is surely at least `GOOD_AUROC`."""
        return self.auroc is not None and self.auroc_low >= GOOD_AUROC

    def __str__(self) -> str:
        auroc, tau = ("unknown" if number is None else f"{number:.3f}" for number in (self.auroc, self.tau))
        measured = (
            f"AUROC {auroc} [{self.auroc_low:.3f}, {self.auroc_high:.3f}], "
            f"Kendall's tau {tau} [{self.tau_low:.3f}, {self.tau_high:.3f}]"
        )
        if self.trusted:
            return f"trusted: {measured}"
        if self.auroc is None or self.auroc_low <= CHANCE:
            return (
                f"useless: {measured}; an AUROC of {CHANCE} tells nothing, so do not deploy this flag: choose another "
                f"score, learn a pseudo-margin (brittle.detector.pseudo_margin) or calibrate on more points"
            )
        return (
            f"weak: {measured}; the AUROC may be below {GOOD_AUROC}, so this score flags many robust points: learn a "
            f"pseudo-margin (brittle.detector.pseudo_margin) or calibrate on more points"
        )


def _ratio(flagged: int, points: int) -> float | None:
    return flagged / points if points else None


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"
