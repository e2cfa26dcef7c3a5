"""The Laplacian of the predicted probability: which way it moves under a little noise, and how fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from scipy import special
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Direction, Estimate, Parameters, Status
from brittle.measure import Clean, Curvature, Curved, Linearization, Linearize, Measurement
from brittle.measure.base import check_classes, check_enough
from brittle.measure.curvature import PROBES, curved, log_odds_weights, standard_error
from brittle.measure.forward import look
from brittle.model.classifier import Classifier
from brittle.scores.base import Score, finish, initial_status, mark
from brittle.scores.linear import derivatives, laplacians, linear_detail, linear_status, margins
from brittle.scores.options import option
from brittle.scores.sound import Serves

METHODS = ("auto", "gram", "exact", "probes")
"""How the Laplacian is found: `gram` is its first term alone."""


@dataclass(frozen=True)
class Laplacian(Score):
    """`L = sum_i d^2 p_c / dx_i^2`, `p_c` the softmax probability of the predicted class, per squared pixel unit.

    Noise of covariance `s^2 I` moves the probability by `E[dp] = s^2 L / 2 + O(s^4)` on average; noise on the sphere of
    radius `r` in `n` dimensions by `r^2 L / (2n)`. The chain rule splits it:
    `L = p_c (2 ||m||^2 - sum_k p_k ||grad g_k||^2) + p_c (1 - p_c) sum_k w_k lap z_k`, with the margins
    `g_k = z_c - z_k`, `m = sum_k p_k grad g_k`, and `w` the gradient of the log-odds of `c` with respect to the logits.
    The first term needs the Jacobian of the logits only, which `Taylor` and `FirstOrderMargin` share; the second is 0
    wherever the network is piecewise linear.

    Validity: `gram` is exact for piecewise linear networks; `exact` sums all `n` second derivatives, `probes` takes
    random directions, `auto` looks whether the network bends at the point and takes `probes` where it does (`exact` for
    inputs of few coordinates); the detail of each row says which it was. The interval covers the probes (Student, over
    the directions) and the classes left out. A point where the gradient jumps has status `kink`. Piecewise linear
    networks have kinks around every point that no derivative at the point sees: what noise of a size does there is
    `ProbabilityChange`.

    Source: Yang, Liu, Bilgic, The analysis of the expected change in the classification probability of the predicted
    label (TMLR 2023), theorem 1; the decomposition is this library's.

    Attributes:
        method: how the Laplacian is found: `auto`, `gram`, `exact` or `probes`.
        probes: random directions per point, where the network bends.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.

    Raises:
        ParameterError: an unknown method, or fewer than 2 probes.
    """

    method: str = field(default="auto", metadata=option(flag=False))
    probes: int = field(default=PROBES, metadata=option(flag=False))
    classes: int | None = None

    name: ClassVar[str] = "laplacian"
    title: ClassVar[str] = "Laplacian"
    quantity: ClassVar[str] = "laplacian"
    cost: ClassVar[str] = "7 + C, and 34 where the network bends"
    reference: ClassVar[str] = "Yang et al. (TMLR 2023), theorem 1"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = (
        "The trace of the second derivatives of the predicted probability: which way small noise moves it on average. "
        "Blind to kinks around the point."
    )
    safer: ClassVar[Direction] = "higher"
    colour: ClassVar[int | None] = 15

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"the method must be one of {', '.join(METHODS)}; found {self.method!r}")
        check_enough("probes", self.probes)
        check_classes(self.classes)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        """One Jacobian at the point, and second derivatives unless the Gram alone is asked for."""
        first = Linearize(classes=self.classes)
        return (first,) if self.method == "gram" else (first, Curvature(self.method, self.probes))

    @property
    def parameters(self) -> Parameters:
        """The method, the number of probes unless it is the default, and that of competitors where it was given."""
        written = super().parameters
        if self.probes == PROBES:
            del written["probes"]
        return written

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The trace of the Hessian, from the first derivatives and, where they were measured, the second."""
        linear: Linearization = measured[self.needs[0]]
        found = margins(linear)
        first = derivatives(linear, found)
        value, low, high = first.laplacian
        status, detail = linear_status(linear, found), linear_detail(linear, found)
        if self.method == "gram":
            return finish(value, low, high, status, linear.passes, detail)
        second: Curved = measured[self.needs[1]]
        weight = first.probability * first.doubt
        half = weight * half_width(second, confidence)
        bend = weight * second.value
        bends = (status == int(Status.ZERO_GRADIENT)) & (second.value != 0)  # flat here, but not around
        status = torch.where(bends, initial_status(linear.tied), status)
        detail = tuple(None if bend else text for bend, text in zip(bends.tolist(), detail, strict=True))
        status = mark(status, ~second.value.isfinite(), Status.NONFINITE_GRADIENT)
        status = mark(status, second.kink, Status.KINK)
        passes = second.passes + linear.passes - 1
        described = _describe_method(second, status, detail) if self.method == "auto" else detail
        return finish(value + bend, low + bend - half, high + bend + half, status, passes, described)


