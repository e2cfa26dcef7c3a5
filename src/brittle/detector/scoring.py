"""How a detector comes by its score: by name, with its parameters, and from a pseudo-margin where it is learned."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from torch import nn

from brittle.detector.formulas import PSEUDO_MARGIN, SCORES
from brittle.detector.identity import Identity
from brittle.errors import ModelError, ParameterError, UnknownNameError
from brittle.scores import CATALOGUE, Score

if TYPE_CHECKING:
    from brittle.detector.pseudo_margin import PseudoMargin


def check_score(score: str) -> str:
    """`score` itself.

    Raises:
        UnknownNameError: it is not one of `SCORES`.
    """
    if not isinstance(score, str) or score not in SCORES:
        near = get_close_matches(str(score), SCORES, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UnknownNameError(
            "unknown_name", f"a detector reads one of {', '.join(SCORES)}; found {score!r:.60}{hint}"
        )
    return score


def check_use(score: str, pseudo_margin: PseudoMargin | None) -> None:
    """Raise where a pseudo-margin is given for a score that does not read it.

    Raises:
        ParameterError: it is.
    """
    if pseudo_margin is not None and score != PSEUDO_MARGIN:
        raise ParameterError(
            "pseudo_margin",
            f"a detector of the score {score} reads no pseudo-margin; leave out --pseudo-margin (pseudo_margin=)",
        )


def check_learned(pseudo_margin: PseudoMargin, identity: Identity, norm: str) -> None:
    """Raise where a pseudo-margin is known to be of another model or norm.

    Raises:
        ModelError: it is.
    """
    pseudo_margin.check_model(identity.state_sha256)
    learned = pseudo_margin.recipe.norm
    if learned not in (None, norm):
        raise ModelError(
            "pseudo_margin_norm",
            f"the pseudo-margin was learned from margins in {learned}, the detector is for {norm}; learn one in {norm}",
        )


def parameters_of(score: str, norm: str, pseudo_margin: PseudoMargin | None) -> dict[str, Any]:
    """The parameters that the score must have in a run.

    Raises:
        ParameterError: the score is learned, and there is no pseudo-margin.
    """
    if score == PSEUDO_MARGIN:
        if pseudo_margin is None:
            raise ParameterError(
                "pseudo_margin",
                "the score pseudo_margin needs the one that computed it; give its file too: --pseudo-margin FILE "
                "(pseudo_margin=)",
            )
        return {"sha256": pseudo_margin.digest}
    return {"norm": norm} if SCORES[score].normed else {}


def score_of(score: str, norm: str, pseudo_margin: PseudoMargin | None) -> Score:
    """What `brittle.score` computes the score by."""
    if pseudo_margin is not None and score == PSEUDO_MARGIN:
        return pseudo_margin.score
    return CATALOGUE[score](**({"norm": norm} if SCORES[score].normed else {}))


def regressor_of(score: str, parameters: Mapping[str, Any], pseudo_margin: PseudoMargin | None) -> nn.Module | None:
    """The regressor of the pseudo-margin, checked to be the one of the `parameters` of the fit; None for other scores.

    Raises:
        ModelError: it is another one, or missing.
        ParameterError: a pseudo-margin is given that the score does not read.
    """
    check_use(score, pseudo_margin)
    if score != PSEUDO_MARGIN:
        return None
    found = None if pseudo_margin is None else pseudo_margin.digest
    if pseudo_margin is None or found != parameters.get("sha256"):
        raise ModelError(
            "detector_pseudo_margin",
            f"the detector reads the pseudo-margin {parameters.get('sha256')}; found {found}; give the file that it "
            f"was fitted with: --pseudo-margin FILE (pseudo_margin=)",
        )
    return pseudo_margin.regressor
