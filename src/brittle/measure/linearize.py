"""Logits and Gram matrix of the logits: at the point (Taylor), or averaged over noise (MMSE)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.measure.base import Measurement, NetworkTraits, Passes, check_classes, check_draws
from brittle.measure.chunks import PAIRS, SINGLE, NoiseChunk, add_in_turn, noisy_chunks
from brittle.measure.forward import Clean, competitors_kept, look
from brittle.measure.linearization import (
    COLUMNS,
    Linearization,
    action_at,
    contract,
    grams_of_units,
    last,
    quadratic_gram,
)
from brittle.measure.noisy_margins import Votes
from brittle.measure.rows import join
from brittle.model.classifier import Classifier
from brittle.noise.base import Action, Noise

JACOBIAN_NUMBERS = 2**26
"""Numbers in the Jacobians of the points that are differentiated together (256 MiB in single precision), and as many in
those of their noisy copies in one pass."""


@dataclass(frozen=True)
class Linearize(Measurement):
    """Logits `z` and Gram matrix `J K J^T`.

    Without noise: at the point, one Jacobian for every sigma. With noise: both averaged over `draws` noisy copies,
    `z = mean_j z(x + e_j)` and `J = mean_j J(x + e_j)`. Antithetic pairs `(e, -e)` remove the noise of the mean
    exactly for a linear model. `mean(J) K mean(J)^T` overestimates the Gram of the expected Jacobian by
    `Cov(J) / draws`, and leaves out what the variance of `J` adds to that of the logits; `quadratic_gram` does neither
    (`brittle.measure.linearization.quadratic_gram`).

    `shape` decides `K`, None for the identity; `noise` is averaged over, or None. With `antithetic` pairs `(e, -e)` are
    drawn; False is the paper's own form. `classes` says how many competitors to keep; by default all up to 100 classes,
    the 20 nearest by logit above. At the point the norm of `order` of the margins' gradients is measured, too.

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
        """Return a backward pass a class and a copy, and a forward pass a copy; at the point the clean pass is
        there."""
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
        parts = [
            measured(needs, classifier, clean.only(rows), classes[rows])
            for rows in torch.arange(len(classes), device=classes.device).split(block)
        ]
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
        the `Linearization`, with `logits` `[B, C]` and `gram` `[B, C, C]`; its Gram is in the metric of `noise`.

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
    owns_graph = clean.graph is None
    inputs, logits = clean.graph or _differentiable(classifier, clean)
    jacobian = _jacobian(classifier, logits.gather(1, classes), inputs).flatten(2)
    exact, passes = logits.detach().double(), clean.passes + owns_graph + classes.shape[1]
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


def _differentiable(classifier: Classifier, clean: Clean) -> tuple[Tensor, Tensor]:
    inputs = clean.inputs.clone().requires_grad_(True)
    return inputs, clean.logits_of(classifier, inputs)


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


def _jacobian(classifier: Classifier, values: Tensor, inputs: Tensor) -> Tensor:
    """Gradients of each column of `values`, `[B, M]`, with respect to the input: `[B, M, *shape]`."""
    count = values.shape[1]
    rows = [classifier.gradient(values[:, number], inputs, keep=number + 1 < count) for number in range(count)]
    return torch.stack(rows, dim=1)


@dataclass
class LinearSums:
    """Running sums over units of noise.

    `kept_classes`, `[B, M]`, are the classes whose gradients are taken, in class order; `action`, `v -> K v`, is that
    of the contraction, None for the identity. Logits are `[B, C]`, the Jacobian `[B, M, n]`; `even` and `odd`, `[B, M,
    M]`, float64, are Gram matrices of the even and the odd parts of the gradients of each unit.
    """

    classifier: Classifier
    clean: Clean
    kept_classes: Tensor
    action: Action | None
    logits: Tensor
    jacobian: Tensor
    even: Tensor
    odd: Tensor
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
        add_in_turn(self.even, grams_of_units(even, self.action))
        if chunk.members == 2:
            add_in_turn(self.odd, grams_of_units(by_unit[:, :, 0] - even, self.action))

    def read(self, units: int) -> Linearization:
        """Means over all units so far."""
        clean, draws = self.clean, units * self.votes.members
        gram = contract(self.jacobian / draws, self.action)
        return Linearization(
            logits=self.logits / draws,
            gram=gram,
            classes=self.kept_classes,
            predicted=clean.predicted,
            tied=clean.tied,
            passes=clean.passes + draws * (1 + self.kept_classes.shape[1]),
            draws=draws,
            nonfinite=self.votes.nonfinite,
            dimension=clean.inputs[0].numel(),
            quadratic_gram=quadratic_gram(gram, self.even / units, self.odd / units, units),
            votes=self.votes,
        )
