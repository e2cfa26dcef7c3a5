"""Budgets of passes of a search."""

from typing import Literal

Decay = Literal["cosine", "geometric"]  # half a cosine, or by the same factor at each step
Rounds = tuple[tuple[int, int], ...]  # competitors and steps of each round of a descent


class Effort:
    """The lengths of the attacks of an effort, beyond those of the smaller ones before it; a line has all efforts."""

    def __init__(self, place: int) -> None:
        self.patterns = (2, 2, 8)[place]  # far inputs to which a segment is laid
        self.halvings = (7, 10, 16)[place]  # of every bisection
        # of APGD: 0 the point, 1 the nearest input found, reflected, others patterns of signs
        self.starts: tuple[int, ...] = ((0, *range(2, 8)), tuple(range(20)), (0, *range(20, 56)))[place]
        # starts from which it goes, by so many steps, towards whichever competitor is nearest at each of them
        self.untargeted: tuple[int, ...] = ((2, 4, 6), (3, 7, 11, 15, 19), tuple(range(23, 56, 4)))[place]
        self.untargeted_steps = ({"linf": 16, "l2": 16}, {"linf": 22, "l2": 32}, {"linf": 22, "l2": 32})[place]
        self.agreeing = (2, 4, 12)[place]  # descents that end as near as the best, after which none sets out
        self.decay: Decay = ("cosine", "geometric", "geometric")[place]  # of the steps
        self.scout_steps = (18, 0, 0)[place]  # untargeted, from the point, before all others
        # from the point, and from other starts: those that were reached nearest go on
        rounds = ((4, 5), (2, 8), (1, 16)), ((9, 4), (4, 6), (1, 14)), ((9, 8), (5, 12), (3, 30), (1, 80))
        self.rounds: Rounds = rounds[place]
        self.restart_rounds: Rounds = (((1, 16),), ((4, 4), (2, 6), (1, 16)), ((5, 5), (3, 8), (1, 16)))[place]
        self.refine_steps = (16, 34, 150)[place]  # with momentum, from the nearest input found, at the end
        self.refine_targets = (1, 1, 2)[place]
        self.sparse_scouts = (3, 4, 9)[place]  # competitors of sparse descent from the point
        self.sparse_targets = (1, 2, 3)[place]  # from other starts
        self.sparse_starts = (1, 8, 20)[place]
        self.sparse_steps = (10, 15, 20)[place]  # wide ones
        self.sparse_fine_steps = (27, 60, 200)[place]  # from the nearest input found
        self.grow_targets = (3, 5, 9)[place]  # of the exchange, from the point
        self.grow_steps = (16, 25, 60)[place]
        self.swap_targets = (1, 4, 9)[place]  # from the nearest input found
        self.swap_steps = (30, 60, 160)[place]
        self.back_passes = (8, 20, 60)[place]  # forward ones, in which it tries to put features back
        self.smooth_rounds = (4, 8, 16)[place]  # descents along straight-through gradients
        self.smooth_steps = (12, 60, 100)[place]
        self.smooth_targets = (1, 3, 5)[place]
        self.queries = (200, 2_000, 10_000)[place]  # forward passes of the search over signs from each of its starts
        # per point by the norm, with the smaller efforts, measured (docs/explanation/attacks.md)
        self.passes = (
            {"linf": 313, "l2": 322, "l1": 175, "l0": 217},
            {"linf": 1019, "l2": 1115, "l1": 996, "l0": 880},
            {"linf": 4180, "l2": 4250, "l1": 4990, "l0": 4070},
        )[place]


EFFORTS = {name: Effort(place) for place, name in enumerate(("fast", "standard", "thorough"))}


def stages(effort: str) -> list[Effort]:
    """Return the stages of a search of an effort: the smaller efforts, then its own."""
    names = list(EFFORTS)
    return [EFFORTS[name] for name in names[: names.index(effort) + 1]]
