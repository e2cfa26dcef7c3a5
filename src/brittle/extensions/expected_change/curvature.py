"""Derivatives of a probability: from those of the logits, second derivatives of the network, columns of the Hessian."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.measure import Linearization
from brittle.measure.base import Measurement, NetworkTraits, Passes, check_enough, check_rank
from brittle.measure.forward import Clean, class_of_rank
from brittle.measure.sample_sums import doubt
from brittle.model.classifier import Classifier
from brittle.model.evaluation_mode import twice_differentiable
from brittle.noise import Gaussian, Stream, Uniform
from brittle.scores.linear import Margins

Function = Callable[[Tensor, Tensor], Tensor]
"""A function of rows of inputs and of their positions in the batch that returns one number per row."""

METHODS = ("auto", "exact", "probes")  # methods to sum the second derivatives
PROBES = 32  # random directions per point by default
LOOKS = 2  # random directions along which `auto` tests whether the network bends at all
COLUMNS = 64  # columns of the Hessian per point by default
NUDGE = 1e-6  # a step per coordinate, as a share of the value range, that changes the gradient of no smooth network
KINK = 0.01  # relative change of the gradient over such a step beyond which the network has a kink at the point


@dataclass(frozen=True)
class LogitCurvature:
    """`sum_k w_k lap z_k` at each point, for fixed weights `w` of the logits.

    `samples`, `[B, P]`, float64, are `d^T H d` along each random direction; an exact sum has a single column and 0
    `probes`. `flat` is True where the network does not bend at the point along `LOOKS` directions, and `kink` where the
    gradient jumps. `passes` counts the passes of each point, with the clean pass.
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
        """Standard error of `value`, `[B]`; 0 for an exact sum."""
        count = self.samples.shape[1]
        return self.samples.std(dim=1) / count**0.5 if count > 1 else torch.zeros_like(self.samples[:, 0])


@dataclass(frozen=True)
class Curvature(Measurement):
    """The Laplacian of `f(x) = sum_k w_k z_k(x)`, with weights `w` fixed at the point.

    The weights are the gradient of the log-odds of the class `c` of rank `rank` (1 for the predicted class) with
    respect to the logits: `w_c = 1` and `w_k = -p_k / (1 - p_c)`, so that the second term of the Laplacian of `p_c` is
    `p_c (1 - p_c)` times this Laplacian.

    `exact`: `sum_i e_i^T H e_i` over all `n` coordinates. `probes`: the mean of `d^T H d` over random signs `d`, with
    its standard error. `auto`: 0 where `H d = 0` for `LOOKS` normal draws, as in every piecewise linear network; else
    `probes`, or `exact` for inputs with at most as many coordinates as probes. Attention runs in elementary operations,
    because its fused kernels have no second derivative.

    Source: M. Hutchinson, A stochastic estimator of the trace of the influence matrix for Laplacian smoothing splines,
    Communications in Statistics: Simulation and Computation 19 (1990).
    """

    method: str = "auto"
    probes: int = PROBES
    rank: int = 1

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"the method must be one of {', '.join(METHODS)}; found {self.method!r}")
        check_enough("probes", self.probes)
        check_rank(self.rank)

    def cost(self, network: NetworkTraits) -> Passes:
        look = Passes(2, 2 + LOOKS)
        if self.method == "auto":
            sample: LogitCurvature | None = network.try_out(Curvature(probes=2))
            if sample is not None and bool(sample.flat.all()):
                return look
        directions = network.dimension if self.is_exact(network.dimension) else self.probes
        return look + Passes(1, 1 + directions)

    def is_exact(self, dimension: int) -> bool:
        """Return whether to sum over all coordinates rather than random directions."""
        return self.method == "exact" or (self.method == "auto" and dimension <= self.probes)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[LogitCurvature]:
        return [sum_curvature(need, classifier, clean, log_odds_weights(clean, need.rank)) for need in needs]


def log_odds_weights(clean: Clean, rank: int) -> Tensor:
    """Return the gradient of the log-odds of the class of this rank with respect to the logits, `[B, C]`."""
    class_index = class_of_rank(clean.logits, clean.predicted, rank)[:, None]
    shares = clean.logits.double().scatter(1, class_index, -torch.inf).softmax(dim=1)
    return (-shares).scatter(1, class_index, 1.0).nan_to_num(nan=0.0).to(clean.logits.dtype)


