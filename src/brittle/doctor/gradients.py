"""Are the gradients those of the function that the model computes?

The derivative of the nearest margin along a random direction is compared with a central difference quotient along it.
`no_grad`, `detach` and `round` inside a model raise no error; they give a gradient of 0 where the quotient is not.

Where no margin has a gradient, the network may be dead there: dead units and saturated outputs have none because the
output stays the same nearby, and where it changes again, a gradient comes back. Where gradients are cut off there is
none where the output changes, either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.doctor.subject import Finding, Subject
from brittle.errors import BrittleError, ModelError


@dataclass(frozen=True)
class Tolerance:
    """How slopes are compared in one precision.

    Attributes:
        steps: of the difference quotients, per coordinate, as shares of the value range; the best of them counts.
        missed: share of the change of the margins that gradients may miss in `MANY` clear probes or more. Where all
            gradients are masked it is 1.000; healthy networks show at most 0.004 in double and 0.042 in single
            precision, and up to 0.043 and 0.19 in fewer probes, where a kink weighs more: there twice as much may be.
        sizes_only: compare how large the changes are and not which way they go: the long steps that half precision
            needs cross so many kinks that the gradient at the point says little of the change.
    """

    steps: tuple[float, float]
    missed: float
    sizes_only: bool = False


DOUBLE = Tolerance((1e-5, 1e-4), 0.15)
SINGLE = Tolerance((2e-4, 2e-3), 0.25)
HALF = Tolerance((2.0**-5, 2.0**-3), 0.9, sizes_only=True)

MANY = 64
"""Probes from which on the tighter of the two limits holds."""

BLEND = 0.1
"""Share of uniform noise in the inputs where slopes are compared: away from the bounds, and from kinks at pixel 0."""

DIRECTIONS, MOST_DIRECTIONS, ENOUGH = 2, 8, 8
"""Directions per row: at least two, more where there are few rows; fewer than `ENOUGH` clear changes decide nothing."""

SIGNAL, ROUNDING = 8.0, 4.0
"""Changes of a margin count when they are so many times what rounding explains; and the units in the last place of the
larger of two logits by which rounding changes the margin between them."""

NEAR, FAR = 2e-3, 0.3
"""Shares of uniform noise that are blended in, to see whether the output changes nearby, or at all."""

ZERO_SHARE, MOST_DEAD = 0.05, 0.5
"""Shares of the rows whose gradients may vanish without a word, and that may be dead at all: of a network that is dead
in more of them, estimates by gradients say little."""

OFFER = "use scores without gradients (shrinkage, monte_carlo, softmax)"


@dataclass(frozen=True)
class Slopes:
    """Changes of the nearest margin in clear probes along random directions.

    Attributes:
        missed: share of the change that the gradient misses, 0 to 2.
        predicted: the mean size of the changes that the gradient says.
        measured: that of the differences of the margins at the two ends of the step.
        probes: how many there are.
    """

    missed: float
    predicted: float
    measured: float
    probes: int


def check_gradients(subject: Subject) -> Iterator[Finding | str]:
    """Gradients exist, agree with difference quotients, and vanish in few rows; looked at where a score needs them."""
    if not subject.differentiates:
        yield "no chosen score differentiates"
        return
    needed = any(need.differentiates and need.needs_gradients for need in subject.needs)
    try:
        yield from _about_gradients(subject)
    except BrittleError as error:
        if needed or error.code not in ("masked_gradient", "not_differentiable"):
            raise
        yield Finding(error.code, f"{error.args[0]}; the search for the nearest input goes on without gradients")


def _about_gradients(subject: Subject) -> Iterator[Finding | str]:
    if (why := subject.classifier.forward_only) is not None:
        raise ModelError("not_differentiable", why)
    best, tolerance = best_slopes(subject), _tolerance(subject)
    few = best is not None and best.probes < MANY and not tolerance.sizes_only
    most = tolerance.missed * (2 if few else 1)
    if best is not None and best.missed > most:
        raise ModelError(
            "masked_gradient",
            f"along random directions the nearest margin changes by {best.measured:.3g} on average, by its gradient it "
            f"would change by {best.predicted:.3g} (disagreement {best.missed:.3f}, at most {most:g}, in {best.probes} "
            f"probes): no_grad, detach, round, sign or a made-up gradient inside the model; take it out, or {OFFER}",
        )
    rows, zero, hidden = _vanished(subject)
    if len(hidden) > ZERO_SHARE * rows:
        raise ModelError(
            "masked_gradient",
            f"the gradients of all margins are 0 in {zero} of {rows} rows, yet with at most {FAR:.0%} of noise "
            f"blended in, the margins change in {len(hidden)} of them, by {float(hidden.mean()):.3g} on average, and "
            f"have no gradient there, either: round, sign, no_grad or detach inside the model; take it out, or {OFFER}",
        )
    if zero > MOST_DEAD * rows:
        raise ModelError(
            "masked_gradient",
            f"the gradients of all margins are 0 in {zero} of {rows} rows, so an estimate by gradients says nothing "
            f"there (saturated outputs, binarised layers, dead units); {OFFER}, or return unsaturated class scores",
        )
    if zero > ZERO_SHARE * rows:
        yield Finding(
            "dead_points",
            f"the output stays the same around {zero} of {rows} rows (dead units or saturated outputs), and gradients "
            f"are 0: estimates by gradients get no number there, and a run stops at more than 10 such points of the "
            f"first 1,000; for a number at all of them, {OFFER}",
        )
    agree = "rounding hides the difference quotients" if best is None else f"they miss {best.missed:.3f} of the change"
    yield f"{agree}; 0 in {zero} of {rows} rows"


def _tolerance(subject: Subject) -> Tolerance:
    return DOUBLE if subject.precision < 1e-9 else SINGLE if subject.precision < 1e-5 else HALF


def best_slopes(subject: Subject) -> Slopes | None:
    """The slopes at the step of which the gradient misses least; None where rounding hides them all."""
    base, tolerance = _blended(subject, BLEND), _tolerance(subject)
    gradient, own, other = _margin_gradient(subject, base)
    count = min(MOST_DIRECTIONS, max(DIRECTIONS, -(-4 * ENOUGH // len(base))))
    signs = torch.randint(0, 2, (count, *base.shape), generator=torch.Generator().manual_seed(0)).to(base) * 2 - 1
    low, high = subject.classifier.bounds.closed(subject.inputs).ends(base)
    span = high - low
    found = []
    for step in tolerance.steps:
        probes = [_probe(subject, base, step * span * direction, gradient, own, other) for direction in signs]
        predicted, measured, floor = (torch.cat(part) for part in zip(*probes, strict=True))
        largest = torch.maximum(predicted.abs(), measured.abs())
        clear = predicted.isfinite() & measured.isfinite() & (largest > SIGNAL * floor)
        if int(clear.sum()) < ENOUGH:
            continue
        predicted, measured = predicted[clear], measured[clear]
        said, seen = float(predicted.abs().mean()), float(measured.abs().mean())
        missed = float((predicted - measured).abs().sum() / largest[clear].sum())
        if tolerance.sizes_only:
            missed = max(0.0, 1.0 - said / max(seen, 1e-300))
        found.append(Slopes(missed, said, seen, len(measured)))
    return min(found, key=lambda one: one.missed, default=None)


def _probe(
    subject: Subject, base: Tensor, step: Tensor, gradient: Tensor, own: Tensor, other: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Changes of the margins from `base - step` to `base + step`, `[V]` each: by gradient, measured, by rounding."""
    ends = [(base + sign * step).to(subject.classifier.dtype or base.dtype) for sign in (1, -1)]
    logits = [subject.logits_of(end.to(subject.inputs.dtype)) for end in ends]
    above, below = (part.gather(1, own)[:, 0] - part.gather(1, other)[:, 0] for part in logits)
    moved = (ends[0].double() - ends[1].double()).flatten(1)
    size = torch.stack([part.gather(1, torch.cat((own, other), dim=1)).double().abs() for part in logits]).amax((0, 2))
    predicted = (gradient.flatten(1).double() * moved).sum(dim=1)
    return predicted, (above - below).double(), ROUNDING * subject.precision * size


