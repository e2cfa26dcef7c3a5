"""Networks and what is decided from them, computed one noisy copy at a time without the package's own code."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from brittle.decisions import Custom, Decision, MultiLabel, SameTop, Within

Holds = Callable[[Tensor, Tensor], bool]
"""From the output at the point and at another input, `[C]` each, whether the decision still holds."""


def labels_hold(own: Tensor, other: Tensor) -> bool:
    return (own > 0).tolist() == (other > 0).tolist()


def third_label_holds(own: Tensor, other: Tensor) -> bool:
    return (float(own[2]) > 0) == (float(other[2]) > 0)


def same_two(own: Tensor, other: Tensor) -> bool:
    return {*own.topk(2).indices.tolist()} == {*other.topk(2).indices.tolist()}


def near(own: Tensor, other: Tensor) -> bool:
    return max(abs(float(one) - float(two)) for one, two in zip(own, other, strict=True)) < 0.4


def first_leads(output: Tensor, at_point: Tensor) -> Tensor:
    """A decision of a user's: the lead of the first output over the mean keeps its sign."""
    lead, before = (each[:, 0] - each.mean(dim=1) for each in (output, at_point))
    return lead * before.sign()


def lead_kept(own: Tensor, other: Tensor) -> bool:
    return float(own[0] - own.mean()) * float(other[0] - other.mean()) > 0


DECISIONS: dict[str, tuple[Decision, Holds]] = {
    "multilabel": (MultiLabel(), labels_hold),
    "one label": (MultiLabel(only=2), third_label_holds),
    "top": (SameTop(2), same_two),
    "within": (Within(0.4), near),
    "custom": (Custom(first_leads), lead_kept),
}
"""Decisions over four outputs, and whether each holds, said in another way."""


def bent_network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()
