"""The network of a pseudo-margin, its recipe, and its reproducible training."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from brittle.errors import DataError, ParameterError
from brittle.estimate import DUAL_ORDER, check_norm
from brittle.extensions.detector.identity import Source
from brittle.model.evaluation_mode import one_thread, standard_modes
from brittle.model.head import Head
from brittle.scores.one_pass import row_distances
from brittle.store.strict_json import Count, Digest

FEWEST = 20
"""Minimum number of points."""

BATCH, RATE = 128, 1e-3
"""Points in a step, and Adam's step size."""

SCALE_QUANTILE, FENCE = 0.99, 3.0
"""The margin scale is a quantile of the finite margins, at most `FENCE` interquartile ranges above the upper quartile
(Tukey's far fence): if some searches end far off, the other margins must not vanish beside them."""

HELD_OUT = 0.2
"""Share of the points that validates, and so decides when training stops."""

PATIENCE = 20
"""Passes without improvement before training stops."""

TINY = 1e-12
"""Distance between the rows of two classes below which they count as equal."""


@dataclass(frozen=True)
class Recipe:
    """The inputs of a pseudo-margin, its sizes and its training.

    A feature vector has `features` numbers; `classes` is 0 for a pseudo-margin that reads no margins of a head.
    `validation_loss` is the mean of `((prediction - margin) / scale)^2` over the held-out points; `points` includes
    these. `model` is the sha256 of the weights of the network; model, norm and data are None if unknown.
    """

    features: Annotated[int, Meta(ge=1, le=2**31)]
    classes: Annotated[int, Meta(ge=0, le=2**24)]
    layers: Annotated[int, Meta(ge=1, le=1000)]
    width: Annotated[int, Meta(ge=1, le=2**16)]
    seed: Count
    validation_loss: Annotated[float, Meta(ge=0, le=1)]
    points: Annotated[int, Meta(ge=FEWEST, le=2**40)]
    norm: str | None
    model: Digest | None = None
    data: Source | None = None

    def __post_init__(self) -> None:
        if self.classes == 1:
            raise ParameterError("classes must be 0, or at least 2; found 1")
        if self.norm is not None:
            check_norm(self.norm)


class MarginRegressor(nn.Module):
    """Map features `[B, d]` to margins `[B]`, double precision; NaN for features that are not finite.

    `scale * sigmoid(W_6 relu(W_5 ... relu(W_1 (u - mean) / std)))`, without the biases; `scale` is the margin at which
    the output saturates. `u` holds the features `h` and, if the head of the network is given, its margins in feature
    space in increasing order, `(z_t - z_j) / ||w_t - w_j||_q` for every class `j != t`: hard functions of `h` to learn.
    """

    head_weight: Tensor
    head_bias: Tensor
    mean: Tensor
    std: Tensor
    scale: Tensor

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        features, classes, width = recipe.features, recipe.classes, recipe.width
        inputs = features + max(0, classes - 1)
        sizes = [inputs] + [width] * recipe.layers
        hidden = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair, dtype=torch.float32), nn.ReLU())]
        self.body = nn.Sequential(*hidden, nn.Linear(width, 1, dtype=torch.float32))
        self._order = float(DUAL_ORDER[recipe.norm or "l2"])
        self.register_buffer("head_weight", torch.zeros(classes, features, dtype=torch.float64))
        self.register_buffer("head_bias", torch.zeros(classes, dtype=torch.float64))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(inputs, dtype=torch.float32))
        self.register_buffer("std", torch.ones(inputs, dtype=torch.float32))

    @classmethod
    def blank(cls, recipe: Recipe) -> MarginRegressor:
        """Return a regressor on the meta device, which draws nothing from the global random stream."""
        with torch.device("meta"):
            return cls(recipe)

    def read(self, features: Tensor) -> Tensor:
        """Return the inputs of the perceptron, `[B, d]` or `[B, d + C - 1]`, single precision."""
        weight = self.head_weight
        if not len(weight):
            return features.float()
        logits = features.double() @ weight.mT + self.head_bias
        predicted = logits.argmax(dim=1, keepdim=True)
        gaps = logits.gather(1, predicted) - logits
        margins = gaps / row_distances(weight, self._order)[predicted[:, 0]].clamp_min(TINY)
        ordered = margins.scatter(1, predicted, torch.inf).sort(dim=1).values[:, :-1]
        return torch.cat((features.float(), ordered.float()), dim=1)

    def share(self, inputs: Tensor) -> Tensor:
        """Return the prediction as a share of the scale, `[B]`, for the inputs of the perceptron."""
        return self.body((inputs - self.mean) / self.std).squeeze(1).sigmoid()

    def forward(self, features: Tensor) -> Tensor:
        """Return the margins `[B]` of features `[B, d]`."""
        margins = self.scale * self.share(self.read(features)).double()
        return torch.where(features.isfinite().all(dim=1), margins, torch.nan)


