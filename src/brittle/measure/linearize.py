"""Logits and Gram matrix of the logits: at the point (Taylor), or averaged over noise (MMSE)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.measure.base import Measurement, NetworkTraits, Passes, check_classes, check_draws
from brittle.measure.forward import Clean, competitors_kept, look
from brittle.measure.noisy_margins import Votes
from brittle.measure.rows import join
from brittle.measure.sampling import PAIRS, SINGLE, NoiseChunk, add_in_turn, noisy_chunks
from brittle.model.classifier import Classifier
from brittle.noise.base import Action, Noise

COLUMNS = 2**14  # input coordinates that are contracted at a time in double precision
JACOBIAN_NUMBERS = 2**26  # numbers in the Jacobians of points that are differentiated together, or of copies in a pass


@dataclass(frozen=True)
class Linearization:
    """A linear model of the network around each point: all that the linear theory needs.

    For noise with covariance `s^2 K` the linear model's logits are normal with mean `logits` and covariance
    `s^2 gram`, `gram = J K J^T` with `J` the Jacobian of the logits.

    Fields that noise gives (`draws`, `quadratic_gram`, `votes`) are None at the point.

    Attributes:
        logits: `[B, C]`, float64.
        gram: `[B, M, M]`, float64, of the classes in `classes`; `M = C` up to 100 classes.
        classes: of the Gram's rows, `[B, M]`, in class order: the predicted class and its competitors.
        predicted: class of the clean input, `[B]`.
        tied: whether that was a tie, `[B]`.
        passes: through the network per point, forward and backward.
        draws: noisy copies that were averaged.
        nonfinite: how many of these, or of the points themselves, had NaN or infinite logits, `[B]`.
        dimension: coordinates of an input, `n`.
        lengths: norm of the gradient of each competitor's margin, `[B, M - 1]`, if asked for.
        quadratic_gram: `[B, M, M]`, float64: Gram of logits quadratic in the noise.
        votes: of the noisy copies.
    """

    logits: Tensor
    gram: Tensor
    classes: Tensor
    predicted: Tensor
    tied: Tensor
    passes: int
    draws: int | None
    nonfinite: Tensor
    dimension: int
    lengths: Tensor | None = None
    quadratic_gram: Tensor | None = None
    votes: Votes | None = None

    def quadratic(self) -> Linearization:
        """Return the same with `quadratic_gram` in the place of `gram`; itself at the point, where it has none."""
        return self if self.quadratic_gram is None else replace(self, gram=self.quadratic_gram)


def contract(jacobian: Tensor, action: Action | None) -> Tensor:
    """`J K J^T` in double precision, `[B, M, M]`, for `jacobian` `[B, M, n]` and `v -> K v`; None is `K = I`."""
    if action is not None:
        return jacobian.double() @ action(jacobian.double()).mT
    gram = jacobian.new_zeros(*jacobian.shape[:2], jacobian.shape[1], dtype=torch.float64)
    for columns in jacobian.split(COLUMNS, dim=2):
        exact = columns.double()
        gram.baddbmm_(exact, exact.mT)
    return gram


def action_at(shape: Noise | None, clean: Clean) -> Action | None:
    """`v -> K v` at the points, for `contract`; None for the identity."""
    return None if shape is None else shape.covariance_at(clean.inputs, clean.varies)


def last(classes: Tensor, predicted: Tensor) -> Tensor:
    """Return the order of the classes `classes` `[B, M]` in which the predicted one comes last, `[B, M]`."""
    return (classes == predicted[:, None]).int().argsort(dim=1, stable=True)


def quadratic_gram(of_means: Tensor, even: Tensor, odd: Tensor, units: int) -> Tensor:
    """Return `(a + b) / 2`, from gradients at noisy copies: the covariance of functions quadratic in the noise.

    With `a` the Gram matrix of the expected gradients and `b` the expected Gram matrix of single ones, both in the
    metric `K`, functions `g` of normal noise of covariance `s^2 K` have the covariance `s^2 (a + b) / 2`, as far as
    they are quadratic. In the Hermite expansion of `g`, with `c_k` the covariance of its terms of order `k`,

        Cov g = sum_k c_k,  s^2 a = c_1,  s^2 b = sum_k k c_k,  s^2 (a + b) / 2 = c_1 + c_2 + sum_{k > 2} (k / 2) c_k.

    So `s^2 a <= Cov g <= s^2 b`, and the mean of the two is exact for linear functions under any noise, and for
    quadratic ones under normal noise. Of higher orders it counts too much: of cubic terms one and a half times.

    The gradients of a unit of noise have an even part, the half-sum of a pair, and an odd one, the half-difference, 0
    for a single copy. `a` is free of the bias `Cov / units` of the Gram matrix of a mean: over products of different
    units alone it is `(units of_means - even) / (units - 1)`, with `even` and `odd` the means over the units. With
    `b = even + odd` the result is a sum of positive semidefinite matrices. Of a single unit `a` is `of_means`, which in
    a pair has no bias where functions are quadratic.

    Source: this library; the two bounds are the first of C. Houdre, A. Kagan, Variance inequalities for functions of
    Gaussian variables, J. Theor. Probab. 8 (1995).
    """
    if units == 1:
        return of_means + odd / 2
    return (units * of_means + (units - 2) * even) / (2 * (units - 1)) + odd / 2


@dataclass(frozen=True)
class Linearize(Measurement):
    """Logits `z` and Gram matrix `J K J^T`.

    Without noise: at the point, one Jacobian for every sigma. With noise: both averaged over `draws` noisy copies,
    `z = mean_j z(x + e_j)` and `J = mean_j J(x + e_j)`. Antithetic pairs `(e, -e)` remove the noise of the mean
    exactly for a linear model. `mean(J) K mean(J)^T` overestimates the Gram of the expected Jacobian by
    `Cov(J) / draws`, and leaves out what the variance of `J` adds to that of the logits; `quadratic_gram` does neither.

    `shape` decides `K`, None for the identity. Without `antithetic` pairs it is the paper's own form. `classes`
    competitors are kept; by default all up to 100 classes, the 20 nearest by logit above. At the point the norm of
    `order` of the margins' gradients is measured, too.

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    definitions 2 and 3.
    """

    shape: Noise | None = None
    noise: Noise | None = None
    draws: int | None = None
    antithetic: bool = True
    classes: int | None = None
    order: float | None = None

    def __post_init__(self) -> None:
        if (self.noise is None) != (self.draws is None):
            raise ParameterError("a smoothed linearisation needs both noise and draws, one at the point none")
        if self.draws is not None:
            check_draws(self.draws, self.antithetic)
        check_classes(self.classes)

    @property
    def stream(self) -> Hashable:
        """All budgets of one noise share their passes; at the point all shapes share one Jacobian."""
        return replace(self, shape=None, order=None) if self.draws is None else replace(self, draws=2)

    @property
    def kept_competitors(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.classes

    def cost(self, network: NetworkTraits) -> Passes:
        """Return a backward pass a class and a copy, and a forward pass a copy; the point has the clean pass."""
        class_count = competitors_kept(network.classes, self.classes) + 1
        return Passes(0, class_count) if self.draws is None else Passes(self.draws, self.draws * class_count)

    @property
    def uses_graph(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True at the point, where the Jacobian is that of the clean pass."""
        return self.draws is None

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Linearization]:
        """Return the linearisations of `needs`, in blocks of points whose Jacobians fit in memory."""
        need = needs[0]
        classes = torch.cat((clean.predicted[:, None], clean.competitors(need.classes)), dim=1).sort(dim=1).values
        block = max(1, JACOBIAN_NUMBERS // (classes.shape[1] * clean.inputs[0].numel()))
        measured = _at_point if need.draws is None else _smoothed
        if len(classes) <= block:
            return measured(needs, classifier, clean, classes)
        blocks = torch.arange(len(classes), device=classes.device).split(block)
        parts = [measured(needs, classifier, clean.only(rows), classes[rows]) for rows in blocks]
        return [join(pieces) for pieces in zip(*parts, strict=True)]


def linearize(
    classifier: Classifier,
    inputs: Tensor,
    *,
    noise: Noise | None = None,
    draws: int | None = None,
    seed: int = 0,
    ids: Sequence[str] | None = None,
    antithetic: bool = True,
    classes: int | None = None,
) -> Linearization:
    """Linearise `classifier` at each of `inputs`, or smoothed over `noise`.

    Args:
        classifier: what to linearise.
        inputs: `[B, *shape]`, in the declared units.
        noise: average over this noise instead of taking the Jacobian at the point.
        draws: number of noisy copies per point; needed with `noise`.
        seed: with `ids`, keys the noise.
        ids: one id per point; its position by default.
        antithetic: draw pairs `(e, -e)`.
        classes: how many competitors to keep; by default all up to 100 classes, the 20 nearest by logit above.

    Returns:
        the `Linearization`; its Gram is in the metric of `noise`.

    Raises:
        ParameterError: noise without draws or the reverse, or draws out of range.
        ModelError: the model fails or cannot be differentiated.

    Example:
        >>> import torch, brittle
        >>> network = torch.nn.Linear(4, 3)
        >>> linear = brittle.linearize(brittle.Classifier(network), torch.rand(2, 4))
        >>> torch.allclose(linear.gram[0].float(), network.weight @ network.weight.T)
        True
    """
    names = tuple(ids) if ids is not None else tuple(str(number) for number in range(len(inputs)))
    shape = noise.shape if noise is not None else None
    classifier.check_margins("linearize")
    clean = look(classifier, inputs, names, seed, differentiate=noise is None)
    return Linearize(shape, noise, draws, antithetic, classes)(classifier, clean)


def _at_point(needs: Sequence[Linearize], classifier: Classifier, clean: Clean, classes: Tensor) -> list[Linearization]:
    """Take one Jacobian, from the graph of the clean pass where there is one, contracted in the metric of each need."""
    inputs, logits = clean.graph or (clean.inputs.clone().requires_grad_(True), None)
    logits = clean.logits_of(classifier, inputs) if logits is None else logits
    values, count = logits.gather(1, classes), classes.shape[1]
    rows = [classifier.gradient(values[:, number], inputs, keep=number + 1 < count) for number in range(count)]
    jacobian = torch.stack(rows, dim=1).flatten(2)
    exact, passes = logits.detach().double(), clean.passes + (clean.graph is None) + count
    broken = (~exact.isfinite().all(dim=1)).long()
    orders = {need.order for need in needs if need.order is not None}
    lengths = {order: _lengths(jacobian, classes, clean.predicted, order) for order in orders}
    common = (classes, clean.predicted, clean.tied, passes, None, broken, clean.inputs[0].numel())
    grams = [contract(jacobian, action_at(need.shape, clean)) for need in needs]
    return [
        Linearization(exact, gram, *common, None if need.order is None else lengths[need.order])
        for need, gram in zip(needs, grams, strict=True)
    ]


def _lengths(jacobian: Tensor, classes: Tensor, predicted: Tensor, order: float) -> Tensor:
    """`||grad z_t - grad z_j||` of every competitor in a norm, `[B, M - 1]`, for `jacobian` `[B, M, n]`."""
    ranks = last(classes, predicted)
    parts = []
    for columns in jacobian.split(COLUMNS, dim=2):
        sorted_columns = columns.take_along_dim(ranks[:, :, None], dim=1).double()
        parts.append(torch.linalg.vector_norm(sorted_columns[:, -1:] - sorted_columns[:, :-1], order, dim=2))
    return torch.linalg.vector_norm(torch.stack(parts, dim=2), order, dim=2)


def _smoothed(needs: Sequence[Linearize], classifier: Classifier, clean: Clean, classes: Tensor) -> list[Linearization]:
    """Return the linearisations averaged over the noise, from the draws of the largest of `needs`."""
    largest = needs[0]
    assert largest.noise is not None
    rows = max(1, JACOBIAN_NUMBERS // (classes.shape[1] * clean.inputs[0].numel()))
    clean = replace(clean, rows=min(clean.rows, rows))
    signs = PAIRS if largest.antithetic else SINGLE
    budgets = [need.draws or 0 for need in needs]
    sums = LinearSums.start(classifier, clean, classes, largest.shape, len(signs))
    linearizations: dict[int, Linearization] = {}
    for chunk in noisy_chunks(clean, largest.noise, "linearize", budgets, signs):
        sums.add(chunk)
        if chunk.end * len(signs) in budgets:
            linearizations[chunk.end * len(signs)] = sums.read(chunk.end)
    return [linearizations[budget] for budget in budgets]


@dataclass
class LinearSums:
    """Running sums over units of noise."""

    classifier: Classifier
    clean: Clean
    kept_classes: Tensor  # whose gradients are taken, `[B, M]`, in class order
    action: Action | None  # `v -> K v`, None for the identity
    logits: Tensor  # `[B, C]`
    jacobian: Tensor  # `[B, M, n]`
    even: Tensor  # Gram of the even parts of the gradients of each unit, `[B, M, M]`, float64
    odd: Tensor  # that of the odd parts
    votes: Votes

    @classmethod
    def start(
        cls, classifier: Classifier, clean: Clean, classes: Tensor, shape: Noise | None, members: int
    ) -> LinearSums:
        points, class_count = classes.shape
        logits = torch.zeros_like(clean.logits, dtype=torch.float64)
        jacobian = clean.inputs.new_zeros(points, class_count, clean.inputs[0].numel())
        gram = logits.new_zeros(points, class_count, class_count)
        votes = Votes.of(logits[:, None, None].expand(-1, -1, members, -1)[:, :0], clean.predicted)
        return cls(classifier, clean, classes, action_at(shape, clean), logits, jacobian, gram, gram.clone(), votes)

    def add(self, chunk: NoiseChunk) -> None:
        inputs, clean, classes = chunk.inputs.requires_grad_(True), self.clean, self.kept_classes
        values = clean.logits_of(self.classifier, inputs, chunk.rows)
        exact = chunk.unfold(values.detach().double())
        add_in_turn(self.logits, exact.sum(2))
        self.votes += Votes.of(exact, clean.predicted)
        count = classes.shape[1]
        copies = classes.repeat_interleave(chunk.units * chunk.members, dim=0)
        gradients = inputs.new_empty(len(inputs), count, inputs[0].numel())
        for number in range(count):
            chosen = values.gather(1, copies[:, number : number + 1])[:, 0]
            gradients[:, number] = self.classifier.gradient(chosen, inputs, keep=number + 1 < count).flatten(1)
        by_unit = chunk.unfold(gradients)
        add_in_turn(self.jacobian, by_unit.sum(2))
        even = by_unit.mean(2)
        for part in even.unbind(1):  # a unit at a time for its memory
            self.even += contract(part, self.action)
        for part in (by_unit[:, :, 0] - even).unbind(1) if chunk.members == 2 else ():
            self.odd += contract(part, self.action)

    def read(self, units: int) -> Linearization:
        clean, classes, draws = self.clean, self.kept_classes, units * self.votes.members
        gram, passes = contract(self.jacobian / draws, self.action), clean.passes + draws * (1 + classes.shape[1])
        common = (classes, clean.predicted, clean.tied, passes, draws, self.votes.nonfinite, clean.inputs[0].numel())
        quadratic = quadratic_gram(gram, self.even / units, self.odd / units, units)
        return Linearization(self.logits / draws, gram, *common, quadratic_gram=quadratic, votes=self.votes)
