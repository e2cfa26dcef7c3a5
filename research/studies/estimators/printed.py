"""The estimators as Han, Srinivas and Lakkaraju print them, with no code of the library.

Characterizing data point vulnerability via average-case robustness (UAI 2024): definitions 1 to 3, section 3.2.3. The
normal integral is SciPy's, as in the paper. What the library does otherwise stands in `docs/explanation/estimators.md`:
antithetic pairs, the variance of MMSE, its own integral.

Each takes a network, points `[B, *shape]`, sigma, a number of draws and a generator, and gives `p_robust`, `[B]`, as an
estimator of a user's does. With a generator of the same seed the draws of a smaller budget are the first of a larger
one, so `mmse_family` reads all budgets off the largest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

Model = Callable[[Tensor], Tensor]

NODES = 10_000
"""Nodes of SciPy's integral, at most: an error of some 0.00003 in nine dimensions."""


SEEDED = "rng" in inspect.signature(stats.multivariate_normal.cdf).parameters
"""True where SciPy's integral can draw from a passed generator; that of older versions cannot."""


def monte_carlo(network: Model, points: Tensor, sigma: float, draws: int, generator: torch.Generator) -> Tensor:
    """Section 3.1: the share of independent noisy copies that keep the class."""
    with torch.no_grad():
        predicted, holding = network(points).argmax(1), torch.zeros(len(points), dtype=torch.float64)
        for _ in range(draws):
            holding += network(points + sigma * torch.randn(points.shape, generator=generator)).argmax(1) == predicted
    return holding / draws


def softmax(network: Model, points: Tensor, sigma: float, draws: int, generator: torch.Generator) -> Tensor:
    """Section 3.2.3 at temperature 1: the probability of the predicted class."""
    with torch.no_grad():
        return network(points).double().softmax(1).amax(1)


def taylor(network: Model, points: Tensor, sigma: float, draws: int, generator: torch.Generator) -> Tensor:
    """Definition 2: the network linearised at the point."""
    logits, slopes = linearised(network, points)
    return normal_integral(*decision_margins(logits, slopes, logits.argmax(1)), sigma)


def taylor_mvs(network: Model, points: Tensor, sigma: float, draws: int, generator: torch.Generator) -> Tensor:
    """Section 3.2.3: definition 2 with the multivariate sigmoid."""
    logits, slopes = linearised(network, points)
    return multivariate_sigmoid(*decision_margins(logits, slopes, logits.argmax(1)), sigma)


def mmse_family(
    network: Model, points: Tensor, sigma: float, budgets: Sequence[int], generator: torch.Generator
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Definition 3 at each of the ascending `budgets`: the budget, `p_robust` by the integral and by the sigmoid.

    Margins and their gradients are averaged over independent noisy copies.
    """
    with torch.no_grad():
        predicted = network(points).argmax(1)
    logits, slopes = 0.0, 0.0
    for draw in range(1, max(budgets) + 1):
        tangent = linearised(network, points + sigma * torch.randn(points.shape, generator=generator))
        logits, slopes = logits + tangent[0], slopes + tangent[1]
        if draw in budgets:
            margins = decision_margins(logits / draw, slopes / draw, predicted)
            yield draw, normal_integral(*margins, sigma), multivariate_sigmoid(*margins, sigma)


def linearised(network: Model, points: Tensor) -> tuple[Tensor, Tensor]:
    """Logits `[B, C]` and their gradients `[B, C, n]`, one backward pass a class."""
    points = points.clone().requires_grad_()
    logits = network(points)
    slopes = [
        torch.autograd.grad(logits[:, class_number].sum(), points, retain_graph=True)[0].flatten(1)
        for class_number in range(logits.shape[1])
    ]
    return logits.detach().double(), torch.stack(slopes, 1)


def decision_margins(logits: Tensor, slopes: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor]:
    """`g_i = f_t - f_i`, `[B, C - 1]`, and their gradients, `[B, C - 1, n]`, for all classes but `t`, `predicted`."""
    batch, classes = logits.shape
    rows = torch.arange(batch)
    competitors = torch.arange(classes).expand(batch, -1)[torch.arange(classes) != predicted[:, None]].view(batch, -1)
    values = logits[rows, predicted, None] - logits.gather(1, competitors)
    return values, slopes[rows, predicted, None] - slopes[rows[:, None], competitors]


def normal_integral(values: Tensor, slopes: Tensor, sigma: float) -> Tensor:
    """`Phi_{U U^T}(g_i / (sigma |grad g_i|))`, `U` the gradients of length 1, `[B]`, float64."""
    norms = slopes.double().norm(dim=2)
    unit = slopes.double() / norms[..., None]
    places, covariances = (values / (sigma * norms)).numpy(), (unit @ unit.mT).numpy()
    probabilities = [_cdf(place, covariance) for place, covariance in zip(places, covariances, strict=True)]
    return torch.tensor(probabilities, dtype=torch.float64).clamp(0, 1)


def _cdf(place: NDArray[np.float64], covariance: NDArray[np.float64]) -> float:
    """Return the normal integral up to `place`; NaN where a gradient is zero."""
    if not np.isfinite(place).all():
        return np.nan
    drawn: Any = {"rng": np.random.default_rng(0)} if SEEDED else {}
    options: Any = {"cov": covariance, "allow_singular": True, "maxpts": NODES, **drawn}
    return float(stats.multivariate_normal.cdf(place, np.zeros(len(place)), **options))


def multivariate_sigmoid(values: Tensor, slopes: Tensor, sigma: float) -> Tensor:
    """`1 / (1 + sum_i exp(-g_i / (sigma |grad g_i|)))`, `[B]`, float64."""
    return 1 / (1 + (-values / (sigma * slopes.double().norm(dim=2))).exp().sum(1))
