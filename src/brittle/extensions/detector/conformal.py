"""The lower bound on a probability that a surrogate predicts, from points with a known interval, and its worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated

import numpy as np
import scipy
import torch
from msgspec import Meta
from numpy.typing import NDArray
from torch import Tensor

from brittle.analysis.correlation import kendall, kendall_tau
from brittle.errors import DataError, ParameterError
from brittle.estimate import CONFIDENCE
from brittle.extensions.detector.calibration import points_needed, rank_needed
from brittle.intervals import clopper_pearson
from brittle.store.strict_json import Count, Share

LEAST_ALPHA = 1e-9  # below it more points calibrate than a file holds
FLOOR = 0.02  # added to flip probabilities before their ratio is taken, so that one near 0 has a multiple, too
COPIES = 60  # counted copies that a surrogate is compared with
Proportion = Annotated[float, Meta(ge=-1, le=1)]  # a probability, or a difference or a correlation


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Points that a surrogate has not learned from, and the lower bound that follows from them.

    $$1 - B(x) + c = q\,(1 - \hat p(x) + c), \quad q = s_{(k)}, \quad k = \lceil (1 - \alpha (1 - t)) (n + 1) \rceil$$

    with the scores `s_i = (1 - low_i + c) / (1 - p_i + c)` of the `n` points in increasing order, `p_i` the
    prediction, `low_i` the lower end of the interval of the true probability, `t` the probability `tail` with which
    such an end exceeds it, and `c` = `FLOOR`: a bound states a multiple of the predicted flip probability. `q` is at
    least 1 and at least that of every smaller sigma, which only lowers a bound, so that it falls with sigma as the
    prediction does. With fewer points than `k`, `q` is infinite and the bound 0.

    Validity: for a point exchangeable with these, at each sigma by itself (not at all of them together),
    `P(p(x) < B(x)) <= alpha` over the draw of all points and their copies. For the `low` that its own copies would
    give, `P(low < B(x)) <= alpha (1 - t)` by the ranks of exchangeable scores; and where `p(x) < B(x)`, `low <= p(x)`
    with probability `1 - t`, whatever `p(x)` is, so that `P(p(x) < B(x)) <= P(low < B(x)) / (1 - t)`. By class the same
    holds among the points predicted as each class.

    References:
        Algorithmic learning in a random world, Vladimir Vovk, Alexander Gammerman and Glenn Shafer, 2005, chapters 2
        and 4.

    Attributes:
        predictions: predicted probabilities, `[n, K]`, by a function that these points had no part in.
        low: lower ends, `[n, K]`.
        classes: predicted class, `[n]`.
        tail: probability with which a lower end exceeds the truth.
    """

    predictions: Tensor
    low: Tensor
    classes: Tensor
    tail: float

    def quantiles(self, alpha: float, *, by_class: bool = False) -> Tensor:
        """Return `q` for each sigma, `[1, K]`, or for each class that calibrates, with one more row for the classes
        behind these, `[C, K]`.

        Raises:
            DataError: no class has enough points.
        """
        scores = (1.0 + FLOOR - self.low) / (1.0 + FLOOR - self.predictions)
        classes = self.classes if by_class else torch.zeros_like(self.classes)
        quantiles = scores.new_full((int(classes.max()) + 1 + by_class, scores.shape[1]), torch.inf)
        for label in classes.unique():
            quantiles[label] = self._quantile(scores[classes == label], alpha)
        if not bool(quantiles.isfinite().any()):
            needed = points_needed(self.share(alpha))
            raise DataError(
                "too_few_points",
                f"a bound that fails with probability {alpha} needs {needed} points to calibrate on"
                f"{' of a class' if by_class else ''}; found at most {int(classes.bincount().max())}; measure more "
                f"points, or choose a larger alpha",
            )
        return quantiles

    def share(self, alpha: float) -> float:
        """Share of further points whose lower end a bound that fails with probability `alpha` stays below."""
        return round(1.0 - alpha * (1.0 - self.tail), 12)

    def _quantile(self, scores: Tensor, alpha: float) -> Tensor:
        rank = rank_needed(self.share(alpha), len(scores))
        if rank > len(scores):
            return scores.new_full(scores.shape[1:], torch.inf)
        return scores.sort(dim=0).values[rank - 1].cummax(dim=0).values.clamp_min(1.0)