def _blended(subject: Subject, share: float) -> Tensor:
    """The points with a share of uniform noise blended in, in single precision or better, inside the bounds."""
    like = subject.inputs if subject.inputs.dtype.itemsize >= 4 else subject.inputs.float()
    noise = torch.rand(like.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    low, high = subject.classifier.bounds.closed(like).ends(noise)
    return (1 - share) * like + share * (noise * (high - low) + low).to(like)


def _margin_gradient(subject: Subject, base: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradient of the margin between the two largest logits, `[V, *shape]`, and these classes, `[V, 1]` each."""
    inputs = base.clone().requires_grad_(True)
    try:
        logits = subject.logits_of(inputs)
    except ModelError as error:
        if error.code != "model_failed":
            raise
        reason = str(error.__cause__).strip().partition("\n")[0]
        raise ModelError(
            "not_differentiable",
            f"the model runs, but not where gradients are recorded: {type(error.__cause__).__name__}: {reason}; "
            f"{OFFER}, or keep to operations that PyTorch differentiates (no .numpy())",
        ) from error
    own, other = logits.detach().nan_to_num(nan=-torch.inf).topk(2, dim=1).indices.split(1, dim=1)
    margin = (logits.gather(1, own) - logits.gather(1, other))[:, 0]
    return _gradient(subject, margin, inputs), own, other


def _gradient(subject: Subject, numbers: Tensor, inputs: Tensor) -> Tensor:
    """Gradient of `numbers`, `[V]`; 0 where they depend on the input through no operation that is differentiated.

    Difference quotients then tell whether they depend on it at all.
    """
    try:
        return subject.classifier.gradient(numbers, inputs, keep=False)
    except ModelError as error:
        if error.code != "not_differentiable":
            raise
        return torch.zeros_like(inputs)


def _vanished(subject: Subject) -> tuple[int, int, Tensor]:
    """Rows with finite logits, in how many of these the gradients of all margins are 0, and the hidden changes, `[H]`.

    A change is hidden where the output changes when noise is blended in, the prediction stays, and there is no gradient
    there, either. Where gradients vanish in a few rows alone none is looked for.
    """
    logits, zero = _without_gradient(subject, subject.inputs)
    sound = logits.isfinite().all(dim=1)
    zero &= sound
    rows, count = int(sound.sum()), int(zero.sum())
    hidden = torch.zeros_like(logits[:, 0], dtype=torch.float64)
    if count > ZERO_SHARE * rows:
        for share in (NEAR, FAR):
            other, still = _without_gradient(subject, _blended(subject, share))
            hidden = torch.maximum(hidden, torch.where(zero & still, _change(subject, logits, other), 0.0))
    return rows, count, hidden[hidden > 0]


def _without_gradient(subject: Subject, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits `[V, C]` of `inputs`, and where no margin between them has a gradient, `[V]`."""
    inputs = inputs.clone().requires_grad_(True)
    logits = subject.logits_of(inputs)
    # Random weights that add up to 0: the sum has no gradient only where no margin has one.
    weights = torch.randn(logits.shape[1], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = (weights - weights.mean()).to(logits)
    gradient = _gradient(subject, logits @ weights, inputs)
    return logits.detach(), (gradient == 0).flatten(1).all(dim=1)


def _change(subject: Subject, logits: Tensor, others: Tensor) -> Tensor:
    """The largest clear change of a margin between two places, `[V]`; 0 where there is none or the prediction does."""
    own = logits.argmax(dim=1, keepdim=True)
    here, other = (part.gather(1, own) - part for part in (logits, others))
    change, sizes = (here - other).double().abs(), logits.double().abs()
    clear = change > SIGNAL * ROUNDING * subject.precision * torch.maximum(sizes, sizes.gather(1, own))
    clear &= others.argmax(dim=1, keepdim=True) == own
    return torch.where(clear, change, 0.0).amax(dim=1)
