"""The Laplacian of the predicted probability: the direction and rate of its change under a little noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from scipy import special
from torch import Tensor

from brittle.estimate import Direction, Estimate, Status
from brittle.extensions.expected_change.curvature import PROBES, Curvature, LogitCurvature, derivatives
from brittle.measure import Linearization, Linearize, Measurement
from brittle.measure.base import check_classes, check_enough, check_rank
from brittle.measure.forward import class_of_rank
from brittle.scores.base import Score, finish, mark
from brittle.scores.linear import margins
from brittle.scores.options import option

METHODS = ("auto", "gram", "exact", "probes")  # methods to compute the Laplacian: `gram` is its first term alone


@dataclass(frozen=True)
class Laplacian(Score):
    """`L = sum_i d^2 p_c / dx_i^2`, `p_c` the softmax probability of the predicted class, or of the class of another
    rank, such as the most likely competitor; per squared pixel unit.

    Noise of covariance `s^2 I` moves the probability by `E[dp] = s^2 L / 2 + O(s^4)` on average; noise on the sphere of
    radius `r` in `n` dimensions by `r^2 L / (2n)`. The chain rule splits it: `L = p_c (2 ||m||^2 - sum_k p_k ||grad
    g_k||^2) + p_c (1 - p_c) sum_k w_k lap z_k`, with the margins `g_k = z_c - z_k`, `m = sum_k p_k grad g_k`, and `w`
    the gradient of the log-odds of `c` with respect to the logits. The first term needs only the Jacobian of the
    logits, which `Taylor` and `FirstOrderMargin` share; the second is 0 wherever the network is piecewise linear.

    Validity: `gram` is exact for piecewise linear networks; `exact` sums all `n` second derivatives, `probes` takes
    random directions, `auto` tests whether the network bends at the point and takes `probes` if it does (`exact` for
    inputs of few coordinates); the detail of each row names the method. The interval covers the probes (Student, over
    the directions) and the classes left out. A point where the gradient jumps has status `kink`. Piecewise linear
    networks have kinks around every point that no derivative at the point shows: `ProbabilityChange` measures the
    effect of noise there. The Laplacians of all ranks add up to 0: if that of the predicted class is far below 0 and
    that of a competitor far above 0, noise moves the prediction to the competitor.

    Source: Yang, Liu, Bilgic, The analysis of the expected change in the classification probability of the predicted
    label (TMLR 2023), theorem 1 and section 3.1.1; the decomposition is this library's.

    Attributes:
        method: method to compute the Laplacian: `auto`, `gram`, `exact` or `probes`.
        probes: random directions per point, where the network bends.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
        rank: rank of the class: 1 the predicted class, 2 the most likely competitor, and so on.

    Raises:
        ParameterError: a parameter is out of range, or fewer classes are kept than the rank.
    """

    method: str = field(default="auto", metadata=option(choices=METHODS))
    probes: int = PROBES
    classes: int | None = None
    rank: int = 1

    name: ClassVar[str] = "laplacian"
    title = "Laplacian"
    quantity = "laplacian"
    cost = "7 + C, and 34 where the network bends"
    reference = "Yang et al. (TMLR 2023), theorem 1"
    serves = "probability"
    explanation = (
        "The trace of the second derivatives of the predicted probability: which way small noise moves it on average. "
        "Blind to kinks around the point."
    )
    colour = 15
    unsaid = ("probes", "rank")

    @property
    def safer(self) -> Direction:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A point is safer where the predicted class rises, and less safe where a competitor rises."""
        return "higher" if self.rank == 1 else "lower"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_enough("probes", self.probes)
        check_classes(self.classes)
        check_rank(self.rank)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        linearize = Linearize(classes=self.classes)
        return (linearize,) if self.method == "gram" else (linearize, Curvature(self.method, self.probes, self.rank))

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        linear = select_rank(measured[self.needs[0]], self.rank)
        normal_margins = margins(linear)
        gram_terms = derivatives(linear, normal_margins)
        curvatures = (gram_terms.curvature, gram_terms.curvature_low, gram_terms.curvature_high)
        value, low, high = (gram_terms.probability * curvature for curvature in curvatures)
        status, detail = normal_margins.status, normal_margins.detail
        if self.method == "gram":
            return finish(value, low, high, status, linear.passes, detail)
        second: LogitCurvature = measured[self.needs[1]]
        weight = gram_terms.probability * gram_terms.doubt
        degrees = (second.probes - 1).clamp_min(1).double().cpu().numpy()
        quantile = torch.from_numpy(special.stdtrit(degrees, (1.0 + confidence) / 2.0)).to(second.value)
        half = weight * torch.where(second.probes > 0, quantile * second.deviation, 0.0)
        bend = weight * second.value
        bends = (status == int(Status.ZERO_GRADIENT)) & (second.value != 0)  # flat here, but not around
        status = torch.where(bends, torch.where(linear.tied, int(Status.TIE), int(Status.OK)), status)
        detail = tuple(None if bend else text for bend, text in zip(bends.tolist(), detail, strict=True))
        status = mark(status, ~second.value.isfinite(), Status.NONFINITE_GRADIENT)
        status = mark(status, second.kink, Status.KINK)
        passes = second.passes + linear.passes - 1
        if self.method == "auto":
            detail = _describe_method(second, status, detail)
        return finish(value + bend, low + bend - half, high + bend + half, status, passes, detail)


def select_rank(linear: Linearization, rank: int) -> Linearization:
    """Return `linear` with the class of a rank, among its classes, in the place of the predicted class."""
    top = (linear.classes == linear.predicted[:, None]).long().argmax(dim=1)
    place = class_of_rank(linear.logits.gather(1, linear.classes), top, rank)
    return replace(linear, predicted=linear.classes.gather(1, place[:, None])[:, 0])


def _describe_method(second: LogitCurvature, status: Tensor, detail: Sequence[str | None]) -> tuple[str | None, ...]:
    """Describe the method that `auto` chose at each point with a number, `[B]`."""
    return tuple(
        text if text or not Status(code).has_value
        else "exact: the network is piecewise linear here" if flat
        else f"{probes} probes: the network bends here" if probes
        else "exact: all second derivatives, as the network bends here"
        for text, code, flat, probes in zip(
            detail, status.tolist(), second.flat.tolist(), second.probes.tolist(), strict=True
        )
    )  # fmt: skip
