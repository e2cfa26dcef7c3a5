"""Probability that a normal vector is positive in every coordinate, with its complement and the error of both.

Write `u_k = m_k / sqrt(S_kk)` and `R` for the correlation matrix, so that `P(X > 0) = P(Z < u)` with `Z ~ N(0, R)`. Two
forms are integrated by the same routine, whichever is the more accurate for a row:

- *direct*: `P(Z < u)`;
- *union*: `1 - P = sum_k P(Z_k > u_k and Z_j < u_j for all j < k)`, the rarest event last. Its first term is a closed
  form and every further one is below its own tail, so that the relative error stays bounded however rare the union is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from brittle.errors import ParameterError

_SHIFTS = 8  # independent random shifts of a lattice: their spread is the error
_STUDENT = float(stats.t.ppf(0.99995, _SHIFTS - 1))  # 99.99% nominal: the spread has heavier tails than a normal one
_LATTICES = {31: 3, 127: 3, 509: 2, 1021: 10, 2039: 7, 4093: 2, 8191: 17, 16381: 2, 32749: 2, 131071: 3}
"""Prime sizes of the lattices and their primitive roots: a row takes the next where its error asks for it."""
_SHARE = 0.01  # of the tolerance: what events too rare to be integrated may use up, and what no spread can promise
_UNION_BOUND = 8.0  # in `_plan`: a union is integrated while the sum of its tails is below this over sqrt(size)
_SMALL_SPREAD = 0.2  # terms of a union with a smaller share of the largest spread are not refined
_INDEFINITE = 1e-3  # a correlation matrix with an eigenvalue below minus this is not one, whatever the rounding
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)  # problems are padded up to these
_FACTOR_NUMBERS = 2**21  # numbers held at once by the factorisation
_NODE_NUMBERS = {"cpu": 2**20, "cuda": 2**25}  # numbers held at once by the integration


ILL_CONDITIONED_ABOVE = 1e12
"""Condition number above which the error includes that of the rank reduction."""

_RANK_REDUCTION_ERROR = 1e-7


@dataclass(frozen=True)
class OrthantProbability:
    """Orthant probabilities of a batch; every field has shape `[B]`.

    Attributes:
        value: `P(X > 0)`, float64.
        complement: `1 - P(X > 0)`, float64, at full relative precision however small; 0 below 1e-307.
        error: absolute error of `value` and of `complement` alike, float64; see `orthant_probability`.
        condition: condition number of the correlation matrix over its nonzero eigenvalues, float64; infinite where the
            matrix has a negative eigenvalue that rounding cannot explain.
        nodes: lattice nodes spent on the hardest integral of the row, int64; 0 where nothing could be integrated.
    """

    value: Tensor
    complement: Tensor
    error: Tensor
    condition: Tensor
    nodes: Tensor


def orthant_probability(
    mean: Tensor, covariance: Tensor, *, tolerance: float = 2e-3, seed: int = 0, max_nodes: int = 200_000
) -> OrthantProbability:
    """Probability that `X ~ N(mean, covariance)` is positive in every coordinate, for a batch of problems.

    `P(X > 0) = P(Z < u)`, `u_k = mean_k / sqrt(covariance_kk)`, `Z ~ N(0, R)`, by Genz's separation of variables on
    randomly shifted rank-1 lattices with the tent transform, the variables reordered by Gibson, Glasbey and Elston.
    Where `min u_k > 0` and the union bound `sum_k P(Z_k > u_k)` is below `8 / sqrt(K)`, `K` the events that count, the
    complement is integrated instead (the two forms cost about the same for the same error there), as the telescoping
    sum `sum_k P(Z_k > u_k, Z_j < u_j for j < k)` over the events from the likeliest to the rarest: its relative error
    stays bounded in the tail. Events whose tails sum to less than a hundredth of the tolerance, relative to the
    likeliest, are left out and their sum is added to the error.

    Valid for every positive semidefinite covariance. Singular ones are reduced to their rank: a coordinate that is a
    linear function of earlier ones bounds the last of them (Genz and Kwong), so duplicates and antipodal pairs cost
    nothing and nothing is added to the diagonal. A coordinate of variance zero is certain: it counts as positive when
    its mean is, and makes the probability 0 otherwise. One coordinate, or several of rank one, is a closed form.

    The error is the 99.99% Student half-width over 8 independent shifts, plus a hundredth of the tolerance, relative to
    the smaller of the two probabilities, where more than one coordinate counts. The shifts are few, their spread is not
    normal and the number of nodes follows it, so what the error promises is to cover the error made in at least 99% of
    problems. A row takes more nodes until `error <= tolerance * complement` or `max_nodes` is reached, so that for a
    tiny probability the tolerance is absolute. Where the condition number exceeds 1e12, the 1e-7 that rank reduction
    itself may neglect is part of the error.

    A row depends on its own mean, covariance and `seed` alone; no global random state is read or changed.

    References:
        A. Genz, Numerical computation of multivariate normal probabilities, J. Comp. Graph. Stat. 1 (1992), sec. 2.
        G. Gibson, C. Glasbey, D. Elston, Monte Carlo evaluation of multivariate normal integrals and sensitivity to
        variate ordering, Advances in Numerical Methods and Applications (1994).
        A. Genz, K. Kwong, Numerical evaluation of singular multivariate normal distributions, J. Stat. Comp. Sim. 68
        (2000), sec. 2.
        A. Owen, Y. Maximov, M. Chertkov, Importance sampling the union of rare events, Electron. J. Stat. 13 (2019),
        sec. 3, whose sampling from one event after another is here made a sum of smooth integrals.

    Args:
        mean: `[B, K]`, any floating dtype and device; the arithmetic is float64.
        covariance: `[B, K, K]`, symmetric.
        tolerance: error asked for, as a share of the complement.
        seed: seed of the random shifts.
        max_nodes: most lattice nodes that a row may take at one time, over all its integrals; the smallest lattice, of
            248 nodes an integral, is always used.

    Returns:
        The probabilities on the device of `mean`. A row with a NaN or an infinity is NaN in every float field; a row
        whose correlation matrix has an eigenvalue below -1e-3 is NaN with an infinite `condition`.

    Raises:
        ParameterError: wrong shapes or dtypes, a covariance that is not symmetric or has a negative variance, a
            tolerance that is not positive, a negative seed.
    """
    _check_arguments(mean, covariance, tolerance, seed)
    finite = mean.isfinite().all(1) & covariance.isfinite().flatten(1).all(1)
    _check_covariance(covariance, finite)
    bounds, correlation = _standardise(mean.double(), covariance.double(), finite)
    condition = _condition_number(correlation)
    rows = _plan(bounds, correlation, tolerance)

    integrals = torch.zeros(*_terms(rows).shape, _SHIFTS, dtype=torch.float64, device=mean.device)
    nodes = torch.zeros(len(mean), dtype=torch.int64, device=mean.device)
    usable = finite & condition.isfinite()
    wanted = _terms(rows) & usable[:, None]
    for size in _LATTICES:
        wanted &= _affordable(wanted, size, max_nodes)
        if not wanted.any():
            break
        integrals[wanted] = _integrate_terms(rows, wanted, size, seed)
        nodes[wanted.any(1)] = size * _SHIFTS
        value, complement, error = _summarise(rows, integrals, tolerance)
        wanted = _influential(integrals) & usable[:, None] & (error > tolerance * complement)[:, None]

    value, complement, error = _summarise(rows, integrals, tolerance)
    error = error + torch.where(condition > ILL_CONDITIONED_ABOVE, _RANK_REDUCTION_ERROR, 0.0)
    value, complement, error = (torch.where(usable, field, math.nan) for field in (value, complement, error))
    return OrthantProbability(value, complement, error, torch.where(finite, condition, math.nan), nodes)


def without_rounding(covariance: Tensor, scale: Tensor) -> Tensor:
    """`covariance` with the rows and columns zero whose variance is no more than the rounding of `scale`.

    Args:
        covariance: `[..., K, K]`, computed as a difference or a sum of terms.
        scale: the size of those terms for each variance, `[..., K]`.
    """
    certain = covariance.diagonal(dim1=-2, dim2=-1) <= 64 * torch.finfo(torch.float64).eps * scale
    return covariance.masked_fill(certain[..., :, None] | certain[..., None, :], 0.0)


def _check_arguments(mean: Tensor, covariance: Tensor, tolerance: float, seed: int) -> None:
    if mean.ndim != 2 or mean.shape[1] == 0 or covariance.shape != (*mean.shape, mean.shape[-1]):
        found = f"{tuple(mean.shape)} and {tuple(covariance.shape)}"
        raise ParameterError(
            "orthant_shape", f"expected mean [B, K] and covariance [B, K, K] with K > 0; found {found}"
        )
    if not (mean.is_floating_point() and covariance.is_floating_point()):
        raise ParameterError("orthant_dtype", f"expected floating tensors; found {mean.dtype} and {covariance.dtype}")
    if not 0 < tolerance < math.inf:
        raise ParameterError("tolerance", f"the tolerance must be positive and finite; found {tolerance}")
    if seed < 0:
        raise ParameterError("seed", f"the seed must not be negative; found {seed}")


def _check_covariance(covariance: Tensor, finite: Tensor) -> None:
    variance = covariance.diagonal(dim1=1, dim2=2)
    if (negative := finite & (variance < 0).any(1)).any():
        row = int(negative.nonzero()[0])
        raise ParameterError("negative_variance", f"row {row} has a variance of {float(variance[row].min()):.3g}")
    largest = covariance.abs().amax((1, 2))
    skew = (covariance - covariance.mT).abs().amax((1, 2))
    rounding = max(1e-5, 4 * torch.finfo(covariance.dtype).eps)
    if (skewed := finite & (skew > rounding * largest)).any():
        row = int(skewed.nonzero()[0])
        found = f"|S - S^T| reaches {float(skew[row]):.3g} where |S| reaches {float(largest[row]):.3g}"
        raise ParameterError("asymmetric_covariance", f"the covariance of row {row} is not symmetric: {found}")


def _standardise(mean: Tensor, covariance: Tensor, finite: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds `u [B, K]` and correlation matrices `[B, K, K]`; rows that are not finite become a harmless problem."""
    eye = torch.eye(mean.shape[1], dtype=torch.float64, device=mean.device)
    covariance = torch.where(finite[:, None, None], covariance, eye)
    mean = torch.where(finite[:, None], mean, 1.0)
    deviation = covariance.diagonal(dim1=1, dim2=2).sqrt()
    random = deviation > 0
    scale = torch.where(random, deviation, 1.0)
    bounds = torch.where(random, mean / scale, torch.where(mean > 0, math.inf, -math.inf))
    correlation = covariance / scale[:, :, None] / scale[:, None, :]
    correlation = (correlation + correlation.mT) / 2
    both = random[:, :, None] & random[:, None, :]
    return bounds, torch.where(both & (eye == 0), correlation, eye)


