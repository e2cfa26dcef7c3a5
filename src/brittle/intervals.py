"""Intervals at a stated confidence: of a binomial proportion, of the mean of bounded numbers, and Student ones."""

from __future__ import annotations

from functools import cache, reduce
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from brittle.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor

BISECTIONS = 60  # halvings in the search for the end of an interval, which then is right to double precision
HALVINGS = 24  # the same where a ten millionth of the mean is enough
SURE = 1.645  # deviations beyond which a normal number lies with probability 0.05
MOST_ENDS = 100_000  # ends of intervals that are kept
BETS, SMALLEST_BET, SHRINK = (1.0, 0.9, 0.7), 0.3, 1 / 3  # on a mean, down to about `SMALLEST_BET / sqrt(n)`

SHIFTS = 0.44 ** np.arange(1.0, 11.0)
"""Distances of the alternatives below a proportion, as differences of `arcsin sqrt(p)`. The first three decide 0.9
within 1,000 trials, the last a proportion within ten million."""

WEIGHTS = np.array([0.4, 0.25, 0.25, *(0.1 * 0.5 ** np.arange(1.0, 8.0))])  # of these, below 1 in sum


def check_confidence(confidence: float) -> None:
    """Raise unless `0 < confidence < 1`."""
    if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
        raise ParameterError(f"the confidence must lie between 0 and 1; found {confidence!r:.60}")


def check_share(name: str, value: object) -> None:
    """Raise unless `value` is None or a number strictly between 0 and 1, such as a limit of `p_robust`."""
    if value is not None and not (isinstance(value, Real) and 0.0 < float(value) < 1.0):
        raise ParameterError(f"{name} must be a number between 0 and 1; found {value!r:.40}")


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, confidence: float) -> tuple[NDArray, NDArray]:
    """Exact interval `(low, high)` of a binomial proportion, from `k` successes in `n >= 1` trials.

    `low = B(a/2; k, n-k+1)` and `high = B(1-a/2; k+1, n-k)`, quantiles of the beta distribution, `a = 1 - confidence`;
    0 and 1 at the ends. Valid for independent trials at every proportion; never below the stated confidence.
    Source: C. Clopper, E. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934).
    """
    check_confidence(confidence)
    k, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    tail = (1.0 - confidence) / 2.0
    low = np.where(k > 0, special.betaincinv(np.maximum(k, 1.0), n - k + 1.0, tail), 0.0)
    high = np.where(k < n, special.betainccinv(k + 1.0, np.maximum(n - k, 1.0), tail), 1.0)
    return low, high


def paired_proportion(
    single: ArrayLike, double: ArrayLike, pairs: ArrayLike, confidence: float
) -> tuple[NDArray, NDArray]:
    """Exact interval of a proportion from antithetic pairs of trials, whose two members depend on each other.

    With `r = P(at least one success)` and `s = P(two successes)` the proportion is `(r + s) / 2`. Both are binomial
    proportions over independent pairs; their Clopper-Pearson intervals at confidence `1 - (1 - confidence) / 2` hold
    together with the stated confidence (Bonferroni), for any dependence within a pair. No interval that ignores it is
    valid: a function that is even in the noise succeeds on both members or on neither. `single` counts the pairs with
    exactly one success, `double` those with two.
    """
    check_confidence(confidence)
    part_confidence = 1.0 - (1.0 - confidence) / 2.0
    any_low, any_high = clopper_pearson(np.add(single, double), pairs, part_confidence)
    both_low, both_high = clopper_pearson(double, pairs, part_confidence)
    return (any_low + both_low) / 2.0, (any_high + both_high) / 2.0


