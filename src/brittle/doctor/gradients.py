"""Check of the gradients: they are those of the function that the model computes.

The derivative of the nearest margin along a random direction is compared with a central difference quotient along it.
`no_grad`, `detach` and `round` inside a model raise no error; they give a gradient of 0 where the quotient is not.

A point at which no margin has a gradient gets no number from an estimate by gradients, whatever the reason: the network
is dead there or saturated, or its gradients are cut off.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.doctor.rounding import precision_of
from brittle.doctor.subject import Finding, Subject
from brittle.errors import BrittleError, ModelError, first_line


class Tolerance(NamedTuple):
    """Limits for the comparison of slopes in one precision."""

    # of the difference quotients, per coordinate, as shares of the value range; the best one counts
    steps: tuple[float, float]
    # share of the change of the margins that gradients may miss in `MANY` clear probes or more, twice as much in fewer:
    # masked ones miss 1.000, healthy networks up to 0.004 in double and 0.042 in single precision (0.043, 0.19 in few)
    missed: float
    sizes_only: bool = False  # not which way changes go: the long steps of half precision cross too many kinks


DOUBLE = Tolerance((1e-5, 1e-4), 0.15)
SINGLE = Tolerance((2e-4, 2e-3), 0.25)
HALF = Tolerance((2.0**-5, 2.0**-3), 0.9, sizes_only=True)

MANY = 64  # probes from which on the tighter of the two limits holds

ENOUGH = 8  # clear changes, of fewer nothing is said
BLEND = 0.1  # share of uniform noise in the inputs that are compared: away from the bounds and from kinks at pixel 0
DIRECTIONS, MOST_DIRECTIONS = 2, 8  # per row, to make `MANY` probes
SIGNAL = 8.0  # times what rounding explains, from which on changes of a margin count
UNITS_OFF = 4.0  # units in the last place of the larger of two logits by which rounding changes their margin
ZERO_SHARE, MOST_DEAD = 0.05, 0.5  # shares of rows whose gradients may vanish without a word, and at all
OFFER = "use scores without gradients (shrinkage, monte_carlo, softmax)"


class Slopes(NamedTuple):
    """Changes of the nearest margin in clear probes along random directions."""

    missed: float  # share of the change that the gradient misses, 0 to 2
    predicted: float  # mean size of the changes by the gradient
    measured: float  # that of the differences of the margins at the two ends of the step
    probes: int


def check_gradients(subject: Subject) -> Iterator[Finding | str]:
    """Check that gradients exist, agree with difference quotients, and vanish in few rows, where a score needs them."""
    if not subject.differentiates:
        yield "no chosen score differentiates"
        return
    needed = any(need.differentiates and need.needs_gradients for need in subject.needs)
    try:
        yield from _about_gradients(subject)
    except BrittleError as error:
        if needed or error.code not in ("masked_gradient", "not_differentiable"):
            raise
        if getattr(subject.classifier.model, "trees", None) is not None:
            yield "the search for the nearest input goes by the splits of the trees"
        else:
            yield Finding(error.code, f"{error.args[0]}; the search for the nearest input goes on without gradients")


def _about_gradients(subject: Subject) -> Iterator[Finding | str]:
    if (why := subject.classifier.forward_only) is not None:
        raise ModelError("not_differentiable", why)
    best, tolerance = best_slopes(subject), _tolerance(subject)
    has_few_probes = best is not None and best.probes < MANY and not tolerance.sizes_only
    allowed = tolerance.missed * (2 if has_few_probes else 1)
    if best is not None and best.missed > allowed:
        raise ModelError(
            "masked_gradient",
            f"the nearest margin changes by {best.measured:.3g} on average, by its gradient it would change by "
            f"{best.predicted:.3g} (disagreement {best.missed:.3f}, at most {allowed:g}, in {best.probes} probes): "
            f"no_grad, detach, round, sign or a made-up gradient inside the model; take it out, or {OFFER}",
        )
    rows, zero = _without_gradient(subject)
    if zero > MOST_DEAD * rows:
        reason = "round, sign, no_grad or detach inside the model, saturated outputs, or dead units"
        sentence = f"the gradients of all margins are 0 in {zero} of {rows} rows: {reason}; take it out, or {OFFER}"
        raise ModelError("masked_gradient", sentence)
    if zero > ZERO_SHARE * rows:
        yield Finding(
            "dead_points",
            f"the gradients of all margins are 0 in {zero} of {rows} rows (dead units, saturated outputs, round or "
            f"no_grad), where estimates by gradients get no number; a run stops at more than 10 of the first 1,000: "
            f"for a number at all of them, {OFFER}",
        )
    agree = "rounding hides the difference quotients" if best is None else f"they miss {best.missed:.3f} of the change"
    yield f"{agree}; 0 in {zero} of {rows} rows"


def _tolerance(subject: Subject) -> Tolerance:
    precision = precision_of(subject.classifier)
    return DOUBLE if precision < 1e-9 else SINGLE if precision < 1e-5 else HALF


def best_slopes(subject: Subject) -> Slopes | None:
    """Return the slopes at the step where the gradient misses least; None where rounding hides all."""
    like, tolerance = subject.inputs[subject.repeated], _tolerance(subject)
    like = like if like.dtype.itemsize >= 4 else like.float()
    noise = torch.rand(like.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    bounds = subject.classifier.bounds.closed(like)
    low, high = bounds.ends(noise)
    base = (1 - BLEND) * like + BLEND * (noise * (high - low) + low).to(like)
    low, high = bounds.ends(base)
    span = high - low
    gradient, classes = _margin_gradient(subject, base)
    count = min(MOST_DIRECTIONS, max(DIRECTIONS, -(-MANY // len(base))))
    signs = torch.randint(0, 2, (count, *base.shape), generator=torch.Generator().manual_seed(0)).to(base) * 2 - 1
    slopes = []
    for step in tolerance.steps:
        probes = [_probe(subject, base, step * span * direction, gradient, classes) for direction in signs]
        predicted, measured, floor = torch.cat(probes, dim=1)
        largest = torch.maximum(predicted.abs(), measured.abs())
        clear = predicted.isfinite() & measured.isfinite() & (largest > SIGNAL * floor)
        if int(clear.sum()) < ENOUGH:
            continue
        predicted, measured = predicted[clear], measured[clear]
        predicted_size, measured_size = float(predicted.abs().mean()), float(measured.abs().mean())
        missed = float((predicted - measured).abs().sum() / largest[clear].sum())
        if tolerance.sizes_only:
            missed = max(0.0, 1.0 - predicted_size / max(measured_size, 1e-300))
        slopes.append(Slopes(missed, predicted_size, measured_size, len(measured)))
    return min(slopes, key=lambda slope: slope.missed, default=None)


def _probe(subject: Subject, base: Tensor, step: Tensor, gradient: Tensor, classes: Tensor) -> Tensor:
    """Return the changes of margins between `classes` over two steps: by gradient, measured, by rounding, `[3, V]`."""
    ends = [(base + sign * step).to(subject.classifier.dtype or base.dtype) for sign in (1, -1)]
    pairs = [subject.logits_of(end.to(subject.inputs.dtype), subject.repeated).gather(1, classes) for end in ends]
    above, below = (pair[:, 0] - pair[:, 1] for pair in pairs)
    predicted = (gradient.double() * (ends[0].double() - ends[1].double())).flatten(1).sum(dim=1)
    floor = UNITS_OFF * precision_of(subject.classifier) * torch.cat(pairs, dim=1).double().abs().amax(1)
    return torch.stack((predicted, (above - below).double(), floor))


def _margin_gradient(subject: Subject, base: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient of the margin between the two largest logits, `[V, *shape]`, and these classes, `[V, 2]`."""
    inputs = base.clone().requires_grad_(True)
    try:
        logits = subject.logits_of(inputs, subject.repeated)
    except ModelError as error:
        if error.code != "model_failed":
            raise
        cause = error.__cause__ or error
        raise ModelError(
            "not_differentiable",
            f"the model runs, but not where gradients are recorded: {type(cause).__name__}: {first_line(cause)}; "
            f"{OFFER}, or keep to operations that PyTorch differentiates (no .numpy())",
        ) from error
    classes = logits.detach().nan_to_num(nan=-torch.inf).topk(2, dim=1).indices
    pair = logits.gather(1, classes)
    return _gradient(subject, pair[:, 0] - pair[:, 1], inputs), classes


def _gradient(subject: Subject, numbers: Tensor, inputs: Tensor) -> Tensor:
    """Gradient of `numbers`, `[V]`; 0 where no operation on the way is differentiated: quotients then tell the rest."""
    try:
        return subject.classifier.gradient(numbers, inputs, keep=False)
    except ModelError as error:
        if error.code != "not_differentiable":
            raise
        return torch.zeros_like(inputs)


def _without_gradient(subject: Subject) -> tuple[int, int]:
    """Count the points with finite logits, and those among them where no margin has a gradient."""
    inputs = subject.inputs.clone().requires_grad_(True)
    logits = subject.logits_of(inputs)
    # Random weights that add up to 0: the sum has no gradient only where no margin has one.
    weights = torch.randn(logits.shape[1], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = (weights - weights.mean()).to(logits)
    zero = (_gradient(subject, logits @ weights, inputs) == 0).flatten(1).all(dim=1)
    sound = logits.isfinite().all(dim=1)
    return int(sound.sum()), int((zero & sound).sum())
