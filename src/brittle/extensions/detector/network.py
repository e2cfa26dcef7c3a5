"""The score that a detector reads, by name, and a network with the detector built in."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeGuard, TypeVar

import torch
from torch import Tensor

from brittle.errors import ParameterError, UnknownNameError
from brittle.extensions.detector.surrogate import PseudoMarginScore, Surrogate
from brittle.extensions.detector.wrapped import PassNetwork
from brittle.model.classifier import Classifier
from brittle.scores import Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.one_pass import OnePass, OnePassScore

PSEUDO_MARGIN = PseudoMarginScore.name  # name of the learned score

Numbers = TypeVar("Numbers", bound=Any)


def _readable(kind: type[Score]) -> TypeGuard[type[OnePassScore]]:
    """Return whether a score has a formula of one pass, and a safer direction."""
    return issubclass(kind, OnePassScore) and kind.safer in ("higher", "lower")


READINGS = {kind.name: kind for kind in (*CATALOGUE.values(), PseudoMarginScore) if _readable(kind)}
"""The scores of brittle that a detector can read, by name."""


def kind_of(score: str) -> type[OnePassScore]:
    """Return the class of a score that a detector can read, one of `READINGS`.

    Raises:
        UnknownNameError: no such score has this name.
    """
    kind = READINGS.get(str(score))
    if kind is not None:
        return kind
    near = get_close_matches(str(score), READINGS, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnknownNameError(
        f"a detector reads a score of one pass with a safer direction, one of {', '.join(READINGS)}; found "
        f"{score!r:.60}{hint}"
    )


def orient(kind: type[OnePassScore], values: Numbers) -> Numbers:
    """Return `values` of a score with the sign that makes larger safer."""
    return -values if kind.safer == "lower" else values


def score_of(score: str, norm: Any = None, pseudo_margin: Surrogate | None = None) -> OnePassScore:
    """Return the score for `brittle.score` and for a network with the detector built in, None its default norm."""
    if not isinstance(pseudo_margin, Surrogate | None):
        kind = type(pseudo_margin).__name__
        raise ParameterError(f"expected a brittle.Surrogate, found {kind}; Surrogate.load reads it from its file")
    if (score == PSEUDO_MARGIN) != (pseudo_margin is not None):
        reason = "needs the file of the one that computed it" if pseudo_margin is None else "reads no pseudo-margin"
        raise ParameterError(f"a detector of the score {score} {reason}: --pseudo-margin FILE (pseudo_margin=)")
    if pseudo_margin is not None:
        return pseudo_margin.score
    kind = kind_of(score)
    has_norm = norm is not None and "norm" in {field.name for field in fields(kind)}
    return kind(**({"norm": norm} if has_norm else {}))


class DetectorNetwork(PassNetwork):
    """Map inputs `[B, *shape]`, in the declared units, to `(logits, score, brittle)`, `[B, C]`, `[B]` and `[B]`.

    `score` is in double precision, `brittle` holds booleans: True unless the input lies in the declared bounds, all
    logits are finite, a single logit is the largest, and the score is a finite number that reaches the threshold.
    What `PassNetwork` says of passes and exports holds here.
    """

    def __init__(self, classifier: Classifier, score: OnePassScore, threshold: float) -> None:
        super().__init__(classifier, score.uses_features, score.network)
        self._score, self._threshold = score, threshold
        self._reads_probability = score.serves == "probability"

    def _conclude(self, one_pass: OnePass, inside: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        score = orient(type(self._score), self._score.value(one_pass))
        largest, second_largest = one_pass.top
        # No sum of single precision logits overflows in double precision. No score reaches NaN. Sums take few kernels,
        # which small networks notice.
        total = total[:, 0] + one_pass.logits.sum(dim=1, dtype=torch.float64) + score
        reaches = score >= total - total + self._threshold
        return score, ~(reaches & inside[:, 0] & (largest > second_largest))

    def _failed(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows.new_full((len(rows),), torch.nan), torch.ones(len(rows), dtype=torch.bool)
