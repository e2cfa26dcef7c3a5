"""Genz's separation of variables: an orthant probability as a mean over the unit cube, on shifted rank-1 lattices."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor

SHIFTS = 8  # independent random shifts of each lattice: their spread is the error

# Prime sizes and primitive roots of the lattices; an integral goes on to the next where its error asks it to.
LATTICES = {31: 3, 127: 3, 509: 2, 1021: 10, 2039: 7, 4093: 2, 8191: 17, 16381: 2, 32749: 2, 131071: 3}


def lattice_shifts(size: int, dimension: int, seed: int) -> Tensor:
    """Return the random shifts of the lattice of this size: `[dimension, SHIFTS]`."""
    return torch.from_numpy(np.random.default_rng([seed, size]).random((dimension, SHIFTS)))


def lattice_coordinate(index: Tensor, shifts: Tensor, size: int, j: int) -> Tensor:
    """Coordinate `j` of the points `index` of each shifted lattice, folded by the tent: `[shifts * points]`."""
    points = (index * generating_vector(size, len(shifts))[j] % size).double() / size
    return (2 * (points + shifts[j, :, None]).frac() - 1).abs().flatten()


@lru_cache(maxsize=64)
def generating_vector(size: int, dimension: int) -> list[int]:
    """Return the generating vector of a rank-1 lattice of prime `size`, by fast component-by-component construction.

    It minimises the worst-case error in the Korobov space of smoothness 2 with product weights `1 / j^2`; a point and
    its mirror image count alike, so half the multiplicative group is searched. Source: D. Nuyens, R. Cools, Fast
    algorithms for component-by-component construction of rank-1 lattice rules, Math. Comp. 75 (2006), sec. 4.
    """
    half = (size - 1) // 2
    powers = [pow(LATTICES[size], exponent, size) for exponent in range(half)]
    x = np.array(powers) / size
    kernel = 2 * np.pi**2 * (x * x - x + 1 / 6)
    spectrum = np.fft.rfft(kernel)
    product = np.ones(half)  # over the components chosen, at lattice point `root^-i`
    chosen = 0
    vector: list[int] = []
    for j in range(dimension):
        if j > 0:
            chosen = int(np.argmin(np.fft.irfft(spectrum * np.fft.rfft(product), half)))
        vector.append(powers[chosen])
        product *= 1 + np.roll(kernel[::-1], chosen + 1) / (j + 1) ** 2
    return vector


_NODES_AT_ONCE = 2**10  # fewest nodes of a problem that are worth a call
_BLOCK = 8  # variables whose part in later limits is one matrix product
_NODE_NUMBERS = {"cpu": 2**22, "cuda": 2**25}  # numbers held at once by the integration


def rank_tolerance(dimension: int) -> float:
    """Size that rounding leaves of a conditional variance, or an eigenvalue, of zero."""
    return 4 * dimension * torch.finfo(torch.float64).eps


def normal_cdf(x: Tensor) -> Tensor:
    """Return the standard normal distribution function, at full relative precision in the lower tail."""
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


@dataclass(frozen=True)
class StepLimits:
    """Limits on the variable of one step: `bound_i - slope_i w`, over `M` constraints, `w` the earlier variables."""

    bound: Tensor  # [T, M]
    slope: Tensor  # [T, M, j]


@dataclass(frozen=True)
class Step:
    """A variable of the separated integral: below every `upper` limit and, where rank was lost, above `lower`."""

    upper: StepLimits
    lower: StepLimits | None = None

    def limits(self) -> list[StepLimits]:
        return [self.upper] if self.lower is None else [self.upper, self.lower]


def factorise(bounds: Tensor, correlation: Tensor) -> list[Step]:
    """Pivoted Cholesky factor of `Z = L w`, as limits on each `w_j` given the earlier ones.

    The pivot is the constraint least likely to hold when the earlier variables stand at their conditional means
    (Gibson, Glasbey and Elston). Every constraint with no conditional variance left after step `j` is a limit on `w_j`,
    the last variable that it contains (Genz and Kwong): the pivot itself, and those that rank reduction removes.
    """
    problems = torch.arange(len(bounds), device=bounds.device)
    tolerance = rank_tolerance(bounds.shape[1])
    factor = torch.zeros_like(correlation)
    variance = torch.ones_like(bounds)
    slack = bounds.clone()  # bound less the conditional mean
    free = bounds < math.inf
    steps: list[Step] = []
    while free.any():
        j = len(steps)
        deviation = variance.clamp_min(tolerance).sqrt()
        pivot = torch.where(free, slack / deviation, math.inf).argmin(1)
        root = deviation[problems, pivot]
        dot_products = (factor[:, :, :j] @ factor[problems, pivot, :j, None])[:, :, 0]
        column = torch.where(free, (correlation[problems, pivot] - dot_products) / root[:, None], 0.0)
        column[problems, pivot] = torch.where(free[problems, pivot], root, 0.0)
        factor[:, :, j] = column
        variance = (variance - column**2).index_put((problems, pivot), variance.new_zeros(()))
        fixed = free & (variance <= tolerance)
        free = free & ~fixed
        above, below = fixed & (column > 0), fixed & (column < 0)
        lower = _limits(below, bounds, factor, j, -math.inf) if below.any() else None
        steps.append(Step(_limits(above, bounds, factor, j, math.inf), lower))
        cut = slack / column
        centre = _truncated_mean(torch.where(below, cut, -math.inf).amax(1), torch.where(above, cut, math.inf).amin(1))
        slack = torch.where(free, slack - column * centre[:, None], slack)
    return steps


def _limits(mask: Tensor, bounds: Tensor, factor: Tensor, j: int, absent: float) -> StepLimits:
    """Return the constraints in `mask [T, K]`, solved for variable `j`; `absent` pads problems that have fewer."""
    present, chosen = mask.to(torch.uint8).topk(int(mask.sum(1).max()), dim=1)
    present = present.bool()
    row = factor[:, :, : j + 1].take_along_dim(chosen[:, :, None], 1)
    scale = torch.where(present, row[:, :, j], 1.0)
    bound = torch.where(present, bounds.take_along_dim(chosen, 1) / scale, absent)
    return StepLimits(bound, torch.where(present[:, :, None], row[:, :, :j] / scale[:, :, None], 0.0))


def _truncated_mean(low: Tensor, high: Tensor) -> Tensor:
    """Mean of a standard normal variable between `low` and `high`, good enough to choose the next pivot."""
    mass = normal_cdf(high) - normal_cdf(low)
    density = (torch.exp(-0.5 * low**2) - torch.exp(-0.5 * high**2)) / math.sqrt(2 * math.pi)
    mean = torch.where(mass > 0, density / mass, 0.0)
    return torch.minimum(torch.maximum(mean, low), high).clamp(-1e300, 1e300)


def integrate(steps: list[Step], size: int, seed: int) -> Tensor:
    """Mean of the separated integrand over the lattice, for each shift: `[T, shifts]`."""
    device = steps[0].upper.bound.device
    problems = len(steps[0].upper.bound)
    numbers = _NODE_NUMBERS.get(device.type, _NODE_NUMBERS["cpu"]) // len(steps)
    nodes = min(size, max(numbers // problems, _NODES_AT_ONCE) // SHIFTS)
    width = max(1, numbers // (SHIFTS * nodes))
    total = torch.zeros(problems, SHIFTS, dtype=torch.float64, device=device)
    shifts = lattice_shifts(size, len(steps), seed).to(device)
    variables = total.new_empty(min(width, problems), len(steps), SHIFTS * nodes)  # fresh memory would cost more
    for part in (slice(start, start + width) for start in range(0, problems, width)):
        limits_by_step = ((StepLimits(end.bound[part], end.slope[part]) for end in step.limits()) for step in steps)
        blocks = _blocks([Step(*limits) for limits in limits_by_step])
        for index in torch.arange(size, device=device).split(nodes):
            here = variables[: len(total[part]), :, : SHIFTS * len(index)]
            integrand = _integrand(blocks, partial(lattice_coordinate, index, shifts, size), here)
            total[part] += integrand.unflatten(1, (SHIFTS, -1)).sum(2)
    return total / size


@dataclass(frozen=True)
class _Block:
    """Consecutive steps; what the variables before the first of them add to all their limits is one product."""

    start: int
    steps: list[Step]
    bound: Tensor  # [T, L, 1], of all limits of all steps
    slope: Tensor  # [T, L, start]

    def limits(self, variables: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
        """Yield each step `j` with its limits `[T, M, N]` at the nodes; `variables [T, J, N]` are known before `j` by
        then. The memory of the limits may be written to."""
        remaining = torch.baddbmm(self.bound, self.slope, variables[:, : self.start], alpha=-1)
        start = 0
        for j, step in enumerate(self.steps, start=self.start):
            at_nodes = []
            for limits in step.limits():
                end = start + limits.bound.shape[1]
                inside = remaining[:, start:end]
                if j > self.start:
                    inside.baddbmm_(limits.slope[:, :, self.start :], variables[:, self.start : j], alpha=-1)
                at_nodes.append(inside)
                start = end
            yield j, at_nodes


def _blocks(steps: list[Step]) -> list[_Block]:
    blocks = []
    for start in range(0, len(steps), _BLOCK):
        block = steps[start : start + _BLOCK]
        limits = [limits for step in block for limits in step.limits()]
        bound = torch.cat([limit.bound for limit in limits], 1)[:, :, None]
        blocks.append(_Block(start, block, bound, torch.cat([limit.slope[:, :, :start] for limit in limits], 1)))
    return blocks


def _integrand(blocks: list[_Block], coordinate: Callable[[int], Tensor], variables: Tensor) -> Tensor:
    """Product of the conditional probabilities of all steps at each node `[T, N]`; fills `variables [T, J, N]`."""
    problems, last, nodes = variables.shape[0], variables.shape[1] - 1, variables.shape[2]
    product = variables.new_ones(problems, nodes)
    for j, limits in (step for block in blocks for step in block.limits(variables)):
        high = limits[0][:, 0] if limits[0].shape[1] == 1 else limits[0].amin(1)
        if len(limits) == 1:
            below, mass, turned = None, _to_normal_cdf(high), None
        else:
            low = limits[1].amax(1)
            turned = low > 0  # reflect into the lower tail, where the difference keeps its relative precision
            low, high = torch.where(turned, -high, low), torch.where(turned, -low, high)
            below = _to_normal_cdf(low)
            mass = _to_normal_cdf(high).sub_(below).clamp_min_(0.0)
        product *= mass
        if j < last:
            probability = torch.mul(mass, coordinate(j), out=variables[:, j])
            quantile = _to_normal_quantile(probability if below is None else probability.add_(below))
            if turned is not None:
                quantile[turned] *= -1
    return product


def _to_normal_cdf(x: Tensor) -> Tensor:
    """Return the same in place, to 1e-13 at a third of the cost: `1 + erf` cancels only in the lower tail."""
    tail = x < -3
    exact = normal_cdf(x[tail]) if tail.any() else None
    x.mul_(math.sqrt(0.5)).erf_().add_(1).mul_(0.5)
    if exact is not None:
        x[tail] = exact
    return x


def _to_normal_quantile(probability: Tensor) -> Tensor:
    """Inverse of the same in place, to an absolute 1e-12: `2p - 1` is exact enough outside the tail."""
    tail = probability < 1e-4
    exact = torch.special.ndtri(probability[tail].clamp_min(1e-307)) if tail.any() else None
    probability.clamp_max_(1 - 1e-16).mul_(2).sub_(1).erfinv_().mul_(math.sqrt(2))
    if exact is not None:
        probability[tail] = exact
    return probability
