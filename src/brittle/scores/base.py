"""Common parts of all scores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import isfunction
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from brittle.data.points import Points
from brittle.errors import ParameterError
from brittle.estimate import CONFIDENCE, FLIP_PROBABILITY, Direction, Estimate, Parameters, Status, score_label
from brittle.intervals import check_confidence
from brittle.measure import Clean, Measurement, NearestPoint
from brittle.measure.forward import as_points, batches_of
from brittle.model.classifier import Classifier
from brittle.noise import Gaussian, Noise
from brittle.scores.evaluate import check_classifier, check_seed, concatenate, evaluate
from brittle.scores.options import NO_OPTION, options_of
from brittle.scores.sound import check_parameters, check_score, check_serves

GRAVE = (Status.VACUOUS, Status.NOISY_TIES, Status.CONTRADICTED, Status.REFUTED, Status.TIE)
"""Outcomes with a number that say more than that something was left out or not found; the last is the gravest."""

NOT_FINITE = "gave NaN or infinite logits"  # fault of a pass that tells nothing about its points

_WEIGHTS = {status: 1 if status.has_value else 2 + len(GRAVE) for status in Status}  # the graver the larger
_WEIGHTS |= {status: 2 + rank for rank, status in enumerate(GRAVE)} | {Status.OK: 0}


@dataclass(frozen=True)
class Score(ABC):
    """A formula on measurements. Equal scores are equal objects, so they can be keys.

    A parameter that is out of range, or a word that is not known, is refused with a `ParameterError` when it is made.

    Its `quantity` is `flip_probability` (`1 - p_robust`), `distance` (in pixel units, in the norm of its parameters),
    `feature_distance`, `logit_margin`, `probability`, `entropy`, `laplacian` (of a probability, per squared pixel unit)
    or `probability_change`. It `serves` `all` decisions of a classifier that have margins, those with a `probability`
    of their own (the predicted class, one label), or `classes` alone; or it `counts` how often a noisy copy keeps the
    decision: any, those without margins (masks, boxes) and of random models too.
    """

    name: ClassVar[str]  # in tables and on the command line
    title: ClassVar[str]  # what it is, in a few words
    quantity: ClassVar[str]
    cost: ClassVar[str]  # passes through the network per point, in words
    reference: ClassVar[str]  # where it comes from
    explanation: ClassVar[str]  # a plain sentence or two that a report says of it
    safer: ClassVar[Direction] = None  # points where the value is `higher` or `lower`; None if it ranks none
    colour: ClassVar[int | None] = None  # place in the palette of a report; None for the next free one
    preference: ClassVar[float | None] = None  # place among the estimators that may represent a run, or None
    model: ClassVar[str | None] = None  # source where no copy flips: `counting`, or a model, such as `the linear model`
    serves: ClassVar[str] = "classes"
    unsaid: ClassVar[tuple[str, ...]] = ()  # fields that its parameters hold only where they differ from their defaults

    @property
    @abstractmethod
    def needs(self) -> tuple[Measurement, ...]:
        """The measurements that the formula reads."""

    @abstractmethod
    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """Return the score of every point of a batch, from the results of `needs`."""

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            if option.choices and (word := getattr(self, name)) not in option.choices:
                raise ParameterError(f"the {name} must be one of {', '.join(option.choices)}; found {word!r:.60}")

    def __call__(
        self,
        classifier: Classifier,
        x: Tensor | Points,
        *,
        ids: Sequence[object] | None = None,
        extra_inputs: Mapping[str, Tensor | np.ndarray] | None = None,
        mask: str | Tensor | np.ndarray | None = None,
        seed: int = 0,
        confidence: float = CONFIDENCE,
    ) -> Estimate:
        """Return the score of every point of `x`, the same numbers that `brittle.score` writes for them.

        Where several scores share measurements, `brittle.score` takes these once.

        Args:
            classifier: the trained model.
            x: `[B, *shape]`, in the declared units; a point with NaN or infinite values gets a status and no number. Or
                points, such as `brittle.data.array_points` gives.
            ids: one for each point, which keys its noise; its position by default.
            extra_inputs: other tensors of the points, `[B, ...]` each, by the names of the model's arguments for them.
            mask: which coordinates of `x` vary, or the name of an extra input, as in `brittle.data.array_points`.
            seed: of the noise.
            confidence: of all intervals.

        Returns:
            the estimate, `[B]`.

        Raises:
            DataError: `x` holds no points, or values outside the bounds; the ids or tensors are not one for each; or an
                estimator was fitted on other columns.
            ModelError: the model fails on them.
            ParameterError: an argument is of another kind, or outside its range.

        Example:
            >>> import torch, brittle
            >>> classifier = brittle.Classifier(torch.nn.Linear(4, 3), bounds=(0, 1))
            >>> found = brittle.scores.MonteCarlo(sigma=0.1, draws=20)(classifier, torch.rand(5, 4))
            >>> bool(((found.low <= found.value) & (found.value <= found.high)).all())
            True
        """
        check_score(self)
        check_classifier(classifier)
        check_serves(self, classifier)
        check_confidence(confidence)
        check_seed(seed)
        points = as_points(x, classifier.bounds, ids=ids, extra_inputs=extra_inputs, mask=mask)
        classifier = classifier.reading(points.provenance).look_up(points.class_names)
        parts: list[Estimate] = []
        with classifier.evaluating():
            for batch, rows in batches_of(classifier, points):
                parts += evaluate(classifier, batch, [self], seed, rows, confidence).estimates
        return concatenate(parts)

    def counterexamples(self, measured: Mapping[Measurement, Any]) -> NearestPoint | None:
        """Return the inputs with another prediction that the score found on its way, if it looks for any."""
        return None

    @property
    def parameters(self) -> Parameters:
        """The parameters as the table writes them: JSON values; by default every field that has one."""
        written: Parameters = {}
        for name, option in options_of(type(self)).items():
            value = getattr(self, name)
            if value is not None and not (name in self.unsaid and value == option.default):
                written[name] = value
        return written

    @property
    def label(self) -> str:
        """The score with its parameters, such as `taylor(sigma=0.1)`."""
        check_parameters(self)
        return score_label(self.name, self.parameters)


@dataclass(frozen=True)
class NoiseScore(Score):
    """A score of the average case: the probability that the prediction does not survive noise.

    Exactly one of the first two arguments is given; `sigma` alone means isotropic normal noise.

    Attributes:
        sigma: standard deviation of the noise per input coordinate, in the declared pixel units.
        noise: the noise family.

    Raises:
        ParameterError: both or neither are given, `sigma` is not a positive finite number, or the score needs the
            covariance or the pairs of a family that does not say it has them, `noise` is no noise family, or shares the
            name of a field.
    """

    sigma: float | None = field(default=None, metadata=NO_OPTION)
    noise: Noise = field(default=None, kw_only=True, metadata=NO_OPTION)  # type: ignore[assignment]

    quantity: ClassVar[str] = FLIP_PROBABILITY
    safer: ClassVar[Direction] = "lower"
    uses_covariance: ClassVar[bool] = True  # of the noise; False where only draws are read
    uses_pairs: ClassVar[bool] = False  # of noise, `(e, -e)`

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise is None and self.sigma is None:
            raise ParameterError(f"{type(self).__name__} needs sigma or noise")
        if not isinstance(self.noise, Noise | None):
            advice = "; a function (x, generator) goes in as brittle.noise.Transform(function)" * isfunction(self.noise)
            example = "brittle.noise.Gaussian(0.1), or of tables PerFeature.of(points, 0.1)"
            raise ParameterError(f"expected a noise family such as {example}; found {self.noise!r:.80}{advice}")
        if self.noise is None:
            object.__setattr__(self, "noise", Gaussian(self.sigma))  # type: ignore[arg-type]
        elif self.sigma not in (None, self.noise.sigma):
            raise ParameterError(f"sigma={self.sigma} and noise of sigma={self.noise.sigma}; give one of them")
        object.__setattr__(self, "sigma", self.noise.sigma)
        self.noise.check_supports(getattr(self, "name", type(self).__name__), self.uses_covariance, self.uses_pairs)
        score_fields, noise_fields = ({parameter.name for parameter in fields(part)} for part in (self, self.noise))
        shared_names = sorted(score_fields & (noise_fields | self.noise.parameters.keys() - {"noise"}) - {"sigma"})
        if shared_names:
            field_name = f"a field {shared_names[0]}, as {type(self).__name__} has"
            raise ParameterError(f"the noise family {self.noise.name} has {field_name}; rename that of the noise")

    @property
    def parameters(self) -> Parameters:
        """The noise, and by default every other field that has a value."""
        return self.noise.parameters | super().parameters


def finish(
    value: Tensor,
    low: Tensor,
    high: Tensor,
    status: Tensor,
    passes: int | Tensor,
    detail: tuple[str | None, ...] | None = None,
    evidence: Tensor | None = None,
    counted: tuple[Tensor, Tensor] | None = None,
) -> Estimate:
    """Return an `Estimate` whose intervals, NaN where no error is known, hold their value despite rounding. A number
    under a status that carries none may be anything."""
    passes_by_point = passes.to(status) if isinstance(passes, Tensor) else torch.full_like(status, passes)
    low, high = torch.minimum(low, value), torch.maximum(high, value)
    return Estimate(value, low, high, status, passes_by_point, detail, evidence, counted)


def initial_status(tied: Tensor, broken: Tensor) -> Tensor:
    return mark(torch.where(tied, int(Status.TIE), int(Status.OK)), broken, Status.NONFINITE_LOGITS)


def clean_status(clean: Clean) -> Tensor:
    return initial_status(clean.tied, ~clean.finite)


def mark(status: Tensor, rows: Tensor, member: Status) -> Tensor:
    """Return `status` with `member` where `rows` holds, unless the row says something as grave already."""
    milder = torch.tensor([int(state) for state in Status if _WEIGHTS[state] < _WEIGHTS[member]], device=status.device)
    return torch.where(rows & torch.isin(status, milder), int(member), status)


def copies_detail(counts: Tensor, draws: Tensor | int | None, fault: str = NOT_FINITE) -> tuple[str | None, ...]:
    """Say how many of the `draws` noisy copies of each point, or its clean pass, had the `fault`, `[B]`."""
    if draws is None:
        return tuple(f"the clean pass {fault}" if count else None for count in counts.tolist())
    draws_by_point = draws.tolist() if isinstance(draws, Tensor) else [draws] * len(counts)
    pairs = zip(counts.tolist(), draws_by_point, strict=True)
    return tuple(f"{count} of {copies} noisy copies {fault}" if count else None for count, copies in pairs)
