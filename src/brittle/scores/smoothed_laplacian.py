"""The Laplacian of the predicted probability smoothed over noise, for networks with kinks and for black boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from brittle.errors import ParameterError
from brittle.estimate import Direction, Estimate, Parameters, Status
from brittle.intervals import student
from brittle.measure import Directional, Measurement, Sample, Sampled, SampleGradient
from brittle.scores.base import finish, initial_status, mark, nonfinite_detail
from brittle.scores.probability_change import ChangeScore, change_detail, change_interval, change_status
from brittle.scores.serving import Serves

FORMS = ("change", "gradient")
"""From probabilities alone, or from gradients."""


@dataclass(frozen=True)
class SmoothedLaplacian(ChangeScore):
    """`2 / s^2 E[p_c(x + e) - p_c(x)]` (`change`), or `1 / s^2 E[e^T grad p_c(x + e)]` (`gradient`).

    Both are averages of the Laplacian of `p_c` around the point, and tend to it as the noise shrinks. For normal noise
    `gradient` is the Laplacian averaged over the noise itself (Stein's identity), and `change` the average of that
    over all smaller variances; on a sphere `gradient` is its average over the ball (divergence theorem). Kinks count
    in both, which the Laplacian at the point does not see.

    Validity: unbiased for every model; `change` needs no gradient. The interval is a Student interval over antithetic
    pairs. At very small noise the rounding of the network's logits, divided by `s^2`, takes over.

    Source: C. Stein, Estimation of the mean of a multivariate normal distribution, Annals of Statistics 9 (1981); the
    use here is this library's.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        form: what is averaged, `change` or `gradient`.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point, even, at least 4; `gradient` costs two passes each.
        clip: clip noisy copies to the bounds, for `change`.

    Raises:
        ParameterError: an unknown form, `sigma` is not a positive finite number, `draws` is out of range, `clip`
            with `gradient`, or noise that is not alike in all directions.
    """

    form: str = field(default="change", kw_only=True)

    name: ClassVar[str] = "smoothed_laplacian"
    title: ClassVar[str] = "Smoothed Laplacian"
    quantity: ClassVar[str] = "laplacian"
    cost: ClassVar[str] = "1 + draws per sigma, 1 + 2 draws by gradients"
    reference: ClassVar[str] = "brittle"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = (
        "The Laplacian of the probability averaged over noise: the sampled change, in the Laplacian's unit."
    )
    safer: ClassVar[Direction] = "higher"
    colour: ClassVar[int | None] = 16
    uses_covariance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ParameterError("form", f"the form must be one of {', '.join(FORMS)}; found {self.form!r}")
        if self.form == "gradient" and self.clip:
            raise ParameterError("clip", "the gradient form clips nothing; leave out clip, or use form='change'")
        super().__post_init__()
        if self.noise.shape is not None:
            raise ParameterError(
                "noise",
                f"{self.name} is for noise alike in all directions; found {self.noise.name}: leave the score out",
            )

    @property
    def needs(self) -> tuple[Sample | SampleGradient]:  # type: ignore[override]
        """Noisy forward passes, or noisy gradients."""
        gradient = self.form == "gradient"
        return (SampleGradient(self.noise, self.draws) if gradient else Sample(self.noise, self.draws, self.clip),)

    @property
    def parameters(self) -> Parameters:
        """The noise, the draws, and the form."""
        return super().parameters | {"form": self.form}

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The mean change, or the mean product of noise and gradient, in the unit of the Laplacian."""
        found: Sampled | Directional = measured[self.needs[0]]
        if isinstance(found, Directional):
            value = found.mean / self.noise.sigma**2
            error = (found.variance / found.pairs).sqrt() / self.noise.sigma**2
            half = student(found.pairs, confidence) * error
            status = mark(initial_status(found.tied), found.nonfinite > 0, Status.NONFINITE_LOGITS)
            status = mark(status, ~half.isfinite(), Status.NONFINITE_GRADIENT)
            status = mark(status, (found.mean == 0) & (found.variance == 0), Status.ZERO_GRADIENT)
            detail = nonfinite_detail(found.nonfinite, 2 * found.pairs)
            return finish(value, value - half, value + half, status, found.passes, detail)
        scale = 2.0 / self.noise.sigma**2
        value, low, high, vacuous = change_interval(found, "mean", confidence)
        status = change_status(found, vacuous)
        return finish(scale * value, scale * low, scale * high, status, found.passes, change_detail(found))
