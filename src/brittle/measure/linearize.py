"""Logits and Gram matrix of the logits: at the point (Taylor), or averaged over noise (MMSE)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.measure.base import Measurement, check_draws, without_draws
from brittle.measure.forward import Clean, look
from brittle.measure.groups import GROUPS, Chunk, along, leave_one_out_weights, noisy_chunks, offsets
from brittle.measure.noisy_margins import MarginSums, NoisyMargins, Votes
from brittle.model.classifier import Classifier
from brittle.noise import Noise

JACOBIAN_NUMBERS = 2**26
"""Numbers in the Jacobians of the points that are differentiated together (256 MiB in single precision)."""

COLUMNS = 2**14
"""Input coordinates that are contracted at a time in double precision."""


@dataclass(frozen=True)
class Linearization:
    """A linear model of the network around each point: all that the linear theory needs.

    For noise with covariance `s^2 K` the linear model's logits are normal with mean `logits` and covariance
    `s^2 gram`, `gram = J K J^T` with `J` the Jacobian of the logits.

    Attributes:
        logits: `[B, C]`, float64.
        gram: `[B, M, M]`, float64, of the classes in `classes`; `M = C` up to 100 classes.
        classes: class indices of the Gram's rows, `[B, M]`, in class order: the predicted class and its competitors.
        predicted: the predicted class of the clean input, `[B]`.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network per point, forward and backward.
        draws: noisy copies that were averaged; None at the point.
        nonfinite: how many of these copies, or of the points themselves, had NaN or infinite logits, `[B]`.
        dimension: number of coordinates of an input, `n`.
        taxicab: L1 norm of the gradient of each competitor's margin, `[B, M - 1]`, in class order, where that was
            asked for; or None.
        without_group: the same linearisation without one group of draws each: `(logits [B, G, C],
            gram [B, G, M, M])`; None at the point, and where there is one group only.
        votes: how the noisy copies voted; None at the point.
        margins: mean and covariance of their margins; None at the point, and where the noise came in one unit only.
        bend: mean square of what each competitor's margin at a noisy copy misses of its own tangent there, taken back
            to the point, `[B, M - 1]`, in class order; 0 where the network is linear over the noise; None at the point.
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
    taxicab: Tensor | None = None
    without_group: tuple[Tensor, Tensor] | None = None
    votes: Votes | None = None
    margins: NoisyMargins | None = None
    bend: Tensor | None = None


