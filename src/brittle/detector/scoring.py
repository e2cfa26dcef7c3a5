"""How a detector comes by its score: by name, with its parameters, and from a pseudo-margin where it is learned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from brittle.detector.pseudo_margin import PseudoMargin, PseudoMarginScore
from brittle.errors import ModelError, ParameterError, UnknownNameError
from brittle.model.loading.named_code import offered
from brittle.scores import CATALOGUE, Score
from brittle.scores.one_pass import OnePassScore
from brittle.scores.outside import SCORES, find_score

PSEUDO_MARGIN = PseudoMarginScore.name
"""The score that is learned rather than computed."""

Numbers = TypeVar("Numbers", bound=Any)


@dataclass(frozen=True)
class ScoreReading:
    """A kind of score as a detector reads it: larger where safer.

    Attributes:
        kind: the class of the score.
    """

    kind: type[OnePassScore]

    @property
    def uses_features(self) -> bool:
        """Whether it reads the features."""
        return self.kind.uses_features

    @property
    def name(self) -> str:
        """The score as it is compared with the threshold, such as `-entropy`."""
        return f"-{self.kind.name}" if self.kind.safer == "lower" else self.kind.name

    @property
    def span(self) -> tuple[float, float]:
        """No finite value is smaller than the first, or larger than the second."""
        least, most = self.kind.least, self.kind.most
        return (0.0 - most, 0.0 - least) if self.kind.safer == "lower" else (least, most)

    def oriented(self, values: Numbers) -> Numbers:
        """`values` of the score, larger where safer."""
        return -values if self.kind.safer == "lower" else values


def _read(kinds: Iterable[type[Score]]) -> dict[str, ScoreReading]:
    """The readings of those scores that have a formula of one pass and say which way is safer."""
    return {
        kind.name: ScoreReading(kind)
        for kind in kinds
        if issubclass(kind, OnePassScore) and kind.safer in ("higher", "lower")
    }


READINGS = _read((*CATALOGUE.values(), PseudoMarginScore))
"""What a detector may read of brittle's own scores."""


def reading_of(score: str) -> ScoreReading:
    """How a detector reads the score of this name: one of `READINGS`, or one that an installed package offers.

    A name that says where a file stands is none, because it may come out of a detector's file.

    Raises:
        UnknownNameError: there is none, or the score has no formula of one pass, or does not say which way is safer.
        ParameterError: the package cannot be imported, or its score cannot be used.
    """
    installed = [name for name in offered(SCORES) if name not in {**CATALOGUE, **READINGS}]
    known = _read((find_score(score),)) if score in installed else READINGS
    if isinstance(score, str) and score in known:
        return known[score]
    names = [*READINGS, *installed]
    near = get_close_matches(str(score), names, 1)
    hint = f"; did you mean {near[0]}?" if near and score not in installed else ""
    raise UnknownNameError(
        f"a detector reads a score of one pass that says which way is safer, one of {', '.join(names)}; found "
        f"{score!r:.60}{hint}"
    )


def score_of(score: str, norm: Any = None, pseudo_margin: PseudoMargin | None = None) -> OnePassScore:
    """What `brittle.score` computes the score by, and a network with the detector built in.

    Args:
        score: its name.
        norm: of the score, where it has one; None is its own default.
        pseudo_margin: what computes it, where it is learned.

    Raises:
        ParameterError: the score is learned and the pseudo-margin is not given, or the other way round.
    """
    if (score == PSEUDO_MARGIN) != (pseudo_margin is not None):
        said = "needs the file of the one that computed it" if pseudo_margin is None else "reads no pseudo-margin"
        raise ParameterError(f"a detector of the score {score} {said}: --pseudo-margin FILE (pseudo_margin=)")
    if pseudo_margin is not None:
        return pseudo_margin.score
    kind = reading_of(score).kind
    normed = norm is not None and "norm" in {field.name for field in fields(kind)}
    return kind(**({"norm": norm} if normed else {}))


def check_pseudo_margin(pseudo_margin: PseudoMargin | None, digest: object = None) -> None:
    """Raise unless `pseudo_margin` is one, of this digest where that is given, or None.

    Raises:
        ParameterError: it is something else.
        ModelError: it is another one.
    """
    if not isinstance(pseudo_margin, PseudoMargin | None):
        kind = type(pseudo_margin).__name__
        raise ParameterError(
            f"expected a brittle.PseudoMargin, found {kind}; PseudoMargin.load reads one from its file"
        )
    found = None if pseudo_margin is None else pseudo_margin.digest
    if digest not in (None, found):
        raise ModelError(
            "other_model",
            f"the detector reads the pseudo-margin {digest}; found {found}; give the file that it was fitted with: "
            f"--pseudo-margin FILE (pseudo_margin=)",
        )
