"""What makes a prediction brittle: a small perturbation that changes it, or noise under which it does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from brittle.analysis.decisions import MORE_DRAWS
from brittle.estimate import MOST_DRAWS, Parameter, Scalar, score_label
from brittle.store.settings import setting_of


class Criterion(Protocol):
    """What both criteria say of themselves."""

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        ...

    @property
    def wider(self) -> str:
        """What would make more points brittle."""
        ...

    def remedy(self, undecided: int, points: int) -> str:
        """What to do about so many undecided points of so many, in a sentence; empty without any."""
        ...


@dataclass(frozen=True)
class MarginCriterion:
    """A point is brittle when the nearest input with another prediction is at most `epsilon` away.

    Attributes:
        epsilon: margins up to this are brittle, in the declared pixel units.
        norm: of the margins, `l2`, `linf` or `l1`.
        margin: parameters of the margins: the norm, and how the nearest other decision was looked for.
    """

    epsilon: float
    norm: str
    margin: dict[str, Scalar]

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        return f"epsilon {self.epsilon:.6g} in {self.norm}"

    @property
    def wider(self) -> str:
        """What would make more points brittle."""
        return "a larger epsilon"

    def remedy(self, undecided: int, points: int) -> str:
        """Nothing: every margin decides."""
        return ""

    def __str__(self) -> str:
        return f"those with margins up to {self.epsilon:.6g} in {self.norm}"


@dataclass(frozen=True)
class NoiseCriterion:
    """A point is brittle when its prediction is kept with a probability below `limit` under the noise of a column.

    As far as the column knows (`brittle.analysis.decide`): a point is brittle where it `breaks`, robust where it
    `holds`, and neither where it is `undecided`.

    Attributes:
        limit: probability with which a prediction has to be kept, between 0 and 1.
        column: name of the score that estimated it, such as `monte_carlo`.
        noise: parameters of that score, the noise among them.
    """

    limit: float
    column: str
    noise: dict[str, Parameter]

    @property
    def size(self) -> str:
        """The perturbation, in a few words."""
        return f"limit {self.limit:g} under {setting_of(self.noise)}"

    @property
    def wider(self) -> str:
        """What would make more points brittle."""
        return "a higher limit"

    def remedy(self, undecided: int, points: int) -> str:
        """How to score the points so that fewer are undecided; empty without any."""
        if not undecided:
            return ""
        said = f"{undecided} of {points} points are undecided, so neither brittle nor robust"
        if {"action", "scale", "factor", "code", "rows", "unit"} & self.noise.keys():
            return f"{said}; draw for this limit, brittle.score(..., until='decided', limit={self.limit:g})"
        draws = self.noise.get("draws")
        drawn = self.noise.get("limit") == self.limit and isinstance(draws, int)
        more = f" --most-draws {MORE_DRAWS * draws}" if drawn and isinstance(draws, int) else ""
        family = f" --noise {self.noise['noise']}" if "noise" in self.noise else ""
        return (
            f"{said}; fewer are where {'more' if drawn else f'up to {MOST_DRAWS:,}'} noisy copies are drawn for this "
            f"limit: brittle score MODEL DATA --scores monte_carlo logit_margin --sigma {self.noise.get('sigma')}"
            f"{family} --until decided --limit {self.limit:g}{more} --out RUN"
        )

    def __str__(self) -> str:
        label = score_label(self.column, self.noise)
        return f"those that keep their prediction with a probability below {self.limit:g}, as {label} says"