@dataclass(frozen=True)
class Linearize(Measurement):
    """Logits `z` and Gram matrix `J K J^T`.

    Without noise: at the point, one Jacobian for every sigma. With noise: both averaged over `draws` noisy copies,
    `z = mean_j z(x + e_j)` and `J = mean_j J(x + e_j)`. Antithetic pairs `(e, -e)` remove the noise of the mean
    exactly for a linear model. `mean(J) K mean(J)^T` overestimates the Gram of the expected Jacobian by
    `Cov(J) / draws`.

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    definitions 2 and 3.

    Attributes:
        shape: what decides `K`; None for the identity.
        noise: the noise to average over, or None.
        draws: number of noisy copies.
        antithetic: draw pairs `(e, -e)`; False is the paper's own form.
        classes: how many competitors to keep; by default all up to 100 classes, the 20 nearest by logit above.
        taxicab: at the point, measure the L1 norm of the margins' gradients as well.
    """

    shape: Noise | None = None
    noise: Noise | None = None
    draws: int | None = None
    antithetic: bool = True
    classes: int | None = None
    taxicab: bool = False

    def __post_init__(self) -> None:
        if (self.noise is None) != (self.draws is None):
            raise ParameterError("draws", "a smoothed linearisation needs both noise and draws, one at the point none")
        if self.draws is not None:
            check_draws(self.draws, self.antithetic)
        if self.classes is not None and self.classes < 1:
            raise ParameterError("classes", f"at least 1 competitor must be kept; found classes={self.classes}")

    @property
    def stream(self) -> Hashable:
        """All budgets of one noise share their passes; at the point all shapes share one Jacobian."""
        return replace(self, shape=None, taxicab=False) if self.draws is None else without_draws(self)

    @property
    def uses_graph(self) -> bool:
        """At the point the Jacobian is that of the clean pass."""
        return self.draws is None

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Linearization]:
        """The linearisations of `needs`, in blocks of points whose Jacobians fit in memory."""
        first = needs[0]
        kept = torch.cat((clean.predicted[:, None], clean.competitors(first.classes)), dim=1).sort(dim=1).values
        copies = 1 if first.draws is None else GROUPS
        block = max(1, JACOBIAN_NUMBERS // (copies * kept.shape[1] * clean.inputs[0].numel()))
        measured = _at_point if first.draws is None else _smoothed
        if len(kept) <= block:
            return measured(needs, classifier, clean, kept)
        parts = [
            measured(needs, classifier, clean.only(rows), kept[rows])
            for rows in torch.arange(len(kept), device=kept.device).split(block)
        ]
        return [_concatenate(pieces) for pieces in zip(*parts, strict=True)]


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
    clean = look(classifier, inputs, names, seed, differentiate=noise is None)
    return Linearize(shape, noise, draws, antithetic, classes)(classifier, clean)


def _at_point(needs: Sequence[Linearize], classifier: Classifier, clean: Clean, kept: Tensor) -> list[Linearization]:
    """One Jacobian, from the graph of the clean pass where there is one, contracted in the metric of each need."""
    own = clean.graph is None
    inputs, logits = clean.graph or _differentiable(classifier, clean)
    jacobian = _jacobian(classifier, logits.gather(1, kept), inputs).flatten(2)
    exact, passes = logits.detach().double(), clean.passes + own + kept.shape[1]
    broken = (~exact.isfinite().all(dim=1)).long()
    lengths = _taxicab(jacobian, kept, clean.predicted) if any(need.taxicab for need in needs) else None
    common = (kept, clean.predicted, clean.tied, passes, None, broken, clean.inputs[0].numel())
    return [
        Linearization(exact, contract(jacobian, need.shape), *common, lengths if need.taxicab else None)
        for need in needs
    ]


def _taxicab(jacobian: Tensor, kept: Tensor, predicted: Tensor) -> Tensor:
    """`||grad z_t - grad z_j||_1` of every competitor, `[B, M - 1]`, for `jacobian` `[B, M, n]`."""
    order = (kept == predicted[:, None]).int().argsort(dim=1, stable=True)
    lengths = jacobian.new_zeros(len(kept), kept.shape[1] - 1, dtype=torch.float64)
    for columns in jacobian.split(COLUMNS, dim=2):
        sorted_columns = columns.take_along_dim(order[:, :, None], dim=1).double()
        lengths += (sorted_columns[:, -1:] - sorted_columns[:, :-1]).abs().sum(dim=2)
    return lengths


def _differentiable(classifier: Classifier, clean: Clean) -> tuple[Tensor, Tensor]:
    inputs = clean.inputs.clone().requires_grad_(True)
    return inputs, classifier(inputs)


def _smoothed(needs: Sequence[Linearize], classifier: Classifier, clean: Clean, kept: Tensor) -> list[Linearization]:
    """Sums of logits and Jacobians by group, read off at the budget of each need."""
    first = needs[0]
    assert first.noise is not None
    members = 2 if first.antithetic else 1
    budgets = [need.draws or 0 for need in needs]
    logits = torch.zeros(len(kept), GROUPS, clean.logits.shape[1], dtype=torch.float64, device=kept.device)
    jacobian = clean.inputs.new_zeros(len(kept), GROUPS, kept.shape[1], clean.inputs[0].numel())
    seen = MarginSums.start(clean, clean.competitors(first.classes), members)
    bend = torch.zeros(len(kept), kept.shape[1] - 1, dtype=torch.float64, device=kept.device)
    done: dict[int, Linearization] = {}
    for chunk in noisy_chunks(clean, first.noise, "linearize", budgets, first.antithetic):
        bend += _add_chunk(chunk, classifier, clean, kept, logits, jacobian, seen)
        units = chunk.first + chunk.units
        if units * members in budgets:
            done[units * members] = _summary(
                logits / members, jacobian / members, seen, bend, units, members, first, clean, kept
            )
    return [done[budget] for budget in budgets]


def _add_chunk(
    chunk: Chunk, classifier: Classifier, clean: Clean, kept: Tensor, logits: Tensor, jacobian: Tensor, seen: MarginSums
) -> Tensor:
    """Add the sums of a chunk, and what its copies show; gives the sums of the squares of `Linearization.bend`."""
    inputs = chunk.inputs.requires_grad_(True)
    values = classifier(inputs)
    exact = chunk.unfold(values.detach().double())
    logits.index_add_(1, chunk.groups, exact.sum(2))
    seen.add(exact)
    copies = kept.repeat_interleave(chunk.units * chunk.members, dim=0)
    missed = exact.gather(3, kept[:, None, None].expand(*exact.shape[:3], -1))
    missed = missed - clean.logits.double().gather(1, kept)[:, None, None]
    noise = offsets(chunk, clean.inputs)
    for number in range(kept.shape[1]):
        chosen = values.gather(1, copies[:, number : number + 1])[:, 0]
        gradient = classifier.gradient(chosen, inputs, keep=number + 1 < kept.shape[1])
        sums = chunk.unfold(gradient.flatten(1)).sum(2)
        jacobian[:, :, number].index_add_(1, chunk.groups, sums)
        missed[..., number] -= chunk.unfold(along(gradient, noise))
    order = (kept == clean.predicted[:, None]).int().argsort(dim=1, stable=True)
    missed = missed.gather(3, order[:, None, None].expand_as(missed))
    return (missed[..., -1:] - missed[..., :-1]).square().sum((1, 2))


def _summary(
    logits: Tensor,
    jacobian: Tensor,
    seen: MarginSums,
    bend: Tensor,
    units: int,
    members: int,
    need: Linearize,
    clean: Clean,
    kept: Tensor,
) -> Linearization:
    """Means over all units and without one group each, from the sums by group."""
    weights = leave_one_out_weights(units).to(logits.device)
    means = torch.einsum("ag,bgc->bac", weights, logits)
    groups, classes = jacobian.shape[1:3]
    crossed = contract(jacobian.flatten(1, 2), need.shape).view(-1, groups, classes, groups, classes)
    grams = torch.einsum("ag,bgmhn,ah->bamn", weights, crossed, weights)
    rest = (means[:, 1:], grams[:, 1:]) if len(weights) > 1 else None
    draws, votes = units * members, seen.votes.read(units)
    passes = clean.passes + draws * (1 + classes)
    return Linearization(
        logits=means[:, 0],
        gram=grams[:, 0],
        classes=kept,
        predicted=clean.predicted,
        tied=clean.tied,
        passes=passes,
        draws=draws,
        nonfinite=votes.nonfinite,
        dimension=clean.inputs[0].numel(),
        without_group=rest,
        votes=votes,
        margins=seen.read(units),
        bend=bend / draws,
    )


def _jacobian(classifier: Classifier, values: Tensor, inputs: Tensor) -> Tensor:
    """Gradients of each column of `values`, `[B, M]`, with respect to the input: `[B, M, *shape]`."""
    count = values.shape[1]
    rows = [classifier.gradient(values[:, number], inputs, keep=number + 1 < count) for number in range(count)]
    return torch.stack(rows, dim=1)


def contract(jacobian: Tensor, shape: Noise | None) -> Tensor:
    """`J K J^T` in double precision, `[B, M, M]`, for `jacobian` `[B, M, n]`."""
    if shape is not None:
        return jacobian.double() @ shape.covariance(jacobian.double()).mT
    gram = jacobian.new_zeros(*jacobian.shape[:2], jacobian.shape[1], dtype=torch.float64)
    for columns in jacobian.split(COLUMNS, dim=2):
        exact = columns.double()
        gram.baddbmm_(exact, exact.mT)
    return gram


def _concatenate(parts: Sequence[Linearization]) -> Linearization:
    rest = [part.without_group for part in parts if part.without_group is not None]
    lengths = [part.taxicab for part in parts if part.taxicab is not None]
    votes = [part.votes for part in parts if part.votes is not None]
    margins = [part.margins for part in parts if part.margins is not None]
    bend = [part.bend for part in parts if part.bend is not None]
    return Linearization(
        logits=torch.cat([part.logits for part in parts]),
        gram=torch.cat([part.gram for part in parts]),
        classes=torch.cat([part.classes for part in parts]),
        predicted=torch.cat([part.predicted for part in parts]),
        tied=torch.cat([part.tied for part in parts]),
        passes=parts[0].passes,
        draws=parts[0].draws,
        nonfinite=torch.cat([part.nonfinite for part in parts]),
        dimension=parts[0].dimension,
        taxicab=torch.cat(lengths) if lengths else None,
        without_group=(torch.cat([part[0] for part in rest]), torch.cat([part[1] for part in rest])) if rest else None,
        votes=Votes.concatenate(votes) if votes else None,
        margins=NoisyMargins.concatenate(margins) if margins else None,
        bend=torch.cat(bend) if bend else None,
    )
