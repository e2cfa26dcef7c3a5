"""How many passes a search may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """The lengths of the attacks.

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
        queries: forward passes of the sign search, from each of its starts.
        passes: passes per point of the whole search, by the norm, as docs/attacks.md measured them.
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
    queries: int
    passes: Mapping[str, int]


EFFORTS = {
    "fast": Effort(2, 7, 3, 8, 1, 10, 12, 8, 1, 10, 200, {"linf": 160, "l2": 190}),
    "standard": Effort(8, 12, 9, 12, 3, 25, 60, 50, 2, 50, 2_000, {"linf": 1040, "l2": 1250}),
    "thorough": Effort(8, 16, 9, 40, 5, 80, 200, 200, 3, 300, 10_000, {"linf": 4850, "l2": 6700}),
}
"""The presets; what they cost in passes per point is measured in docs/attacks.md."""
