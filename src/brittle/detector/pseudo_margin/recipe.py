"""How a pseudo-margin came about, and the settings that are usual."""

from __future__ import annotations

from dataclasses import dataclass

from brittle.detector.identity import Source
from brittle.detector.ranges import LARGEST, SMALLEST, check_range
from brittle.errors import ParameterError
from brittle.norms import check_norm
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

    Raises:
        ParameterError: a field has no such value.
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
        """Raise where these are not the settings of a training that ended, on as many points as there are `ids`.

        Raises:
            ParameterError: they are not.
        """
        check_range("best_epoch", self.best_epoch, 1, self.epochs)
        check_range("points", self.points, FEWEST, MOST_COUNTED)
        if ids not in (0, self.points):
            raise ParameterError(f"{ids} ids are named; found {self.points} points")
