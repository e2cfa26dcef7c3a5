"""Average-case robustness of the network linearised by averaging over the noise (MMSE, SmoothGrad)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import special

from brittle.estimate import Estimate, Parameters, Status
from brittle.measure import Linearize, Measurement, NearestMargin
from brittle.measure.base import check_classes, check_draws
from brittle.measure.nearest_margin import SmoothedMargin
from brittle.scores.base import (
    LARGEST_PROBIT,
    NoiseScore,
    initial_status,
    mark,
    nonfinite_detail,
    sampling_interval,
)
from brittle.scores.by_copies import Draft, NoisyCopies, conclude
from brittle.scores.evidence import Interval, modelled_by_one
from brittle.scores.linear import orthant_flips, sigmoid_flips
from brittle.scores.options import option

DRAWS = 20
"""Noisy copies per point and sigma by default: each costs a Jacobian."""


@dataclass(frozen=True)
class _Smoothed(NoiseScore):
    draws: int = field(default=DRAWS, metadata=option("gradient_draws"))
    antithetic: bool = field(
        default=True, metadata=option("no_antithetic", text="draw every noisy copy for itself, in no antithetic pairs")
    )
    classes: int | None = None

    cost: ClassVar[str] = "1 + draws (1 + C) per sigma"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_draws(self.draws, self.antithetic)
        check_classes(self.classes)

    @property
    def needs(self) -> tuple[Linearize]:
        """Jacobians at noisy copies, averaged."""
        return (Linearize(self.noise.shape, self.noise, self.draws, self.antithetic, self.classes),)

    @property
    def parameters(self) -> Parameters:
        """The noise and the number of draws; what else differs from the default."""
        written = super().parameters
        if self.antithetic:
            del written["antithetic"]
        return written


@dataclass(frozen=True)
class MMSE(_Smoothed):
    """Flip probability of the linear model that is closest to the network in mean square over the noise.

    `1 - P(g > 0)` with `g ~ N(D mean_j z(x + e_j), sigma^2 D J K J^T D^T)`, `J = mean_j J(x + e_j)`.

    Validity: exact for linear models and normal noise, with antithetic pairs at any number of draws. On other
    networks it has a bias that more draws do not remove. The interval covers the quadrature error, the classes left
    out and the sampling error (jackknife over groups of draws); where the margins bend within the noise, the noise is
    not normal, or there are fewer than 25 pairs, it reaches out to what the same copies say
    (`brittle.scores.by_copies.widen_by_copies`).

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    definition 3.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point; even, unless `antithetic` is off.
        antithetic: draw pairs `(e, -e)`; False is the paper's own form.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or `draws` is out of range.
    """

    name: ClassVar[str] = "mmse"
    title: ClassVar[str] = "MMSE"
    reference: ClassVar[str] = "Han et al. (UAI 2024), definition 3"
    explanation: ClassVar[str] = (
        "Averages the tangents at noisy copies of the point (SmoothGrad), then integrates as taylor does."
    )
    colour: ClassVar[int | None] = 2
    preference: ClassVar[float | None] = 2
    model: ClassVar[str | None] = "the linear model"

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The orthant probability of the linear model averaged over the copies."""
        return orthant_flips(measured[self.needs[0]], self.noise, confidence)


@dataclass(frozen=True)
class MMSEMVS(_Smoothed):
    """Flip probability of the MMSE linear model with the multivariate sigmoid.

    `S / (1 + S)` with `S = sum_i exp(-g_i / (sigma ||grad g_i||))`, margins and gradients averaged over the noise.

    Validity: an approximation of `MMSE` without an integral. The interval covers the sampling error, the classes left
    out and the error of the formula: it reaches out to the normal model of the same copies' margins everywhere, and to
    their votes as that of `MMSE` does.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point; even, unless `antithetic` is off.
        antithetic: draw pairs `(e, -e)`; False is the paper's own form.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or `draws` is out of range.
    """

    name: ClassVar[str] = "mmse_mvs"
    title: ClassVar[str] = "MMSE, multivariate sigmoid"
    reference: ClassVar[str] = "Han et al. (UAI 2024), section 3.2.3"
    explanation: ClassVar[str] = "As mmse, with a logistic formula in place of the normal integral."
    colour: ClassVar[int | None] = 3
    preference: ClassVar[float | None] = 4
    model: ClassVar[str | None] = "the linear model"

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The multivariate sigmoid of the linear model averaged over the copies."""
        return sigmoid_flips(measured[self.needs[0]], self.noise, confidence)


@dataclass(frozen=True)
class MMSEMargin(NoiseScore):
    """Flip probability of the MMSE linear model of the nearest margin alone.

    `Phi(-mean_j h / (sigma ||mean_j grad h||))` with `h = z_t - max_{j != t} z_j` at `x + e_j`: one backward pass a
    draw instead of `C`, and no integral.

    Validity: exact for linear models with two classes. With more, what several competitors do together is left out, and
    the status `nearest_margin` says so. The interval covers the sampling error (jackknife over groups of draws), and
    where the network bends it reaches out as that of `MMSE` does.

    Source: this library; `MMSE` applied to one function.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point, even.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or `draws` is out of range.
    """

    draws: int = field(default=DRAWS, metadata=option("gradient_draws"))

    name: ClassVar[str] = "mmse_margin"
    title: ClassVar[str] = "MMSE of the nearest margin"
    cost: ClassVar[str] = "1 + 2 draws per sigma"
    reference: ClassVar[str] = "brittle"
    explanation: ClassVar[str] = (
        "Averages only the nearest margin (to one other class) and its gradient; one backward pass a draw."
    )
    colour: ClassVar[int | None] = 4
    preference: ClassVar[float | None] = 3
    model: ClassVar[str | None] = "the linear model"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_draws(self.draws)

    @property
    def needs(self) -> tuple[NearestMargin]:
        """The nearest margin and its gradient at noisy copies, averaged."""
        return (NearestMargin(self.noise, self.draws),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The normal tail of the averaged margin over its averaged gradient."""
        found: SmoothedMargin = measured[self.needs[0]]
        sigma = self.noise.sigma
        ratio = found.margin / (sigma * found.variance.clamp_min(0.0).sqrt())
        rest = None
        if found.without_group is not None:
            margin, variance = found.without_group
            rest = (margin / (sigma * variance.clamp_min(0.0).sqrt())).clamp(-LARGEST_PROBIT, LARGEST_PROBIT)
        probits = ratio.clamp(-LARGEST_PROBIT, LARGEST_PROBIT)
        value = special.ndtr(-ratio)
        status = mark(initial_status(found.tied), ~found.margin.isfinite(), Status.NONFINITE_LOGITS)
        status = mark(status, ~found.variance.isfinite(), Status.NONFINITE_GRADIENT)
        status = mark(status, found.variance <= 0, Status.ZERO_GRADIENT)
        detail = nonfinite_detail(found.votes.nonfinite, found.draws)
        alone = (torch.full_like(found.tied, found.classes > 2), Status.NEAREST_MARGIN)
        interval = Interval(*sampling_interval(probits, rest, confidence))
        draft = Draft(value, interval, status, detail, alone, found.passes, exact=True)
        return conclude(draft, self._copies(found, confidence), confidence)

    def _copies(self, found: SmoothedMargin, confidence: float) -> NoisyCopies:
        """The noisy copies that the margin was differentiated at."""
        votes, spread = found.votes, found.spread
        by_model = None if spread is None else modelled_by_one(spread.column(0), votes.units, confidence)
        return NoisyCopies(votes, by_model, spread, found.bend, normal=self.noise.is_normal)