def sum_curvature(need: Curvature, classifier: Classifier, clean: Clean, weights: Tensor) -> LogitCurvature:
    """Compute the Laplacian of `sum_k w_k z_k` for `weights` `[B, C]`, by the method of `need`."""
    signs = clean.stream(Gaussian(1.0), "curvature")
    flat, kink = _find_kinks(classifier, clean, _weighted(classifier, clean, weights), signs.draw(LOOKS))
    size = clean.inputs[0].numel()
    exact = need.is_exact(size)
    positions = (~flat if need.method == "auto" else torch.ones_like(flat)).nonzero()[:, 0]
    samples = torch.zeros(len(flat), 1 if exact else need.probes, dtype=torch.float64, device=flat.device)
    passes = torch.full_like(clean.predicted, clean.passes + 4 + LOOKS)
    probes = torch.zeros_like(passes)
    if len(positions):
        subset = clean.only(positions)
        bent_sum = _weighted(classifier, subset, weights[positions])
        if exact:
            samples[positions, 0] = _exact(classifier, subset, bent_sum)
        else:
            samples[positions] = _along(classifier, subset, bent_sum, signs.draw(need.probes)[positions].sign())
            probes[positions] = need.probes
        passes[positions] += 2 + (size if exact else need.probes)
    return LogitCurvature(samples, probes, flat, kink, passes)


def _weighted(classifier: Classifier, clean: Clean, weights: Tensor) -> Function:
    return lambda inputs, part: (clean.logits_of(classifier, inputs, part) * weights[part]).sum(dim=1)


