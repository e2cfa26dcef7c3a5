"""How a detector comes by its score: by name, with its parameters, and from a pseudo-margin where it is learned."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeGuard, TypeVar

from brittle.errors import ParameterError, UnknownNameError
from brittle.extensions.detector.pseudo_margin import PseudoMargin, PseudoMarginScore
from brittle.scores import CATALOGUE, Score
from brittle.scores.one_pass import OnePassScore

PSEUDO_MARGIN = PseudoMarginScore.name
"""The score that is learned rather than computed."""

Numbers = TypeVar("Numbers", bound=Any)


def _readable(kind: type[Score]) -> TypeGuard[type[OnePassScore]]:
    """Whether a score has a formula of one pass, and says which way is safer."""
    return issubclass(kind, OnePassScore) and kind.safer in ("higher", "lower")


READINGS = {kind.name: kind for kind in (*CATALOGUE.values(), PseudoMarginScore) if _readable(kind)}
"""What a detector may read of brittle's own scores."""


def kind_of(score: str) -> type[OnePassScore]:
    """The score of this name that a detector can read, one of `READINGS`.

    Raises:
        UnknownNameError: there is none.
    """
    kind = READINGS.get(str(score))
    if kind is not None:
        return kind
    near = get_close_matches(str(score), READINGS, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnknownNameError(
        f"a detector reads a score of one pass that says which way is safer, one of {', '.join(READINGS)}; found "
        f"{score!r:.60}{hint}"
    )


def oriented(kind: type[OnePassScore], values: Numbers) -> Numbers:
    """`values` of a score, larger where safer."""
    return -values if kind.safer == "lower" else values


def score_of(score: str, norm: Any = None, pseudo_margin: PseudoMargin | None = None) -> OnePassScore:
    """What `brittle.score` computes the score by, and a network with the detector built in. A norm of None is the
    default of the score."""
    if not isinstance(pseudo_margin, PseudoMargin | None):
        kind = type(pseudo_margin).__name__
        raise ParameterError(
            f"expected a brittle.PseudoMargin, found {kind}; PseudoMargin.load reads one from its file"
        )
    if (score == PSEUDO_MARGIN) != (pseudo_margin is not None):
        said = "needs the file of the one that computed it" if pseudo_margin is None else "reads no pseudo-margin"
        raise ParameterError(f"a detector of the score {score} {said}: --pseudo-margin FILE (pseudo_margin=)")
    if pseudo_margin is not None:
        return pseudo_margin.score
    kind = kind_of(score)
    normed = norm is not None and "norm" in {field.name for field in fields(kind)}
    return kind(**({"norm": norm} if normed else {}))
