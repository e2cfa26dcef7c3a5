"""What was learned of the margins: a regressor, how it came about, from which points, and the score that it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from brittle.detector.identity import Source
from brittle.detector.ranges import LARGEST, SMALLEST, check_range
from brittle.errors import ModelError, ParameterError
from brittle.estimate import Parameters, Status
from brittle.model.loading.weights import state_digest
from brittle.norms import check_norm
from brittle.scores.base import mark
from brittle.scores.one_pass import OnePass, OnePassScore
from brittle.scores.options import NO_OPTION
from brittle.store.files.strict_json import MOST_WHOLE

LAYERS, WIDTH = 5, 512
"""Hidden layers and their width, as in the paper."""

EPOCHS, BATCH, RATE = 200, 128, 1e-3
"""Most passes over the points, points in a step, and Adam's step size."""

MOST_COUNTED = 2**40
"""More points, features or classes than there are anywhere."""

MOST_EPOCHS = 10**6
"""More passes than any training takes."""

SMALLEST_RATE = 1e-12
"""A smaller step changes no weight of single precision."""

FEWEST = 20
"""Points that it takes."""

TINY = 1e-12
"""Distance between the rows of two classes below which they count as equal."""


@dataclass(frozen=True)
class Recipe:
    """How a pseudo-margin came about.

    Attributes:
        features: size `d` of a feature vector.
        classes: classes of the head whose margins are read too, `C`; 0 where the features alone are.
        layers: hidden layers.
        width: of each.
        scale: margin at which the output saturates, in the units of the margins.
        seed: of the split, the first weights and the order of the points.
        epochs: most passes over the points.
        batch: points in a step.
        rate: Adam's step size.
        best_epoch: the pass whose weights were kept.
        validation_loss: mean of `((prediction - margin) / scale)^2` over the held-out points at that pass.
        points: points learned from, the held-out ones included.
        dropped: points left out because their margin or a feature is not a number.
        clipped: points whose margin is infinite or beyond the scale, and counts as the scale.
        norm: of the margins, or None where it was not said.
        model: sha256 of the weights of the network whose features they are, or None where it was not said.
        data: where the points come from, or None where their ids are not known.
    """

    features: int
    classes: int
    layers: int
    width: int
    scale: float
    seed: int
    epochs: int
    batch: int
    rate: float
    best_epoch: int
    validation_loss: float
    points: int
    dropped: int
    clipped: int
    norm: str | None
    model: str | None
    data: Source | None

    def __post_init__(self) -> None:
        for name in ("features", "layers", "width", "batch"):
            check_range(name, getattr(self, name), 1, MOST_COUNTED)
        for name in ("points", "dropped"):
            check_range(name, getattr(self, name), 0, MOST_COUNTED)
        check_range("clipped", self.clipped, 0, self.points)
        check_range("epochs", self.epochs, 1, MOST_EPOCHS)
        check_range("best_epoch", self.best_epoch, 0, self.epochs)
        check_range("validation_loss", self.validation_loss, 0.0, 1.0)
        check_range("scale", self.scale, SMALLEST, LARGEST)
        check_range("rate", self.rate, SMALLEST_RATE, 1.0)
        check_range("seed", self.seed, 0, MOST_WHOLE)
        if self.classes == 1:
            raise ParameterError("classes must be 0, or at least 2; found 1")
        check_range("classes", self.classes, 0, MOST_COUNTED)
        if self.norm is not None:
            check_norm(self.norm)

    def check_learned(self, ids: int) -> None:
        """Raise where these are not the settings of a training that ended, on as many points as there are `ids`."""
        check_range("best_epoch", self.best_epoch, 1, self.epochs)
        check_range("points", self.points, FEWEST, MOST_COUNTED)
        if ids not in (0, self.points):
            raise ParameterError(f"{ids} ids are named; found {self.points} points")


