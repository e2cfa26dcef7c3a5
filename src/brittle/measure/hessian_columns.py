"""Some columns of the Hessian of the predicted probability, by Hessian-vector products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.measure.base import Measurement, NetworkTraits, Passes, check_enough
from brittle.measure.curvature import differentiable_gradients
from brittle.measure.forward import Clean
from brittle.measure.sample_sums import doubt
from brittle.model.classifier import Classifier
from brittle.noise import Stream, Uniform

COLUMNS = 64
"""Columns per point by default."""


@dataclass(frozen=True)
class Columns:
    """Absolute sums over the derivatives of the predicted probability `p_t`.

    Attributes:
        slope: `sum_i |dp_t / dx_i|`, `[B]`, float64.
        diagonal: `|H_ii|` of the sampled coordinates `i`, `[B, M]`.
        beside: `sum_{j != i} |H_ij|` of the sampled coordinates, `[B, M]`.
        dimension: number of coordinates of an input, `n`; `M = n` where all were taken.
        clean: the clean pass.
        passes: passes through the network per point, the clean one included.
    """

    slope: Tensor
    diagonal: Tensor
    beside: Tensor
    dimension: int
    clean: Clean
    passes: int


@dataclass(frozen=True)
class HessianColumns(Measurement):
    """Columns `H e_i` of the Hessian of `p_t`, of coordinates `i` drawn without replacement, each point its own.

    Attributes:
        columns: how many; all of a smaller input.

    Raises:
        ParameterError: fewer than 2 columns.
    """

    columns: int = COLUMNS

    def __post_init__(self) -> None:
        check_enough("columns", self.columns)

    def cost(self, network: NetworkTraits) -> Passes:
        """A gradient, and a backward pass a column."""
        return Passes(1, 1 + min(self.columns, network.dimension))

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Columns]:
        """The columns of each need."""
        return [_measure(need, classifier, clean) for need in needs]


def _measure(need: HessianColumns, classifier: Classifier, clean: Clean) -> Columns:
    size = clean.inputs[0].numel()
    count = min(need.columns, size)
    order = Stream(Uniform(1.0), clean.inputs, clean.ids, clean.seed, "columns").draw(1).flatten(1).argsort(dim=1)
    slope = torch.zeros(len(order), dtype=torch.float64, device=order.device)
    diagonal, beside = (torch.zeros(len(order), count, dtype=torch.float64, device=order.device) for _ in "ab")

    def rise(inputs: Tensor, part: Tensor) -> Tensor:
        return -doubt(clean.logits_of(classifier, inputs, part).double(), clean.predicted[part])

    for part, inputs, gradient in differentiable_gradients(classifier, clean, rise):
        slope[part] = gradient.detach().flatten(1).double().abs().sum(dim=1)
        for number in range(count):
            own = order[part, number : number + 1]
            along = torch.zeros_like(inputs).flatten(1).scatter(1, own, 1.0).view_as(inputs)
            column = classifier.hessian_product(gradient, inputs, along, keep=number + 1 < count)
            sizes = column.flatten(1).double().abs()
            diagonal[part, number] = sizes.gather(1, own)[:, 0]
            beside[part, number] = sizes.scatter(1, own, 0.0).sum(dim=1)
    return Columns(slope, diagonal, beside, size, clean, clean.passes + 2 + count)
