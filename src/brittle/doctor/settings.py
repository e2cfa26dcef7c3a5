"""Can the scores that were chosen be computed with these parameters, of this model?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from brittle.data.points import Batch, Points, StillPoints, readable, still_points
from brittle.doctor.subject import Finding, Subject, untouched_copy
from brittle.errors import BrittleError, ModelError, ParameterError
from brittle.measure import Certified, CertifiedRadius, Measurement
from brittle.measure.base import look_for
from brittle.model.classifier import Classifier
from brittle.noise import Noise, Stream
from brittle.scores import CATALOGUE, NoiseScore, Score
from brittle.store.settings import setting_of

ABSORBED_SHARE = 0.01
"""Share of input numbers that noise may leave unchanged because of rounding."""

ABSORBED_SHARE_NARROW = 0.1
"""The same for inputs of half precision, whose spacing is near the noise that people use; see `low_precision`."""

HUGE_SIGMA = 10.0
"""Noise above this many times the value range, or the range that the first points use, is noted."""

SMALL_SIGMA = 0.001
"""Noise below this share of the value range is noted: a quarter of a level of pixels 0..255."""

UNEVEN, ENOUGH_ROWS = 200.0, 16
"""How many times the standard deviation of one feature is that of another where that is noted, and rows to see it."""

PER_FEATURE = (
    "take noise in standard deviations of each feature, --noise per-feature --sigma 0.1 "
    "(noise=brittle.noise.PerFeature.of(brittle.data.as_points(data, 'none'), 0.1))"
)
"""What is advised where features differ in scale."""

MOST_DIMENSIONS = 200
"""Competitors beyond which the integral over their margins is refused; 20 are kept of more than 100 by default."""

REFERENCE_DIMENSIONS, REFERENCE_SECONDS, GROWTH = 100, 0.36, 1.5
"""What one integral over 100 margins takes on one core, and the power with which that grows: 12 s at 999."""

HEAD_ROWS = 8
"""Points at which it is found out whether the logits are those of a linear layer."""


def check_noise(subject: Subject) -> Iterator[Finding | str]:
    """The noise is neither lost in rounding nor far beyond the values, and no integral takes seconds per point."""
    noises = list(dict.fromkeys(score.noise for score in subject.scores if isinstance(score, NoiseScore)))
    for noise in noises:
        if noise.in_pixels:
            yield from _about_size(subject, noise.sigma)
        _check_not_absorbed(subject, noise)
    _check_integrals(subject)
    yield from _about_scales(subject, [noise.sigma for noise in noises if noise.in_pixels and noise.alike])
    yield from _about_still(subject)
    pixels = ", ".join(f"{noise.sigma:g}" for noise in noises if noise.in_pixels)
    levels = [f"sigma {pixels}, bounds: {subject.classifier.bounds}"] if pixels else []
    levels += [str(setting_of(noise.parameters)) for noise in noises if not noise.in_pixels]
    yield "; ".join(dict.fromkeys(levels)) or "no chosen score adds noise"


def _check_integrals(subject: Subject) -> None:
    competitors = subject.logits.shape[1] - 1
    kept = max((min(need.kept_competitors or 0, competitors) for need in subject.needs), default=0)
    if kept > MOST_DIMENSIONS:
        seconds = REFERENCE_SECONDS * (kept / REFERENCE_DIMENSIONS) ** GROWTH
        raise ParameterError(
            f"an integral over {kept} margins takes about {seconds:.1f} s per point; keep at most "
            f"{MOST_DIMENSIONS} competitors (--set NAME.classes=200, classes=), the interval says what the others "
            f"could add",
        )


def _about_size(subject: Subject, sigma: float) -> Iterator[Finding]:
    """Findings where noise is far larger or far smaller than what the values span.

    Without one range for all features, the smallest span of a feature among the points counts that is not 0.
    """
    pair, rows = subject.classifier.bounds.pair, len(subject.inputs)
    if pair is None:
        features = subject.inputs.flatten(1)
        spans = features.amax(0) - features.amin(0)
        least = float(spans[spans > 0].min()) if bool((spans > 0).any()) else 0.0
        if rows > 1 and 0 < HUGE_SIGMA * least < sigma:
            yield Finding(
                "sigma",
                f"sigma {sigma:g} is {sigma / least:.3g} times what a feature of the first {rows} rows spans "
                f"({least:.4g}); noise is of one size in all features: choose a smaller one, or {PER_FEATURE}",
            )
        return
    span, used = pair[1] - pair[0], float(subject.inputs.max() - subject.inputs.min())
    if sigma > HUGE_SIGMA * span:
        yield Finding(
            "sigma",
            f"sigma {sigma:g} is {sigma / span:.3g} times the value range {span:g}; sigma is in pixel units, choose a "
            f"smaller one",
        )
    elif 0 < HUGE_SIGMA * used < sigma:
        yield Finding(
            "sigma",
            f"sigma {sigma:g} is {sigma / used:.3g} times what the first {rows} rows span ({used:.4g}); sigma is in "
            f"the units of the data: choose a smaller one (--sigma, sigma=), or see whether the data were divided "
            f"twice",
        )
    elif sigma < SMALL_SIGMA * span:
        meant = f"; if it was meant for values from 0 to 1, it is {sigma * span:g} here" if span > 1 else ""
        yield Finding(
            "sigma",
            f"sigma {sigma:g} is {sigma / span:.2%} of the value range {span:g}, so hardly a prediction will flip; "
            f"sigma is in the units of the data (--sigma, sigma=){meant}",
        )


def _about_scales(subject: Subject, sigmas: Sequence[float]) -> Iterator[Finding]:
    """A finding where one sigma is for features of a table whose standard deviations are far apart.

    Those count of which most values differ: a category, or a pixel that is seldom on, has no scale in a few rows.
    """
    inputs = subject.inputs.double()
    if not sigmas or inputs.dim() != 2:
        return
    spread = [2 * len(column.unique()) > len(column) >= ENOUGH_ROWS for column in inputs.T]
    deviations = {place: float(inputs[:, place].std()) for place, many in enumerate(spread) if many}
    if not deviations:
        return
    narrow, wide = min(deviations, key=deviations.__getitem__), max(deviations, key=deviations.__getitem__)
    least, most = deviations[narrow], deviations[wide]
    if most > UNEVEN * least:
        known = {} if subject.points is None else subject.points.provenance
        names = known.get("feature_names") or range(inputs.shape[1])
        yield Finding(
            "sigma",
            f"sigma {sigmas[0]:g} is one for all features, and over the first {len(inputs)} rows these have standard "
            f"deviations from {least:.3g} in feature {names[narrow]} (sigma is {sigmas[0] / least:.3g} of it) to "
            f"{most:.3g} in feature {names[wide]} ({sigmas[0] / most:.3g} of it): {PER_FEATURE}",
        )


def _about_still(subject: Subject) -> Iterator[Finding]:
    """A finding where scores without noise leave coordinates alone because the noise of the others does."""
    others = [score for score in subject.scores if not isinstance(score, NoiseScore)]
    names = dict.fromkeys(score.name for score in others if any(need.differentiates for need in score.needs))
    if names and isinstance(subject.points, StillPoints):
        yield Finding(
            "still_coordinates",
            f"{int((~subject.points.moves).sum())} of {subject.dimension} coordinates of an input stay as they are in "
            f"{', '.join(names)}, too, as the noise of the other scores moves none of them; without these all vary",
        )


def _check_not_absorbed(subject: Subject, noise: Noise) -> None:
    """Raise where adding the noise leaves inputs as they are, because it is below their spacing."""
    if not (noise.has_draws and noise.added):
        return
    inputs = subject.inputs[:8].to(subject.classifier.dtype or subject.inputs.dtype)
    ids = [f"probe {number}" for number in range(len(inputs))]
    draw = Stream(noise, inputs, ids, subject.seed, "doctor").draw(1)[:, 0]
    absorbed = float(((inputs + draw == inputs) & (draw != 0)).double().mean())
    if absorbed > (ABSORBED_SHARE if inputs.dtype.itemsize >= 4 else ABSORBED_SHARE_NARROW):
        raise ParameterError(
            f"noise of sigma {noise.sigma:g} changes nothing in {absorbed:.0%} of the input numbers, because "
            f"{str(inputs.dtype).removeprefix('torch.')} cannot tell them apart; use a larger sigma",
        )


@dataclass(frozen=True)
class Trial:
    """What a certificate or a search at some of the first points took.

    Attributes:
        passes: passes per point beyond the clean one, on average.
        seconds: seconds for all of them.
        unsupported: the layer because of which there is no certificate; None where there is one, or none was needed.
    """

    passes: float
    seconds: float
    unsupported: str | None


def check_certificates(subject: Subject) -> Iterator[Finding | str]:
    """Bounds go through every layer, where a score asks for certificates; looked at in one point."""
    trials = [try_at(subject, need, 1) for need in subject.needs if isinstance(need, Certified)]
    for layer in dict.fromkeys(trial.unsupported for trial in trials if trial.unsupported is not None):
        yield Finding(
            "no_certificate",
            f"no certificate can be computed, because no lower bound goes through {layer}; every point would get the "
            f"status no_certificate, a low end of 0 that proves nothing, and the distance that the attack finds: leave "
            f"the certificate out (no --certify, certify=False) and use the attack alone",
        )
    yield "bounds go through every layer" if trials else "no chosen score asks for certificates"


def try_at(subject: Subject, need: Measurement, count: int) -> Trial:
    """Take `need`, whose result says its `passes`, at the first `count` of the points."""
    some: Tensor = subject.inputs[:count]
    beside = None if subject.aside is None else subject.aside.only(torch.arange(len(some)))
    ids = tuple(f"doctor {row}" for row in range(len(some)))
    clean = look_for([need], subject.decided, some, ids, subject.seed, aside=beside)
    started = time.perf_counter()
    found = need(subject.decided, clean)
    passes = float((found.passes - clean.passes).double().mean())  # a number that is read, so the device is done
    seconds = time.perf_counter() - started
    return Trial(passes, seconds, found.unsupported if isinstance(found, CertifiedRadius) else None)


def varying(points: Points, first: Batch, scores: Sequence[Score], device: torch.device | str = "cpu") -> Points:
    """`points`, of which those coordinates do not vary that no noise of `scores` moves.

    So an attack, a gradient or a certificate beside the noise leaves alone what the noise leaves alone, such as
    categories. All vary where no score has noise, or where one is not of brittle and may have noise of its own. `first`
    are some of the points, and `device` is that of the model.
    """
    noises = {score.noise for score in scores if isinstance(score, NoiseScore)}
    known = all(isinstance(score, NoiseScore) or type(score) in CATALOGUE.values() for score in scores)
    moves = [noise.moves(first.inputs[0].numel(), device) for noise in noises] if known else []
    parts = [part for part in moves if part is not None]
    if not parts or len(parts) < len(moves):
        return points
    together = torch.stack(parts).any(dim=0)
    return points if bool(together.all()) else still_points(points, together)


def leave_out(
    scores: Sequence[Score], classifier: Classifier, points: Points
) -> tuple[tuple[Score, ...], tuple[Finding, ...]]:
    """The scores that the model can have, and what is said of the others.

    Those that read the features of the last linear layer are left out where the model has none that gives the logits.
    All stay where nothing else was chosen, or where the layer was named: the checks of a run then raise `no_head`.
    A copy of the model is looked at, so that it is as it was; its passes are not counted.

    Args:
        scores: the chosen ones.
        classifier: the model.
        points: the data, of which a few are read where there is something to find out.
    """
    reading = [score for score in scores if any(need.uses_features for need in score.needs)]
    if not reading or len(reading) == len(scores) or classifier.head_name is not None:
        return tuple(scores), ()
    error = _missing_head(classifier, points)
    if error is None:
        return tuple(scores), ()
    names = ", ".join(dict.fromkeys(score.label for score in reading))
    found = Finding("score_left_out", f"left out: {names}; {error.args[0]}")
    return tuple(score for score in scores if score not in reading), (found,)


def _missing_head(classifier: Classifier, points: Points) -> BrittleError | None:
    """The error of a look at the features, if it is that there is no such layer."""
    model = classifier.model
    other = model if isinstance(model, fx.GraphModule) else untouched_copy(model)
    twin = classifier.with_head(None)
    try:
        if isinstance(other, str):  # it cannot be tried on a copy
            _ = twin.head
            return None
        twin.model = other
        batch = next(iter(points.batches(HEAD_ROWS)))
        rows = readable(batch).nonzero().flatten()
        if len(rows):
            with twin.evaluating(), torch.no_grad():
                extra = batch.extra_inputs and batch.extra_inputs.only(rows)
                twin.undecided.observe(batch.inputs[rows].to(twin.device), extra)
    except ModelError as error:
        return error if error.code == "no_head" else None  # the checks of a run say what else is wrong
    return None
