"""How many passes a search may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Decay = Literal["cosine", "geometric"]
"""Half a cosine, or by the same factor at each step."""

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
        untargeted: those of its starts from which it goes towards whichever competitor is nearest at each step.
        untargeted_steps: its steps from each of these, by the norm.
        agreeing: how many of its descents have to end as near as the best before it sets out no more.
        decay: how its steps shrink.
        scout_steps: its steps from the point towards whichever competitor is nearest at each.
        rounds: competitors that it aims at from the point, and its steps towards each, one round after another; those
            that were reached nearest go on.
        restart_rounds: the same from other starts.
        refine_steps: steps of APGD with momentum, from the nearest input found so far.
        refine_targets: competitors that these aim at.
        sparse_scouts: competitors that sparse descent aims at from the point itself.
        sparse_targets: competitors that it aims at from other starts and with small steps.
        sparse_starts: where it sets out, the point itself first.
        sparse_steps: its wide steps from each of these.
        sparse_fine_steps: its small steps, from the nearest input found so far.
        grow_targets: competitors that the exchange aims at from the point itself.
        grow_steps: its steps towards each of them.
        swap_targets: competitors that it aims at from the nearest input found so far.
        swap_steps: its steps towards each of them.
        back_passes: forward passes that try to put features back, at the end of the exchange.
        smooth_rounds: descents along straight-through gradients.
        smooth_steps: steps of each of them, towards each of `smooth_targets` competitors.
        smooth_targets: competitors that they aim at.
        queries: forward passes of the sign search, from each of its starts.
        passes: passes per point of the whole search, with the smaller efforts, by the norm (measured:
            docs/explanation/attacks.md).
    """

    patterns: int
    halvings: int
    starts: tuple[int, ...]
    untargeted: tuple[int, ...]
    untargeted_steps: Mapping[str, int]
    agreeing: int
    decay: Decay
    scout_steps: int
    rounds: Rounds
    restart_rounds: Rounds
    refine_steps: int
    refine_targets: int
    sparse_scouts: int
    sparse_targets: int
    sparse_starts: int
    sparse_steps: int
    sparse_fine_steps: int
    grow_targets: int
    grow_steps: int
    swap_targets: int
    swap_steps: int
    back_passes: int
    smooth_rounds: int
    smooth_steps: int
    smooth_targets: int
    queries: int
    passes: Mapping[str, int]


EFFORTS = {
    "fast": Effort(
        patterns=2,
        halvings=7,
        starts=(0, *range(2, 8)),
        untargeted=(2, 4, 6),
        untargeted_steps={"linf": 16, "l2": 16},
        agreeing=2,
        decay="cosine",
        scout_steps=18,
        rounds=((4, 5), (2, 8), (1, 16)),
        restart_rounds=((1, 16),),
        refine_steps=16,
        refine_targets=1,
        sparse_scouts=3,
        sparse_targets=1,
        sparse_starts=1,
        sparse_steps=10,
        sparse_fine_steps=27,
        grow_targets=3,
        grow_steps=16,
        swap_targets=1,
        swap_steps=30,
        back_passes=8,
        smooth_rounds=4,
        smooth_steps=12,
        smooth_targets=1,
        queries=200,
        passes={"linf": 313, "l2": 322, "l1": 175, "l0": 217},
    ),
    "standard": Effort(
        patterns=2,
        halvings=10,
        starts=tuple(range(20)),
        untargeted=(3, 7, 11, 15, 19),
        untargeted_steps={"linf": 22, "l2": 32},
        agreeing=4,
        decay="geometric",
        scout_steps=0,
        rounds=((9, 4), (4, 6), (1, 14)),
        restart_rounds=((4, 4), (2, 6), (1, 16)),
        refine_steps=34,
        refine_targets=1,
        sparse_scouts=4,
        sparse_targets=2,
        sparse_starts=8,
        sparse_steps=15,
        sparse_fine_steps=60,
        grow_targets=5,
        grow_steps=25,
        swap_targets=4,
        swap_steps=60,
        back_passes=20,
        smooth_rounds=8,
        smooth_steps=60,
        smooth_targets=3,
        queries=2_000,
        passes={"linf": 1019, "l2": 1115, "l1": 996, "l0": 880},
    ),
    "thorough": Effort(
        patterns=8,
        halvings=16,
        starts=(0, *range(20, 56)),
        untargeted=tuple(range(23, 56, 4)),
        untargeted_steps={"linf": 22, "l2": 32},
        agreeing=12,
        decay="geometric",
        scout_steps=0,
        rounds=((9, 8), (5, 12), (3, 30), (1, 80)),
        restart_rounds=((5, 5), (3, 8), (1, 16)),
        refine_steps=150,
        refine_targets=2,
        sparse_scouts=9,
        sparse_targets=3,
        sparse_starts=20,
        sparse_steps=20,
        sparse_fine_steps=200,
        grow_targets=9,
        grow_steps=60,
        swap_targets=9,
        swap_steps=160,
        back_passes=60,
        smooth_rounds=16,
        smooth_steps=100,
        smooth_targets=5,
        queries=10_000,
        passes={"linf": 4180, "l2": 4250, "l1": 4990, "l0": 4070},
    ),
}
"""The presets; what they cost in passes per point is measured in docs/explanation/attacks.md."""


def stages(effort: str) -> list[Effort]:
    """What a search of an effort, a key of `EFFORTS`, does in turn: the smaller efforts, then its own."""
    names = list(EFFORTS)
    return [EFFORTS[name] for name in names[: names.index(effort) + 1]]
