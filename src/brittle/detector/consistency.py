"""Whether the numbers of a detector can be those of one calibration: each in its range, and all of them together."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from brittle.detector.fields import DetectorFields
from brittle.detector.ranges import SMALLEST, check_range, check_share, largest_margin
from brittle.detector.results import Rate
from brittle.detector.scoring import PSEUDO_MARGIN, check_score, reading_of, score_of
from brittle.detector.threshold import check_rate, points_needed
from brittle.errors import ParameterError
from brittle.estimate import Parameter, Scalar
from brittle.intervals import check_confidence, clopper_pearson
from brittle.norms import check_norm, parse_epsilon
from brittle.scores import InputMargin
from brittle.store.files.strict_json import MOST_WHOLE

ROUNDING = 1e-6
"""By how much the ends of an interval may differ that other versions of the libraries computed."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def check_consistent(detector: DetectorFields) -> None:
    """Raise where a field of `detector` has no such value, or one that does not agree with the others.

    Raises:
        ParameterError: one does not; it is named, with what was found.
    """
    check_norm(detector.norm)
    check_score(detector.score)
    _check_parameters(detector.score, detector.norm, detector.parameters)
    bounded = _check_margin(detector.margin, detector.norm)
    low, high = detector.model.bounds
    check_epsilon(detector.epsilon, high - low, detector.norm, bounded)
    check_threshold(detector.threshold, detector.score)
    check_rate(detector.tpr)
    check_share("tpr", detector.tpr)
    check_confidence(detector.confidence)
    check_share("confidence", detector.confidence)
    check_range("seed", detector.seed, 0, MOST_WHOLE)
    _check_points(detector)


def check_epsilon(epsilon: float, width: float, norm: str, bounded: bool) -> None:
    """Raise where no input of bounds that are `width` apart can be `epsilon` away from another.

    Raises:
        ParameterError: none can.
    """
    parse_epsilon(epsilon)
    most = largest_margin(width, norm, bounded)
    if not SMALLEST <= epsilon <= most:
        raise ParameterError(
            "epsilon",
            f"margins in {norm} of inputs within bounds {width:g} apart lie in [{SMALLEST:g}, {most:g}]; found epsilon "
            f"{epsilon!r}",
        )


def check_threshold(threshold: float, score: str) -> None:
    """Raise unless `threshold` is the next double above a value that the score can have.

    Raises:
        ParameterError: it is not: it would flag nothing or everything.
    """
    least, most = reading_of(score).span
    if not least < threshold <= math.nextafter(most, math.inf):
        raise ParameterError(
            "threshold",
            f"{reading_of(score).name} lies in [{least:.6g}, {most:g}]; found the threshold {threshold!r}",
        )


def _check_parameters(score: str, norm: str, found: dict[str, Scalar]) -> None:
    """Raise unless the parameters are those that the score has in a run."""
    if score == PSEUDO_MARGIN:
        digest = found.get("sha256")
        fits = found.keys() <= {"sha256", "norm"} and isinstance(digest, str) and bool(_DIGEST.fullmatch(digest))
        fits &= found.get("norm", norm) == norm
    else:
        fits = found == score_of(score, norm, None).parameters
    if not fits:
        raise ParameterError("parameters", f"{score} for {norm} has no such parameters; found {found!r:.80}")


def _check_margin(found: Mapping[str, Any], norm: str) -> bool:
    """Whether the attacks stayed inside the bounds, from the parameters of the margins, which a run writes so."""
    usual = InputMargin()
    kinds = {name: type(getattr(usual, name, None)) for name in found}
    if not all(isinstance(value, str | bool) and type(value) is kinds[name] for name, value in found.items()):
        raise ParameterError("margin", f"margins have no such parameters; found {found!r:.80}")
    margin = InputMargin(**found)
    if _as_json(margin.parameters) != _as_json(found) or margin.norm != norm:
        raise ParameterError(
            "margin", f"the parameters of margins in {norm} are written otherwise; found {found!r:.80}"
        )
    return margin.bounded


def _check_points(detector: DetectorFields) -> None:
    """Raise where the counts do not carry the rates."""
    counts = detector.counts
    if counts.calibration < points_needed(detector.tpr):
        raise ParameterError(
            "calibration",
            f"a true positive rate of {detector.tpr!r} needs {points_needed(detector.tpr)} brittle points to calibrate "
            f"on; found {counts.calibration}",
        )
    for name, rate, points in (
        ("true_positives", detector.true_positives, counts.held_out),
        ("false_positives", detector.false_positives, counts.robust),
    ):
        if rate.points != points:
            raise ParameterError(name, f"expected a rate of {points} points, as counted; found one of {rate.points}")
        _check_rate_interval(name, rate, detector.confidence)


def _check_rate_interval(name: str, rate: Rate, confidence: float) -> None:
    """Raise where the interval of a rate is not its own."""
    low, high = map(float, clopper_pearson(rate.flagged, rate.points, confidence)) if rate.points else (0.0, 1.0)
    if abs(rate.low - low) > ROUNDING or abs(rate.high - high) > ROUNDING:
        raise ParameterError(
            name,
            f"{rate.flagged} of {rate.points} have the interval [{low:.6f}, {high:.6f}] at a confidence of "
            f"{confidence!r}; found [{rate.low!r}, {rate.high!r}]",
        )


def _as_json(parameters: Mapping[str, Parameter]) -> str:
    return json.dumps(parameters, sort_keys=True)
