"""The network of a surrogate, its recipe, and its reproducible training."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from brittle.errors import DataError, ParameterError
from brittle.estimate import DUAL_ORDER, check_norm
from brittle.extensions.detector.identity import Identity, Source
from brittle.model.evaluation_mode import one_thread, standard_modes
from brittle.model.head import Head
from brittle.scores.one_pass import row_distances
from brittle.store.strict_json import Count

FEWEST = 20  # minimum number of points
BATCH, RATE = 128, 1e-3  # points in a step, and Adam's step size

SCALE_QUANTILE, FENCE = 0.99, 3.0
"""The margin scale is a quantile of the finite margins, at most `FENCE` interquartile ranges above the upper quartile
(Tukey's far fence): if some searches end far off, the other margins must not vanish beside them."""

HELD_OUT = 0.2  # share of the points that validates, and so decides when training stops
PATIENCE = 20  # passes without improvement before training stops
TINY = 1e-12  # distance between the rows of two classes below which they count as equal

Form = Literal["head", "paper", "margins"]
"""The inputs of a surrogate: the features and the margins of the head, the features alone, or these margins alone."""

FOLDS = 3  # parts of the points that teach, each of which judges once the forms that learned from the others


@dataclass(frozen=True)
class Recipe:
    """The inputs of a surrogate, its sizes and its training.

    A feature vector has `features` numbers; `classes` is 0 for a surrogate that reads no margins of a head.
    `validation_loss` is the mean of `((prediction - target) / scale)^2` over the held-out points; `points` includes
    these. `targets` are the labels of the flip probabilities that were learned, by increasing sigma; empty for margins.
    `head` is the name of the last linear layer, or None to search for it; with `reads_logits` there is none, and the
    features are the logits behind the numbers of a row. `model`, `norm` and `data` are None if unknown.
    """

    features: Annotated[int, Meta(ge=1, le=2**31)]
    classes: Annotated[int, Meta(ge=0, le=2**24)]
    layers: Annotated[int, Meta(ge=1, le=1000)]
    width: Annotated[int, Meta(ge=1, le=2**16)]
    seed: Count
    validation_loss: Annotated[float, Meta(ge=0, le=1)]
    points: Annotated[int, Meta(ge=FEWEST, le=2**40)]
    norm: str | None
    form: Form = "head"
    targets: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    head: str | None = None
    reads_logits: bool = False
    model: Identity | None = None
    data: Source | None = None

    def __post_init__(self) -> None:
        if self.classes == 1:
            raise ParameterError("classes must be 0, or at least 2; found 1")
        if self.form == "margins" and not self.classes:
            raise ParameterError("the form margins reads the margins of a head, and classes is 0")
        if self.norm is not None:
            check_norm(self.norm)


class Regressor(nn.Module):
    r"""Map features `[B, d]` to margins `[B]`, or to probabilities `[B, K]`, double precision.

    $$\mathrm{scale} \cdot \mathrm{sigmoid}(l_1), \qquad l_k = l_{k-1} - a_k \log(1 + e^{o_k}), \quad l_1 = o_1 + a_1$$

    with `o = W_n relu(... relu(W_1 (u - mean) / std))`, without the biases, of as many outputs as targets, so that a
    probability falls with sigma. `scale` is the margin at which the output saturates, 1 of probabilities; `a` is the
    `adjustment` of these. `u` holds the features `h` and, if the head of the network is given, its margins in feature
    space in increasing order, `(z_t - z_j) / ||w_t - w_j||_q` for every class `j != t`: hard functions of `h` to learn.
    For probabilities also the margins by class and the predicted class: noise drives a network towards some classes.
    NaN for features that are not finite.
    """

    head_weight: Tensor
    head_bias: Tensor
    distances: Tensor
    mean: Tensor
    std: Tensor
    scale: Tensor
    adjustment: Tensor

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        features, classes, width = recipe.features, recipe.classes, recipe.width
        of_margins = not recipe.targets
        inputs = (
            (0 if recipe.form == "margins" else features) + max(0, classes - 1) + (0 if of_margins else 2 * classes)
        )
        sizes, outputs = [inputs] + [width] * recipe.layers, max(1, len(recipe.targets))
        hidden = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair, dtype=torch.float32), nn.ReLU())]
        self.body = nn.Sequential(*hidden, nn.Linear(width, outputs, dtype=torch.float32))
        self._order = float(DUAL_ORDER[recipe.norm or "l2"])
        self._form, self._of_margins = recipe.form, of_margins
        self.register_buffer("head_weight", torch.zeros(classes, features, dtype=torch.float64))
        self.register_buffer("head_bias", torch.zeros(classes, dtype=torch.float64))
        self.register_buffer("distances", torch.zeros(classes, classes, dtype=torch.float64), persistent=False)
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(inputs, dtype=torch.float32))
        self.register_buffer("std", torch.ones(inputs, dtype=torch.float32))
        self.register_buffer("adjustment", torch.ones(outputs, dtype=torch.float32))

    @classmethod
    def blank(cls, recipe: Recipe) -> Regressor:
        """Return a regressor on the meta device, which draws nothing from the global random stream."""
        with torch.device("meta"):
            return cls(recipe)

    def measure_head(self) -> None:
        """Compute the distances between the rows of the head, which every pass divides by, from its weights."""
        self.distances = row_distances(self.head_weight, self._order).clamp_min(TINY)

    def read(self, features: Tensor) -> Tensor:
        """Return the inputs of the perceptron, `[B, *]`, single precision."""
        weight = self.head_weight
        if not len(weight):
            return features.float()
        logits = nn.functional.linear(features.double(), weight, self.head_bias)
        predicted = logits.argmax(dim=1, keepdim=True)
        gaps = logits.gather(1, predicted) - logits
        margins = gaps / self.distances[predicted[:, 0]]
        ordered = margins.scatter(1, predicted, torch.inf).sort(dim=1).values[:, :-1]
        parts = [] if self._form == "margins" else [features]
        parts += (
            [ordered] if self._of_margins else [ordered, margins, torch.zeros_like(gaps).scatter(1, predicted, 1.0)]
        )
        return torch.cat([part.float() for part in parts], dim=1)

    def steps(self, inputs: Tensor) -> Tensor:
        """Return `l_1` and the falls from there, `[B, K]`, before the adjustment, for the inputs of the perceptron."""
        outputs = self.body((inputs - self.mean) / self.std)
        return torch.cat((outputs[:, :1], nn.functional.softplus(outputs[:, 1:])), dim=1)

    def logits(self, steps: Tensor, adjustment: Tensor | None = None) -> Tensor:
        """Return the logits of the prediction as a share of the scale, `[B, K]`, from `steps`, adjusted if that is
        given."""
        if adjustment is not None:
            steps = torch.cat((steps[:, :1] + adjustment[0], steps[:, 1:] * adjustment[1:]), dim=1)
        first, falls = steps[:, :1], steps[:, 1:].cumsum(dim=1)
        return torch.cat((first, first - falls), dim=1)

    def forward(self, features: Tensor) -> Tensor:
        """Return the margins `[B]`, or the probabilities before the adjustment `[B, K]`, of features `[B, d]`."""
        values = self.scale * self.logits(self.steps(self.read(features))).double().sigmoid()
        values = torch.where(features.isfinite().all(dim=1, keepdim=True), values, torch.nan)
        return values[:, 0] if self._of_margins else values

    def probabilities(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of features `[B, d]` after the adjustment and before it, `[B, K]` each."""
        steps, finite = self.steps(self.read(features)), features.isfinite().all(dim=1, keepdim=True)
        adjusted, plain = (self.logits(steps, adjustment) for adjustment in (self.adjustment, None))
        adjusted, plain = (torch.where(finite, logits.double().sigmoid(), torch.nan) for logits in (adjusted, plain))
        return adjusted, plain

    def adjust(self, features: Tensor, probabilities: Tensor) -> None:
        """Choose the adjustment that gives the predictions at `features` the means of `probabilities`, `[n, K]`.

        By bisection, as a mean rises with `a_1` and, at the further sigmas, falls with `a_k`. Where the mean of the
        probabilities does not fall with sigma, `a_k` is 0.
        """
        steps, means = self.steps(self.read(features)).double(), probabilities.double().mean(dim=0).tolist()
        start, slope, (low, high) = torch.zeros(len(steps)), 1.0, (-50.0, 50.0)
        for k, mean in enumerate(means):
            if k:
                slope, (low, high) = -1.0, (0.0, 100.0)
            direction = steps[:, k] if k else torch.ones(len(steps))
            start = start if k else steps[:, 0]
            for _ in range(60):
                middle = (low + high) / 2.0
                is_larger = float((start + slope * middle * direction).sigmoid().mean()) > mean
                low, high = (low, middle) if is_larger == (slope > 0.0) else (middle, high)
            self.adjustment[k] = low
            start = start + slope * low * direction


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
    recipe: Recipe, head: Head | None, features: Tensor, targets: np.ndarray, epochs: int
) -> tuple[Recipe, Regressor]:
    """Train a regressor, and return the recipe with its held-out error and the regressor with the smallest such error.

    Training takes a single thread, so that the weights do not depend on the number of threads. Features, `[n, d]`, are
    finite and of double precision; targets are margins, `[n]`, of which those beyond the scale count as the scale, or
    probabilities, `[n, K]`, which minimise the cross entropy.
    """
    scale = 1.0 if recipe.targets else choose_scale(targets)
    shares = torch.from_numpy(np.clip(targets / scale, 0.0, 1.0)).float().reshape(len(targets), -1)

    def logits_at(rows: Tensor) -> Tensor:
        return regressor.logits(regressor.steps(x[rows]))

    def squared_error(rows: Tensor) -> Tensor:
        return (logits_at(rows).sigmoid() - shares[rows]).square()

    def cross_entropy(rows: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(logits_at(rows), shares[rows], reduction="none")

    with standard_modes(torch.device("cpu")), one_thread():
        generator = torch.Generator().manual_seed(recipe.seed)
        regressor = Regressor.blank(recipe).to_empty(device="cpu")
        if head is not None:
            regressor.head_weight.copy_(head.weight.detach())
            regressor.head_bias.copy_(torch.zeros(len(head.weight)) if head.bias is None else head.bias.detach())
        regressor.measure_head()
        x = regressor.read(features)
        order = torch.randperm(len(x), generator=generator)
        held_out, training = order.tensor_split([max(1, round(HELD_OUT * len(x)))])
        _initialise(regressor, x[training], scale, generator)
        loss = cross_entropy if recipe.targets else squared_error
        best_epoch, best_loss, best_state = 0, math.inf, copy.deepcopy(regressor.state_dict())
        optimiser = torch.optim.Adam(regressor.parameters(), lr=RATE)
        for epoch in range(1, epochs + 1):
            for rows in training[torch.randperm(len(training), generator=generator)].split(BATCH):
                optimiser.zero_grad()
                loss(rows).mean().backward()
                optimiser.step()
            with torch.no_grad():
                error = float(squared_error(held_out).double().mean())
            if error < best_loss:
                best_epoch, best_loss, best_state = epoch, error, copy.deepcopy(regressor.state_dict())
            if epoch - best_epoch >= PATIENCE:
                break
    if not math.isfinite(best_loss):
        raise DataError("too_few_points", f"the error is not finite after {epochs} passes; rescale the features")
    regressor.load_state_dict(best_state)
    return replace(recipe, validation_loss=best_loss), regressor.requires_grad_(False).eval()


def choose_form(recipe: Recipe, head: Head, features: Tensor, truth: np.ndarray, epochs: int) -> Form:
    """Return the form whose predictions have the smaller squared error at points that they were not learned from."""
    folds = np.array_split(np.random.default_rng(recipe.seed).permutation(len(truth)), FOLDS)
    errors: dict[Form, float] = dict.fromkeys(("margins", "head"), 0.0)
    for form in errors:
        for fold in folds:
            teach = np.setdiff1d(np.arange(len(truth)), fold)
            regressor = train(replace(recipe, form=form), head, features[teach], truth[teach], epochs)[1]
            errors[form] += float(np.square(regressor(features[fold]).numpy() - truth[fold]).sum())
    return min(errors, key=lambda form: errors[form])


def _initialise(regressor: Regressor, features: Tensor, scale: float, generator: torch.Generator) -> None:
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
        regressor.adjustment.fill_(1.0)
        regressor.adjustment[0] = 0.0
        std = features.std(dim=0, correction=0)
        regressor.mean.copy_(features.mean(dim=0))
        regressor.std.copy_(torch.where(std > 0, std, 1.0))
