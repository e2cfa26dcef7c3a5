"""How many passes a search may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Rounds = tuple[tuple[int, int], ...]
"""Competitors and steps of each round of a descent."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The lengths of the attacks, beyond those of the smaller efforts, which come before.

    Attributes:
        patterns: far inputs that a segment is laid to.
        halvings: cuts of each bisection.
        starts: where APGD sets out: 0 for the point itself, 1 for the reflection in it of the nearest input found,
            others for fixed patterns of signs.
        rounds: competitors that it aims at from the point, and its steps towards each, one round after another; those
            that were reached nearest go on.
        restart_rounds: the same from other starts.
        fab_steps: steps of FAB towards each.
        refine_steps: steps of APGD with momentum, from the nearest input found so far.
        refine_targets: competitors that these, FAB and DDN aim at.
        ddn_steps: steps of DDN towards each.
        smooth_rounds: descents along straight-through gradients.
        smooth_steps: steps of each of them, towards each of `smooth_targets` competitors.
        smooth_targets: competitors that they aim at.
        queries: forward passes of the sign search, from each of its starts.
        passes: passes per point of the whole search, with the smaller efforts, by the norm (measured: docs/attacks.md).
    """

    patterns: int
    halvings: int
    starts: tuple[int, ...]
    rounds: Rounds
    restart_rounds: Rounds
    fab_steps: int
    refine_steps: int
    refine_targets: int
    ddn_steps: int
    smooth_rounds: int
    smooth_steps: int
    smooth_targets: int
    queries: int
    passes: Mapping[str, int]


EFFORTS = {
    "fast": Effort(
        patterns=2,
        halvings=7,
        starts=(0,),
        rounds=((5, 4), (3, 8), (1, 16)),
        restart_rounds=(),
        fab_steps=4,
        refine_steps=0,
        refine_targets=1,
        ddn_steps=10,
        smooth_rounds=4,
        smooth_steps=12,
        smooth_targets=1,
        queries=200,
        passes={"linf": 180, "l2": 210},
    ),
    "standard": Effort(
        patterns=2,
        halvings=10,
        starts=tuple(range(9)),
        rounds=((9, 4), (4, 6), (1, 14)),
        restart_rounds=((4, 4), (2, 12)),
        fab_steps=6,
        refine_steps=15,
        refine_targets=1,
        ddn_steps=100,
        smooth_rounds=8,
        smooth_steps=60,
        smooth_targets=3,
        queries=2_000,
        passes={"linf": 1070, "l2": 1320},
    ),
    "thorough": Effort(
        patterns=8,
        halvings=16,
        starts=(0, *range(9, 37)),
        rounds=((9, 8), (5, 12), (3, 30), (1, 80)),
        restart_rounds=((5, 5), (3, 8), (1, 16)),
        fab_steps=40,
        refine_steps=150,
        refine_targets=2,
        ddn_steps=200,
        smooth_rounds=16,
        smooth_steps=100,
        smooth_targets=5,
        queries=10_000,
        passes={"linf": 5920, "l2": 8000},
    ),
}
"""The presets; what they cost in passes per point is measured in docs/attacks.md."""


def stages(effort: str) -> list[Effort]:
    """What a search of an effort, a key of `EFFORTS`, does in turn: the smaller efforts, then its own."""
    names = list(EFFORTS)
    return [EFFORTS[name] for name in names[: names.index(effort) + 1]]
