"""Second derivatives of the network: what the Laplacian of a probability needs beyond the Gram."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from brittle.classifier import Classifier
from brittle.errors import ParameterError
from brittle.measure.base import Measurement
from brittle.measure.forward import Clean
from brittle.noise import Gaussian, Stream

METHODS = ("auto", "exact", "probes")
"""How the second derivatives are summed."""

PROBES = 32
"""Random directions per point unless told."""

LOOKS = 2
"""Random directions along which `auto` finds out whether the network bends at all."""

NUDGE = 1e-6
"""A step per coordinate, as a share of the value range, that changes the gradient of no smooth network."""

KINK = 0.01
"""Relative change of the gradient over such a step that says that the network has a kink at the point."""


@dataclass(frozen=True)
class Curved:
    """`sum_k w_k lap z_k` of each point, for weights `w` of the logits that are held fixed.

    Attributes:
        samples: `d^T H d` along each random direction, `[B, P]`, float64; where it is exact one column, the sum.
        probes: random directions behind the value, `[B]`; 0 where it is exact.
        flat: whether the network does not bend at the point, as far as `LOOKS` directions tell, `[B]`.
        kink: whether the gradient jumps at the point, `[B]`.
        passes: forward and backward passes of the point, the clean one included, `[B]`.
    """

    samples: Tensor
    probes: Tensor
    flat: Tensor
    kink: Tensor
    passes: Tensor

    @property
    def value(self) -> Tensor:
        """The mean over the directions, `[B]`."""
        return self.samples.mean(dim=1)

    @property
    def deviation(self) -> Tensor:
        """Standard error of `value`, `[B]`; 0 where it is exact."""
        return standard_error(self.samples)


@dataclass(frozen=True)
class Curvature(Measurement):
    """The Laplacian of `f(x) = sum_k w_k z_k(x)`, with the weights `w` held fixed at the point.

    The weights are those with which the logits enter the log-odds of the predicted class `c`: `w_c = 1` and
    `w_k = -p_k / (1 - p_c)`, so that the second term of the Laplacian of `p_c` is `p_c (1 - p_c)` times this.

    `exact`: `sum_i e_i^T H e_i` over all `n` coordinates. `probes`: the mean of `d^T H d` over random signs `d`, with
    its standard error. `auto`: 0 where `H d = 0` for `LOOKS` random signs, as in every piecewise linear network; else
    `probes`, or `exact` for inputs of no more coordinates than probes. Attention is computed in elementary operations,
    as its fused kernels have no second derivative.

    Source: M. Hutchinson, A stochastic estimator of the trace of the influence matrix for Laplacian smoothing splines,
    Communications in Statistics: Simulation and Computation 19 (1990).

    Attributes:
        method: one of `METHODS`.
        probes: random directions per point, for `auto` and `probes`.

    Raises:
        ParameterError: an unknown method, or fewer than 2 probes.
    """

    method: str = "auto"
    probes: int = PROBES

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError("method", f"the method must be one of {', '.join(METHODS)}; found {self.method!r}")
        if self.probes < 2:
            raise ParameterError("probes", f"at least 2 probes are needed for an error; found {self.probes}")

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Curved]:
        """The curvature of each need."""
        return [curved(need, classifier, clean, log_odds_weights(clean)) for need in needs]


def log_odds_weights(clean: Clean) -> Tensor:
    """The gradient of the log-odds of the predicted class with respect to the logits, `[B, C]`."""
    own = clean.predicted[:, None]
    others = clean.logits.double().scatter(1, own, -torch.inf).softmax(dim=1)
    return (-others).scatter(1, own, 1.0).nan_to_num(nan=0.0).to(clean.logits.dtype)


def curved(need: Curvature, classifier: Classifier, clean: Clean, weights: Tensor) -> Curved:
    """The Laplacian of `sum_k w_k z_k` for `weights` `[B, C]`, by the method of `need`."""
    signs = Stream(Gaussian(1.0), clean.inputs, clean.ids, clean.seed, "curvature")
    kink = _kinks(classifier, clean, weights, signs.draw(1)[:, 0].sign())
    spent = torch.full_like(clean.predicted, clean.passes + 4)
    flat = torch.zeros_like(kink)
    if need.method == "auto":
        flat = (_products(classifier, clean, weights, signs.draw(LOOKS).sign())[1] == 0).all(dim=1)
        spent += 2 + LOOKS
    size = clean.inputs[0].numel()
    exact = need.method == "exact" or (need.method == "auto" and size <= need.probes)
    samples = torch.zeros(len(flat), 1 if exact else need.probes, dtype=torch.float64, device=flat.device)
    bent = (~flat).nonzero()[:, 0]
    if len(bent):
        own, directions = clean.only(bent), signs.draw(0 if exact else need.probes)[bent].sign()
        summed = _exact(classifier, own, weights[bent])[:, None] if exact else None
        samples[bent] = _products(classifier, own, weights[bent], directions)[0] if summed is None else summed
        spent[bent] += 2 + (size if exact else need.probes)
    return Curved(samples, torch.where(flat | exact, 0, need.probes), flat, kink, spent)


def standard_error(samples: Tensor) -> Tensor:
    """Standard error of the mean over the columns of `samples`, `[B, P]`: `[B]`; 0 for a single one."""
    count = samples.shape[1]
    return samples.std(dim=1) / count**0.5 if count > 1 else torch.zeros_like(samples[:, 0])


def _kinks(classifier: Classifier, clean: Clean, weights: Tensor, signs: Tensor) -> Tensor:
    """Whether the gradient at the point is not that a step of `NUDGE` away, `[B]`."""
    low, high = classifier.bounds
    nudged = clean.inputs + NUDGE * (high - low) * signs
    here, there = (_gradients(classifier, points, weights, clean.rows) for points in (clean.inputs, nudged))
    return (there - here).double().norm(dim=1) > KINK * here.double().norm(dim=1)


def _gradients(classifier: Classifier, points: Tensor, weights: Tensor, rows: int) -> Tensor:
    """Gradient of `sum_k w_k z_k` at `points`, `[B, n]`."""
    function, found = _weighted(classifier, weights), []
    for part in torch.arange(len(points), device=points.device).split(rows):
        inputs = points[part].clone().requires_grad_(True)
        found.append(classifier.gradient(function(inputs, part), inputs, keep=False).flatten(1))
    return torch.cat(found)


def _products(classifier: Classifier, clean: Clean, weights: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """`d^T H d` and the largest entry of `|H d|` of each direction, `[B, D]`, for `directions` `[B, D, *shape]`."""
    found = torch.zeros(2, *directions.shape[:2], dtype=torch.float64, device=directions.device)
    for part, inputs, gradient in differentiable_gradients(classifier, clean, _weighted(classifier, weights)):
        count = directions.shape[1]
        for number in range(count):
            along = directions[part, number]
            product = classifier.hessian_product(gradient, inputs, along, keep=number + 1 < count)
            found[0, part, number] = (product * along).flatten(1).double().sum(dim=1)
            found[1, part, number] = product.flatten(1).abs().amax(dim=1).double()
    return found[0], found[1]


def _exact(classifier: Classifier, clean: Clean, weights: Tensor) -> Tensor:
    """`sum_i e_i^T H e_i`, `[B]`."""
    total = torch.zeros(len(weights), dtype=torch.float64, device=weights.device)
    for part, inputs, gradient in differentiable_gradients(classifier, clean, _weighted(classifier, weights)):
        along = torch.zeros_like(inputs).flatten(1)
        size = along.shape[1]
        for coordinate in range(size):
            along[:, coordinate] = 1.0
            product = classifier.hessian_product(gradient, inputs, along.view_as(inputs), keep=coordinate + 1 < size)
            total[part] += product.flatten(1)[:, coordinate].double()
            along[:, coordinate] = 0.0
    return total


def _weighted(classifier: Classifier, weights: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """The function `sum_k w_k z_k` of the inputs of some rows."""
    return lambda inputs, part: (classifier(inputs) * weights[part]).sum(dim=1)


def differentiable_gradients(
    classifier: Classifier, clean: Clean, function: Callable[[Tensor, Tensor], Tensor]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Gradients, which can be differentiated again, of a `function` of inputs and the rows that they stand in.

    Gives the rows that go through the network together, their inputs, and the gradient at these.
    """
    for part in torch.arange(len(clean.inputs), device=clean.inputs.device).split(clean.rows):
        inputs = clean.inputs[part].clone().requires_grad_(True)
        with sdpa_kernel(SDPBackend.MATH):
            gradient = classifier.gradient(function(inputs, part), inputs, keep=True, differentiable=True)
        yield part, inputs, gradient
