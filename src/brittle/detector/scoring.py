"""How a detector comes by its score: by name, with its parameters, and from a pseudo-margin where it is learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from brittle.detector.identity import Identity
from brittle.detector.pseudo_margin.learned import PseudoMarginScore
from brittle.errors import ModelError, ParameterError, UnknownNameError
from brittle.estimate import Parameters
from brittle.model.loading.named_code import offered
from brittle.scores import CATALOGUE, Score
from brittle.scores.one_pass import OnePassScore
from brittle.scores.outside import SCORES, find_score

if TYPE_CHECKING:
    from brittle.detector.pseudo_margin import PseudoMargin

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
    def normed(self) -> bool:
        """Whether it has the norm of the margins as a parameter."""
        return "norm" in {field.name for field in fields(self.kind)}

    @property
    def name(self) -> str:
        """The score as it is compared with the threshold, such as `-entropy`."""
        return f"-{self.kind.name}" if self._negative else self.kind.name

    @property
    def span(self) -> tuple[float, float]:
        """No finite value is smaller than the first, or larger than the second."""
        least, most = self.kind.least, self.kind.most
        return (0.0 - most, 0.0 - least) if self._negative else (least, most)

    def oriented(self, values: Numbers) -> Numbers:
        """`values` of the score, larger where safer."""
        return -values if self._negative else values

    @property
    def _negative(self) -> bool:
        return self.kind.safer == "lower"


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
    if score in installed:
        why = "; it is no score of one pass that says which way is safer"
    else:
        near = get_close_matches(str(score), [*READINGS, *installed], 1)
        why = f"; did you mean {near[0]}?" if near else ""
    names = ", ".join([*READINGS, *installed])
    raise UnknownNameError(f"a detector reads one of {names}; found {score!r:.60}{why}")


def check_score(score: str) -> str:
    """`score` itself."""
    reading_of(score)
    return score


def check_use(score: str, pseudo_margin: PseudoMargin | None) -> None:
    """Raise where a pseudo-margin is given for a score that does not read it."""
    if pseudo_margin is not None and score != PSEUDO_MARGIN:
        raise ParameterError(
            f"a detector of the score {score} reads no pseudo-margin; leave out --pseudo-margin (pseudo_margin=)",
        )


def check_learned(pseudo_margin: PseudoMargin, identity: Identity, norm: str | None) -> None:
    """Raise where a pseudo-margin is known to be of another model, or of another norm where there is one."""
    pseudo_margin.check_model(identity.state_sha256)
    learned = pseudo_margin.recipe.norm
    if None not in (learned, norm) and learned != norm:
        raise ModelError(
            "other_model",
            f"the pseudo-margin was learned from margins in {learned}, the detector is for {norm}; learn one in {norm}",
        )


def parameters_of(score: str, norm: str | None, pseudo_margin: PseudoMargin | None) -> Parameters:
    """The parameters that the score must have in a run."""
    if score == PSEUDO_MARGIN:
        if pseudo_margin is None:
            raise ParameterError(
                "the score pseudo_margin needs the one that computed it; give its file too: --pseudo-margin FILE "
                "(pseudo_margin=)",
            )
        return {"sha256": pseudo_margin.digest}
    return score_of(score, norm, None).parameters


def score_of(score: str, norm: Any, pseudo_margin: PseudoMargin | None) -> OnePassScore:
    """What `brittle.score` computes the score by, and a network with the detector built in.

    Args:
        score: its name.
        norm: of the score, where it has one; None is its own default.
        pseudo_margin: what computes it, where it is learned.
    """
    if pseudo_margin is not None and score == PSEUDO_MARGIN:
        return pseudo_margin.score
    reading = reading_of(score)
    return reading.kind(**({"norm": norm} if reading.normed and norm is not None else {}))


def check_read(score: str, parameters: Mapping[str, Any], pseudo_margin: PseudoMargin | None) -> None:
    """Raise unless the pseudo-margin that the score reads, if it reads one, is that of the `parameters` of the fit."""
    check_use(score, pseudo_margin)
    if score != PSEUDO_MARGIN:
        return
    found = None if pseudo_margin is None else pseudo_margin.digest
    if pseudo_margin is None or found != parameters.get("sha256"):
        raise ModelError(
            "other_model",
            f"the detector reads the pseudo-margin {parameters.get('sha256')}; found {found}; give the file that it "
            f"was fitted with: --pseudo-margin FILE (pseudo_margin=)",
        )