def _rank_tolerance(dimension: int) -> float:
    """What rounding leaves of a conditional variance, or of an eigenvalue, of a correlation matrix that is zero."""
    return 4 * dimension * torch.finfo(torch.float64).eps


def _condition_number(correlation: Tensor) -> Tensor:
    """Largest over smallest nonzero eigenvalue `[B]`; infinite where an eigenvalue is negative beyond rounding."""
    eigenvalues = torch.linalg.eigvalsh(correlation)
    smallest, largest = eigenvalues[:, 0], eigenvalues[:, -1]
    zero = torch.maximum(_rank_tolerance(correlation.shape[1]) * largest, smallest.abs() * (smallest < 0))
    smallest_nonzero = torch.where(eigenvalues > zero[:, None], eigenvalues, math.inf).amin(1)
    return torch.where(smallest < -_INDEFINITE, math.inf, largest / smallest_nonzero)


@dataclass(frozen=True)
class _Rows:
    """Problems ready for integration: the likeliest event `Z_k > u_k` first, the number `size` of events that count."""

    bounds: Tensor  # [B, K]
    correlation: Tensor  # [B, K, K]
    size: Tensor  # [B]
    dropped: Tensor  # [B], bound on what the events left out contribute
    union: Tensor  # [B], whether the complement is integrated


