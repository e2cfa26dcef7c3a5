"""Rank correlation of two numbers per point, and its interval: Kendall's tau-b and Spearman's correlation."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from brittle.errors import ParameterError
from brittle.intervals import check_confidence, clopper_pearson, jackknife

MIN_POINTS = 10  # points below which no interval of a correlation is given: the jackknife's law holds for many
GROUPS = 50  # groups of points that the jackknife leaves out, one at a time; of fewer points each is its own group

Values = NDArray[np.float64]


class Correlation(NamedTuple):
    """A correlation of ranks over `points` with its interval; NaN within -1 and 1 where either number is constant."""

    points: int
    value: float
    low: float
    high: float
    dropped: int = 0


def paired(**sequences: ArrayLike) -> tuple[list[Values], int]:
    """Return the points at which every sequence has a number, float64 in the order given, and how many were left out.
    None and NaN are no number, infinite values are. Messages call the sequences, `[n]` each, by their names."""
    arrays = one_length(**sequences)
    is_complete = ~np.any(np.isnan(arrays), axis=0)
    return [array[is_complete] for array in arrays], int((~is_complete).sum())


def one_length(**sequences: ArrayLike) -> list[Values]:
    """Return the sequences as float64, `[n]` each, None as NaN."""
    arrays = [np.asarray(sequence, dtype=np.float64) for sequence in sequences.values()]
    if any(array.shape != arrays[0].shape[:1] for array in arrays):
        lengths = ", ".join(f"{name} {list(array.shape)}" for name, array in zip(sequences, arrays, strict=True))
        raise ParameterError(f"the arrays must hold one number per point, as many each; found {lengths}")
    return arrays


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's tau-b of two sequences: 1 for the same order, -1 for the reverse; NaN where either is constant."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return float(scipy.stats.kendalltau(x, y).statistic) if _varied(x, y) else math.nan


def kendall(x: Values, y: Values, confidence: float) -> Correlation:
    r"""Kendall's tau-b of two sequences without NaN, `[n]` each, with an interval over points.

    The interval is Student's, on the scale of `atanh(tau)`, from the jackknife over points (`jackknife_half`). Where
    all pairs agree the jackknife sees no variation; the bound is then that of the `n // 2` disjoint pairs, all of one
    kind (Clopper-Pearson). Below 10 points the interval is the whole range.
    """
    return _with_ends(kendall_tau, x, y, _bound_of_agreement(x, confidence), confidence)


def spearman(a: ArrayLike, b: ArrayLike, confidence: float) -> Correlation:
    r"""Spearman's correlation of the ranks of two numbers per point, with an interval over points.

    The interval is Student's, on the scale of `atanh(rho)`, from the jackknife over points (`jackknife_half`). Where
    the order is the same (or the reverse) throughout, the bound is that of Kendall's tau, carried over by
    `rho >= (3 tau - 1) / 2` (below tau = 0, `(tau^2 + 2 tau - 1) / 2`). Below 10 points it is the whole range.

    Validity: the interval covers the sampling of points, drawn independently, to first order in `1 / n`; error of the
    values themselves moves the correlation towards 0.

    References:
        The proof and measurement of association between two things, Charles Spearman, 1904.
        Inversions and rank correlation coefficients, James Durbin and Alan Stuart, 1951.
    """
    check_confidence(confidence)
    (x, y), _ = paired(first=a, second=b)
    tau = _bound_of_agreement(x, confidence)
    agreed = (3.0 * tau - 1.0) / 2.0 if tau >= 0.0 else (tau**2 + 2.0 * tau - 1.0) / 2.0
    return _with_ends(_rho, x, y, agreed, confidence)


def jackknife_half(statistic: Callable[..., float], *samples: NDArray, confidence: float) -> float:
    """Half-width of Student's interval of `statistic(*samples)`, by leaving out groups of points.

    Points are put into `GROUPS` groups by chance, the same every time; up to so many points, each is its own group. A
    statistic that is NaN without a group has an infinite one.

    References:
        Jackknifing U-statistics, James N. Arvesen, 1969.
    """
    size = samples[0].size
    groups = min(size, GROUPS)
    # Of sorted points, so that their order in the data does not matter.
    order = np.lexsort(samples[::-1])[np.random.default_rng(0).permutation(size)]
    group = np.empty(size, dtype=np.int64)
    group[order] = np.arange(size) % groups
    left_out = np.array([statistic(*(sample[group != out] for sample in samples)) for out in range(groups)])
    return math.inf if np.isnan(left_out).any() else float(jackknife(left_out[None, :], [groups], confidence)[0])


def _varied(x: Values, y: Values) -> bool:
    return x.size > 1 and x.min() < x.max() and y.min() < y.max()


def _rho(x: Values, y: Values) -> float:
    if not _varied(x, y):
        return math.nan
    return float(np.corrcoef(scipy.stats.rankdata(x), scipy.stats.rankdata(y))[0, 1])


def _with_ends(statistic: Callable[..., float], x: Values, y: Values, agreed: float, confidence: float) -> Correlation:
    """Return a correlation with its interval; `agreed` is its lower end where it is 1."""
    value, low, high = statistic(x, y), -1.0, 1.0
    if abs(value) > 1.0 - 1e-12 and x.size >= MIN_POINTS:
        low, high = (agreed, 1.0) if value > 0.0 else (-1.0, -agreed)
    elif not math.isnan(value) and x.size >= MIN_POINTS:
        half = jackknife_half(statistic, x, y, confidence=confidence) / (1.0 - value**2)
        low, high = (math.tanh(math.atanh(value) + side * half) for side in (-1.0, 1.0))
    return Correlation(x.size, value, low, high)


def _bound_of_agreement(values: Values, confidence: float) -> float:
    """Return the lower end of tau where all pairs are of one kind: of `n // 2` disjoint ones, those untied count."""
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    tied = float((ties * (ties - 1.0)).sum()) / max(values.size * (values.size - 1.0), 1.0)
    pairs = math.floor(values.size // 2 * (1.0 - tied))
    return 2.0 * float(clopper_pearson(pairs, pairs, confidence)[0]) - 1.0 if pairs else -1.0
