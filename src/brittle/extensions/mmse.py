"""Average-case robustness from logits and gradients averaged over the noise (MMSE, SmoothGrad)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch

from brittle.errors import ParameterError
from brittle.estimate import Estimate
from brittle.measure import Linearization, Linearize, Measurement
from brittle.measure.base import check_classes, check_draws
from brittle.scores.base import NoiseScore
from brittle.scores.linear import conclude_flips, margins, orthant_flips
from brittle.scores.options import option
from brittle.scores.taylor import TangentScore

DRAWS = 20  # noisy copies per point and sigma by default: each costs a Jacobian
Form = Literal["quadratic", "linear"]  # the kind of margins whose variance is exact


@dataclass(frozen=True)
class _Smoothed(NoiseScore):
    draws: int = field(default=DRAWS, metadata=option(alone=True))
    antithetic: bool = True
    classes: int | None = None

    cost = "1 + draws (1 + C) per sigma"
    serves = "all"
    model = "counting"
    unsaid = ("antithetic", "form", "factor")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_draws(self.draws, self.antithetic)
        check_classes(self.classes)

    @property
    def uses_pairs(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True unless `antithetic` is off."""
        return self.antithetic

    @property
    def needs(self) -> tuple[Linearize]:
        return (Linearize(self.noise.shape, self.noise, self.draws, self.antithetic, self.classes),)


@dataclass(frozen=True)
class MMSE(_Smoothed):
    """Flip probability of normal margins with mean and variance from gradients at noisy copies.

    `1 - P(g > 0)` with `g ~ N(D mean_j z(x + e_j), sigma^2 D G D^T)`. With the form `quadratic`, `G = (a + b) / 2`: `a`
    is the mean of `J(x + e_i) K J(x + e_j)^T` over copies of different units of noise, and `b` that of `J(x + e_j) K
    J(x + e_j)^T`: their mean is the variance of a quadratic margin (see
    `brittle.measure.linearization.quadratic_gram`). With the form `linear`, `G = J K J^T`, `J = mean_j J(x + e_j)`: the
    linear model that is closest to the network in mean square, with the bias `Cov(J) / draws`. Both cost the same.

    Validity: exact for linear models and normal noise, with antithetic pairs at any number of draws; mean and variance
    also if the margins are quadratic in normal noise, up to sampling error. The form `linear` has a bias on every
    network that bends, which more draws do not remove; the form `quadratic` keeps the bias of terms of higher order, of
    kinks, and of margins that are not normal. The interval counts the same copies, stretched to the value.

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    definition 3, is the form `linear`; the form `quadratic` is this library's.

    Attributes:
        draws: noisy copies per point; even, unless `antithetic` is off.
        antithetic: draw pairs `(e, -e)`; False draws single copies, as in the paper.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
        form: margins whose variance is exact, `quadratic`, or `linear`, the form of the paper.
    """

    form: Form = "quadratic"

    name: ClassVar[str] = "mmse"
    title = "MMSE"
    reference = "Han et al. (UAI 2024), definition 3, corrected"
    explanation = (
        "Averages logits and gradients at noisy copies of the point (SmoothGrad), adds what the gradients vary to the "
        "variance, then integrates as taylor does."
    )
    colour = 2
    preference = 2

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        linear: Linearization = measured[self.needs[0]]
        return orthant_flips(linear.quadratic() if self.form == "quadratic" else linear, self.noise, confidence)


@dataclass(frozen=True)
class _Sigmoid(NoiseScore):
    """A score by the multivariate sigmoid: `S / (1 + S)` with `S = sum_i exp(-f g_i / (s ||grad g_i||))`."""

    factor: float = 1.0

    reference = "Han et al. (UAI 2024), section 3.2.3"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor < torch.inf:
            raise ParameterError(f"factor must be positive and finite; found {self.factor}")

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        linear: Linearization = measured[self.needs[0]]
        normal_margins = margins(linear)
        norms = normal_margins.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
        ratios = self.factor * normal_margins.mean / (self.noise.sigma * norms)
        exponents = -ratios.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
        odds = torch.logsumexp(exponents, dim=-1).clamp(-1e4, 1e4)
        return conclude_flips(torch.sigmoid(odds), normal_margins.status, linear, normal_margins, confidence)


@dataclass(frozen=True)
class MMSEMVS(_Sigmoid, _Smoothed):
    """Flip probability of the MMSE linear model with the multivariate sigmoid.

    `S / (1 + S)` with `S = sum_i exp(-f g_i / (sigma ||grad g_i||))`, margins and gradients averaged over the noise,
    the linear model of `MMSE` with the form `linear`; `f` is the factor, 1.702 to approximate its integral.

    Validity: an approximation of `MMSE` without an integral. There is no form `quadratic`: the sigmoid puts too much
    into the tails already. The interval is that of `MMSE`.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3.

    Attributes:
        draws: noisy copies per point; even, unless `antithetic` is off.
        antithetic: draw pairs `(e, -e)`; False draws single copies, as in the paper.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
        factor: multiplies the margins in their standard deviations.
    """

    name: ClassVar[str] = "mmse_mvs"
    title = "MMSE, multivariate sigmoid"
    explanation = "As mmse, with a logistic formula in place of the normal integral."
    colour = 3
    preference = 4


@dataclass(frozen=True)
class TaylorMVS(_Sigmoid, TangentScore):
    """Flip probability of the first-order Taylor model with the multivariate sigmoid.

    `S / (1 + S)` with `S = sum_i exp(-f g_i(x) / (sigma ||grad g_i(x)||))` in the place of the orthant probability,
    `f` the factor.

    Validity: an approximation of `Taylor` without an integral; it ignores the dependence between the margins. With
    `f = 1.702` and two classes it is within 0.01 of `Taylor`; with 1 it is the paper's formula. It has no interval.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3.

    Attributes:
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
        factor: multiplies the margins in their standard deviations.
    """

    name: ClassVar[str] = "taylor_mvs"
    title = "Taylor, multivariate sigmoid"
    explanation = "As taylor, with a logistic formula in place of the normal integral."
    colour = 6
    preference = 6
    unsaid = ("factor",)
