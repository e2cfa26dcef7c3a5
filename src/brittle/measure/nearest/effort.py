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
        scouts: competitors that APGD first aims at.
        scout_steps: steps of APGD towards each of them.
        targets: competitors that FAB and APGD aim at.
        fab_steps: steps of FAB towards each.
        apgd_steps: further wide steps of APGD towards each.
        refine_steps: small steps of APGD from the nearest input found so far.
        refine_targets: competitors that these and DDN aim at.
        ddn_steps: steps of DDN towards each.
        sparse_scouts: competitors that sparse descent aims at from the point itself.
        sparse_starts: where it sets out, the point itself first.
        sparse_steps: its wide steps from each of these.
        sparse_fine_steps: its small steps, from the nearest input found so far.
        count_steps: steps of FMN in L0 towards each of `scouts` competitors, and features then tried to be put back.
        zero_steps: steps of sigma-zero towards each competitor, and features that are tried to be put back.
        smooth_rounds: descents along straight-through gradients.
        smooth_steps: steps of each of them, towards each of `smooth_targets` competitors.
        smooth_targets: competitors that they aim at.
        queries: forward passes of the sign search, from each of its starts.
        passes: passes per point of the whole search, with the smaller efforts, by the norm (measured: docs/attacks.md).
    """

    patterns: int
    halvings: int
    scouts: int
    scout_steps: int
    targets: int
    fab_steps: int
    apgd_steps: int
    refine_steps: int
    refine_targets: int
    ddn_steps: int
    sparse_scouts: int
    sparse_starts: int
    sparse_steps: int
    sparse_fine_steps: int
    count_steps: int
    zero_steps: int
    smooth_rounds: int
    smooth_steps: int
    smooth_targets: int
    queries: int
    passes: Mapping[str, int]


EFFORTS = {
    "fast": Effort(
        patterns=2,
        halvings=7,
        scouts=3,
        scout_steps=8,
        targets=1,
        fab_steps=10,
        apgd_steps=12,
        refine_steps=8,
        refine_targets=1,
        ddn_steps=10,
        sparse_scouts=3,
        sparse_starts=1,
        sparse_steps=10,
        sparse_fine_steps=20,
        count_steps=8,
        zero_steps=40,
        smooth_rounds=4,
        smooth_steps=12,
        smooth_targets=1,
        queries=200,
        passes={"linf": 180, "l2": 210, "l1": 190, "l0": 200},
    ),
    "standard": Effort(
        patterns=8,
        halvings=12,
        scouts=9,
        scout_steps=24,
        targets=2,
        fab_steps=10,
        apgd_steps=40,
        refine_steps=40,
        refine_targets=2,
        ddn_steps=50,
        sparse_scouts=4,
        sparse_starts=8,
        sparse_steps=15,
        sparse_fine_steps=60,
        count_steps=25,
        zero_steps=85,
        smooth_rounds=8,
        smooth_steps=60,
        smooth_targets=3,
        queries=2_000,
        passes={"linf": 1070, "l2": 1320, "l1": 1110, "l0": 1080},
    ),
    "thorough": Effort(
        patterns=8,
        halvings=16,
        scouts=9,
        scout_steps=40,
        targets=5,
        fab_steps=80,
        apgd_steps=200,
        refine_steps=200,
        refine_targets=3,
        ddn_steps=300,
        sparse_scouts=9,
        sparse_starts=20,
        sparse_steps=20,
        sparse_fine_steps=200,
        count_steps=120,
        zero_steps=500,
        smooth_rounds=16,
        smooth_steps=100,
        smooth_targets=5,
        queries=10_000,
        passes={"linf": 5920, "l2": 8000, "l1": 5900, "l0": 6330},
    ),
}
"""The presets; what they cost in passes per point is measured in docs/attacks.md."""


def stages(effort: str) -> list[Effort]:
    """What a search of an effort, a key of `EFFORTS`, does in turn: the smaller efforts, then its own."""
    names = list(EFFORTS)
    return [EFFORTS[name] for name in names[: names.index(effort) + 1]]
