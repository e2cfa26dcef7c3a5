"""The multivariate sigmoid beside the normal integral that it stands for, which SciPy computes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor, nn

import brittle

SCALE = 1.702
"""By which the logistic curve is nearest to the normal one: within 0.0095 everywhere (Haley, 1952)."""

NODES = 20_000
"""Nodes of SciPy's integral for each dimension, at most."""

SEEDED = "rng" in inspect.signature(stats.multivariate_normal.cdf).parameters
"""True where SciPy's integral can draw from a passed generator; that of older versions cannot."""

KINDS = ("independent", "differences")
"""Correlations of the random problems: none, or those of differences of independent gradients, near one half."""


def multivariate_sigmoid(places: NDArray[np.float64], scale: float = 1.0) -> NDArray[np.float64]:
    """`1 / (1 + sum_i exp(-scale u_i))`, `[B]`, of `places` `u`, `[B, K]` (UAI, section 3.2.3, with the scale 1)."""
    return 1 / (1 + np.exp(-scale * places).sum(axis=1))


def normal_integral(place: NDArray[np.float64], correlation: NDArray[np.float64]) -> float:
    """`P(Z < u)`, `Z ~ N(0, R)`, by SciPy; in one dimension and for independent coordinates as a product."""
    if np.array_equal(correlation, np.eye(len(place))):
        return float(stats.norm.cdf(place).prod())
    drawn: Any = {"rng": np.random.default_rng(0)} if SEEDED else {}
    options: Any = {"cov": correlation, "allow_singular": True, "maxpts": NODES * len(place), **drawn}
    return float(np.clip(stats.multivariate_normal.cdf(place, np.zeros(len(place)), **options), 0, 1))


def of_margins(margins: NDArray[np.float64], gram: NDArray[np.float64], sigma: float) -> dict[str, float]:
    """Integral, sigmoid and scaled sigmoid at `u_i = g_i / (sigma |grad g_i|)`; `gram` is that of the gradients."""
    norms = np.sqrt(np.diag(gram))
    place, correlation = margins / (sigma * norms), gram / np.outer(norms, norms)
    np.fill_diagonal(correlation, 1.0)
    return {
        "integral": normal_integral(place, correlation),
        "sigmoid": float(multivariate_sigmoid(place[None])[0]),
        "scaled": float(multivariate_sigmoid(place[None], SCALE)[0]),
    }


def random_problems(dimension: int, kind: str, count: int, seed: int) -> pd.DataFrame:
    """Problems of this dimension whose integrals are spread over [0, 1]: rows `integral`, `sigmoid`, `scaled`.

    The margins are those of random logits of spread 1 to 4, less the largest, in units of their deviations.
    """
    random, rows = np.random.default_rng([seed, dimension, KINDS.index(kind)]), []
    for _ in range(count):
        slopes = random.standard_normal((dimension + 1, 20))
        gradients = slopes[0] - slopes[1:]
        gram = np.eye(dimension) if kind == KINDS[0] else gradients @ gradients.T
        logits = np.sort(random.uniform(1, 4) * random.standard_normal(dimension + 1))[::-1]
        rows.append(of_margins((logits[0] - logits[1:]) * np.sqrt(np.diag(gram)), gram, 1.0))
    return pd.DataFrame(rows).assign(dimension=dimension, kind=kind)


def at_the_margins(network: nn.Module, x: Tensor, sigmas: tuple[float, ...]) -> pd.DataFrame:
    """Return the same at the margins of a network that is linearised at each point, at every sigma."""
    linearised, rows = brittle.linearize(brittle.Classifier(network, bounds=(0, 1)), x), []
    for point, predicted in enumerate(linearised.predicted.tolist()):
        logits, gram = linearised.logits[point].numpy(), linearised.gram[point].numpy()
        names = linearised.classes[point].tolist()
        turned = np.array(
            [[(name == predicted) - (name == rival) for name in names] for rival in names if rival != predicted], float
        )
        margins, spread = turned @ logits[names], turned @ gram @ turned.T
        if (np.diag(spread) > 0).all():
            rows += [{"sigma": sigma, "point": point, **of_margins(margins, spread, sigma)} for sigma in sigmas]
    return pd.DataFrame(rows, columns=["sigma", "point", "integral", "sigmoid", "scaled"])
