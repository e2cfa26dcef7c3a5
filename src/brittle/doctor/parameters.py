"""Can the scores that were chosen be computed with these parameters?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from brittle.data.points import StillPoints
from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.errors import ParameterError
from brittle.noise import Noise, Stream
from brittle.scores import NoiseScore
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


def check_noise(subject: Subject) -> Iterator[Finding | str]:
    """The noise is neither lost in rounding nor far beyond the range of the values."""
    bounds = subject.classifier.bounds
    noises = list(dict.fromkeys(score.noise for score in subject.scores if isinstance(score, NoiseScore)))
    for noise in noises:
        if noise.in_pixels:
            yield from _about_size(subject, noise.sigma, bounds.pair)
        _check_not_absorbed(subject, noise)
    yield from _about_scales(subject, [noise.sigma for noise in noises if noise.in_pixels and noise.alike])
    yield from _about_still(subject)
    pixels = ", ".join(f"{noise.sigma:g}" for noise in noises if noise.in_pixels)
    levels = (
        [f"sigma {pixels} for the range {bounds}" if bounds.pair else f"sigma {pixels}, bounds: {bounds}"]
        if pixels
        else []
    )
    levels += [str(setting_of(noise.parameters)) for noise in noises if not noise.in_pixels]
    yield "; ".join(dict.fromkeys(levels)) or "no chosen score adds noise"


def check_cost(subject: Subject) -> Iterator[Finding | str]:
    """No integral has so many dimensions that it takes seconds per point."""
    competitors = subject.logits.shape[1] - 1
    for need in subject.needs:
        if need.kept_competitors is None:
            continue
        kept = min(need.kept_competitors, competitors)
        if kept > MOST_DIMENSIONS:
            seconds = REFERENCE_SECONDS * (kept / REFERENCE_DIMENSIONS) ** GROWTH
            raise ParameterError(
                f"an integral over {kept} margins takes about {seconds:.1f} s per point; keep at most "
                f"{MOST_DIMENSIONS} competitors (--classes, classes=), the interval says what the others could add",
            )
    yield f"{competitors} competing classes"


def _about_size(subject: Subject, sigma: float, pair: tuple[float, float] | None) -> Iterator[Finding]:
    """Findings where noise is far larger or far smaller than what the values span.

    Without one range for all features, the smallest span of a feature among the points counts that is not 0.
    """
    if pair is None:
        yield from _beyond_a_feature(subject, sigma)
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
            f"sigma {sigma:g} is {sigma / used:.3g} times what the first {len(subject.inputs)} rows span ({used:.4g}); "
            f"sigma is in the units of the data: choose a smaller one (--sigma, sigma=), or see whether the data were "
            f"divided twice",
        )
    elif sigma < SMALL_SIGMA * span:
        meant = f"; if it was meant for values from 0 to 1, it is {sigma * span:g} here" if span > 1 else ""
        yield Finding(
            "sigma",
            f"sigma {sigma:g} is {sigma / span:.2%} of the value range {span:g}, so hardly a prediction will flip; "
            f"sigma is in the units of the data (--sigma, sigma=){meant}",
        )


def _beyond_a_feature(subject: Subject, sigma: float) -> Iterator[Finding]:
    """A finding where noise of one size for all features is far larger than one of them spans."""
    inputs = subject.inputs.flatten(1)
    spans = inputs.amax(0) - inputs.amin(0)
    small = spans[spans > 0]
    least = float(small.min()) if len(small) else 0.0
    if len(inputs) > 1 and 0 < HUGE_SIGMA * least < sigma:
        yield Finding(
            "sigma",
            f"sigma {sigma:g} is {sigma / least:.3g} times what a feature of the first {len(inputs)} rows spans "
            f"({least:.4g}); noise is of one size in all features: choose a smaller one, or {PER_FEATURE}",
        )


def _about_scales(subject: Subject, sigmas: Sequence[float]) -> Iterator[Finding]:
    """A finding where one sigma is for features of a table whose standard deviations are far apart.

    Those count of which most values differ: a category, or a pixel that is seldom on, has no scale in a few rows.
    """
    inputs = subject.inputs.double()
    if not sigmas or inputs.dim() != 2:
        return
    many = torch.tensor([2 * len(column.unique()) > len(column) >= ENOUGH_ROWS for column in inputs.T])
    places = many.nonzero().flatten().tolist()
    if not places:
        return
    deviations = [float(inputs[:, place].std()) for place in places]
    least, most = min(deviations), max(deviations)
    if most > UNEVEN * least:
        known = {} if subject.points is None else subject.points.provenance
        names = known.get("feature_names") or range(inputs.shape[1])
        narrow, wide = (names[places[deviations.index(each)]] for each in (least, most))
        yield Finding(
            "uneven_features",
            f"sigma {sigmas[0]:g} is one for all features, and over the first {len(inputs)} rows these have standard "
            f"deviations from {least:.3g} in feature {narrow} (sigma is {sigmas[0] / least:.3g} of it) to {most:.3g} "
            f"in feature {wide} ({sigmas[0] / most:.3g} of it): {PER_FEATURE}",
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
