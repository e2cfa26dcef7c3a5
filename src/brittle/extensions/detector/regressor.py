"""The network of a surrogate, its recipe, and its reproducible training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from brittle.errors import DataError, ParameterError
from brittle.estimate import DUAL_ORDER, check_norm
from brittle.extensions.detector.identity import Identity, Source
from brittle.model.evaluation_mode import one_thread, standard_modes
from brittle.model.head import Head
from brittle.scores.one_pass import LARGEST_FLOAT, row_distances
from brittle.store.strict_json import Count

FEWEST = 20  # minimum number of points
FOLDS = 4  # networks that are learned, each from the points of the other folds, and averaged
BATCH, RATE = 128, 1e-3  # points in a step, and Adam's step size
PATIENCE = 20  # passes without improvement before training stops
RIDGE = 1e-3  # weight decay of the fit to the smallest margins
NEAREST = 3  # smallest margins that this fit reads
UNIT = 1e-3  # margins are read in this share of the median smallest margin, so that a tie has a logarithm
TINY = 1e-12  # distance between the rows of two classes below which they count as equal

SCALE_QUANTILE, FENCE = 0.99, 3.0
"""The margin scale is a quantile of the finite margins, at most `FENCE` interquartile ranges above the upper quartile
(Tukey's far fence): if some searches end far off, the other margins must not vanish beside them."""

Form = Literal["head", "paper", "margins"]
"""The inputs of a surrogate: the features and the margins of the head, the features alone, or these margins alone."""


@dataclass(frozen=True)
class Recipe:
    """The inputs of a surrogate, its size and its training.

    A feature vector has `features` numbers; `classes` is 0 for a surrogate that reads no margins of a head. Each of the
    `FOLDS` networks has `width` hidden units. `validation_loss` is the mean of `((prediction - target) / scale)^2` over
    the points, each predicted by the network that did not learn from it. `targets` are the labels of the flip
    probabilities that were learned, by increasing sigma; empty for margins. `head` is the name of the last linear
    layer, or None to search for it; with `reads_logits` there is none, and the features are the logits behind the
    numbers of a row. `model`, `norm` and `data` are None if unknown.
    """

    features: Annotated[int, Meta(ge=1, le=2**31)]
    classes: Annotated[int, Meta(ge=0, le=2**24)]
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
        if self.classes == 1 or (self.form == "paper") != (self.classes == 0):
            raise ParameterError(f"the form {self.form} does not fit {self.classes} classes")
        if self.targets and self.form == "paper":
            raise ParameterError("the form paper is one of margins; a probability has the form head or margins")
        if self.norm is not None:
            check_norm(self.norm)

    @property
    def uses_features(self) -> bool:
        """True where the features of the last linear layer are read."""
        return self.form != "margins" and not self.reads_logits


class Regressor(nn.Module):
    r"""Map features `[B, d]` and logits `[B, C]` to margins `[B]`, or to probabilities `[B, K]`, double precision.

    $$\mathrm{scale} \cdot \mathrm{sigmoid}(l_k), \quad l_k = o_1 - \sum_{1 < j \le k} \log(1 + e^{o_j}), \quad
    o = V \mathrm{relu}(W u + b_t) + c$$

    of as many outputs as targets, so that a probability falls with sigma. `scale` is the margin at which the output
    saturates, 1 of probabilities. `u` holds the features (not in the form `margins`) and, if logits are given, the
    margins in feature space `m_j = (z_t - z_j) / ||w_t - w_j||_q` to every class `j`, in a small unit, and
    `log(1 + m)` of the smallest, `NEAREST` beside that to the predicted class `t`. The bias `b_t` is that of this
    class, as noise drives a network towards some classes. NaN where a feature or a logit is not finite.
    """

    hidden_weight: Tensor
    output_weight: Tensor
    output_bias: Tensor
    hidden_bias: Tensor
    reciprocals: Tensor
    scale: Tensor
    falls: Tensor

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        outputs, classes, width = max(1, len(recipe.targets)), recipe.classes, FOLDS * recipe.width
        self._form, self._of_margins = recipe.form, not recipe.targets
        self.nearest = min(NEAREST, max(0, classes - 1))
        inputs = (0 if recipe.form == "margins" else recipe.features) + classes + (self.nearest + 1) * (classes > 0)
        shapes = {"hidden_weight": (inputs, width), "hidden_bias": (max(1, classes), width)}
        shapes |= {"output_weight": (width, outputs + 1), "output_bias": (outputs + 1,)}
        shapes["reciprocals"] = classes, classes  # what the margins of each predicted class are multiplied by
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float32))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        falls = torch.ones(outputs + 1, outputs, dtype=torch.float32, device="cpu").triu(-1).neg()
        falls[0] = 1.0
        self.register_buffer("falls", falls, persistent=False)

    def read(self, features: Tensor | None, logits: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the inputs of the network, `[B, *]`, single precision, and the biases of its hidden units.

        The last `nearest` inputs are 0 at a tie.
        """
        parts = [] if self._form == "margins" or features is None else [features]
        biases = self.hidden_bias
        if self._form != "paper":
            assert logits is not None
            largest, predicted = logits.max(dim=1)
            biases = self.hidden_bias.index_select(0, predicted)
            margins = (largest[:, None] - logits) * self.reciprocals.index_select(0, predicted)
            parts += [margins, margins.topk(self.nearest + 1, dim=1, largest=False).values.log1p()]
        inputs = torch.cat(parts, dim=1)
        return inputs if inputs.dtype == torch.float32 else inputs.float(), biases

    def shares(self, inputs: Tensor, biases: Tensor, doubt: Tensor) -> Tensor:
        """Return the predictions as shares of the scale, `[B, K]`; NaN where `doubt`, `[B, 1]`, is, and not 0."""
        weights = self.hidden_weight, biases, self.output_weight, self.output_bias
        return predict(inputs, weights, self.falls, doubt).double().sigmoid()

    def forward(self, features: Tensor | None, logits: Tensor | None) -> Tensor:
        """Return the margins `[B]` or the probabilities `[B, K]` of features `[B, d]` and logits `[B, C]`."""
        inputs, biases = self.read(features, logits)
        total = inputs.sum(dim=1, keepdim=True)
        values = self.shares(inputs, biases, total - total)
        return self.scale * values[:, 0] if self._of_margins else values


def predict(inputs: Tensor, weights: Sequence[Tensor], falls: Tensor, start: Tensor) -> Tensor:
    """Return the logits `l` of `Regressor` plus `start`, `[B, K]`, from inputs `[B, *]`.

    The outputs of the network are `o_1`, `-o_1` and the other `o_j`; `falls`, `[K + 1, K]`, sums their softplus, with
    `x = softplus(x) - softplus(-x)` for the first.
    """
    hidden_weight, hidden_bias, output_weight, output_bias = weights
    outputs = torch.addmm(output_bias, torch.addmm(hidden_bias, inputs, hidden_weight).relu(), output_weight)
    return torch.addmm(start, nn.functional.softplus(outputs), falls)


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
    recipe: Recipe, head: Head | None, features: Tensor, logits: Tensor | None, targets: np.ndarray, epochs: int
) -> tuple[Tensor, Recipe, Regressor]:
    """Train a regressor, and return the cross entropy of each point, which was not learned from for it, `[n]`, the
    recipe, and the regressor.

    Each of `FOLDS` networks learns from the points outside its fold, until the cross entropy in its fold rises; their
    outputs are averaged. Training takes a single thread, so that the weights do not depend on the number of threads.
    Features, `[n, d]`, are finite; targets are margins, `[n]`, of which those beyond the scale count as the scale, or
    probabilities, `[n, K]`. A margin as a share of the scale is learned as a probability is.
    """
    scale = 1.0 if recipe.targets else choose_scale(targets)
    shares = torch.from_numpy(np.clip(targets / scale, 0.0, 1.0)).float().reshape(len(targets), -1)
    with standard_modes(torch.device("cpu")), one_thread():
        generator = torch.Generator().manual_seed(recipe.seed)
        regressor = Regressor(recipe)
        regressor.scale.fill_(scale)
        if logits is not None:
            _measure(regressor, head, recipe, logits)
        inputs = regressor.read(features, logits)[0]
        if logits is not None:
            inputs = torch.cat((nn.functional.one_hot(logits.argmax(dim=1), recipe.classes), inputs), dim=1)
        std, mean = torch.std_mean(inputs, dim=0, correction=0)
        std = torch.where(std > 0, std, 1.0)
        data = Rows((inputs - mean) / std, shares, regressor.nearest, regressor.falls)
        order = torch.randperm(len(inputs), generator=generator)
        networks, predictions = [], torch.empty_like(shares)
        for fold in order.tensor_split(FOLDS):
            others = order[~torch.isin(order, fold)]
            start = _start(data, others, recipe.width, generator)
            networks.append(_improve(start, data, others, fold, epochs, generator))
            predictions[fold] = data.predict(networks[-1], fold)
        _join(regressor, networks, mean, std)
    losses = cross_entropy(predictions, shares, reduction="none").mean(dim=1)
    if not bool(losses.isfinite().all()):
        raise DataError("too_few_points", f"the error is not finite after {epochs} passes; rescale the features")
    error = float((predictions.sigmoid() - shares).square().double().mean())
    return losses, replace(recipe, validation_loss=error), regressor.eval()


class Rows(NamedTuple):
    """Rows that teach: standardised inputs `[n, *]`, the last `nearest` of them of the smallest margins, and shares of
    the scale `[n, K]`; and what sums the falls of a prediction."""

    inputs: Tensor
    shares: Tensor
    nearest: int
    falls: Tensor

    def predict(self, weights: Sequence[Tensor], rows: Tensor) -> Tensor:
        """Return the logits of the predictions of a network at some rows, `[B, K]`."""
        hidden_weight, hidden_bias, output_weight, output_bias = weights
        weights = hidden_weight, hidden_bias, mirror(output_weight), mirror(output_bias)
        return predict(self.inputs[rows], weights, self.falls, self.inputs.new_zeros(1))

    def error(self, weights: Sequence[Tensor], rows: Tensor) -> Tensor:
        """Return the cross entropy of a network at some rows."""
        return cross_entropy(self.predict(weights, rows), self.shares[rows])


def mirror(outputs: Tensor) -> Tensor:
    """Return `o_1`, `-o_1` and the other outputs, `[..., K + 1]`."""
    return torch.cat((outputs[..., :1], -outputs[..., :1], outputs[..., 1:]), dim=-1)


def _measure(regressor: Regressor, head: Head | None, recipe: Recipe, logits: Tensor) -> None:
    """Set what margins are divided by: the distances between the rows of the head, 1 without one, and the unit."""
    regressor.reciprocals.fill_(1.0)
    if head is not None:
        distances = row_distances(head.weight.detach().double().cpu(), float(DUAL_ORDER[recipe.norm or "l2"]))
        regressor.reciprocals.copy_(1.0 / distances.clamp_min(TINY))
    unit = UNIT * float(regressor.read(logits, logits)[0][:, -regressor.nearest].expm1().median())
    regressor.reciprocals.div_(unit if 0.0 < unit < math.inf else 1.0).clamp_(1.0 / LARGEST_FLOAT, LARGEST_FLOAT)


def _start(data: Rows, rows: Tensor, width: int, generator: torch.Generator) -> list[Tensor]:
    """Return the weights of a network that gives the logistic fit to the smallest margins, from which it learns on.

    It is in the first hidden units, two for each margin; the others have uniform weights (He et al. 2015) and no part
    in the output yet. So where nothing else can be learned, the order is that of the margins.
    """
    size, outputs, reads = data.inputs.shape[1], data.shares.shape[1], min(data.nearest, width // 2)
    first = size - data.nearest  # of the inputs that are read
    smallest = data._replace(inputs=data.inputs[:, first : first + reads])
    slopes, bias = (data.inputs.new_zeros(shape, requires_grad=True) for shape in ((reads, outputs), outputs))
    optimiser = torch.optim.LBFGS([slopes, bias], max_iter=100, line_search_fn="strong_wolfe")
    units = torch.cat((torch.eye(reads), -torch.eye(reads)), dim=1).float()

    def error() -> Tensor:
        optimiser.zero_grad()
        weights = units, slopes.new_zeros(2 * reads), torch.cat((slopes, -slopes)), bias
        total = smallest.error(weights, rows) + RIDGE * slopes.square().sum()
        total.backward()
        return total

    optimiser.step(error)  # type: ignore[arg-type] a tensor will do
    bound = math.sqrt(6.0 / size)
    hidden = data.inputs.new_empty(size, width).uniform_(-bound, bound, generator=generator)
    hidden[:, : 2 * reads] = 0.0
    hidden[first : first + reads, : 2 * reads] = units
    output = data.inputs.new_zeros(width, outputs)
    output[: 2 * reads] = torch.cat((slopes, -slopes)).detach()
    return [hidden, hidden.new_zeros(width), output, bias.detach()]


def _improve(
    weights: list[Tensor], data: Rows, training: Tensor, held_out: Tensor, epochs: int, generator: torch.Generator
) -> list[Tensor]:
    """Train weights on the rows `training`, and return those with the smallest error at `held_out`."""
    weights = [tensor.requires_grad_() for tensor in weights]
    best_epoch, best_loss, best_weights = 0, math.inf, weights
    optimiser = torch.optim.Adam(weights, lr=RATE)
    for epoch in range(epochs + 1):
        with torch.no_grad():
            loss = float(data.error(weights, held_out))
        if loss < best_loss:
            best_epoch, best_loss, best_weights = epoch, loss, [tensor.detach().clone() for tensor in weights]
        if epoch - best_epoch >= PATIENCE:
            break
        for rows in training[torch.randperm(len(training), generator=generator)].split(BATCH):
            optimiser.zero_grad()
            data.error(weights, rows).backward()
            optimiser.step()
    return [tensor.detach() for tensor in best_weights]


def _join(regressor: Regressor, networks: list[list[Tensor]], mean: Tensor, std: Tensor) -> None:
    """Set the weights of the regressor: the mean of the networks, which read standardised inputs, side by side.

    The weights of the predicted class, which stand in front of the others, become a bias for each class.
    """
    hidden, hidden_bias, output, output_bias = zip(*networks, strict=True)
    weight = torch.cat(hidden, dim=1).double() / std[:, None]
    bias = torch.cat(hidden_bias) - mean.double() @ weight
    classes = len(weight) - len(regressor.hidden_weight)
    regressor.hidden_weight.copy_(weight[classes:])
    regressor.hidden_bias.copy_(weight[:classes] + bias if classes else bias)
    regressor.output_weight.copy_(mirror(torch.cat(output)) / len(networks))
    regressor.output_bias.copy_(mirror(torch.stack(output_bias).mean(dim=0)))
