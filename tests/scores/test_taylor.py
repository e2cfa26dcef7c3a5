"""Scores of the tangent: exact on linear networks of two classes, within their error with more."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.attacked import linear_margin
from helpers.laws import MANY_ROWS, estimate
from helpers.normals import normal_cdf
from helpers.problems import inputs, linear_network
from scipy import stats

import brittle
from brittle.errors import ParameterError
from brittle.estimate import Status
from brittle.noise import DiagonalGaussian, FactorGaussian, Gaussian, Noise
from brittle.scores import MMSE, MMSEMVS, FirstOrderMargin, MonteCarlo, Softmax, Taylor, TaylorMVS

SIGMA, SIZE = 0.3, 12


def margin_problem(network: torch.nn.Linear, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `(g, dg)`: margins of one input and their gradients, without the predicted class."""
    with torch.no_grad():
        logits = network(x)
        top = int(logits.argmax())
        competitors = [number for number in range(len(logits)) if number != top]
        return logits[top] - logits[competitors], network.weight[top] - network.weight[competitors]


def exact_two_class_flip(network: torch.nn.Linear, x: torch.Tensor, sigma: float) -> float:
    margin, gradient = margin_problem(network, x)
    return float(stats.norm.sf(float(margin[0]) / (sigma * float(gradient[0].norm()))))


@pytest.mark.parametrize("seed", range(5))
def test_taylor_is_exact_for_two_classes(seed: int) -> None:
    """50 random cases, error at most 1e-12, also relative to the flip probability."""
    network = linear_network(2, SIZE, seed)
    x = inputs(10, (SIZE,), seed, torch.float64)
    flips = estimate(brittle.Classifier(network), x, Taylor(SIGMA)).value
    exact = torch.tensor([exact_two_class_flip(network, point, SIGMA) for point in x], dtype=torch.float64)
    assert float((flips - exact).abs().max()) <= 1e-12
    assert float(((flips - exact) / exact).abs().max()) <= 1e-10


@pytest.mark.parametrize("score", [TaylorMVS, MMSEMVS])
def test_the_factor_multiplies_the_ratios_of_the_sigmoid(score: type[TaylorMVS] | type[MMSEMVS]) -> None:
    """On a linear network `1 / (1 + exp(f z))`, within 0.01 of the truth at 1.702."""
    network, x = linear_network(2, SIZE), inputs(10, (SIZE,), dtype=torch.float64)
    flips = torch.tensor([exact_two_class_flip(network, point, SIGMA) for point in x], dtype=torch.float64)
    ratios = torch.from_numpy(stats.norm.isf(flips.numpy()))
    for factor in (1.0, 1.702):
        values = estimate(brittle.Classifier(network), x, score(SIGMA, factor=factor)).value
        assert values.tolist() == pytest.approx(torch.sigmoid(-factor * ratios).tolist(), rel=1e-6)
    assert values.tolist() == pytest.approx(flips.tolist(), abs=0.01)
    assert "factor" not in score(SIGMA).label
    for factor in (0.0, float("nan"), float("inf")):
        with pytest.raises(ParameterError):
            score(SIGMA, factor=factor)


@pytest.mark.parametrize("seed", range(2))
def test_taylor_is_within_its_error_for_ten_classes(seed: int) -> None:
    network = linear_network(10, SIZE, seed)
    x = inputs(4, (SIZE,), seed, torch.float64)
    flips = estimate(brittle.Classifier(network), x, Taylor(SIGMA))
    for number, point in enumerate(x):
        margin, gradient = margin_problem(network, point)
        covariance = (SIGMA**2 * gradient @ gradient.T).numpy()
        # With this many points the error of SciPy is below 5e-5 here.
        survives = normal_cdf(margin.numpy(), np.zeros(len(margin)), covariance, 1e-5, 200_000)
        assert float(flips.value[number]) == pytest.approx(1 - survives, rel=2e-3, abs=5e-5)