def choose_scale(margins: np.ndarray) -> float:
    """Return the margin at which the output saturates, for `margins` `[n]` without NaN."""
    finite = margins[np.isfinite(margins)]
    scale = 0.0
    if finite.size:
        lower_quartile, upper_quartile, high = np.quantile(finite, (0.25, 0.75, SCALE_QUANTILE))
        scale = float(min(high, upper_quartile + FENCE * (upper_quartile - lower_quartile)) or high)
    if scale <= 0.0:
        raise DataError("no_such_score", f"none of {finite.size} finite margins is positive; nothing can be learned")
    return scale


def train(
    recipe: Recipe, head: Head | None, features: Tensor, margins: np.ndarray, epochs: int
) -> tuple[Recipe, MarginRegressor]:
    """Train a regressor, and return the recipe with its held-out error and the regressor with the smallest such error.

    Training takes a single thread, so that the weights do not depend on the number of threads. Features, `[n, d]`, are
    finite and of double precision; margins beyond the scale count as the scale.
    """
    scale = choose_scale(margins)
    with standard_modes(torch.device("cpu")), one_thread():
        generator = torch.Generator().manual_seed(recipe.seed)
        regressor = MarginRegressor.blank(recipe).to_empty(device="cpu")
        if head is not None:
            regressor.head_weight.copy_(head.weight.detach())
            regressor.head_bias.copy_(torch.zeros(len(head.weight)) if head.bias is None else head.bias.detach())
        x, y = regressor.read(features), torch.from_numpy(np.clip(margins / scale, 0.0, 1.0)).float()
        order = torch.randperm(len(x), generator=generator)
        held_out, training = order.tensor_split([max(1, round(HELD_OUT * len(x)))])
        _initialise(regressor, x[training], scale, generator)
        best_epoch, best_loss, best_state = 0, math.inf, copy.deepcopy(regressor.state_dict())
        optimiser = torch.optim.Adam(regressor.parameters(), lr=RATE)
        for epoch in range(1, epochs + 1):
            for rows in training[torch.randperm(len(training), generator=generator)].split(BATCH):
                optimiser.zero_grad()
                (regressor.share(x[rows]) - y[rows]).square().mean().backward()
                optimiser.step()
            with torch.no_grad():
                loss = float((regressor.share(x[held_out]) - y[held_out]).double().square().mean())
            if loss < best_loss:
                best_epoch, best_loss, best_state = epoch, loss, copy.deepcopy(regressor.state_dict())
            if epoch - best_epoch >= PATIENCE:
                break
    if not math.isfinite(best_loss):
        raise DataError("too_few_points", f"the error is not finite after {epochs} passes; rescale the features")
    regressor.load_state_dict(best_state)
    return replace(recipe, validation_loss=best_loss), regressor.requires_grad_(False).eval()


def _initialise(regressor: MarginRegressor, features: Tensor, scale: float, generator: torch.Generator) -> None:
    """Set uniform weights (He et al. 2015), zero biases, the scale, and the standardisation of `features`."""
    with torch.no_grad():
        for layer in regressor.body:
            if isinstance(layer, nn.Linear):
                bound = math.sqrt(6.0 / layer.in_features)
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
        # The last layer starts near 0, so that the sigmoid starts in the middle and not where its slope vanishes.
        regressor.body[-1].weight.mul_(0.1)  # type: ignore[operator]
        regressor.scale.fill_(scale)
        std = features.std(dim=0, correction=0)
        regressor.mean.copy_(features.mean(dim=0))
        regressor.std.copy_(torch.where(std > 0, std, 1.0))
