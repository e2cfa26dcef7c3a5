"""What a calibration came to: counts of points, the rates that follow from them, and a verdict on the score."""

from __future__ import annotations

from dataclasses import dataclass, replace

from brittle.analysis.detection import GOOD_AUROC
from brittle.errors import ParameterError
from brittle.intervals import clopper_pearson
from brittle.store.strict_json import Count

CHANCE = 0.5
"""AUROC of a score that tells nothing."""


@dataclass(frozen=True)
class Rate:
    """A share of points that were flagged, with its exact interval (Clopper-Pearson).

    Points that may or may not belong to the kind that is counted are *undecided*. The share without them is `value`.
    It is lowest where of the undecided those belong that are not flagged, and highest where those do that are. The
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

    @property
    def value(self) -> float | None:
        """The share of the decided points, or None where there are none."""
        return self.flagged / self.points if self.points else None

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        points = self.points + self.undecided - self.undecided_flagged
        return float(clopper_pearson(self.flagged, points, self.confidence)[0]) if points else 0.0

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        flagged, points = self.flagged + self.undecided_flagged, self.points + self.undecided_flagged
        return float(clopper_pearson(flagged, points, self.confidence)[1]) if points else 1.0

    @property
    def without_undecided(self) -> Rate:
        """The rate of the decided points alone."""
        return replace(self, undecided=0, undecided_flagged=0)

    def __str__(self) -> str:
        value = "unknown" if self.value is None else f"{self.value:.1%}"
        shown = f"{value} [{self.low:.1%}, {self.high:.1%}], {self.flagged} of {self.points} points"
        if not self.undecided:
            return shown
        return f"{shown}; {self.undecided} undecided ones, {self.undecided_flagged} of them flagged, counted either way"


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
        flagged_brittle: flagged of the brittle points that are held out.
        flagged_robust: flagged of the robust points.
        flagged_undecided: flagged of the undecided points.
        flagged_undecided_held_out: flagged of that half of these on which the true positives are counted.
    """

    brittle: Count
    robust: Count
    undecided: Count
    masked: Count
    without_number: Count
    learned_from: Count
    without_score: Count
    flagged_brittle: Count
    flagged_robust: Count
    flagged_undecided: Count
    flagged_undecided_held_out: Count

    def __post_init__(self) -> None:
        for part, whole in (
            ("without_score", self.used),
            ("flagged_brittle", self.held_out),
            ("flagged_robust", self.robust),
            ("flagged_undecided", self.undecided),
            ("flagged_undecided_held_out", min(self.flagged_undecided, self.undecided // 2)),
        ):
            if getattr(self, part) > whole:
                raise ParameterError(f"{part} is more than there are: {getattr(self, part)} of {whole}")

    @property
    def used(self) -> int:
        """Points that were calibrated on: those of the three kinds."""
        return self.brittle + self.robust + self.undecided

    @property
    def calibration(self) -> int:
        """Brittle points that the threshold was chosen on."""
        return self.brittle - self.held_out

    @property
    def held_out(self) -> int:
        """Brittle points that it was checked on."""
        return self.brittle // 2


@dataclass(frozen=True)
class Judgement:
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
        better = "calibrate on more points or, of a network, learn a pseudo-margin (brittle.PseudoMargin)"
        if self.auroc is None or self.auroc_low <= CHANCE:
            return (
                f"useless: {measured}; an AUROC of {CHANCE} tells nothing, so do not deploy this flag: choose another "
                f"score, {better}"
            )
        return (
            f"weak: {measured}; the AUROC may be below {GOOD_AUROC}, so look at how many robust points are flagged; "
            f"where these are too many, {better}"
        )