def _plan(bounds: Tensor, correlation: Tensor, tolerance: float) -> _Rows:
    bounds, order = bounds.sort(dim=1, stable=True)
    correlation = correlation.take_along_dim(order[:, :, None], 1).take_along_dim(order[:, None, :], 2)
    tail = _normal_cdf(-bounds)
    rarer = torch.zeros_like(tail)  # sum of the tails of all later events
    rarer[:, :-1] = tail.flip(1).cumsum(1).flip(1)[:, 1:]
    size = 1 + (rarer > _SHARE * tolerance * tail[:, :1]).sum(1)
    dropped = rarer.take_along_dim(size[:, None] - 1, 1)[:, 0]
    union = (bounds[:, 0] > 0) & (tail.sum(1) * size.sqrt() < _UNION_BOUND)
    return _Rows(bounds, correlation, size, dropped, union)


def _affordable(wanted: Tensor, size: int, max_nodes: int) -> Tensor:
    """Which rows `[B, 1]` may have their `wanted` integrals on the lattice of this size; all on the smallest one."""
    return (size * _SHIFTS * wanted.sum(1, keepdim=True) <= max_nodes) | (size == min(_LATTICES))


def _terms(rows: _Rows) -> Tensor:
    """Which integrals `[B, terms]` a row is the sum of: one if direct, over `size` variables, and one per event `k` of
    a union, over variables `0..k`."""
    count = torch.where(rows.union, rows.size, 1)
    return torch.arange(rows.bounds.shape[1], device=count.device) < count[:, None]