class Regressor(nn.Module):
    """Features `[B, d]` to margins `[B]`, double precision; NaN for features that are not finite.

    `scale * sigmoid(W_6 relu(W_5 ... relu(W_1 (u - mean) / std)))`, biases left out of the formula. `u` are the
    features `h` and, where the head of the network was given, beside them its margins in feature space in increasing
    order, `(z_t - z_j) / ||w_t - w_j||_q` for every class `j != t`: functions of `h` that few points do not suffice to
    learn.
    """

    head_weight: Tensor
    head_bias: Tensor
    lengths: Tensor
    mean: Tensor
    std: Tensor
    scale: Tensor

    def __init__(self, features: int, classes: int, layers: int, width: int) -> None:
        super().__init__()
        read = features + max(0, classes - 1)
        sizes = [read] + [width] * layers
        hidden = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair, dtype=torch.float32), nn.ReLU())]
        self.body = nn.Sequential(*hidden, nn.Linear(width, 1, dtype=torch.float32))
        self.register_buffer("head_weight", torch.zeros(classes, features, dtype=torch.float64))
        self.register_buffer("head_bias", torch.zeros(classes, dtype=torch.float64))
        self.register_buffer("lengths", torch.ones(classes, classes, dtype=torch.float64))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(read, dtype=torch.float32))
        self.register_buffer("std", torch.ones(read, dtype=torch.float32))

    def read(self, features: Tensor) -> Tensor:
        """What the perceptron reads, `[B, d]` or `[B, d + C - 1]`, single precision."""
        if not len(self.head_bias):
            return features.float()
        logits = features.double() @ self.head_weight.mT + self.head_bias
        own = logits.argmax(dim=1, keepdim=True)
        gaps = logits.gather(1, own) - logits
        margins = gaps / self.lengths[own[:, 0]].clamp_min(TINY)
        ordered = margins.scatter(1, own, torch.inf).sort(dim=1).values[:, :-1]
        return torch.cat((features.float(), ordered.float()), dim=1)

    def share(self, read: Tensor) -> Tensor:
        """The prediction as a share of the scale, `[B]`, for what was `read`."""
        return self.body((read - self.mean) / self.std).squeeze(1).sigmoid()

    def forward(self, features: Tensor) -> Tensor:
        """The margins `[B]` of features `[B, d]`."""
        margins = self.scale * self.share(self.read(features)).double()
        return torch.where(features.isfinite().all(dim=1), margins, torch.nan)


def blank(recipe: Recipe) -> Regressor:
    """A regressor without numbers yet; none are drawn from the program's own random stream."""
    with torch.device("meta"):
        regressor = Regressor(recipe.features, recipe.classes, recipe.layers, recipe.width)
    return regressor.to_empty(device="cpu")


@dataclass(frozen=True, eq=False, repr=False)
class LearnedMargin:
    """A regressor from features to margins, with what is known of its training.

    Attributes:
        recipe: how it came about.
        regressor: the network, in evaluation mode.
        points: ids of the points it was trained on, where they were given; `recipe.data` says of which data.
    """

    recipe: Recipe
    regressor: Regressor
    points: tuple[str, ...] = ()

    def __repr__(self) -> str:
        learned = self.recipe
        return (
            f"{type(self).__name__}({learned.points} points, {learned.features} features, norm={learned.norm!r}, "
            f"validation_loss={learned.validation_loss:.4g})"
        )

    def learned_from(self, source: Source) -> tuple[str, ...]:
        """Ids that it was trained on, as far as they are of `source`."""
        own = self.recipe.data
        return self.points if own is not None and own.may_share(source) else ()

    def check_model(self, model: str | None) -> None:
        """Raise where it is known to be learned from another model than the one of the digest `model`."""
        if self.recipe.model not in (None, model):
            raise ModelError(
                "other_model",
                f"the pseudo-margin was learned from the features of the model {self.recipe.model}; found {model}; "
                f"learn one for this model",
            )

    def predict(self, features: Tensor | ArrayLike) -> Tensor:
        """The pseudo-margins of `features` `[B, d]`: `[B]`, double precision, NaN where a feature is not finite."""
        rows = features if isinstance(features, Tensor) else torch.from_numpy(np.asarray(features, np.float32))
        if rows.dim() != 2 or rows.shape[1] != self.recipe.features:
            raise ParameterError(f"expected [B, {self.recipe.features}], found {list(rows.shape)}")
        with torch.no_grad():
            return self.regressor(rows.to(self.regressor.mean.device))

    @cached_property
    def digest(self) -> str:
        """The sha256 of its weights."""
        return state_digest(self.regressor)


@dataclass(frozen=True)
class PseudoMarginScore(OnePassScore):
    """A pseudo-margin as a score: `PseudoMargin.predict` of the features of the clean pass, in pixel units.

    Validity: that of the pseudo-margin. The interval has no width.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.3.

    Attributes:
        learned: the pseudo-margin.
    """

    learned: LearnedMargin = field(metadata=NO_OPTION)

    name: ClassVar[str] = "pseudo_margin"
    title: ClassVar[str] = "Pseudo-margin"
    quantity: ClassVar[str] = "distance"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3.3"
    uses_features: ClassVar[bool] = True
    explanation: ClassVar[str] = "A stand-in for the input margin, learned from the features of other points."

    @property
    def parameters(self) -> Parameters:
        """The digest of the weights and, where it is known, the norm of the margins learned."""
        norm = self.learned.recipe.norm
        digest: Parameters = {"sha256": self.learned.digest}
        return digest if norm is None else digest | {"norm": norm}

    def value(self, found: OnePass) -> Tensor:
        """The margin that was learned."""
        return self.learned.regressor(found.features_and_weight[0])

    def checked_value(self, found: OnePass) -> Tensor:
        """The same on the device of the weights, for features of the size that it was learned from."""
        return self.learned.predict(found.features_and_weight[0])

    @property
    def network(self) -> nn.Module:
        """The regressor."""
        return self.learned.regressor

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        """Features that are not finite have no margin."""
        return mark(status, ~value.isfinite(), Status.NONFINITE_LOGITS)
