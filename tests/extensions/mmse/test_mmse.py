"""MMSE equals Taylor on linear networks; elsewhere its variance is that of quadratic margins, or of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.inputs import SIGMA
from helpers.laws import estimate
from helpers.measured import pairs_of, slow_jacobian
from helpers.problems import inputs, linear_network, small_network
from scipy import stats
from torch import Tensor, nn

import brittle
from brittle.errors import ParameterError, UsageError
from brittle.estimate import Status
from brittle.scores import MMSE, MMSEMVS, Taylor, TaylorMVS
from brittle.scores.choose import choose

SIZE = 12
BOTH_FORMS = [MMSE, lambda sigma, **options: MMSE(sigma, form="linear", **options)]


@pytest.mark.parametrize(("classes", "draws"), [(2, 6), (10, 2)])
def test_mmse_with_antithetic_pairs_equals_taylor(classes: int, draws: int) -> None:
    classifier = brittle.Classifier(linear_network(classes, SIZE))
    x = inputs(6, (SIZE,), dtype=torch.float64)
    for smoothed, at_point in [*((form, Taylor) for form in BOTH_FORMS), (MMSEMVS, TaylorMVS)]:
        averaged = estimate(classifier, x, smoothed(SIGMA, draws=draws)).value
        tangent = estimate(classifier, x, at_point(SIGMA)).value
        assert float((averaged - tangent).abs().max()) <= 1e-9


def paper_flips(network: nn.Module, copies: Tensor, predicted: int) -> float:
    """Compute definition 3 anew: the mean logits, the mean Jacobian, and the normal distribution function of SciPy."""
    logits = network(copies).mean(0).detach()
    jacobian = torch.stack([slow_jacobian(network, copy) for copy in copies]).mean(0)
    competitors = [number for number in range(len(logits)) if number != predicted]
    mean, gradients = logits[predicted] - logits[competitors], jacobian[predicted] - jacobian[competitors]
    covariance: Any = (SIGMA**2 * gradients @ gradients.mT).numpy()
    precise = {"abseps": 1e-7, "maxpts": 10**6}
    survival = stats.multivariate_normal.cdf(mean.numpy(), np.zeros(len(competitors)), covariance, **precise)
    return 1 - float(survival)


@pytest.mark.parametrize(("classes", "draws"), [(2, 2), (4, 10)])
def test_the_linear_form_is_that_of_the_paper(classes: int, draws: int) -> None:
    network = small_network(classes=classes, dtype=torch.float64)
    x = inputs(4, dtype=torch.float64)
    flips = estimate(brittle.Classifier(network), x, MMSE(SIGMA, draws=draws, form="linear"))
    for number, copies in enumerate(pairs_of(x, "linearize", draws)):
        predicted = int(network(x[number : number + 1]).argmax())
        assert float(flips.value[number]) == pytest.approx(paper_flips(network, copies, predicted), rel=2e-3)


class Bowl(nn.Module):
    """Network of two classes with the margin `1 - ||x||^2 / r^2`: noncentral chi-squared under noise, nearly normal."""

    size, radius = 400, 4.3

    def forward(self, x: Tensor) -> Tensor:
        margin = 1 - x.square().sum(dim=1) / self.radius**2
        return torch.stack((margin, torch.zeros_like(margin)), dim=1)

    def flips(self, x: Tensor) -> Tensor:
        """Return the probability of leaving the ball, in closed form."""
        inside = (self.radius / SIGMA) ** 2
        return torch.tensor(stats.ncx2.sf(inside, self.size, x.square().sum(dim=1) / SIGMA**2))


def test_a_curved_margin_is_estimated_with_its_variance() -> None:
    """Near the centre the variance comes almost entirely from that of the gradient, which the linear form leaves out.

    Mean errors over 40 points with other draws: 0.007 to 0.011, and 0.084 to 0.090.
    """
    x = torch.zeros(30, Bowl.size, dtype=torch.float64)
    x[:, 0] = torch.linspace(0.1, 2.0, 30, dtype=torch.float64)
    classifier, truth = brittle.Classifier(Bowl(), bounds=(-9, 9)), Bowl().flips(x)
    quadratic, linear = MMSE(SIGMA, draws=200), MMSE(SIGMA, draws=200, form="linear")
    for score, lowest, highest in ((quadratic, 0.0, 0.03), (linear, 0.05, 0.5)):
        error = (estimate(classifier, x, score).value - truth).abs()
        assert lowest <= float(error.mean()) <= highest


def test_a_mean_gradient_of_zero_has_a_value_if_gradients_vary() -> None:
    """At the centre the mean gradient of a pair is 0: the linear model is flat, but the margin varies."""
    x = torch.zeros(10, Bowl.size, dtype=torch.float64)
    classifier = brittle.Classifier(Bowl(), bounds=(-9, 9))
    flat = estimate(classifier, x, MMSE(SIGMA, draws=20, form="linear"))
    assert {Status(code) for code in flat.status.tolist()} == {Status.ZERO_GRADIENT}
    flips = estimate(classifier, x, MMSE(SIGMA, draws=20))
    assert bool(flips.value.isfinite().all())
    assert float((flips.value - Bowl().flips(x)).abs().max()) < 0.1


def test_the_forms_share_their_passes() -> None:
    quadratic, linear = MMSE(SIGMA), MMSE(SIGMA, form="linear")
    assert quadratic.needs == linear.needs
    assert "form" not in quadratic.parameters
    assert linear.label == f"mmse(draws=20, form=linear, sigma={SIGMA})"


def test_the_form_is_an_option() -> None:
    scores = choose(["mmse"], [SIGMA], options={"form": "linear"})
    assert scores == [MMSE(SIGMA, form="linear")] == choose(["mmse"], [SIGMA], settings=["mmse.form=linear"])
    with pytest.raises(ParameterError, match="quadratic, linear"):
        MMSE(SIGMA, form="paper")  # type: ignore[arg-type]
    for name, form in (("mmse", "paper"), ("mmse_mvs", "linear")):
        with pytest.raises(UsageError, match=r"linear|for mmse"):
            choose([name], [SIGMA], options={"form": form})
