"""Probability that a normal vector is positive in every coordinate, with its complement and the error of both.

Write `u_k = m_k / sqrt(S_kk)` and `R` for the correlation matrix, so that `P(X > 0) = P(Z < u)` with `Z ~ N(0, R)`. Two
forms are integrated by the same routine, whichever is the more accurate for a row:

- *direct*: `P(Z < u)`;
- *union*: `1 - P = sum_k P(Z_k > u_k and Z_j < u_j for all j < k)`, the rarest event last. Its first term is a closed
  form and every further one is below its own tail, so that the relative error stays bounded however rare the union is.

Where closed forms of its events and of pairs of them bound a union closely enough, nothing is integrated.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import torch
from scipy import special
from torch import Tensor

from brittle.errors import ParameterError
from brittle.orthant.separation import LATTICES, SHIFTS, factorise, integrate, normal_cdf, rank_tolerance

_STUDENT = float(special.stdtrit(SHIFTS - 1, 0.99995))  # 99.99% nominal: the spread has heavier tails than a normal one
_SHARE = 0.01  # of the tolerance: what events too rare to be integrated may use up, and what no spread can promise
_UNION_BOUND = 8.0  # in `_plan`: a union is integrated while the sum of its tails is below this over sqrt(size)
_SMALL_SPREAD = 0.2  # terms of a union with a smaller share of the largest spread are not refined
_INDEFINITE = 1e-3  # a correlation matrix with an eigenvalue below minus this is not one, even after rounding
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)  # problems are padded up to these
_FEW_NUMBERS = 2**13  # numbers of all problems that are padded to the largest of them
_FACTOR_NUMBERS = 2**21  # numbers held at once by the factorisation
_RANK_REDUCTION_ERROR = 1e-7
_NEARLY_ONE = 1e-9  # correlations of two variables this near to 1 or -1 are left to the reduction of rank
_PAIRED_UP_TO = 8  # events whose pairs take less time than an integral
_PAIRED_FROM = (
    5e-3  # tolerance from which bounds by pairs serve: below it an integral is mostly far nearer than asked for
)
_PAIR_ERROR = 1e-15  # absolute, of the closed form of a pair
ILL_CONDITIONED_ABOVE = 1e12  # condition number above which the error includes that of the rank reduction


@dataclass(frozen=True)
class OrthantProbability:
    """Orthant probabilities of a batch; every field has shape `[B]`.

    Attributes:
        value: `P(X > 0)`, float64.
        complement: `1 - P(X > 0)`, float64, at full relative precision however small; 0 below 1e-307.
        error: absolute error of `value` and of `complement` alike, float64; see `orthant_probability`.
        condition: condition number of the correlation matrix over its nonzero eigenvalues, float64; infinite where the
            matrix has a negative eigenvalue that rounding cannot explain.
        nodes: nodes spent on the hardest integral of the row, over all lattices, int64; 0 where nothing was or could
            be integrated.
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
    its mean is, and makes the probability 0 otherwise. One coordinate, or several of rank one, is a closed form, and so
    are two (Owen's T function), exact to rounding. Where up to 8 events count, with tails `t_k` from the likeliest and
    probabilities `p_jk` of two of them together, the complement lies between `sum_k max(0, t_k - sum_{j<k} p_jk)` and
    `sum_k (t_k - max_{j<k} p_jk)` (Hunter): where half their distance is within a tolerance of 0.005 or more it is
    their mean, and the error half their distance.

    Of an integral the error is the 99.99% Student half-width over 8 independent shifts, plus a hundredth of the
    tolerance, relative to the smaller of the two probabilities, where more than one coordinate counts. The shifts are
    few, their spread is not normal and the number of nodes follows it, so what the error promises is to cover the error
    made in at least 99% of problems. A row starts on the largest lattice of at most `K^2 / 4` points, because the
    spread over fewer says little, and goes on to larger ones, every node counting, until `error <= tolerance *
    complement` or `max_nodes` is reached, so that for a tiny probability the tolerance is absolute. Where the condition
    number exceeds 1e12, the 1e-7 that rank reduction itself may neglect is part of the error.

    A row depends on its own mean, covariance and `seed` alone; no global random state is read or changed.

    References:
        A. Genz, Numerical computation of multivariate normal probabilities, J. Comp. Graph. Stat. 1 (1992), sec. 2.
        D. Hunter, An upper bound for the probability of a union, J. Appl. Prob. 13 (1976).
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
        max_nodes: most nodes of one lattice that a row may take, over all its integrals; the smallest lattice, of 248
            nodes an integral, is always used.

    Returns:
        The probabilities on the device of `mean`. A row with a NaN or an infinity is NaN in every float field; a row
        whose correlation matrix has an eigenvalue below -1e-3 is NaN with an infinite `condition`.

    Raises:
        ParameterError: wrong shapes or dtypes, a covariance that is not symmetric or has a negative variance, a
            tolerance that is not positive, a negative seed.
    """
    finite = _check(mean, covariance, tolerance, seed)
    bounds, correlation = _standardise(mean.double(), covariance.double(), finite)
    condition = _condition_number(correlation)
    rows = _plan(bounds, correlation, tolerance)

    usable = finite & condition.isfinite()
    low, high = _bound_by_pairs(rows)
    complement, error = (low + high) / 2, (high - low) / 2 + rows.dropped
    value = torch.where(rows.size == 1, normal_cdf(rows.bounds[:, 0]), 1 - complement)
    smaller = torch.where(rows.union, complement, torch.minimum(value, complement))
    bounded = (error <= tolerance * smaller) & (tolerance >= _PAIRED_FROM)
    integrated = (usable & ~bounded).nonzero().flatten()
    nodes = torch.zeros_like(rows.size)
    if len(integrated):
        parts = _integrate_rows(rows.only(integrated), tolerance, seed, max_nodes)
        for field, part in zip((value, complement, error, nodes), parts, strict=True):
            field[integrated] = part
    error = torch.where(condition > ILL_CONDITIONED_ABOVE, error + _RANK_REDUCTION_ERROR, error)
    if bounds.shape[1] == 2:  # neither certain nor nearly one
        exact = usable & bounds.isfinite().all(dim=1) & (correlation[:, 0, 1].abs() < 1 - _NEARLY_ONE)
        value[exact], complement[exact] = _both_below(bounds[exact], correlation[exact, 0, 1])
        error[exact], nodes[exact] = 8 * torch.finfo(torch.float64).eps * complement[exact], 0
    value, complement, error = (torch.where(usable, field, math.nan) for field in (value, complement, error))
    return OrthantProbability(value, complement, error, torch.where(finite, condition, math.nan), nodes)


def without_rounding(covariance: Tensor, scale: Tensor) -> Tensor:
    """`covariance` `[..., K, K]` with the rows and columns zero whose variance is no more than rounding. `scale`
    `[..., K]` is the size of the terms of which each variance was computed as a difference or a sum."""
    certain = covariance.diagonal(dim1=-2, dim2=-1) <= 64 * torch.finfo(torch.float64).eps * scale
    return covariance.masked_fill(certain[..., :, None] | certain[..., None, :], 0.0)


def _check(mean: Tensor, covariance: Tensor, tolerance: float, seed: int) -> Tensor:
    """Return which rows are finite, `[B]`; raise where these have another shape, kind or value than expected."""
    if mean.ndim != 2 or mean.shape[1] == 0 or covariance.shape != (*mean.shape, mean.shape[-1]):
        shapes = f"{tuple(mean.shape)} and {tuple(covariance.shape)}"
        raise ParameterError(f"expected mean [B, K] and covariance [B, K, K] with K > 0; found {shapes}")
    if not (mean.is_floating_point() and covariance.is_floating_point()):
        raise ParameterError(f"expected floating tensors; found {mean.dtype} and {covariance.dtype}")
    if not 0 < tolerance < math.inf or seed < 0:
        raise ParameterError(f"expected a tolerance above 0 and a seed from 0; found {tolerance} and {seed}")
    finite = mean.isfinite().all(1) & covariance.isfinite().flatten(1).all(1)
    variance = covariance.diagonal(dim1=1, dim2=2)
    for row in (finite & (variance < 0).any(1)).nonzero().flatten().tolist():
        raise ParameterError(f"row {row} has a variance of {float(variance[row].min()):.3g}")
    largest, skew = covariance.abs().amax((1, 2)), (covariance - covariance.mT).abs().amax((1, 2))
    rounding = max(1e-5, 4 * torch.finfo(covariance.dtype).eps)
    for row in (finite & (skew > rounding * largest)).nonzero().flatten().tolist():
        skewness = f"|S - S^T| reaches {float(skew[row]):.3g} where |S| reaches {float(largest[row]):.3g}"
        raise ParameterError(f"the covariance of row {row} is not symmetric: {skewness}")
    return finite


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
    is_random_pair = random[:, :, None] & random[:, None, :]
    return bounds, torch.where(is_random_pair & (eye == 0), correlation, eye)


def _condition_number(correlation: Tensor) -> Tensor:
    """Largest over smallest nonzero eigenvalue `[B]`; infinite where an eigenvalue is negative beyond rounding."""
    eigenvalues = torch.linalg.eigvalsh(correlation)
    smallest, largest = eigenvalues[:, 0], eigenvalues[:, -1]
    zero = torch.maximum(rank_tolerance(correlation.shape[1]) * largest, smallest.abs() * (smallest < 0))
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

    def only(self, rows: Tensor) -> _Rows:
        """Return the problems at the positions `rows`."""
        return _Rows(*(getattr(self, part.name)[rows] for part in fields(self)))


def _plan(bounds: Tensor, correlation: Tensor, tolerance: float) -> _Rows:
    bounds, order = bounds.sort(dim=1, stable=True)
    correlation = correlation.take_along_dim(order[:, :, None], 1).take_along_dim(order[:, None, :], 2)
    tail = normal_cdf(-bounds)
    rarer = torch.zeros_like(tail)  # sum of the tails of all later events
    rarer[:, :-1] = tail.flip(1).cumsum(1).flip(1)[:, 1:]
    size = 1 + (rarer > _SHARE * tolerance * tail[:, :1]).sum(1)
    dropped = rarer.take_along_dim(size[:, None] - 1, 1)[:, 0]
    union = (bounds[:, 0] > 0) & (tail.sum(1) * size.double().sqrt() < _UNION_BOUND)
    return _Rows(bounds, correlation, size, dropped, union)


def _bound_by_pairs(rows: _Rows) -> tuple[Tensor, Tensor]:
    """Return bounds `[B]` of the probability of the union of the events, from these and pairs of them; 0 and 1 where
    these are too many, certain or nearly alike.

    Far out in the tail, where the closed form of a pair loses its digits, it is at most `P(Z_j + Z_k > u_j + u_k)`.
    """
    width = min(_PAIRED_UP_TO, rows.bounds.shape[1])
    counts = torch.arange(width, device=rows.size.device) < rows.size[:, None]
    counts &= ((rows.size <= width) & rows.bounds[:, 0].isfinite())[:, None]
    pairs = (counts[:, :, None] & counts[:, None]).tril(-1)
    alike = (pairs & (rows.correlation[:, :width, :width].abs() >= 1 - _NEARLY_ONE)).any(2).any(1)
    counts, pairs = counts & ~alike[:, None], pairs & ~alike[:, None, None]
    row, later, earlier = pairs.nonzero(as_tuple=True)
    tails = torch.where(counts, normal_cdf(-rows.bounds[:, :width]), 0.0)
    h, k, r = rows.bounds[row, later], rows.bounds[row, earlier], rows.correlation[row, later, earlier]
    both = torch.from_numpy(_owen(*((-h).cpu().numpy(), (-k).cpu().numpy(), r.cpu().numpy()))).to(tails)
    most = torch.minimum(normal_cdf(-(h + k) / (2 + 2 * r).sqrt()), tails[row, later])
    least_both, most_both = torch.zeros(2, *pairs.shape, dtype=torch.float64, device=tails.device)
    least_both[pairs] = (both - _PAIR_ERROR).clamp_min(0.0).minimum(most)
    most_both[pairs] = (both + _PAIR_ERROR).minimum(most)
    low = (tails - most_both.sum(2)).clamp_min(0.0).sum(1)
    high = (tails - least_both.amax(2)).sum(1).clamp_max(1.0)
    return low, high.where(counts[:, 0], 1.0)


def _integrate_rows(rows: _Rows, tolerance: float, seed: int, max_nodes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the value, complement and their error, and the nodes of the hardest integral, each `[B]`."""
    # Integrals `[B, terms]` that a row sums: one over `size` variables if direct, else one per event `k`, over `0..k`.
    count = torch.where(rows.union, rows.size, 1)
    is_active = torch.arange(rows.bounds.shape[1], device=count.device) < count[:, None]
    sums = torch.zeros(*is_active.shape, SHIFTS, dtype=torch.float64, device=count.device)
    node_counts = torch.zeros_like(is_active, dtype=torch.int64)  # nodes of each integral and shift
    # The spread over far fewer points than pairs says little.
    initial = torch.minimum(rows.size**2 // 4, max_nodes // (SHIFTS * count))
    for size, larger in pairwise((*LATTICES, sys.maxsize)):
        affordable = size * SHIFTS * is_active.sum(1, keepdim=True) <= max_nodes
        is_active &= affordable | (size == min(LATTICES))
        now = is_active & (initial < larger)[:, None]
        if not now.any():
            continue
        sums[now] += size * _integrate_terms(rows, now, size, seed)
        node_counts[now] += size
        integrals = sums / node_counts.clamp_min(1)[:, :, None]
        _, complement, error = _summarise(rows, integrals, tolerance)
        # The terms whose spread is not small beside that of the worst one.
        spread = _deviation(integrals)
        influential = (spread > 0) & (spread >= _SMALL_SPREAD * spread.amax(1, keepdim=True))
        unfinished = influential & (error > tolerance * complement)[:, None]
        is_active = torch.where(now.any(1, keepdim=True), unfinished, is_active)
    integrals = sums / node_counts.clamp_min(1)[:, :, None]
    return *_summarise(rows, integrals, tolerance), node_counts.amax(1) * SHIFTS


def _summarise(rows: _Rows, integrals: Tensor, tolerance: float) -> tuple[Tensor, Tensor, Tensor]:
    """Value, complement and their error, each `[B]`."""
    by_shift = integrals.sum(1)
    total = by_shift.mean(1).clamp(0.0, 1.0)
    survival = 1 - total
    unseen = (_SHARE * tolerance + 1e-13) * torch.where(rows.size > 1, torch.minimum(total, survival), 0.0)
    error = _STUDENT / math.sqrt(SHIFTS) * _deviation(by_shift) + rows.dropped + unseen
    return torch.where(rows.union, survival, total), torch.where(rows.union, total, survival), error


def _deviation(by_shift: Tensor) -> Tensor:
    """Return standard deviations over the last axis, in units of the largest number, as 1e-200 has no square."""
    unit = by_shift.amax(-1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    centred = by_shift / unit - (by_shift / unit).mean(-1, keepdim=True)
    return (centred.square().sum(-1) / (SHIFTS - 1)).sqrt() * unit[..., 0]


def _integrate_terms(rows: _Rows, is_active: Tensor, size: int, seed: int) -> Tensor:
    """Return the integrals that are active, `[B, terms]`, in the order of `nonzero`, for each shift: `[T, shifts]`."""
    row, event = is_active.nonzero(as_tuple=True)
    dimension = torch.where(rows.union[row], event + 1, rows.size[row])
    likeliest = rows.bounds[row, 0]  # of one variable, the normal distribution function
    integrals = normal_cdf(torch.where(rows.union[row], -likeliest, likeliest))[:, None].repeat(1, SHIFTS)
    narrower, widest = 1, max([1, *dimension.tolist()])
    several = len(dimension) * widest**2 > _FEW_NUMBERS  # a call on few takes longer than their padding
    for width in (*(width for width in _SIZES if several and width < widest), widest):
        problems = ((dimension > narrower) & (dimension <= width)).nonzero()[:, 0]
        narrower = width
        for part in problems.split(max(1, _FACTOR_NUMBERS // width**2)) if len(problems) else ():
            bounds, correlation = _problem(rows, row[part], dimension[part], width)
            integrals[part] = integrate(factorise(bounds, correlation), size, seed)
    return integrals


def _problem(rows: _Rows, row: Tensor, dimension: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Bounds `[T, width]` and correlations `[T, width, width]`; the last event of a union term is turned round."""
    position = torch.arange(width, device=row.device)
    inside = position < dimension[:, None]
    last = (position == dimension[:, None] - 1) & rows.union[row, None]
    sign = torch.where(last, -1.0, 1.0).double()
    bounds = torch.where(inside, rows.bounds[row, :width] * sign, math.inf)
    return bounds, rows.correlation[row, :width, :width] * (sign[:, :, None] * sign[:, None, :])


def _both_below(bounds: Tensor, correlation: Tensor) -> tuple[Tensor, Tensor]:
    """`P(Z_1 < h, Z_2 < k)` and its complement `P(Z_1 > h) + P(Z_2 > k) - P(Z_1 > h, Z_2 > k)`, `[B]` each.

    Exact to rounding: the first as an absolute number, the second relative to itself, however small.

    Source: D. B. Owen, Tables for computing bivariate normal probabilities, Ann. Math. Statist. 27 (1956), section 2.
    """
    h, k = (bound.cpu().numpy() for bound in bounds.unbind(dim=1))
    r = correlation.cpu().numpy()
    value = _owen(h, k, r)
    complement = special.ndtr(-h) + special.ndtr(-k) - _owen(-h, -k, r)
    probability, beside = (torch.from_numpy(np.clip(values, 0.0, 1.0)).to(bounds) for values in (value, complement))
    return probability, beside


def _owen(h: np.ndarray, k: np.ndarray, r: np.ndarray) -> np.ndarray:
    """`(Phi(h) + Phi(k)) / 2 - T(h, (k - r h) / (h s)) - T(k, (h - r k) / (k s))`, `s^2 = 1 - r^2`, less one half
    where the bounds have different signs."""
    h, k = h + 0.0, k + 0.0  # -0 becomes 0, whose sign decides a quarter
    root = np.sqrt((1 - r) * (1 + r))
    with np.errstate(divide="ignore", invalid="ignore"):
        owen_h, owen_k = special.owens_t(h, (k - r * h) / (h * root)), special.owens_t(k, (h - r * k) / (k * root))
    apart = (h * k < 0) | ((h * k == 0) & (h + k < 0))
    probability = (special.ndtr(h) + special.ndtr(k)) / 2 - owen_h - owen_k - np.where(apart, 0.5, 0.0)
    return np.where((h == 0) & (k == 0), 0.25 + np.arcsin(r) / (2 * math.pi), probability)
