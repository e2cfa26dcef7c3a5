"""Subset simulation: a rare flip as the last of a sequence of events, each common given the event before."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

Draw = Callable[[int], Tensor]  # a function that returns the next draws of the noise of a point, `[count, n]`

Result = TypeVar("Result")
Search = Generator[Tensor, Tensor, Result]
"""A search at one point: it yields noise `[m, n]` and receives the margins `z_t - z_j` there, `[m, C]`, float64:
infinite for `t`, minus infinity where logits are not finite."""

SHARE = 0.2  # share of the copies of a level that continue to the next level
CHAIN = round(1 / SHARE)  # number of copies in the chain that starts at each of these
MOST_LEVELS = 20  # maximum number of levels: `SHARE^20` is 1e-14
ACCEPTED = 0.44  # target share of accepted moves
STUCK = 0.9  # share of copies at or below a level above which the level is no progress
FIRST_STEP, LEAST_STEP, MOST_STEP = 0.6, 0.05, 1.0  # share of fresh noise in a move: initial value and limits


@dataclass(frozen=True)
class LevelProduct:
    """A flip probability as a product over levels. `log` is its logarithm, minus infinity if the levels did not reach
    the flips, and `variance` the variance of the logarithm between chains."""

    log: float
    variance: float
    levels: int
    nonfinite: int = 0


@dataclass(frozen=True)
class Population:
    """Noise with its margins, in the order of chains. `chains` numbers the chain of the level before that each copy
    comes from: copies from the same chain are alike."""

    noise: Tensor
    margins: Tensor
    chains: Tensor

    @classmethod
    def independent(cls, noise: Tensor, margins: Tensor) -> Population:
        """Return a population of independent draws."""
        return cls(noise, margins, torch.arange(len(noise), device=noise.device))

    def share_below(self, level: float) -> tuple[float, float]:
        """Return the share of margins that are at most `level`, and the variance of its logarithm between chains."""
        below = (self.margins <= level).double()
        share = float(below.mean())
        count = int(self.chains.max()) + 1
        excess = torch.zeros(count, dtype=torch.float64, device=below.device).index_add(0, self.chains, below - share)
        between = float(excess.square().sum()) * count / max(1, count - 1) / len(below) ** 2
        single = share * (1.0 - share) / len(below)
        return share, max(between, single) / share**2


def simulate_subset(draw: Draw, noise: Tensor, margins: Tensor, scales: Tensor) -> Search[LevelProduct]:
    """Estimate the flip probability of one point from plain noisy copies `[N, n]` and their margins `[N, C]`.

    A level is the share `SHARE` with the smallest nearest margins, in units of `scales`, `[C]`. Each copy of it starts
    a chain of moves that stays below the level (`follow`).

    Source: S.-K. Au, J. Beck, Estimation of small failure probabilities in high dimensions by subset simulation, Prob.
    Eng. Mech. 16 (2001).
    """

    def look(moved: Tensor) -> Search[Tensor]:
        all_margins = yield moved
        return (all_margins / scales).amin(dim=1)

    copies = Population.independent(noise, (margins / scales).amin(dim=1))
    log, variance, step, nonfinite, number = 0.0, 0.0, FIRST_STEP, 0, 0
    for number in range(1, MOST_LEVELS + 1):
        level = max(0.0, float(copies.margins.kthvalue(max(1, round(SHARE * len(noise)))).values))
        share, relative = copies.share_below(level)
        log, variance = log + math.log(share), variance + relative
        if level == 0.0 or nonfinite:
            return LevelProduct(log, variance, number, nonfinite)
        if share > STUCK:
            break
        copies, step, broken = yield from follow(copies, level, look, draw, len(copies.noise) // CHAIN, step)
        nonfinite += broken
    return LevelProduct(-math.inf, 0.0, number, nonfinite)


def follow(
    start: Population, level: float, look: Callable[[Tensor], Search[Tensor]], draw: Draw, count: int, step: float
) -> Search[tuple[Population, float, int]]:
    """Run `count` chains of `CHAIN` copies from those of `start` whose margins are at most `level`; all stay there.

    Moves are `e' = sqrt(1 - a^2) e + a f`, `f` fresh noise, accepted if the margin stays below the level: they leave
    the distribution of the noise there unchanged.

    Returns:
        the copies, the step `a` of the next move, and the number of copies with NaN or infinite logits.

    Source: I. Papaioannou et al., MCMC algorithms for subset simulation, Prob. Eng. Mech. 41 (2015), section 3.3.
    """
    below = (start.margins <= level).nonzero().flatten()
    seeds = below[torch.arange(count, device=below.device) * len(below) // count]
    noise, margins = start.noise[seeds], start.margins[seeds]
    all_noise, all_margins, nonfinite = [noise], [margins], 0
    for _ in range(CHAIN - 1):
        moved = (1.0 - step**2) ** 0.5 * noise + step * draw(count)
        moved_margins = yield from look(moved)
        nonfinite += int((moved_margins == -torch.inf).sum())
        accepted = moved_margins <= level
        noise = torch.where(accepted[:, None], moved, noise)
        margins = torch.where(accepted, moved_margins, margins)
        all_noise.append(noise)
        all_margins.append(margins)
        step = min(MOST_STEP, max(LEAST_STEP, step * math.exp(float(accepted.double().mean()) - ACCEPTED)))
    chains = torch.unique(start.chains[seeds], return_inverse=True)[1].repeat(CHAIN)
    return Population(torch.cat(all_noise), torch.cat(all_margins), chains), step, nonfinite