def _summarise(rows: _Rows, integrals: Tensor, tolerance: float) -> tuple[Tensor, Tensor, Tensor]:
    """Value, complement and their error, each `[B]`."""
    by_shift = integrals.sum(1)
    total = by_shift.mean(1).clamp(0.0, 1.0)
    rest = 1 - total
    unseen = torch.where(rows.size > 1, _SHARE * tolerance + 1e-13, 0.0) * torch.minimum(total, rest)
    error = _STUDENT / math.sqrt(_SHIFTS) * _deviation(by_shift) + rows.dropped + unseen
    return torch.where(rows.union, rest, total), torch.where(rows.union, total, rest), error


def _deviation(by_shift: Tensor) -> Tensor:
    """Standard deviation over the last dimension, in units of the largest number because 1e-200 has no square."""
    unit = by_shift.amax(-1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    centred = by_shift / unit - (by_shift / unit).mean(-1, keepdim=True)
    return (centred.square().sum(-1) / (_SHIFTS - 1)).sqrt() * unit[..., 0]


def _influential(integrals: Tensor) -> Tensor:
    """The terms `[B, terms]` of each row whose spread is not small beside that of its worst term."""
    spread = _deviation(integrals)
    return (spread > 0) & (spread >= _SMALL_SPREAD * spread.amax(1, keepdim=True))


def _integrate_terms(rows: _Rows, wanted: Tensor, size: int, seed: int) -> Tensor:
    """The integrals `wanted [B, terms]`, in the order of `wanted.nonzero()`, for each shift: `[T, shifts]`."""
    row, event = wanted.nonzero(as_tuple=True)
    dimension = torch.where(rows.union[row], event + 1, rows.size[row])
    integrals = torch.zeros(len(row), _SHIFTS, dtype=torch.float64, device=row.device)
    for width, problems in _by_width(dimension, rows.bounds.shape[1]):
        bounds, correlation = _problem(rows, row[problems], dimension[problems], width)
        integrals[problems] = _integrate(_factorise(bounds, correlation), size, seed)
    return integrals


def _by_width(dimension: Tensor, widest: int) -> Iterator[tuple[int, Tensor]]:
    """Indices of problems of like dimension, in portions that fit into memory, with the width they are padded to."""
    widths = [*(width for width in _SIZES if width < widest), widest]
    narrower = 0
    for width in widths:
        problems = ((dimension > narrower) & (dimension <= width)).nonzero()[:, 0]
        narrower = width
        if len(problems):
            yield from ((width, part) for part in problems.split(max(1, _FACTOR_NUMBERS // width**2)))


def _problem(rows: _Rows, row: Tensor, dimension: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Bounds `[T, width]` and correlations `[T, width, width]`; the last event of a union term is turned round."""
    position = torch.arange(width, device=row.device)
    inside = position < dimension[:, None]
    last = (position == dimension[:, None] - 1) & rows.union[row, None]
    sign = torch.where(last, -1.0, 1.0).double()
    bounds = torch.where(inside, rows.bounds[row, :width] * sign, math.inf)
    correlation = rows.correlation[row, :width, :width] * (sign[:, :, None] * sign[:, None, :])
    return bounds, correlation


@dataclass(frozen=True)
class _Limits:
    """Limits on the variable of one step: `bound_i - slope_i w`, over `M` constraints, `w` the earlier variables."""

    bound: Tensor  # [T, M]
    slope: Tensor  # [T, M, j]

    def select(self, problems: slice) -> _Limits:
        return _Limits(self.bound[problems], self.slope[problems])

    def at(self, earlier: Tensor) -> Tensor:
        """Every limit at the nodes: `earlier [T, j, N]` gives `[T, M, N]`, or `[T, M, 1]` where `j = 0`."""
        if earlier.shape[1] == 0:
            return self.bound[:, :, None]
        return torch.baddbmm(self.bound[:, :, None], self.slope, earlier, alpha=-1)


@dataclass(frozen=True)
class _Step:
    """One variable of the separated integral: below every `upper` limit and, where rank was lost, above `lower`."""

    upper: _Limits
    lower: _Limits | None

    def select(self, problems: slice) -> _Step:
        return _Step(self.upper.select(problems), None if self.lower is None else self.lower.select(problems))


def _factorise(bounds: Tensor, correlation: Tensor) -> list[_Step]:
    """Pivoted Cholesky factor of `Z = L w`, as limits on each `w_j` given the earlier ones.

    The pivot is the constraint least likely to hold when the earlier variables stand at their conditional means
    (Gibson, Glasbey and Elston). Every constraint with no conditional variance left after step `j` is a limit on `w_j`,
    the last variable that it contains (Genz and Kwong): the pivot itself, and those that rank reduction removes.
    """
    problems = torch.arange(len(bounds), device=bounds.device)
    tolerance = _rank_tolerance(bounds.shape[1])
    factor = torch.zeros_like(correlation)
    variance = torch.ones_like(bounds)
    slack = bounds.clone()  # bound less the conditional mean
    free = bounds < math.inf
    steps: list[_Step] = []
    while free.any():
        j = len(steps)
        deviation = variance.clamp_min(tolerance).sqrt()
        pivot = torch.where(free, slack / deviation, math.inf).argmin(1)
        root = deviation[problems, pivot]
        known = (factor[:, :, :j] @ factor[problems, pivot, :j, None])[:, :, 0]
        column = torch.where(free, (correlation[problems, pivot] - known) / root[:, None], 0.0)
        column[problems, pivot] = torch.where(free[problems, pivot], root, 0.0)
        factor[:, :, j] = column
        variance = (variance - column**2).index_put((problems, pivot), variance.new_zeros(()))
        fixed = free & (variance <= tolerance)
        free = free & ~fixed
        above, below = fixed & (column > 0), fixed & (column < 0)
        steps.append(_Step(_limits(above, bounds, factor, j, math.inf), _lower_limits(below, bounds, factor, j)))
        centre = _truncated_mean(
            torch.where(below, slack / column, -math.inf).amax(1), torch.where(above, slack / column, math.inf).amin(1)
        )
        slack = torch.where(free, slack - column * centre[:, None], slack)
    return steps


def _lower_limits(mask: Tensor, bounds: Tensor, factor: Tensor, j: int) -> _Limits | None:
    return _limits(mask, bounds, factor, j, -math.inf) if mask.any() else None


def _limits(mask: Tensor, bounds: Tensor, factor: Tensor, j: int, absent: float) -> _Limits:
    """The constraints in `mask [T, K]`, solved for variable `j`; `absent` pads problems that have fewer."""
    present, chosen = mask.to(torch.uint8).topk(int(mask.sum(1).max()), dim=1)
    present = present.bool()
    row = factor[:, :, : j + 1].take_along_dim(chosen[:, :, None], 1)
    scale = torch.where(present, row[:, :, j], 1.0)
    bound = torch.where(present, bounds.take_along_dim(chosen, 1) / scale, absent)
    return _Limits(bound, torch.where(present[:, :, None], row[:, :, :j] / scale[:, :, None], 0.0))


def _truncated_mean(low: Tensor, high: Tensor) -> Tensor:
    """Mean of a standard normal variable between `low` and `high`, good enough to choose the next pivot."""
    mass = _normal_cdf(high) - _normal_cdf(low)
    density = (torch.exp(-0.5 * low**2) - torch.exp(-0.5 * high**2)) / math.sqrt(2 * math.pi)
    mean = torch.where(mass > 0, density / mass, 0.0)
    return torch.minimum(torch.maximum(mean, low), high).clamp(-1e300, 1e300)


def _integrate(steps: list[_Step], size: int, seed: int) -> Tensor:
    """Mean of the separated integrand over the lattice, for each shift: `[T, shifts]`."""
    device = steps[0].upper.bound.device
    problems = len(steps[0].upper.bound)
    numbers = _NODE_NUMBERS.get(device.type, _NODE_NUMBERS["cpu"]) // len(steps)
    total = torch.zeros(problems, _SHIFTS, dtype=torch.float64, device=device)
    shifts = torch.from_numpy(np.random.default_rng([seed, size]).random((len(steps), _SHIFTS))).to(device)
    for index in torch.arange(size, device=device).split(max(1, numbers // _SHIFTS)):
        width = max(1, numbers // (_SHIFTS * len(index)))
        coordinate = partial(_coordinate, index, shifts, size)
        for part in (slice(start, start + width) for start in range(0, problems, width)):
            integrand = _integrand([step.select(part) for step in steps], coordinate, _SHIFTS * len(index))
            total[part] += integrand.unflatten(1, (_SHIFTS, -1)).sum(2)
    return total / size


def _coordinate(index: Tensor, shifts: Tensor, size: int, j: int) -> Tensor:
    """Coordinate `j` of the points `index` of each shifted lattice, folded by the tent: `[shifts * points]`."""
    points = index * _generating_vector(size, len(shifts))[j] % size / size
    return (2 * (points + shifts[j, :, None]).frac() - 1).abs().flatten()


def _integrand(steps: list[_Step], coordinate: Callable[[int], Tensor], nodes: int) -> Tensor:
    """Product of the conditional probabilities of all steps at each node `[T, nodes]`."""
    problems = len(steps[0].upper.bound)
    variables = steps[0].upper.bound.new_empty(problems, len(steps) - 1, nodes)
    product = variables.new_ones(problems, nodes)
    for j, step in enumerate(steps):
        cdf = _normal_cdf if j == 0 else _normal_cdf_at_nodes
        high = step.upper.at(variables[:, :j]).amin(1)
        if step.lower is None:
            below, mass, turned = 0.0, cdf(high), None
        else:
            low = step.lower.at(variables[:, :j]).amax(1)
            turned = low > 0  # reflect into the lower tail, where the difference keeps its relative precision
            low, high = torch.where(turned, -high, low), torch.where(turned, -low, high)
            below = cdf(low)
            mass = (cdf(high) - below).clamp_min(0.0)
        product *= mass
        if j < len(steps) - 1:
            quantile = torch.special.ndtri((coordinate(j) * mass + below).clamp(1e-307, 1 - 1e-16))
            variables[:, j] = quantile if turned is None else torch.where(turned, -quantile, quantile)
    return product


def _normal_cdf(x: Tensor) -> Tensor:
    """Standard normal distribution function, at full relative precision in the lower tail."""
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


def _normal_cdf_at_nodes(x: Tensor) -> Tensor:
    """The same to a relative 1e-13 at a third of the cost: `torch.special.ndtr` cancels only in the lower tail."""
    probability = torch.special.ndtr(x)
    tail = x < -3
    if tail.any():
        probability[tail] = _normal_cdf(x[tail])
    return probability


@lru_cache(maxsize=64)
def _generating_vector(size: int, dimension: int) -> list[int]:
    """Generating vector of a rank-1 lattice of prime `size`, by fast component-by-component construction.

    Minimises the worst-case error in the Korobov space of smoothness 2 with product weights `1 / j^2`; a lattice point
    and its mirror image count alike, so half the multiplicative group is searched.
    Source: D. Nuyens, R. Cools, Fast algorithms for component-by-component construction of rank-1 lattice rules,
    Math. Comp. 75 (2006), sec. 4.
    """
    half = (size - 1) // 2
    powers = [pow(_LATTICES[size], exponent, size) for exponent in range(half)]
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
