"""The Laplacian of the predicted probability smoothed over noise, for networks with kinks and for black boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle.errors import ParameterError
from brittle.estimate import Direction, Estimate
from brittle.measure import Measurement, Sampled
from brittle.scores.base import finish
from brittle.scores.probability_change import ChangeScore, change_detail, change_interval, change_status
from brittle.scores.serving import Serves


@dataclass(frozen=True)
class SmoothedLaplacian(ChangeScore):
    """`2 / s^2 E[p_c(x + e) - p_c(x)]`, an average of the Laplacian of `p_c` around the point.

    It tends to the Laplacian as the noise shrinks. For normal noise it is the Laplacian averaged over the noise, and
    that over all smaller variances (Stein's identity). Kinks count, which the Laplacian at the point does not see.

    Validity: unbiased for every model, without gradients. The interval is that of `ProbabilityChange`, and holds for
    every model. At very small noise the rounding of the network's logits, divided by `s^2`, takes over.

    Source: C. Stein, Estimation of the mean of a multivariate normal distribution, Annals of Statistics 9 (1981); the
    use here is this library's.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point, even, at least 4.
        clip: clip noisy copies to the bounds.

    Raises:
        ParameterError: `sigma` is not a positive finite number, `draws` is out of range, or the noise is not alike in
            all directions.
    """

    name: ClassVar[str] = "smoothed_laplacian"
    title: ClassVar[str] = "Smoothed Laplacian"
    quantity: ClassVar[str] = "laplacian"
    reference: ClassVar[str] = "brittle"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = (
        "The Laplacian of the probability averaged over noise: the sampled change, in the Laplacian's unit."
    )
    safer: ClassVar[Direction] = "higher"
    colour: ClassVar[int | None] = 16
    uses_covariance: ClassVar[bool] = True
    uses_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise.shape is not None:
            raise ParameterError(
                f"{self.name} is for noise alike in all directions; found {self.noise.name}: leave the score out",
            )

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The mean change in the unit of the Laplacian."""
        found: Sampled = measured[self.needs[0]]
        scale = 2.0 / self.noise.sigma**2
        value, low, high, vacuous = change_interval(found, "mean", confidence)
        status = change_status(found, vacuous)
        return finish(scale * value, scale * low, scale * high, status, found.passes, change_detail(found))
