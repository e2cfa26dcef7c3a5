"""The results of a calibration: counts of points, the rates that follow from them, and a verdict on the score."""

from __future__ import annotations

from dataclasses import dataclass, replace

from brittle.analysis.detection import GOOD_AUROC
from brittle.errors import ParameterError
from brittle.intervals import clopper_pearson
from brittle.store.strict_json import Count

CHANCE = 0.5  # AUROC of a score without information


@dataclass(frozen=True)
class Rate:
    """A share of flagged points among points of a class, with its exact interval (Clopper-Pearson).

    *Undecided* points may or may not belong to the class; `value` is the share without them. The share is lowest if
    the undecided points without a flag belong to the class, and highest if those with a flag do. The interval reaches
    from the lower end of the interval of the lowest share to the upper end of that of the highest share: it contains
    the interval for every assignment of the undecided points.

    Attributes:
        flagged: number of flagged points.
        points: number of points.
        confidence: confidence of the interval.
        undecided: number of further points that may or may not belong to the class.
        undecided_flagged: number of flagged points among the undecided.
    """

    flagged: int
    points: int
    confidence: float
    undecided: int = 0
    undecided_flagged: int = 0

    @property
    def value(self) -> float | None:
        """The share among the decided points, or None without points."""
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
        text = f"{value} [{self.low:.1%}, {self.high:.1%}], {self.flagged} of {self.points} points"
        if not self.undecided:
            return text
        return f"{text}; {self.undecided} undecided ones, {self.undecided_flagged} of them flagged, counted either way"


@dataclass(frozen=True)
class Counts:
    """Numbers of points of the run by class, by flag, and by the reason to leave them out.

    Attributes:
        brittle: points of the positive class: a margin of at most epsilon, or a prediction that breaks under the noise.
        robust: points with a larger or infinite margin, or a prediction that holds.
        undecided: points of neither class: the interval of their flip probability contains the limit.
        masked: points left out because vanishing or misleading gradients make their margin doubtful.
        without_number: points left out because they have no margin, or no flip probability.
        learned_from: points left out because a pseudo-margin was trained on them.
        without_score: points of the three classes without a finite score; they are always flagged.
        flagged_brittle: flagged points among the held-out brittle points.
        flagged_robust: flagged points among the robust points.
        flagged_undecided: flagged points among the undecided points.
        flagged_undecided_held_out: flagged points in the half of the undecided that the true positives count.
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
        for part, total in (
            ("without_score", self.used),
            ("flagged_brittle", self.held_out),
            ("flagged_robust", self.robust),
            ("flagged_undecided", self.undecided),
            ("flagged_undecided_held_out", min(self.flagged_undecided, self.undecided // 2)),
        ):
            if getattr(self, part) > total:
                raise ParameterError(f"{part} is more than there are: {getattr(self, part)} of {total}")

    @property
    def used(self) -> int:
        """Points of the three classes."""
        return self.brittle + self.robust + self.undecided

    @property
    def calibration(self) -> int:
        """Brittle points that the threshold was chosen on."""
        return self.brittle - self.held_out

    @property
    def held_out(self) -> int:
        """Brittle points that the threshold was checked on."""
        return self.brittle // 2


@dataclass(frozen=True)
class Judgement:
    """A verdict on a score: how well it separates brittle from robust points of this model.

    Attributes:
        tau: Kendall's tau-b between the score and the margin, or one minus the flip probability; None if constant.
        tau_low: lower end of its interval.
        tau_high: upper end.
        auroc: probability that a brittle point scores lower than a robust one, or None if a class is empty.
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
        for name, minimum in (("tau", -1.0), ("auroc", 0.0)):
            value, low, high = (getattr(self, f"{name}{end}") for end in ("", "_low", "_high"))
            if not minimum <= low <= (low if value is None else value) <= high <= 1.0:
                raise ParameterError(f"{name} must lie in its interval, within [{minimum:g}, 1]; found {value!r} in "
                                     f"[{low!r}, {high!r}]")  # fmt: skip

    @property
    def trusted(self) -> bool:
        """True where the interval of the AUROC lies at or above `GOOD_AUROC`."""
        return self.auroc is not None and self.auroc_low >= GOOD_AUROC

    def __str__(self) -> str:
        auroc, tau = ("unknown" if number is None else f"{number:.3f}" for number in (self.auroc, self.tau))
        measured = (
            f"AUROC {auroc} [{self.auroc_low:.3f}, {self.auroc_high:.3f}], "
            f"Kendall's tau {tau} [{self.tau_low:.3f}, {self.tau_high:.3f}]"
        )
        if self.trusted:
            return f"trusted: {measured}"
        better = "calibrate on more points or, of a network, learn a pseudo-margin (brittle.Surrogate)"
        if self.auroc is None or self.auroc_low <= CHANCE:
            return (
                f"useless: {measured}; an AUROC of {CHANCE} is chance, so do not deploy this flag: choose another "
                f"score, {better}"
            )
        return (
            f"weak: {measured}; the AUROC may be below {GOOD_AUROC}, so look at how many robust points are flagged; "
            f"if too many, {better}"
        )
