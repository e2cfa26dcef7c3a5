"""Are the gradients those of the function that the model computes?

The derivative of the nearest margin along a random direction is compared with a central difference quotient along it.
`no_grad`, `detach` and `round` inside a model raise no error; they give a gradient of 0 where the quotient is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.doctor.vanished import FAR, MOST_DEAD, ROUNDING, SIGNAL, find_vanished
from brittle.doctor.variants import blended
from brittle.errors import BrittleError, ModelError


@dataclass(frozen=True)
class Tolerance:
    """How slopes are compared in one precision.

    Attributes:
        steps: of the difference quotients, per coordinate, as shares of the value range; the best of them counts.
        disagreement: share of the change of the margins that gradients may miss in `MANY` clear probes or more. Where
            all gradients are masked it is 1.000; healthy networks show at most 0.004 in double and 0.042 in single
            precision.
        in_few: the same in fewer probes, where a kink weighs more: healthy networks show up to 0.043 and 0.19.
        sizes_only: compare how large the changes are and not which way they go: the long steps that half precision
            needs cross so many kinks that the gradient at the point says little of the change.
    """

    steps: tuple[float, float]
    disagreement: float
    in_few: float
    sizes_only: bool = False

    def limit(self, found: Slopes) -> float:
        """Share of the change that the gradients may miss in these probes."""
        return self.disagreement if int(found.clear.sum()) >= MANY else self.in_few


MANY = 64
"""Probes from which on the tighter of the two limits holds."""

TOLERANCES = {
    8: Tolerance((1e-5, 1e-4), 0.15, 0.3),
    4: Tolerance((2e-4, 2e-3), 0.25, 0.5),
    2: Tolerance((2.0**-5, 2.0**-3), 0.9, 0.9, sizes_only=True),
}
"""By the bytes of the precision."""

BLEND = 0.1
"""Share of uniform noise in the inputs where slopes are compared: away from the bounds, and from kinks at pixel 0."""

DIRECTIONS, MOST_DIRECTIONS, ENOUGH = 2, 8, 8
"""Directions per row: at least two, more where there are few rows; fewer than `ENOUGH` clear changes decide nothing."""

OFFER = "use scores without gradients (shrinkage, monte_carlo, softmax)"


@dataclass(frozen=True)
class Slopes:
    """Changes of the nearest margin along random directions, `[D, V]` each: by the gradient, and measured.

    Attributes:
        predicted: the change that the gradient says.
        measured: the difference of the margins at the two ends of the step.
        floor: what rounding explains of it.
    """

    predicted: Tensor
    measured: Tensor
    floor: Tensor

    @property
    def clear(self) -> Tensor:
        """Where either change is far above what rounding explains, `[D, V]`."""
        return torch.maximum(self.predicted.abs(), self.measured.abs()) > SIGNAL * self.floor

    def disagreement(self, sizes_only: bool) -> float | None:
        """Share of the change that the gradient misses, 0 to 2; None where rounding hides the change."""
        clear = self.clear
        if int(clear.sum()) < ENOUGH:
            return None
        predicted, measured = self.predicted[clear], self.measured[clear]
        if sizes_only:
            return max(0.0, 1.0 - float(predicted.abs().sum() / measured.abs().sum().clamp_min(1e-300)))
        return float((predicted - measured).abs().sum() / torch.maximum(predicted.abs(), measured.abs()).sum())


def differentiates(subject: Subject) -> bool:
    """Whether a chosen score sends anything backward through the model."""
    return any(need.differentiates for need in subject.needs)


def check_gradients(subject: Subject) -> Iterator[Finding | str]:
    """Gradients exist, agree with difference quotients, and vanish in few rows; looked at where a score needs them."""
    if not differentiates(subject):
        yield "no chosen score differentiates"
        return
    needed = any(need.differentiates and need.needs_gradients for need in subject.needs)
    try:
        yield from _look(subject)
    except BrittleError as error:
        if needed or error.code not in ("masked_gradient", "zero_gradient", "not_differentiable"):
            raise
        yield Finding(error.code, f"{error.args[0]}; the search for the nearest input goes on without gradients")


def _look(subject: Subject) -> Iterator[Finding | str]:
    if (why := subject.classifier.forward_only) is not None:
        raise ModelError("not_differentiable", why)
    allowed = tolerance(subject)
    tries = [(found.disagreement(allowed.sizes_only), found) for found in slopes(subject)]
    known = [(missed, found) for missed, found in tries if missed is not None]
    least, found = min(known, key=lambda each: each[0], default=(0.0, None))
    if found is not None and least > (limit := allowed.limit(found)):
        _refuse_masked(found, least, limit)
    vanished = find_vanished(subject)
    zero, total, hidden = vanished.zero, vanished.rows, vanished.hidden
    if vanished.masked:
        raise ModelError(
            "masked_gradient",
            f"the gradients of all margins are 0 in {zero} of {total} rows, yet with at most {FAR:.0%} of noise "
            f"blended in, the margins change in {len(hidden)} of them, by {float(hidden.mean()):.3g} on average, and "
            f"have no gradient there, either: round, sign, no_grad or detach inside the model; take it out, or {OFFER}",
        )
    if zero > MOST_DEAD * total:
        raise ModelError(
            "masked_gradient",
            f"the gradients of all margins are 0 in {zero} of {total} rows, so an estimate by gradients says nothing "
            f"there (saturated outputs, binarised layers, dead units); {OFFER}, or return unsaturated class scores",
        )
    said = "rounding hides the difference quotients" if not known else f"they miss {least:.3f} of the change"
    if not vanished.few:
        yield Finding(
            "dead_points",
            f"the output stays the same around {zero} of {total} rows (dead units or saturated outputs), and gradients "
            f"are 0: estimates by gradients get no number there, and a run stops at more than 10 such points of the "
            f"first 1,000; for a number at all of them, {OFFER}",
        )
    yield f"{said}; 0 in {zero} of {total} rows"


def _refuse_masked(found: Slopes, disagreement: float, allowed: float) -> None:
    clear = found.clear
    gradient, quotient = (float(part.abs()[clear].mean()) for part in (found.predicted, found.measured))
    raise ModelError(
        "masked_gradient",
        f"along random directions the nearest margin changes by {quotient:.3g} on average, by its gradient it would "
        f"change by {gradient:.3g} (disagreement {disagreement:.3f}, at most {allowed:g}, in {int(clear.sum())} "
        f"probes): no_grad, detach, round, sign or a made-up gradient inside the model; take it out, or {OFFER}",
    )


def slopes(subject: Subject) -> list[Slopes]:
    """The slopes of the nearest margin by gradient and by difference quotient, at two step sizes.

    Raises:
        ModelError: the model cannot be run where gradients are recorded.
    """
    classifier = subject.classifier
    base = blended(subject.inputs, classifier.bounds, BLEND)
    span = classifier.bounds.closed(subject.inputs).span(base)
    gradient, own, other = _margin_gradient(subject, base)
    generator = torch.Generator().manual_seed(0)
    count = min(MOST_DIRECTIONS, max(DIRECTIONS, -(-4 * ENOUGH // len(base))))
    both = torch.cat((own, other), dim=1)
    signs = torch.randint(0, 2, (count, *base.shape), generator=generator).to(base) * 2 - 1
    precision = classifier.dtype or base.dtype

    def along(width: float | Tensor) -> Slopes:
        rows = []
        for direction in signs:
            ends = [(base + sign * width * direction).to(precision) for sign in (1, -1)]
            with torch.no_grad():
                logits = [subject.logits_of(end.to(subject.inputs.dtype)) for end in ends]
            above, below = (part.gather(1, own)[:, 0] - part.gather(1, other)[:, 0] for part in logits)
            moved = (ends[0].double() - ends[1].double()).flatten(1)
            predicted = (gradient.flatten(1).double() * moved).sum(dim=1)
            competing = [part.gather(1, both).double().abs().amax(1) for part in logits]
            size = torch.maximum(*competing)
            rows.append((predicted, (above - below).double(), ROUNDING * subject.precision * size))
        return Slopes(*(torch.stack(part) for part in zip(*rows, strict=True)))

    found = [along(step * span) for step in tolerance(subject).steps]
    finite = [torch.isfinite(part.measured) & torch.isfinite(part.predicted) for part in found]
    return [
        Slopes(*(torch.where(sound, numbers, 0.0) for numbers in (part.predicted, part.measured, part.floor)))
        for part, sound in zip(found, finite, strict=True)
    ]


def tolerance(subject: Subject) -> Tolerance:
    """How slopes are compared in the precision of the model."""
    return TOLERANCES[8 if subject.precision < 1e-9 else 4 if subject.precision < 1e-5 else 2]


def _margin_gradient(subject: Subject, base: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradient of the margin between the two largest logits, `[V, *shape]`, and these classes, `[V, 1]` each.

    The gradient is 0 where the output does not depend on the input through operations that PyTorch differentiates:
    difference quotients then tell whether it depends on it at all.
    """
    classifier = subject.classifier
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
    try:
        gradient = classifier.gradient(margin, inputs, keep=False)
    except ModelError as error:
        if error.code != "not_differentiable":
            raise
        gradient = torch.zeros_like(base)
    return gradient, own, other
