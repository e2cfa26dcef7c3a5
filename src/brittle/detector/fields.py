"""What the file of a detector holds, and whether its numbers can be those of one calibration."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brittle.detector.calibration import points_needed
from brittle.detector.identity import Identity
from brittle.detector.known_points import MarginCriterion, NoiseCriterion
from brittle.detector.ranges import SMALLEST, check_range, check_share, largest_margin
from brittle.detector.results import Counts, Rate, Verdict, halves_of
from brittle.detector.scoring import PSEUDO_MARGIN, check_score, reading_of, score_of
from brittle.errors import ParameterError
from brittle.estimate import Parameter, Scalar
from brittle.measure.base import check_draws
from brittle.norms import check_norm, parse_epsilon
from brittle.scores import CATALOGUE, InputMargin, NoiseScore
from brittle.scores.one_pass import LARGEST
from brittle.store.files.strict_json import MOST_WHOLE

FORMAT = 1
"""Version of the detector file."""

ROUNDING = 1e-6
"""By how much the ends of an interval may differ that other versions of the libraries computed."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class DetectorFields:
    """What the file of a detector holds, in the order of the file.

    Attributes:
        format: version of the file.
        brittle: version of the package that fitted it.
        model: the model it belongs to.
        criterion: what makes a point brittle.
        score: name of the score, one of `READINGS`; larger is safer.
        parameters: of the score.
        head: name of the last linear layer that its features are of, or None where that is found or not needed.
        threshold: a score below it is brittle.
        tpr: true positive rate that the threshold was chosen for.
        confidence: of every interval.
        seed: of the split into calibration and held-out points.
        counts: what became of the points of the run.
        true_positives: share of held-out brittle points that are flagged.
        false_positives: share of robust points that are flagged.
        verdict: whether the score may be trusted for this model.
    """

    format: int
    brittle: str
    model: Identity
    criterion: MarginCriterion | NoiseCriterion
    score: str
    parameters: dict[str, Scalar]
    head: str | None
    threshold: float
    tpr: float
    confidence: float
    seed: int
    counts: Counts
    true_positives: Rate
    false_positives: Rate
    verdict: Verdict


def check_consistent(detector: DetectorFields) -> None:
    """Raise where a field of `detector` has no such value, or one that does not agree with the others."""
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
    check_share("tpr", detector.tpr)
    check_share("confidence", detector.confidence)
    check_range("seed", detector.seed, 0, MOST_WHOLE)
    _check_points(detector)


def check_epsilon(epsilon: float, width: float, norm: str, bounded: bool) -> None:
    """Raise where no input of bounds that are `width` apart can be `epsilon` away from another."""
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
    """Raise unless `threshold` is the next double above a value that the score can have."""
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
            raise ParameterError(f"{name}: expected {points} points, as counted; found {rate.points}")
        if rate.undecided != undecided:
            raise ParameterError(f"{name}: expected {undecided} undecided, as counted; found {rate.undecided}")
        own = Rate.counted(rate.flagged, points, detector.confidence, undecided, rate.undecided_flagged)
        ends = abs(rate.low - own.low) <= ROUNDING and abs(rate.high - own.high) <= ROUNDING
        counted = 0 <= rate.flagged <= points and 0 <= rate.undecided_flagged <= undecided
        if not (counted and ends and rate.value == own.value):
            raise ParameterError(
                f"{name}: {rate.flagged} of {points} and {rate.undecided_flagged} of {undecided} undecided have the "
                f"interval [{own.low:.6f}, {own.high:.6f}] at a confidence of {detector.confidence!r}; found "
                f"{rate.value!r} in [{rate.low!r}, {rate.high!r}]",
            )
    if isinstance(detector.criterion, MarginCriterion) and counts.undecided:
        raise ParameterError(f"every margin decides; found {counts.undecided} undecided")


def _as_json(parameters: Mapping[str, Parameter]) -> str:
    return json.dumps(parameters, sort_keys=True)