def _find_kinks(classifier: Classifier, clean: Clean, function: Function, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the network does not bend along `directions`, and where it has a kink at the point, `[B]` each: a
    step of `NUDGE` changes the gradient by another amount than the second derivatives predict."""
    scale = classifier.bounds.scale(clean.inputs)
    flat, kink = (torch.zeros(len(directions), dtype=torch.bool, device=directions.device) for _ in "ab")
    for part, inputs, gradient in differentiable_gradients(classifier, clean, function):
        step = NUDGE * (scale[part] if isinstance(scale, Tensor) else scale)
        nudged = (clean.inputs[part] + step * directions[part, 0]).requires_grad_(True)
        rounded_direction = (nudged.detach() - clean.inputs[part]) / step
        looks = [rounded_direction, *directions[part, 1:].unbind(dim=1)]
        products = [classifier.hessian_product(gradient, inputs, along, keep=True) for along in looks]
        flat[part] = torch.stack([(product == 0).flatten(1).all(dim=1) for product in products]).all(dim=0)
        gradient_after = classifier.gradient(function(nudged, part), nudged, keep=False)
        gradient_before, bend = (numbers.detach().flatten(1).double() for numbers in (gradient, step * products[0]))
        deviation = (gradient_after.flatten(1).double() - gradient_before - bend).norm(dim=1)
        kink[part] = deviation > KINK * torch.maximum(gradient_before.norm(dim=1), bend.norm(dim=1))
    return flat, kink


def _along(classifier: Classifier, clean: Clean, function: Function, directions: Tensor) -> Tensor:
    """Return `d^T H d` along each direction, `[B, D]`, for `directions` `[B, D, *shape]`."""
    products = torch.zeros(directions.shape[:2], dtype=torch.float64, device=directions.device)
    count = directions.shape[1]
    for part, inputs, gradient in differentiable_gradients(classifier, clean, function):
        for number in range(count):
            along = directions[part, number]
            product = classifier.hessian_product(gradient, inputs, along, keep=number + 1 < count)
            products[part, number] = (product * along).flatten(1).double().sum(dim=1)
    return products


def _exact(classifier: Classifier, clean: Clean, function: Function) -> Tensor:
    """Return `sum_i e_i^T H e_i`, `[B]`."""
    total = torch.zeros(len(clean.inputs), dtype=torch.float64, device=clean.inputs.device)
    for part, inputs, gradient in differentiable_gradients(classifier, clean, function):
        along = torch.zeros_like(inputs).flatten(1)
        size = along.shape[1]
        for coordinate in range(size):
            along[:, coordinate] = 1.0
            product = classifier.hessian_product(gradient, inputs, along.view_as(inputs), keep=coordinate + 1 < size)
            total[part] += product.flatten(1)[:, coordinate].double()
            along[:, coordinate] = 0.0
    return total


def differentiable_gradients(classifier: Classifier, clean: Clean, function: Function) -> Iterator[tuple[Tensor, ...]]:
    """Yield batches of rows, their inputs, and the gradient of `function` there, which can be differentiated again."""
    for part in torch.arange(len(clean.inputs), device=clean.inputs.device).split(clean.rows):
        inputs = clean.inputs[part].clone().requires_grad_(True)
        with twice_differentiable():
            gradient = classifier.gradient(function(inputs, part), inputs, keep=True, differentiable=True)
        yield part, inputs, gradient


@dataclass(frozen=True)
class Columns:
    """Absolute sums over the derivatives of the predicted probability `p_t`.

    For the sampled coordinates `i`, `[B, M]`, `diagonal` is `|H_ii|` and `beside` `sum_{j != i} |H_ij|`; `slope`,
    `[B]`, float64, is `sum_i |dp_t / dx_i|`. The sample may be all `dimension` coordinates.
    """

    slope: Tensor
    diagonal: Tensor
    beside: Tensor
    dimension: int
    clean: Clean
    passes: int


@dataclass(frozen=True)
class HessianColumns(Measurement):
    """`columns` of the Hessian of `p_t`, `H e_i`, for coordinates `i` drawn without replacement at each point."""

    columns: int = COLUMNS

    def __post_init__(self) -> None:
        check_enough("columns", self.columns)

    def cost(self, network: NetworkTraits) -> Passes:
        """Count a gradient, and a backward pass per column."""
        return Passes(1, 1 + min(self.columns, network.dimension))

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Columns]:
        return [_columns(need, classifier, clean) for need in needs]


def _columns(need: HessianColumns, classifier: Classifier, clean: Clean) -> Columns:
    size = clean.inputs[0].numel()
    count = min(need.columns, size)
    order = Stream(Uniform(1.0), clean.inputs, clean.ids, clean.seed, "columns").draw(1).flatten(1).argsort(dim=1)
    slope = torch.zeros(len(order), dtype=torch.float64, device=order.device)
    diagonal, beside = (torch.zeros(len(order), count, dtype=torch.float64, device=order.device) for _ in "ab")

    def rise(inputs: Tensor, part: Tensor) -> Tensor:
        return -doubt(clean.logits_of(classifier, inputs, part).double(), clean.predicted[part])

    for part, inputs, gradient in differentiable_gradients(classifier, clean, rise):
        slope[part] = gradient.detach().flatten(1).double().abs().sum(dim=1)
        for number in range(count):
            coordinate = order[part, number : number + 1]
            along = torch.zeros_like(inputs).flatten(1).scatter(1, coordinate, 1.0).view_as(inputs)
            column = classifier.hessian_product(gradient, inputs, along, keep=number + 1 < count)
            sizes = column.flatten(1).double().abs()
            diagonal[part, number] = sizes.gather(1, coordinate)[:, 0]
            beside[part, number] = sizes.scatter(1, coordinate, 0.0).sum(dim=1)
    return Columns(slope, diagonal, beside, size, clean, clean.passes + 2 + count)


LARGEST_EXPONENT = 700.0
"""Largest argument of `exp`, so that it is finite: a class that is less likely by more has the probability 0."""


@dataclass(frozen=True)
class ProbabilityDerivatives:
    """First and second derivatives of the softmax probability `p_t` of the class `t` of the margins.

    With the margins `g_k = z_t - z_k` and `m = sum_k p_k grad g_k`: `grad p_t = p_t m`, and for logits that are linear
    in the input `lap p_t = p_t (2 ||m||^2 - sum_k p_k ||grad g_k||^2)`. Competitors outside the linearisation get the
    largest gradient norm inside. `doubt` is `1 - p_t` at full relative precision; `slope` is `||m||`, in the metric of
    the Gram matrix; `curvature` is `2 ||m||^2 - sum_k p_k ||grad g_k||^2`, and lies between `curvature_low` and
    `curvature_high` for such competitors. Each is `[B]`, float64.
    """

    probability: Tensor
    doubt: Tensor
    slope: Tensor
    curvature: Tensor
    curvature_low: Tensor
    curvature_high: Tensor


def derivatives(linear: Linearization, margins: Margins) -> ProbabilityDerivatives:
    """Return the derivatives of `p_t` at a linearisation, from its `margins`."""
    class_logit = linear.logits.gather(1, linear.predicted[:, None])
    probability = linear.logits.softmax(dim=1).gather(1, linear.predicted[:, None])[:, 0]
    probabilities = probability[:, None] * (-margins.mean).clamp_max(LARGEST_EXPONENT).exp()
    missing = (class_logit - linear.logits).neg().exp().where(margins.left_out.isfinite(), 0.0).sum(dim=1) * probability
    squares = margins.covariance.diagonal(dim1=1, dim2=2).clamp_min(0.0)
    slope = torch.einsum("bk,bkl,bl->b", probabilities, margins.covariance, probabilities).clamp_min(0.0).sqrt()
    second = (probabilities * squares).sum(dim=1)
    steepest = squares.amax(dim=1).sqrt()
    error = missing * steepest
    return ProbabilityDerivatives(
        probability=probability,
        doubt=probabilities.sum(dim=1) + missing,
        slope=slope,
        curvature=2.0 * slope.square() - second,
        curvature_low=2.0 * (slope - error).clamp_min(0.0).square() - second - error * steepest,
        curvature_high=2.0 * (slope + error).square() - second,
    )