def colours() -> list[Noise]:
    a = torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return [
        DiagonalGaussian(SIGMA, torch.linspace(0.1, 2.0, SIZE, dtype=torch.float64)),
        FactorGaussian(SIGMA, a[:, :4]),
    ]


@pytest.mark.parametrize("noise", colours(), ids=lambda noise: noise.name)
def test_two_classes_are_exact_under_coloured_noise(noise: Noise) -> None:
    network = linear_network(2, SIZE)
    x = inputs(6, (SIZE,), dtype=torch.float64)
    classifier = brittle.Classifier(network)
    covariance = noise.sigma**2 * noise.covariance(torch.eye(SIZE, dtype=torch.float64))
    exact = []
    for point in x:
        margin, gradient = margin_problem(network, point)
        exact.append(stats.norm.sf(float(margin[0]) / float(gradient[0] @ covariance @ gradient[0]) ** 0.5))
    for score in (Taylor(noise=noise), MMSE(noise=noise, draws=4)):
        assert estimate(classifier, x, score).value.tolist() == pytest.approx(exact, abs=1e-10)
    sampled = estimate(classifier, x, MonteCarlo(noise=noise, draws=4000, limit=None), rows=MANY_ROWS)
    inside = [low <= truth <= high for low, truth, high in zip(sampled.low, exact, sampled.high, strict=True)]
    assert all(inside)


def test_almost_dependent_margins_are_flagged_and_still_right() -> None:
    """Two competitors whose gradients differ by 3e-7 of their length act like one competitor."""
    network = linear_network(3, SIZE)
    with torch.no_grad():
        network.weight[1] = network.weight[0] + 1.0
        network.weight[2] = network.weight[1]
        network.weight[2, 0] += 3e-7
        network.bias.copy_(torch.tensor([9.0, 0.0, 0.0], dtype=torch.float64))
    x = inputs(4, (SIZE,), dtype=torch.float64)
    flips = estimate(brittle.Classifier(network), x, Taylor(SIGMA))
    assert {Status(code) for code in flips.status.tolist()} == {Status.ILL_CONDITIONED}
    for number, point in enumerate(x):
        margin, gradient = margin_problem(network, point)
        exact = stats.norm.sf(float(margin.min()) / (SIGMA * float(gradient[0].norm())))
        assert float(flips.value[number]) == pytest.approx(exact, abs=1e-6)


def test_softmax_equals_taylor_mvs_under_the_lemma() -> None:
    """Weight rows at the corners of a simplex: all margins have the same gradient norm, and T is sigma times it."""
    network = linear_network(5, 5)
    with torch.no_grad():
        network.weight.copy_(2.0 * torch.eye(5, dtype=torch.float64))
    x = inputs(10, (5,), dtype=torch.float64)
    temperature = SIGMA * 2.0 * 2.0**0.5
    classifier = brittle.Classifier(network)
    softmax, taylor = (estimate(classifier, x, score).value for score in (Softmax(temperature), TaylorMVS(SIGMA)))
    assert float((softmax - taylor).abs().max()) <= 1e-12


@pytest.mark.parametrize("norm", ["l2", "linf", "l1"])
def test_first_order_margin_is_the_distance(norm: str) -> None:
    network = linear_network(4, SIZE)
    x = inputs(6, (SIZE,), dtype=torch.float64)
    distances = estimate(brittle.Classifier(network), x, FirstOrderMargin(norm)).value
    torch.testing.assert_close(distances, linear_margin(network, x, norm), rtol=1e-12, atol=0)


def test_units_do_not_matter() -> None:
    """The same network declared for [0, 1], [-1, 1] and [0, 255], with sigma in these units, flips alike."""
    network = linear_network(4, SIZE)
    x = inputs(5, (SIZE,), dtype=torch.float64)
    values = []
    for low, high in [(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)]:
        scale = high - low
        classifier = brittle.Classifier(network, (low, high), mean=low, std=scale)
        values.append(estimate(classifier, x * scale + low, Taylor(noise=Gaussian(SIGMA * scale))).value)
    assert all(float((value - values[0]).abs().max()) <= 1e-6 for value in values)