def log_evidence_below(successes: ArrayLike, trials: ArrayLike, proportion: ArrayLike) -> NDArray:
    """Return the log evidence in a sequence of trials that its proportion of successes is below `proportion`.

    `log sum_j w_j (p_j / q)^k ((1 - p_j) / (1 - q))^(n - k)`, `q` the proportion: a weighted sum of likelihood ratios.
    The alternatives `p_j = sin^2(arcsin sqrt(q) - d_j)`, or 0 where `d_j` is the larger, lie the distances `d_j` of
    `SHIFTS` below `q` on the scale on which proportions are equally hard to tell apart. While the true proportion is
    `q` or more, the sum is a nonnegative supermartingale that starts at 1 at most, so the probability that it ever
    reaches `1/a` is at most `a`, at whatever trial one looks and stops (Ville's inequality). It grows with `q`, as each
    term does: `p_j / q` grows, and so does `(1 - p_j) / (1 - q)`.

    It is below 0 where the trials speak against it.

    Source: H. Robbins, Statistical methods related to the law of the iterated logarithm, Ann. Math. Stat. 41 (1970);
    S. Howard et al., Time-uniform, nonparametric, nonasymptotic confidence sequences, Ann. Stat. 49 (2021), section 3.
    The alternatives and their weights are the choice of `research/benchmarks/draws_by_need.py`.
    """
    k, n, q = (np.asarray(argument, float)[..., None] for argument in (successes, trials, proportion))
    below = np.sin(np.maximum(np.arcsin(np.sqrt(q)) - SHIFTS, 0.0)) ** 2
    alternative = special.xlogy(k, below) + special.xlog1py(n - k, -below)
    ratios = alternative - special.xlogy(k, q) - special.xlog1py(n - k, -q)
    largest = np.max(ratios, axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.log((np.exp(ratios - largest) * WEIGHTS).sum(axis=-1)) + largest[..., 0]


def sequence_interval(successes: ArrayLike, trials: ArrayLike, confidence: float) -> tuple[NDArray, NDArray]:
    """Interval of a binomial proportion that holds whenever one stops: all of them together, at every number of trials.

    The proportions against which `log_evidence_below`, or the same of the failures, stays under `log(2 / a)`,
    `a = 1 - confidence`. Where one looks once, at a number of trials that was chosen before, `clopper_pearson` is
    narrower: after 100 trials without a success it ends at 0.052, this at 0.056 (confidence 0.99).
    """
    check_confidence(confidence)
    k, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    level = np.log(2.0 / (1.0 - confidence))
    return 1.0 - _upper_end(n - k, n, level), _upper_end(k, n, level)


def decided(
    flips: ArrayLike, flips_without_ties: ArrayLike, draws: ArrayLike, limit: float, confidence: float
) -> NDArray:
    """Return True where `sequence_interval` of the draws that do not flip leaves `limit`, ties counted either way."""
    level = float(np.log(2.0 / (1.0 - confidence)))
    numbers, positions = np.unique(np.asarray(draws), return_inverse=True)
    most_flips, most_votes = (
        np.array([_most_successes(int(number), share, level) for number in numbers])[positions].reshape(np.shape(draws))
        for share in (1.0 - limit, limit)
    )
    return (flips <= most_flips) | (np.subtract(draws, flips_without_ties) <= most_votes)


def out_of_reach(flips: ArrayLike, draws: ArrayLike, max_draws: int, limit: float, confidence: float) -> NDArray:
    """Return True where `max_draws` will not decide either: the flips expected lie more than `SURE` predictive
    deviations from those that would, on both sides."""
    level = float(np.log(2.0 / (1.0 - confidence)))
    holds, breaks = _most_successes(max_draws, 1.0 - limit, level), max_draws - _most_successes(max_draws, limit, level)
    k, n = np.asarray(flips, float), np.asarray(draws, float)
    share, remaining = (k + 0.5) / (n + 1.0), max_draws - n
    deviation = SURE * np.sqrt(remaining * share * (1.0 - share) * (1.0 + remaining / n))
    return (k + remaining * share - holds > deviation) & (breaks - k - remaining * share > deviation)


@cache
def _most_successes(trials: int, proportion: float, level: float) -> int:
    """Return the most successes whose `log_evidence_below` reaches `level`, as do fewer; -1 where none do."""
    low, high = -1, int(trials * proportion)
    while low < high:
        middle = (low + high + 1) // 2
        is_reached = log_evidence_below(middle, trials, proportion) >= level
        low, high = (middle, high) if is_reached else (low, middle - 1)
    return low


def _upper_end(k: NDArray, n: NDArray, level: float) -> NDArray:
    """Return the proportion at which `log_evidence_below` reaches `level`, and keep it; 1 where it never does."""
    if len(_UPPER_ENDS) > MOST_ENDS:
        _UPPER_ENDS.clear()
    counts = list(zip(k.ravel().tolist(), n.ravel().tolist(), strict=True))
    if new := [pair for pair in dict.fromkeys(counts) if (*pair, level) not in _UPPER_ENDS]:
        successes, trials = np.array(new).T
        low, high = successes / np.maximum(trials, 1.0), np.ones_like(trials)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2.0
            above = log_evidence_below(successes, trials, middle) >= level
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        _UPPER_ENDS.update(zip(((*pair, level) for pair in new), high.tolist(), strict=True))
    return np.array([_UPPER_ENDS[*pair, level] for pair in counts]).reshape(k.shape)


_UPPER_ENDS: dict[tuple[float, float, float], float] = {}  # by successes, trials and level


def bounded_mean(values: Tensor, confidence: float) -> tuple[Tensor, Tensor]:
    """Interval of the mean of independent numbers in [0, 1], `[B, n]`, whatever their distribution, `[B]` each.

    A mean `m` lies below the interval where the wealth `sum_k w_k prod_i (1 + b_k (v_i / m - 1))` of bets `b_k` in
    [0, 1], with weights that sum to 1, is at least `2 / a`, `a = 1 - confidence`. While the true mean is `m` or less,
    the expected wealth is 1 at most, so that happens with probability `a / 2` at most (Markov's inequality), at any
    number of values. Half the weight lies on the bet 1, which by itself gives the end of Clopper and Pearson where all
    values are 1. The upper end is 1 less the lower one of `1 - v`.

    Source: I. Waudby-Smith, A. Ramdas, Estimating means of bounded random variables by betting, J. R. Stat. Soc. B 86
    (2024), section 4; with bets that are fixed beforehand the order of the values plays no part.
    """
    check_confidence(confidence)
    level = float(np.log(2.0 / (1.0 - confidence)))
    return _lower_mean(values, level), 1.0 - _lower_mean(1.0 - values, level)


def _lower_mean(values: Tensor, level: float) -> Tensor:
    """Return the largest mean below that of `values` whose log wealth is at least `level`, `[B]`; 0 without one."""
    bets, smallest = list(BETS), SMALLEST_BET / values.shape[1] ** 0.5
    while bets[-1] > smallest:
        bets.append(bets[-1] * SHRINK)
    shares = np.log([0.5, *[0.5 / (len(bets) - 1)] * (len(bets) - 1)]).tolist()
    low, high = values.new_zeros(len(values)), values.mean(dim=1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        gains = values / middle.clamp_min(1e-300)[:, None] - 1.0
        wealth = [(bet * gains).log1p().sum(dim=1) + share for bet, share in zip(bets, shares, strict=True)]
        excluded = reduce(lambda a, b: a.logaddexp(b), wealth) >= level
        low, high = middle.where(excluded, low), high.where(excluded, middle)
    return low


def student(count: int, confidence: float) -> float:
    """Quantile of the Student interval of a mean of `count` independent numbers, at least 2; below it that of 2."""
    return float(special.stdtrit(max(count - 1, 1), (1.0 + confidence) / 2.0))


def jackknife(left_out: ArrayLike, groups: ArrayLike, confidence: float) -> NDArray:
    """Half-width of a Student interval from a delete-one-group jackknife.

    `t_{G-1} sqrt((G-1)/G sum_g (v_g - mean v)^2)` over the `G` groups that hold data. Asymptotic: its coverage over few
    groups is what the tests measure. Source: B. Efron, The jackknife, the bootstrap and other resampling plans (1982),
    chapter 3. `left_out`, `[B, G_max]`, holds the estimates without a group, NaN without data. Below 2 it is infinite.
    """
    check_confidence(confidence)
    count = np.asarray(groups, float)
    degrees = np.maximum(count - 1.0, 1.0)
    deviations = np.asarray(left_out, float)
    mean = np.nansum(deviations, axis=-1) / np.maximum(count, 1.0)
    squares = np.nansum((deviations - mean[..., None]) ** 2, axis=-1)
    quantile = special.stdtrit(degrees, (1.0 + confidence) / 2.0)
    return np.where(count >= 2, quantile * np.sqrt(degrees / np.maximum(count, 1.0) * squares), np.inf)
