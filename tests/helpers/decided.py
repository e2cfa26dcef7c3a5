"""Networks and decisions, computed one noisy copy at a time without the package's own code."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from brittle.decisions import Custom, Decision, MultiLabel, SameTop, Within

Holds = Callable[[Tensor, Tensor], bool]
"""Function of the output at the point and at another input, `[C]` each: whether the decision still holds."""


def labels_hold(at_point: Tensor, output: Tensor) -> bool:
    return (at_point > 0).tolist() == (output > 0).tolist()


def third_label_holds(at_point: Tensor, output: Tensor) -> bool:
    return (float(at_point[2]) > 0) == (float(output[2]) > 0)


def same_two(at_point: Tensor, output: Tensor) -> bool:
    return {*at_point.topk(2).indices.tolist()} == {*output.topk(2).indices.tolist()}


def near(at_point: Tensor, output: Tensor) -> bool:
    return max(abs(float(before) - float(two)) for before, two in zip(at_point, output, strict=True)) < 0.4


def first_leads(output: Tensor, at_point: Tensor) -> Tensor:
    """Return the lead of the first output over the mean, positive where it keeps its sign: a user's decision."""
    lead, before = (rows[:, 0] - rows.mean(dim=1) for rows in (output, at_point))
    return lead * before.sign()


def lead_kept(at_point: Tensor, output: Tensor) -> bool:
    return float(at_point[0] - at_point.mean()) * float(output[0] - output.mean()) > 0


DECISIONS: dict[str, tuple[Decision, Holds]] = {
    "multilabel": (MultiLabel(), labels_hold),
    "one label": (MultiLabel(only=2), third_label_holds),
    "top": (SameTop(2), same_two),
    "within": (Within(0.4), near),
    "custom": (Custom(first_leads), lead_kept),
}
"""Decisions over four outputs, and a second definition of each."""


def bent_network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()
