"""MMSE: on linear networks it is Taylor; elsewhere its variance is that of quadratic margins, or of the paper."""

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
        one = estimate(classifier, x, smoothed(SIGMA, draws=draws)).value
        other = estimate(classifier, x, at_point(SIGMA)).value
        assert float((one - other).abs().max()) <= 1e-9


def of_the_paper(network: nn.Module, copies: Tensor, own: int) -> float:
    """Definition 3 by itself: the mean logits, the mean Jacobian, and the normal distribution function of SciPy."""
    logits = network(copies).mean(0).detach()
    jacobian = torch.stack([slow_jacobian(network, copy) for copy in copies]).mean(0)
    others = [number for number in range(len(logits)) if number != own]
    mean, gradients = logits[own] - logits[others], jacobian[own] - jacobian[others]
    covariance: Any = (SIGMA**2 * gradients @ gradients.mT).numpy()
    precise = {"abseps": 1e-7, "maxpts": 10**6}
    kept = stats.multivariate_normal.cdf(mean.numpy(), np.zeros(len(others)), covariance, **precise)
    return 1 - float(kept)


@pytest.mark.parametrize(("classes", "draws"), [(2, 2), (4, 10)])
def test_the_linear_form_is_that_of_the_paper(classes: int, draws: int) -> None:
    network = small_network(classes=classes, dtype=torch.float64)
    x = inputs(4, dtype=torch.float64)
    found = estimate(brittle.Classifier(network), x, MMSE(SIGMA, draws=draws, form="linear"))
    for number, copies in enumerate(pairs_of(x, "linearize", draws)):
        own = int(network(x[number : number + 1]).argmax())
        assert float(found.value[number]) == pytest.approx(of_the_paper(network, copies, own), rel=2e-3)


class Bowl(nn.Module):
    """Two classes with the margin `1 - ||x||^2 / r^2`: under noise a noncentral chi-squared number, nearly normal."""

    size, radius = 400, 4.3

    def forward(self, x: Tensor) -> Tensor:
        margin = 1 - x.square().sum(dim=1) / self.radius**2
        return torch.stack((margin, torch.zeros_like(margin)), dim=1)

    def flips(self, x: Tensor) -> Tensor:
        """The probability of leaving the ball, in closed form."""
        inside = (self.radius / SIGMA) ** 2
        return torch.tensor(stats.ncx2.sf(inside, self.size, x.square().sum(dim=1) / SIGMA**2))


def test_a_curved_margin_is_estimated_with_its_variance() -> None:
    """Near the centre nearly all of the variance is that of the gradient, which the linear form leaves out.

    Mean errors over 40 points with other draws: 0.007 to 0.011, and 0.084 to 0.090.
    """
    x = torch.zeros(30, Bowl.size, dtype=torch.float64)
    x[:, 0] = torch.linspace(0.1, 2.0, 30, dtype=torch.float64)
    classifier, truth = brittle.Classifier(Bowl(), bounds=(-9, 9)), Bowl().flips(x)
    quadratic, linear = MMSE(SIGMA, draws=200), MMSE(SIGMA, draws=200, form="linear")
    for score, least, most in ((quadratic, 0.0, 0.03), (linear, 0.05, 0.5)):
        error = (estimate(classifier, x, score).value - truth).abs()
        assert least <= float(error.mean()) <= most


def test_a_mean_gradient_of_zero_is_a_number_where_gradients_vary() -> None:
    """At the centre the mean gradient of a pair is 0: a flat linear model, and a margin that varies all the same."""
    x = torch.zeros(10, Bowl.size, dtype=torch.float64)
    classifier = brittle.Classifier(Bowl(), bounds=(-9, 9))
    flat = estimate(classifier, x, MMSE(SIGMA, draws=20, form="linear"))
    assert {Status(code) for code in flat.status.tolist()} == {Status.ZERO_GRADIENT}
    found = estimate(classifier, x, MMSE(SIGMA, draws=20))
    assert bool(found.value.isfinite().all())
    assert float((found.value - Bowl().flips(x)).abs().max()) < 0.1


def test_the_forms_share_their_passes() -> None:
    quadratic, linear = MMSE(SIGMA), MMSE(SIGMA, form="linear")
    assert quadratic.needs == linear.needs
    assert "form" not in quadratic.parameters
    assert linear.label == f"mmse(draws=20, form=linear, sigma={SIGMA})"


def test_the_form_is_an_option() -> None:
    chosen = choose(["mmse"], [SIGMA], options={"form": "linear"})
    assert chosen == [MMSE(SIGMA, form="linear")] == choose(["mmse"], [SIGMA], settings=["mmse.form=linear"])
    with pytest.raises(ParameterError, match="quadratic, linear"):
        MMSE(SIGMA, form="paper")  # type: ignore[arg-type]
    for name, form in (("mmse", "paper"), ("mmse_mvs", "linear")):
        with pytest.raises(UsageError, match=r"linear|for mmse"):
            choose([name], [SIGMA], options={"form": form})
