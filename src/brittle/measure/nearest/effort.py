"""How many passes a search may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The lengths of the attacks, beyond those of the smaller efforts, which come before.

    Attributes:
        patterns: far inputs that a segment is laid to.
        halvings: cuts of each bisection.
        scouts: competitors that APGD first aims at, from the point itself.
        starts: where APGD sets out: 0 for the point itself, 1 for the reflection in it of the nearest input found,
            others for fixed patterns of signs.
        scout_steps: steps of APGD from each start towards each competitor.
        targets: competitors that APGD aims at from other starts.
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
    scouts: int
    starts: tuple[int, ...]
    scout_steps: int
    targets: int
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
        scouts=5,
        starts=(0,),
        scout_steps=8,
        targets=1,
        fab_steps=6,
        refine_steps=12,
        refine_targets=1,
        ddn_steps=10,
        smooth_rounds=4,
        smooth_steps=12,
        smooth_targets=1,
        queries=200,
        passes={"linf": 180, "l2": 210},
    ),
    "standard": Effort(
        patterns=4,
        halvings=10,
        scouts=9,
        starts=(*range(8),),
        scout_steps=12,
        targets=3,
        fab_steps=8,
        refine_steps=26,
        refine_targets=2,
        ddn_steps=50,
        smooth_rounds=8,
        smooth_steps=60,
        smooth_targets=3,
        queries=2_000,
        passes={"linf": 1120, "l2": 1370},
    ),
    "thorough": Effort(
        patterns=8,
        halvings=16,
        scouts=9,
        starts=(0, 1, *range(8, 19)),
        scout_steps=24,
        targets=5,
        fab_steps=40,
        refine_steps=150,
        refine_targets=3,
        ddn_steps=300,
        smooth_rounds=16,
        smooth_steps=100,
        smooth_targets=5,
        queries=10_000,
        passes={"linf": 5740, "l2": 7800},
    ),
}
"""The presets; what they cost in passes per point is measured in docs/attacks.md."""


def stages(effort: str) -> list[Effort]:
    """What a search of an effort, a key of `EFFORTS`, does in turn: the smaller efforts, then its own."""
    names = list(EFFORTS)
    return [EFFORTS[name] for name in names[: names.index(effort) + 1]]
