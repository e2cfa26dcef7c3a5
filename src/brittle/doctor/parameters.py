"""Can the scores that were chosen be computed with these parameters?"""

from __future__ import annotations

from collections.abc import Iterator

from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.errors import ParameterError
from brittle.noise import Noise, Stream
from brittle.scores import NoiseScore
from brittle.store.columns import setting_of

ABSORBED_SHARE = 0.01
"""Share of input numbers that noise may leave unchanged because of rounding."""

ABSORBED_SHARE_NARROW = 0.1
"""The same for inputs of half precision, whose spacing is near the noise that people use; see `low_precision`."""

HUGE_SIGMA = 10.0
"""Noise above this many times the value range is noted."""

MOST_DIMENSIONS = 200
"""Competitors beyond which the integral over their margins is refused; 20 are kept of more than 100 by default."""

REFERENCE_DIMENSIONS, REFERENCE_SECONDS, GROWTH = 100, 0.36, 1.5
"""What one integral over 100 margins takes on one core, and the power with which that grows: 12 s at 999."""


def check_noise(subject: Subject) -> Iterator[Finding | str]:
    """The noise is neither lost in rounding nor far beyond the range of the values."""
    low, high = subject.classifier.bounds
    noises = list(dict.fromkeys(score.noise for score in subject.scores if isinstance(score, NoiseScore)))
    for noise in noises:
        if noise.in_pixels and noise.sigma > HUGE_SIGMA * (high - low):
            yield Finding(
                "huge_sigma",
                f"sigma {noise.sigma:g} is {noise.sigma / (high - low):.3g} times the value range {high - low:g}; "
                f"sigma is in pixel units, choose a smaller one",
            )
        _check_not_absorbed(subject, noise)
    pixels = ", ".join(f"{noise.sigma:g}" for noise in noises if noise.in_pixels)
    levels = [f"sigma {pixels} for the range [{low:g}, {high:g}]"] if pixels else []
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
                "cost",
                f"an integral over {kept} margins takes about {seconds:.1f} s per point; keep at most "
                f"{MOST_DIMENSIONS} competitors (--classes), the interval says what the others could add",
            )
    yield f"{competitors} competing classes"


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
            "sigma_too_small",
            f"noise of sigma {noise.sigma:g} changes nothing in {absorbed:.0%} of the input numbers, because "
            f"{str(inputs.dtype).removeprefix('torch.')} cannot tell them apart; use a larger sigma",
        )
