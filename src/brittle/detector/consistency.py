"""Whether the numbers of a detector can be those of one calibration: each in its range, and all of them together."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from brittle.detector.criterion import MarginCriterion, NoiseCriterion
from brittle.detector.fields import DetectorFields
from brittle.detector.ranges import SMALLEST, check_range, check_share, largest_margin
from brittle.detector.results import Rate, halves_of
from brittle.detector.scoring import PSEUDO_MARGIN, check_score, reading_of, score_of
from brittle.detector.threshold import check_rate, points_needed
from brittle.errors import ParameterError
from brittle.estimate import Parameter, Scalar
from brittle.intervals import check_confidence
from brittle.measure.base import check_draws
from brittle.norms import check_norm, parse_epsilon
from brittle.scores import CATALOGUE, InputMargin, NoiseScore
from brittle.scores.one_pass import LARGEST
from brittle.store.files.strict_json import MOST_WHOLE

ROUNDING = 1e-6
"""By how much the ends of an interval may differ that other versions of the libraries computed."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def check_consistent(detector: DetectorFields) -> None:
    """Raise where a field of `detector` has no such value, or one that does not agree with the others.

    Raises:
        ParameterError: one does not; it is named, with what was found.
    """
    check_score(detector.score)
    criterion = detector.criterion
    if isinstance(criterion, MarginCriterion):
        check_norm(criterion.norm)
        _check_parameters(detector.score, criterion.norm, detector.parameters)
        bounded = _check_margin(criterion.margin, criterion.norm)
        bounds = detector.model.bounds
        width = math.inf if bounds is None else bounds[1] - bounds[0]
        check_epsilon(criterion.epsilon, width, criterion.norm, bounded)
    else:
        _check_parameters(detector.score, detector.parameters.get("norm"), detector.parameters)
        check_noise(criterion)
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
            f"margins in {norm} of inputs within bounds {width:g} apart lie in [{SMALLEST:g}, {most:g}]; found epsilon "
            f"{epsilon!r}",
        )


def check_noise(criterion: NoiseCriterion) -> None:
    """Raise where no column of a run has such parameters, or its score gives no flip probability under noise.

    Numbers that scores and noise families of other people have beside those of brittle's are not known here.

    Raises:
        ParameterError: that is so.
    """
    check_share("limit", criterion.limit)
    kind, noise = CATALOGUE.get(criterion.column), criterion.noise
    if kind is not None and not issubclass(kind, NoiseScore):
        raise ParameterError(f"{criterion.column} gives no flip probability under noise")
    if "sigma" not in noise:
        raise ParameterError(f"a column under noise has a sigma; found {sorted(noise)!r:.80}")
    for name, value in noise.items():
        if name in ("sigma", "limit", "precision", "draws"):
            _check_number(name, value)


def _check_number(name: str, value: Parameter) -> None:
    """Raise unless a parameter of every score under noise is one that it can be."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ParameterError(f"{name} must be a number; found {value!r:.60}")
    if name == "draws":
        check_draws(value, antithetic=False)  # type: ignore[arg-type]
    elif name == "sigma":
        check_range(name, value, SMALLEST, LARGEST)
    else:
        check_share(name, value)


def check_threshold(threshold: float, score: str) -> None:
    """Raise unless `threshold` is the next double above a value that the score can have.

    Raises:
        ParameterError: it is not: it would flag nothing or everything.
    """
    least, most = reading_of(score).span
    if not least < threshold <= math.nextafter(most, math.inf):
        raise ParameterError(
            f"{reading_of(score).name} lies in [{least:.6g}, {most:g}]; found the threshold {threshold!r}",
        )


def _check_parameters(score: str, norm: Scalar, found: dict[str, Scalar]) -> None:
    """Raise unless the parameters are those that the score has in a run, in that norm where it has one."""
    if score == PSEUDO_MARGIN:
        digest = found.get("sha256")
        fits = found.keys() <= {"sha256", "norm"} and isinstance(digest, str) and bool(_DIGEST.fullmatch(digest))
        fits &= found.get("norm", norm) == norm
    else:
        fits = found == score_of(score, norm, None).parameters
    if not fits:
        of_norm = "" if norm is None else f" for {norm}"
        raise ParameterError(f"{score}{of_norm} has no such parameters; found {found!r:.80}")


def _check_margin(found: Mapping[str, Any], norm: str) -> bool:
    """Whether the attacks stayed inside the bounds, from the parameters of the margins, which a run writes so."""
    usual = InputMargin()
    kinds = {name: type(getattr(usual, name, None)) for name in found}
    if not all(isinstance(value, str | bool) and type(value) is kinds[name] for name, value in found.items()):
        raise ParameterError(f"margins have no such parameters; found {found!r:.80}")
    margin = InputMargin(**found)
    if _as_json(margin.parameters) != _as_json(found) or margin.norm != norm:
        raise ParameterError(f"the parameters of margins in {norm} are written otherwise; found {found!r:.80}")
    return margin.bounded


def _check_points(detector: DetectorFields) -> None:
    """Raise where the counts do not carry the rates."""
    counts = detector.counts
    if counts.calibration < points_needed(detector.tpr):
        raise ParameterError(
            f"a true positive rate of {detector.tpr!r} needs {points_needed(detector.tpr)} brittle points to calibrate "
            f"on; found {counts.calibration}",
        )
    for name, rate, points, undecided in (
        ("true_positives", detector.true_positives, counts.held_out, halves_of(counts.left(counts.undecided))[1]),
        ("false_positives", detector.false_positives, counts.left(counts.robust), counts.left(counts.undecided)),
    ):
        if rate.points != points:
            raise ParameterError(f"expected a rate of {points} points, as counted; found one of {rate.points}")
        if rate.undecided != undecided:
            raise ParameterError(f"expected {undecided} undecided, as counted; found {rate.undecided}")
        _check_rate_interval(name, rate, detector.confidence)
    if isinstance(detector.criterion, MarginCriterion) and counts.undecided:
        raise ParameterError(f"every margin decides; found {counts.undecided} undecided")


def _check_rate_interval(name: str, rate: Rate, confidence: float) -> None:
    """Raise where the interval of a rate is not its own."""
    own = Rate.counted(rate.flagged, rate.points, confidence, rate.undecided, rate.undecided_flagged)
    if abs(rate.low - own.low) > ROUNDING or abs(rate.high - own.high) > ROUNDING:
        raise ParameterError(
            f"{rate.flagged} of {rate.points} have the interval [{own.low:.6f}, {own.high:.6f}] at a confidence of "
            f"{confidence!r}; found [{rate.low!r}, {rate.high!r}]",
        )


def _as_json(parameters: Mapping[str, Parameter]) -> str:
    return json.dumps(parameters, sort_keys=True)