def half_width(second: Curved, confidence: float) -> Tensor:
    """Half-width of the Student interval over the probes, `[B]`; 0 where the value is exact."""
    degrees = (second.probes - 1).clamp_min(1).double().cpu().numpy()
    quantile = torch.from_numpy(special.stdtrit(degrees, (1.0 + confidence) / 2.0)).to(second.value)
    return torch.where(second.probes > 0, quantile * second.deviation, 0.0)


def _describe_method(second: Curved, status: Tensor, detail: Sequence[str | None]) -> tuple[str | None, ...]:
    """What `auto` did at each point that got a number, `[B]`."""
    return tuple(
        text if text or not Status(code).has_value
        else "exact: the network is piecewise linear here" if flat
        else f"{probes} probes: the network bends here" if probes
        else "exact: all second derivatives, as the network bends here"
        for text, code, flat, probes in zip(
            detail, status.tolist(), second.flat.tolist(), second.probes.tolist(), strict=True
        )
    )  # fmt: skip


@dataclass(frozen=True)
class Laplacians:
    """Laplacians of class probabilities.

    Attributes:
        value: `[B]` of the predicted class, or `[B, C]` of all, float64, per squared pixel unit.
        deviation: standard error of `value`, of the same shape; 0 where it is exact.
        kink: whether the network is not differentiable at the point, `[B]`.
    """

    value: Tensor
    deviation: Tensor
    kink: Tensor


def laplacian(
    classifier: Classifier,
    inputs: Tensor,
    *,
    classes: Literal["predicted", "all"] = "predicted",
    method: str = "auto",
    probes: int = PROBES,
    seed: int = 0,
    ids: Sequence[str] | None = None,
) -> Laplacians:
    """The Laplacian of the probability of the predicted class, or of every class, at each of `inputs`.

    See `brittle.scores.Laplacian` for the formula. Those of all classes sum to 0. Piecewise linear networks give all
    classes for one Jacobian; elsewhere each class costs its own second derivatives.

    Args:
        classifier: the trained model.
        inputs: `[B, *shape]`, in the declared units.
        classes: `predicted` or `all`.
        method: `auto`, `gram`, `exact` or `probes`.
        probes: random directions per point.
        seed: with `ids`, keys the random directions.
        ids: one id per point; its position by default.

    Raises:
        ParameterError: an unknown method or choice of classes, or fewer than 2 probes.
        ModelError: the model fails or cannot be differentiated.

    Example:
        >>> import torch, brittle
        >>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> found = brittle.laplacian(brittle.Classifier(network), torch.rand(2, 4), classes="all")
        >>> bool((found.value.sum(dim=1).abs() < 1e-10).all())
        True
    """
    if classes not in ("predicted", "all"):
        raise ParameterError(f"classes must be 'predicted' or 'all'; found {classes!r}")
    _ = Laplacian(method, probes)  # raises where a parameter is out of range
    names = tuple(ids) if ids is not None else tuple(str(number) for number in range(len(inputs)))
    clean = look(classifier, inputs, names, seed, differentiate=True)
    linear = Linearize(classes=clean.logits.shape[1] - 1)(classifier, clean)
    value = laplacians(linear)
    samples, kink = torch.zeros_like(value)[:, :, None], torch.zeros_like(clean.tied)
    if method != "gram":
        samples, kink = _second_terms(Curvature(method, probes), classifier, clean, classes)
    own = clean.predicted[:, None]
    if classes == "predicted":
        value, samples = value.gather(1, own), samples if method != "gram" else samples[:, :1]
    value = value + samples.mean(dim=2)
    deviation = standard_error(samples.flatten(0, 1)).view_as(value)
    if classes == "predicted":
        value, deviation = value[:, 0], deviation[:, 0]
    return Laplacians(value, deviation, kink)


def _second_terms(
    need: Curvature, classifier: Classifier, clean: Clean, classes: Literal["predicted", "all"]
) -> tuple[Tensor, Tensor]:
    """`sum_k v_k lap z_k` along each direction, `[B, 1, P]` or `[B, C, P]`, and whether the point is a kink, `[B]`.

    `v = p_c (e_c - p)`. Piecewise linear points are found with the predicted class, and no other class is looked at.
    """
    p = clean.logits.double().softmax(dim=1)
    with classifier.evaluating():
        first = curved(need, classifier, clean, log_odds_weights(clean))
        if classes == "predicted":
            own = p.gather(1, clean.predicted[:, None])
            doubt = p.scatter(1, clean.predicted[:, None], 0.0).sum(dim=1, keepdim=True)
            return (own * doubt * first.samples)[:, None], first.kink
        if bool(first.flat.all()):
            return torch.zeros_like(p)[:, :, None], first.kink
        logits = torch.eye(p.shape[1], dtype=clean.logits.dtype, device=p.device)
        each = [curved(need, classifier, clean, row.expand_as(clean.logits)).samples for row in logits]
    bends = torch.stack(each, dim=1)
    mean = (p[:, :, None] * bends).sum(dim=1, keepdim=True)
    return p[:, :, None] * (bends - mean), first.kink
