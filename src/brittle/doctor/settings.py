"""Can the scores that were chosen be computed with these parameters, of this model?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import fx

from brittle.data.points import Batch, Points, SomePoints, readable
from brittle.doctor.subject import Finding, Subject, untouched_copy
from brittle.errors import BrittleError, ModelError, ParameterError
from brittle.measure import Certified
from brittle.measure.base import look_for
from brittle.model.classifier import Classifier
from brittle.noise import Noise, Stream
from brittle.scores import CATALOGUE, NoiseScore, Score
from brittle.store.settings import setting_of

ABSORBED_SHARE, ABSORBED_SHARE_NARROW = 0.01, 0.1
"""Share of input numbers that noise may leave unchanged because of rounding; and of inputs of half precision, whose
spacing is near the noise that people use (`low_precision`)."""

HUGE_SIGMA, SMALL_SIGMA = 10.0, 0.001
"""Noise above this many times the value range, or the range that the first points use, is noted; and below this share
of the value range, a quarter of a level of pixels 0..255."""

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
        if noise.in_pixels and (found := _about_size(subject, noise.sigma)):
            yield Finding("sigma", f"sigma {noise.sigma:g} is {found}")
        _check_not_absorbed(subject, noise)
    kept = max((min(need.kept_competitors or 0, subject.classes - 1) for need in subject.needs), default=0)
    if kept > MOST_DIMENSIONS:
        seconds = REFERENCE_SECONDS * (kept / REFERENCE_DIMENSIONS) ** GROWTH
        raise ParameterError(
            f"an integral over {kept} margins takes about {seconds:.1f} s per point; keep at most {MOST_DIMENSIONS} "
            f"competitors (--set NAME.classes=200, classes=), the interval says what the others could add",
        )
    even = next((noise.sigma for noise in noises if noise.in_pixels and noise.alike), None)
    if even is not None:
        yield from _about_scales(subject, even)
    others = [score for score in subject.scores if not isinstance(score, NoiseScore)]
    names = dict.fromkeys(score.name for score in others if any(need.differentiates for need in score.needs))
    moves = getattr(subject.points, "moves", None)
    if names and moves is not None:
        yield Finding(
            "still_coordinates",
            f"{int((~moves).sum())} of {subject.dimension} coordinates of an input stay as they are in "
            f"{', '.join(names)}, too, as the noise of the other scores moves none of them; without these all vary",
        )
    levels = [f"sigma {noise.sigma:g}" if noise.in_pixels else str(setting_of(noise.parameters)) for noise in noises]
    yield "; ".join(dict.fromkeys(levels)) or "no chosen score adds noise"


def _about_size(subject: Subject, sigma: float) -> str | None:
    """What is wrong with noise that is far larger or far smaller than what the values span.

    Without one range for all features, the smallest span of a feature among the points counts that is not 0.
    """
    pair, rows = subject.classifier.bounds.pair, len(subject.inputs)
    features = subject.inputs.flatten(1) if pair is None else subject.inputs.reshape(-1, 1)
    spans = features.amax(0) - features.amin(0)
    used = float(spans[spans > 0].min()) if bool((spans > 0).any()) else 0.0
    span = used if pair is None else pair[1] - pair[0]
    if pair is not None and sigma > HUGE_SIGMA * span:
        return f"{sigma / span:.3g} times the value range {span:g}; sigma is in pixel units, choose a smaller one"
    if 0 < HUGE_SIGMA * used < sigma and (pair is not None or rows > 1):
        what = "what the first" if pair is not None else "the smallest span of a feature over the first"
        return (
            f"{sigma / used:.3g} times {what} {rows} rows span ({used:.4g}); sigma is in the units of the data: choose "
            f"a smaller one (--sigma, sigma=), see whether the data were divided twice, or {PER_FEATURE}"
        )
    if pair is not None and sigma < SMALL_SIGMA * span:
        return (
            f"{sigma / span:.2%} of the value range {span:g}, so hardly a prediction will flip; sigma is in the units "
            f"of the data (--sigma, sigma=): what was meant for values from 0 to 1 is {sigma * span:g} here"
        )
    return None


def _about_scales(subject: Subject, sigma: float) -> Iterator[Finding]:
    """A finding where one sigma is for features of a table whose standard deviations are far apart.

    Those count of which most values differ: a category, or a pixel that is seldom on, has no scale in a few rows.
    """
    inputs = subject.inputs.double()
    if inputs.dim() != 2 or len(inputs) < ENOUGH_ROWS:
        return
    deviations = {
        place: float(column.std()) for place, column in enumerate(inputs.T) if 2 * len(column.unique()) > len(column)
    }
    ordered = sorted(deviations, key=deviations.__getitem__)
    if ordered and deviations[ordered[-1]] > UNEVEN * deviations[ordered[0]]:
        narrow, wide = ordered[0], ordered[-1]
        least, most = deviations[narrow], deviations[wide]
        names = subject.provenance.get("feature_names") or range(inputs.shape[1])
        yield Finding(
            "sigma",
            f"sigma {sigma:g} is one for all features, and over the first {len(inputs)} rows these have standard "
            f"deviations from {least:.3g} in feature {names[narrow]} (sigma is {sigma / least:.3g} of it) to "
            f"{most:.3g} in feature {names[wide]} ({sigma / most:.3g} of it): {PER_FEATURE}",
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


def check_certificates(subject: Subject) -> Iterator[Finding | str]:
    """Bounds go through every layer, where a score asks for certificates; looked at in one point."""
    needs = [need for need in subject.needs if isinstance(need, Certified)]
    decided, one, ids = subject.decided, subject.inputs[:1], ("doctor 0",)
    looked = [look_for([need], decided, one, ids, subject.seed, extra_inputs=subject.beside(1)) for need in needs]
    layers = {need(decided, clean).unsupported for need, clean in zip(needs, looked, strict=True)}
    for layer in sorted(layers - {None}):
        yield Finding(
            "no_certificate",
            f"no certificate can be computed, because no lower bound goes through {layer}; every point would get the "
            f"status no_certificate, a low end of 0 that proves nothing, and the distance that the attack finds: leave "
            f"the certificate out (no --certify, certify=False) and use the attack alone",
        )
    yield "bounds go through every layer" if needs else "no chosen score asks for certificates"


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
    return points if bool(together.all()) else SomePoints.of(points, moves=together)


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
