"""Subset simulation: a rare flip as the last of a row of events, each of them common given the one before."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.rare.asking import Ask, Search, Seen

Draw = Callable[[int], Tensor]
"""The next draws of a point's noise, `[count, n]`."""

SHARE = 0.2
"""Share of the copies of a level that go on to the next one."""

CHAIN = round(1 / SHARE)
"""Copies in the chain that starts at each of them."""

MOST_LEVELS = 20
"""Levels after which it gives up: `SHARE^20` is 1e-14."""

ACCEPTED = 0.44
"""Share of moves that are to be accepted."""

STUCK = 0.9
"""Share of copies at or below a level from which on it is no progress."""

FIRST_STEP, LEAST_STEP, MOST_STEP = 0.6, 0.05, 1.0
"""The share of fresh noise in a move, at first and at its limits."""


@dataclass(frozen=True)
class SubsetSimulation:
    """What subset simulation found for one point.

    Attributes:
        log_probability: logarithm of the flip probability; minus infinity where no level reached the flips.
        variance: of that logarithm.
        flipped: noise that flips, `[m, n]`, about as it is distributed given a flip.
        nonfinite: copies with NaN or infinite logits.
        levels: how many levels there were.
    """

    log_probability: float
    variance: float
    flipped: Tensor
    nonfinite: int
    levels: int


@dataclass
class Population:
    """Noise with its margins, in the order of chains.

    Attributes:
        noise: `[N, n]`.
        margins: `[N]`.
        chains: from which chain of the level before each comes, `[N]`: what comes from one chain is alike.
    """

    noise: Tensor
    margins: Tensor
    chains: Tensor

    def share_below(self, level: float) -> tuple[float, float]:
        """The share of margins that are at most `level`, and the variance of its logarithm between chains."""
        return share_of(self.margins <= level, self.chains)


def share_of(chosen: Tensor, chains: Tensor) -> tuple[float, float]:
    """The share of `chosen` `[N]`, and the variance of its logarithm between chains."""
    below = chosen.double()
    share = float(below.mean())
    count = int(chains.max()) + 1
    left = torch.zeros(count, dtype=torch.float64, device=below.device).index_add(0, chains, below - share)
    between = float(left.square().sum()) * count / max(1, count - 1) / len(below) ** 2
    single = share * (1.0 - share) / len(below)
    return share, max(between, single) / share**2


def subset(draw: Draw, first: Tensor, seen: Seen, scales: Tensor) -> Search[SubsetSimulation]:
    """Subset simulation of one point from the plain noisy copies `first` `[N, n]` and what was seen of them.

    A level is the share `SHARE` with the smallest margins, in their `scales`. Each copy that goes on starts a chain of
    moves `e' = sqrt(1 - a^2) e + a f`, `f` fresh noise, kept where the margin stays below the level: they leave the
    noise as it is distributed there.

    Source: S.-K. Au, J. Beck, Estimation of small failure probabilities in high dimensions by subset simulation, Prob.
    Eng. Mech. 16 (2001); the moves are those of I. Papaioannou et al., MCMC algorithms for subset simulation, Prob.
    Eng. Mech. 41 (2015), section 3.3.
    """
    now = Population(first, seen.margins, torch.arange(len(first), device=first.device))
    log, variance, step, nonfinite, number = 0.0, 0.0, FIRST_STEP, 0, 0
    for number in range(1, MOST_LEVELS + 1):
        level = max(0.0, float(now.margins.kthvalue(max(1, round(SHARE * len(first)))).values))
        share, relative = now.share_below(level)
        log, variance = log + math.log(share), variance + relative
        below = (now.margins <= level).nonzero().flatten()
        if level == 0.0 or nonfinite:
            return SubsetSimulation(log, variance, now.noise[below], nonfinite, number)
        if share > STUCK:
            break
        now, step, broken = yield from _next_level(now, below, level, draw, scales, step)
        nonfinite += broken
    return SubsetSimulation(-math.inf, 0.0, first[:0], nonfinite, number)


def _next_level(
    now: Population, below: Tensor, level: float, draw: Draw, scales: Tensor, step: float
) -> Search[tuple[Population, float, int]]:
    """Chains of `CHAIN` copies from `below`, each with a margin of at most `level`; the next step; broken copies."""
    count = len(now.noise) // CHAIN
    seeds = below[torch.arange(count, device=below.device) * len(below) // count]
    noise, margins = now.noise[seeds], now.margins[seeds]
    found, found_margins, nonfinite = [noise], [margins], 0
    for _ in range(CHAIN - 1):
        moved = (1.0 - step**2) ** 0.5 * noise + step * draw(count)
        seen = yield Ask(moved, scales=scales)
        nonfinite += seen.nonfinite
        kept = seen.margins <= level
        noise, margins = torch.where(kept[:, None], moved, noise), torch.where(kept, seen.margins, margins)
        found, found_margins = [*found, noise], [*found_margins, margins]
        step = min(MOST_STEP, max(LEAST_STEP, step * math.exp(float(kept.double().mean()) - ACCEPTED)))
    chains = torch.unique(now.chains[seeds], return_inverse=True)[1].repeat(CHAIN)
    return Population(torch.cat(found), torch.cat(found_margins), chains), step, nonfinite
