"""Checks of the settings: the chosen scores can be computed with them, and at which cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from brittle.data.points import Batch, Points, SomePoints
from brittle.doctor.subject import Finding, Subject
from brittle.errors import BrittleError, DataError, ParameterError
from brittle.measure.base import look_for
from brittle.noise import Noise, Stream
from brittle.scores import NoiseScore, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.store.settings import setting_of
from brittle.text import duration

ABSORBED_SHARE, ABSORBED_SHARE_NARROW = 0.01, 0.1
"""Share of input numbers that noise may leave unchanged because of rounding; and of inputs of half precision, whose
spacing is near the noise that people use (`low_precision`)."""

HUGE_SIGMA, SMALL_SIGMA = 10.0, 0.001
"""Noise above this many times the range that the first points use is noted; and below this share of the value range, a
quarter of a level of pixels 0..255."""

UNEVEN, ENOUGH_ROWS = 200.0, 16
"""Ratio of the largest to the smallest standard deviation of a feature that is noted, and rows needed to see it."""

PER_FEATURE = (
    "take noise in standard deviations of each feature, --noise per-feature --sigma 0.1 "
    "(noise='per-feature', sigma=0.1 beside names of scores, or noise=brittle.noise.PerFeature.of(x, 0.1) in a score)"
)
"""Advice where features differ in scale."""

MOST_DIMENSIONS = 200
"""Competitors beyond which the integral over their margins is refused; 20 are kept of more than 100 by default."""


def check_noise(subject: Subject) -> Iterator[Finding | str]:
    """Check that the noise is neither lost in rounding nor far beyond the values, nor an integral too long."""
    noises = list(dict.fromkeys(score.noise for score in subject.scores if isinstance(score, NoiseScore)))
    for noise in noises:
        if noise.in_pixels and (fault := _about_size(subject, noise)):
            yield Finding("sigma", f"sigma {noise.sigma:g} is {fault}")
        _check_not_absorbed(subject, noise)
    competitors = max((min(need.kept_competitors or 0, subject.classes - 1) for need in subject.needs), default=0)
    if competitors > MOST_DIMENSIONS:
        raise ParameterError(
            f"an integral over {competitors} margins takes seconds per point; keep at most {MOST_DIMENSIONS} "
            f"competitors (--set NAME.classes={MOST_DIMENSIONS}, classes=), the interval says what the others could "
            "add"
        )
    levels = [f"sigma {noise.sigma:g}" if noise.in_pixels else str(setting_of(noise.parameters)) for noise in noises]
    yield "; ".join(dict.fromkeys(levels)) or "no chosen score adds noise"


def _about_size(subject: Subject, noise: Noise) -> str | None:
    """Return what is wrong with noise far larger or smaller than the span of the values, or of those of a feature. Only
    features of mostly different values count: a category, or a pixel that is seldom on, has no scale."""
    pair, inputs, sigma = subject.classifier.bounds.pair, subject.inputs.double(), noise.sigma
    used, count = float(inputs.max() - inputs.min()), len(inputs)
    if pair is not None and sigma < SMALL_SIGMA * (span := pair[1] - pair[0]):
        return (
            f"{sigma / span:.2%} of the value range {span:g}, so hardly a prediction will flip; sigma is in the units "
            f"of the data (--sigma, sigma=): what was meant for values from 0 to 1 is {sigma * span:g} here"
        )
    if 0 < HUGE_SIGMA * used < sigma:
        return (
            f"{sigma / used:.3g} times what the first {count} rows span ({used:.4g}); sigma is in the units of the "
            f"data: choose a smaller one (--sigma, sigma=), or see whether the data were divided twice"
        )
    if inputs.dim() != 2 or count < ENOUGH_ROWS or not noise.is_exchangeable:
        return None
    columns = {place: column for place, column in enumerate(inputs.T) if 2 * len(column.unique()) > count}
    ordered = sorted((float(column.std()), place) for place, column in columns.items())
    if not ordered or ordered[-1][0] <= UNEVEN * ordered[0][0]:
        return None
    names = subject.provenance.get("feature_names") or range(inputs.shape[1])
    (smallest, narrow), (largest, wide) = ordered[0], ordered[-1]
    return (
        f"one for all features, and over the first {count} rows these have standard deviations from {smallest:.3g} in "
        f"feature {names[narrow]} to {largest:.3g} in feature {names[wide]}: {PER_FEATURE}"
    )


def _check_not_absorbed(subject: Subject, noise: Noise) -> None:
    """Raise where adding the noise leaves inputs as they are, because it is below their spacing."""
    if not noise.added:
        return
    inputs = subject.inputs[:8].to(subject.classifier.dtype or subject.inputs.dtype)
    ids = [f"probe {number}" for number in range(len(inputs))]
    draw = Stream(noise, inputs, ids, subject.seed, "doctor").draw(1)[:, 0]
    absorbed = float(((inputs + draw == inputs) & (draw != 0)).double().mean())
    if absorbed > (ABSORBED_SHARE if inputs.dtype.itemsize >= 4 else ABSORBED_SHARE_NARROW):
        raise ParameterError(
            f"noise of sigma {noise.sigma:g} changes nothing in {absorbed:.0%} of the input numbers, because "
            f"{str(inputs.dtype).removeprefix('torch.')} cannot tell them apart; use a larger sigma"
        )


def check_certificates(subject: Subject) -> Iterator[Finding | str]:
    """Check at one point that bounds go through every layer, where a score asks for certificates."""
    certificates = certified(subject, 1)
    for layer in sorted({certificate.unsupported for certificate in certificates if certificate.unsupported}):
        yield Finding(
            "no_certificate",
            f"no certificate can be computed, because no lower bound goes through {layer}; every point would get the "
            f"status no_certificate, a low end of 0 that proves nothing, and the distance that the attack finds: leave "
            f"the certificate out (certify=false) and use the attack alone",
        )
    yield "bounds go through every layer" if certificates else "no chosen score asks for certificates"


def certified(subject: Subject, count: int) -> list[Any]:
    """Return the certified radii of the first points, for each measurement that certifies."""
    decided = subject.classifier if subject.decision.of_classes else subject.classifier.deciding(subject.decision)
    inputs = subject.inputs[:count]
    ids, extra = tuple(f"doctor {row}" for row in range(len(inputs))), subject.take_extra(len(inputs))
    needs = [need for need in subject.needs if need.certifies]
    return [need(decided, look_for([need], decided, inputs, ids, subject.seed, extra_inputs=extra)) for need in needs]


def varying(points: Points, batch: Batch, scores: Sequence[Score], device: torch.device | str = "cpu") -> Points:
    """Return `points` with the coordinates held still that no noise of `scores` moves.

    So an attack, a gradient or a certificate beside the noise leaves alone what the noise leaves alone, such as
    categories. All vary where no score has noise, or where one is not of brittle and may have noise of its own. `batch`
    are some of the points, and `device` is that of the model.
    """
    noises = {score.noise for score in scores if isinstance(score, NoiseScore)}
    are_ours = all(isinstance(score, NoiseScore) or type(score) in CATALOGUE.values() for score in scores)
    moves = [noise.moves(batch.inputs[0].numel(), device) for noise in noises] if are_ours else []
    parts = [part for part in moves if part is not None]
    if not parts or len(parts) < len(moves):
        return points
    together = torch.stack(parts).any(dim=0)
    still = batch.extra_inputs.varies if batch.extra_inputs is not None else None
    if still is not None and not bool((still.flatten(1) & together.cpu()).any()):
        raise DataError(
            "columns",
            "the noise is of columns alone that are categories, which stay as they are in a frame or a table of text; "
            "name other columns, or give the codes of categories as numbers",
        )
    return points if bool(together.all()) else SomePoints.of(points, moves=together)


def check_cost(subject: Subject) -> Iterator[str]:
    """Estimate how long the network takes, from timed batches and the passes that the scores need."""
    inputs = subject.inputs.clone().requires_grad_(subject.differentiates)
    forward, backward = min(_seconds(lambda: subject.logits_of(inputs)) for _ in range(3)), 0.0  # the fastest
    if subject.differentiates:
        logits = subject.logits_of(inputs)
        try:
            backward = _seconds(lambda: subject.classifier.gradient(logits.amax(dim=1), inputs, keep=False))
        except BrittleError:
            backward = forward
    count, cost = len(subject.batch if subject.points is None else subject.points), subject.passes_per_point
    forward, backward = forward / len(inputs), backward / len(inputs)
    proofs, timed_count = "", len(subject.inputs[:4])
    if any(need.certifies for need in subject.needs):
        seconds = _seconds(lambda: torch.cat([proof.radius for proof in certified(subject, timed_count)])) / timed_count
        proofs = f", certificates about {duration(count * seconds)} as {timed_count} points have it"
    yield (
        f"the network takes about {duration(count * (cost.forward * forward + cost.backward * backward))} for "
        f"{count:,} points ({cost.forward:,.0f} forward and {cost.backward:,.0f} backward passes a point, "
        f"{1e3 * forward:.2g} and {1e3 * backward:.2g} ms each){proofs}, reading the points about "
        f"{duration(count * subject.seconds_to_read)}; noise and searches add to that"
    )


def _seconds(take: Callable[[], Tensor]) -> float:
    started = time.perf_counter()
    float(take().detach().sum())  # a number that is read, so the device is done
    return time.perf_counter() - started
