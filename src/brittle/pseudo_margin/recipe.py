"""How a pseudo-margin came about, and the settings that are usual."""

from __future__ import annotations

import math
from dataclasses import dataclass

from brittle.detector.identity import Source
from brittle.errors import ParameterError
from brittle.norms import check_norm

LAYERS, WIDTH = 5, 512
"""Hidden layers and their width, as in the paper."""

EPOCHS, BATCH, RATE = 200, 128, 1e-3
"""Most passes over the points, points in a step, and Adam's step size."""


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
        for name in ("features", "layers", "width", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise ParameterError(name, f"{name} must be at least 1; found {getattr(self, name)}")
        for name in ("scale", "rate"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ParameterError(name, f"{name} must be a positive number; found {getattr(self, name)}")
        if self.classes < 0 or self.classes == 1:
            raise ParameterError("classes", f"classes must be 0, or at least 2; found {self.classes}")
        if self.seed < 0:
            raise ParameterError("seed", f"the seed must be at least 0; found {self.seed}")
        if self.norm is not None:
            check_norm(self.norm)