def bound(predictions: Tensor, quantiles: Tensor) -> Tensor:
    """Return lower bounds `[B, K]` for predicted probabilities and their quantiles, `[B, K]` or `[1, K]` each."""
    return (1.0 + FLOOR - quantiles * (1.0 + FLOOR - predictions)).clamp_min(0.0)


def check_alpha(alpha: object) -> float:
    """Return `alpha`, which a file can hold then, if it is a number from `LEAST_ALPHA` to below 0.5."""
    if not (isinstance(alpha, Real) and LEAST_ALPHA <= float(alpha) < 0.5):
        raise ParameterError(f"alpha must lie between {LEAST_ALPHA:g} and 0.5; found {alpha!r:.60}")
    return float(alpha)


@dataclass(frozen=True)
class Worth:
    """The worth of a surrogate at one sigma, at points that it has not seen, beside the alternatives.

    Attributes:
        target: label of the flip probability.
        points: number of points.
        alpha: probability with which the bound may fail.
        tau: Kendall's tau-b between prediction and the probability that the run measured.
        tau_low: lower end of its interval.
        tau_logit_margin: Kendall's tau-b of the logit margin.
        tau_copies: the same of `COPIES` counted copies, simulated from the measured probabilities.
        error: mean absolute difference between prediction and measured probability.
        error_copies: the same of the counted copies.
        bound: mean of the lower bound.
        bound_copies: mean of the lower ends (Clopper-Pearson) of the counted copies at the same alpha.
        bound_constant: the bound of a surrogate that predicts the same for every point.
        covered: share of the points whose measured probability reaches the bound.
    """

    target: str
    points: Count
    alpha: Share
    tau: Proportion
    tau_low: Proportion
    tau_logit_margin: Proportion
    tau_copies: Proportion
    error: Proportion
    error_copies: Proportion
    bound: Proportion
    bound_copies: Proportion
    bound_constant: Proportion
    covered: Proportion

    @property
    def useful(self) -> bool:
        """True where predictions follow the truth and the mean bound lies above that of a constant."""
        return self.tau_low > 0.0 and self.bound > self.bound_constant

    def __str__(self) -> str:
        return (
            f"{self.target}: tau {self.tau:.2f} (logit margin {self.tau_logit_margin:.2f}, {COPIES} copies "
            f"{self.tau_copies:.2f}), error {self.error:.3f} ({COPIES} copies {self.error_copies:.3f}), mean bound "
            f"{self.bound:.3f} ({COPIES} copies {self.bound_copies:.3f}, one for all points "
            f"{self.bound_constant:.3f}), which {self.covered:.1%} of {self.points} points reach"
            f"{'' if self.useful else '; of no use'}"
        )


def judge(
    targets: Sequence[str],
    predictions: Tensor,
    probabilities: NDArray[np.float64],
    logit_margin: NDArray[np.float64],
    calibration: Calibration,
    alpha: float,
    seed: int,
) -> tuple[Worth, ...]:
    """Compare predictions, and the bounds that follow, with the measured `probabilities` of points, `[n, K]` each."""
    bounds = bound(predictions, calibration.quantiles(alpha)).numpy()
    level = replace(calibration, predictions=torch.ones_like(calibration.predictions))
    constants = bound(torch.ones(1, len(targets)), level.quantiles(alpha))[0].tolist()
    counts, worth = np.arange(COPIES + 1), []
    columns = zip(targets, predictions.numpy().T, bounds.T, probabilities.T, constants, strict=True)
    for target, prediction, lower, probability, constant in columns:
        order = kendall(probability, prediction, CONFIDENCE)
        kept_counts = np.random.default_rng(seed).binomial(COPIES, probability)
        shares = scipy.stats.binom.pmf(counts, COPIES, probability[:, None])
        numbers = {
            "tau": order.value,
            "tau_low": order.low,
            "tau_logit_margin": kendall_tau(probability, logit_margin),
            "tau_copies": kendall_tau(probability, kept_counts),
            "error": np.abs(prediction - probability).mean(),
            "error_copies": (shares * np.abs(counts / COPIES - probability[:, None])).sum(axis=1).mean(),
            "bound": lower.mean(),
            "bound_copies": clopper_pearson(kept_counts, COPIES, 1.0 - 2.0 * alpha)[0].mean(),
            "bound_constant": constant,
            "covered": (probability >= lower).mean(),
        }  # a correlation with what is constant is NaN, and counts as 0
        described = {name: 0.0 if np.isnan(number) else float(number) for name, number in numbers.items()}
        worth.append(Worth(target, len(probability), alpha, **described))
    return tuple(worth)
