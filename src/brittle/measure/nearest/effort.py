"""Budgets of passes of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Decay = Literal["cosine", "geometric"]
"""Half a cosine, or by the same factor at each step."""

Rounds = tuple[tuple[int, int], ...]
"""Competitors and steps of each round of a descent."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The lengths of the attacks, beyond those of the smaller efforts, which come before.

    A segment is laid to each of so many `patterns`, far inputs, and every bisection makes so many `halvings`.

    APGD sets out from `starts`: 0 for the point itself, 1 for the reflection in it of the nearest input found, others
    for fixed patterns of signs. From those that are `untargeted` it goes, for so many steps by the norm, towards
    whichever competitor is nearest at each step, and from the point so for `scout_steps`; else towards competitors, of
    which `rounds` say how many from the point and its steps towards each, one round after another, and
    `restart_rounds` the same from other starts: those that were reached nearest go on. It sets out no more once
    `agreeing` of its descents end as near as the best; steps shrink by `decay`. At the end come `refine_steps` with
    momentum, from the nearest input found so far, towards `refine_targets` competitors.

    Sparse descent aims at `sparse_scouts` competitors from the point itself, and at `sparse_targets` from other starts,
    `sparse_starts` in all, by wide `sparse_steps` each, and by small `sparse_fine_steps` from the nearest input found.
    The exchange aims at `grow_targets` from the point itself and at `swap_targets` from the nearest input found, by so
    many steps towards each, and tries to put features back in `back_passes` forward passes. `smooth_rounds` descents
    along straight-through gradients make `smooth_steps` towards each of `smooth_targets`; the sign search has `queries`
    forward passes from each of its starts.

    `passes` are those per point of the whole search, with the smaller efforts, by the norm (measured:
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


_LENGTHS: dict[str, tuple[Any, Any, Any]] = {
    "patterns": (2, 2, 8),
    "halvings": (7, 10, 16),
    "starts": ((0, *range(2, 8)), tuple(range(20)), (0, *range(20, 56))),
    "untargeted": ((2, 4, 6), (3, 7, 11, 15, 19), tuple(range(23, 56, 4))),
    "untargeted_steps": ({"linf": 16, "l2": 16}, {"linf": 22, "l2": 32}, {"linf": 22, "l2": 32}),
    "agreeing": (2, 4, 12),
    "decay": ("cosine", "geometric", "geometric"),
    "scout_steps": (18, 0, 0),
    "rounds": (((4, 5), (2, 8), (1, 16)), ((9, 4), (4, 6), (1, 14)), ((9, 8), (5, 12), (3, 30), (1, 80))),
    "restart_rounds": (((1, 16),), ((4, 4), (2, 6), (1, 16)), ((5, 5), (3, 8), (1, 16))),
    "refine_steps": (16, 34, 150),
    "refine_targets": (1, 1, 2),
    "sparse_scouts": (3, 4, 9),
    "sparse_targets": (1, 2, 3),
    "sparse_starts": (1, 8, 20),
    "sparse_steps": (10, 15, 20),
    "sparse_fine_steps": (27, 60, 200),
    "grow_targets": (3, 5, 9),
    "grow_steps": (16, 25, 60),
    "swap_targets": (1, 4, 9),
    "swap_steps": (30, 60, 160),
    "back_passes": (8, 20, 60),
    "smooth_rounds": (4, 8, 16),
    "smooth_steps": (12, 60, 100),
    "smooth_targets": (1, 3, 5),
    "queries": (200, 2_000, 10_000),
    "passes": (
        {"linf": 313, "l2": 322, "l1": 175, "l0": 217},
        {"linf": 1019, "l2": 1115, "l1": 996, "l0": 880},
        {"linf": 4180, "l2": 4250, "l1": 4990, "l0": 4070},
    ),
}
"""Values of each field of the three presets, the smallest first."""

EFFORTS = {
    name: Effort(**{field: values[place] for field, values in _LENGTHS.items()})
    for place, name in enumerate(("fast", "standard", "thorough"))
}
"""The presets; what they cost in passes per point is measured in docs/explanation/attacks.md."""


def stages(effort: str) -> list[Effort]:
    """Return the stages of a search of an effort, a key of `EFFORTS`: the smaller efforts, then its own."""
    names = list(EFFORTS)
    return [EFFORTS[name] for name in names[: names.index(effort) + 1]]
