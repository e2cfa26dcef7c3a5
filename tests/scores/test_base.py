"""Statuses of estimates: the graver one stays."""

from __future__ import annotations

import torch

from brittle.estimate import Status
from brittle.scores.base import GRAVE, mark


def test_graver_outcomes_stay() -> None:
    """A status takes the place of a less grave one and of no other, whatever the order in which they are found."""
    order = [[Status.OK], [Status.CLASSES_KEPT, Status.ILL_CONDITIONED], *([each] for each in GRAVE)]
    ranks = {member: rank for rank, members in enumerate(order) for member in members}
    ranks |= {Status.NONFINITE_LOGITS: 99, Status.INDEFINITE: 99}
    for one, rank in ranks.items():
        for other, other_rank in ranks.items():
            marked = mark(torch.tensor([int(one)]), torch.tensor([True]), other)
            assert Status(int(marked)) == (other if other_rank > rank else one)
