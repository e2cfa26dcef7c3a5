"""Stretched noise: the noise is stretched until it flips, then less and less; it follows no margin."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from scipy import special
from torch import Tensor

from brittle.extensions.rare_events import subset
from brittle.extensions.rare_events.subset import CHAIN, SHARE, Draw, LevelProduct, Population, Search, follow

STRETCHES = (1.5, 2.0, 3.0, 4.5)  # increasing factors that stretch the noise until it flips often
SCANNED = 2  # ratio of the stretched copies at each factor to the copies of a level
OFTEN = 0.025  # share of flips among the stretched copies from which on these start the chains
SHRUNK = (0.5, 0.75, 0.9)  # factors that shrink the noise: only here show flips that shorter noise than usual meets
LEAST_SHARE, MOST_SHARE = 0.08, 0.5  # limits of the share of a level that also flips at the next level
TRIES = 8  # number of factors to try for the next level
LARGEST_RATIO = 1.15  # largest ratio of successive factors: flips that a ray leaves again within less may be lost
MOST_LEVELS = 30  # maximum number of levels


@dataclass(frozen=True)
class Level:
    """Noise that flips if stretched by a factor, and the estimate so far.

    `copies` hold the noise before stretching, with the margins after stretching; `log` and `variance` are those of the
    logarithm of the probability that noise with this factor flips. `step` is the share of fresh noise in the next move.
    """

    copies: Population
    factor: float
    log: float
    variance: float
    step: float


def stretch_noise(draw: Draw, copies: int) -> Search[tuple[LevelProduct | None, int]]:
    """Estimate the flip probability of one point from noise that is stretched less and less, by flips alone: None
    without flips. Count the flips of shrunk noise, too.

    `P_s`, the probability that `x + s e` flips, is counted at a factor `s` where flips are common. From one factor to
    the next, `P_s' / P_s = P(s' e flips | s e flips) / P(s e flips | s' e flips)`, which holds for flips of any shape.
    A tie is a flip, and so are logits that are not finite.

    Source: K. Cheng, I. Papaioannou, Z. Lu, X. Zhang, Y. Wang, Rare event estimation with sequential directional
    importance sampling, Struct. Saf. 100 (2023), for the sequence of factors; the moves are those of `follow`.
    """
    shrunk = 0
    for factor in SHRUNK:
        margins = yield from _look(factor)(draw(shrunk_copies(copies) // len(SHRUNK)))
        shrunk += int((margins <= 0).sum())
    factor, scan = 1.0, Population.independent(draw(0), torch.zeros(0))
    for factor in STRETCHES:
        noise = draw(SCANNED * copies)
        scan = Population.independent(noise, (yield from _look(factor)(noise)))
        if float((scan.margins <= 0).double().mean()) >= OFTEN:
            break
    if not bool((scan.margins <= 0).any()):
        return None, shrunk
    share, variance = scan.share_below(0.0)
    level, number = Level(scan, factor, math.log(share), variance, subset.FIRST_STEP), 1
    level = yield from _move(level, draw, copies // CHAIN)
    while level.factor > 1.0 and number <= MOST_LEVELS and (after := (yield from _next(level, draw))):
        level, number = after, number + 1
    log, variance = (-math.inf, 0.0) if level.factor > 1.0 else (level.log, level.variance)
    return LevelProduct(log, variance, number), shrunk


def shrunk_copies(copies: int) -> int:
    """Return the number of copies with shrunk noise, for `copies` copies per level."""
    return len(SHRUNK) * (copies // 4)


def _look(factor: float) -> Callable[[Tensor], Search[Tensor]]:
    """Return a search for the nearest margins at noise stretched by a factor, `[m]`."""

    def look(noise: Tensor) -> Search[Tensor]:
        margins = yield noise * factor
        return margins.amin(dim=1)

    return look


def _move(level: Level, draw: Draw, count: int) -> Search[Level]:
    """Run `count` chains from the copies of `level` that flip at its factor; all their copies flip there."""
    copies, step, _ = yield from follow(level.copies, 0.0, _look(level.factor), draw, count, level.step)
    return replace(level, copies=copies, step=step)


def _next(level: Level, draw: Draw) -> Search[Level | None]:
    """Return the level of the next factor; None if a fair share of the copies flips at no factor."""
    candidate = yield from _next_factor(level)
    if candidate is None:
        return None
    factor, copies = candidate
    share, variance = copies.share_below(0.0)
    count = len(copies.noise) // CHAIN
    after = yield from _move(replace(level, copies=copies, factor=factor), draw, count)
    last, chains = after.copies.noise[-count:], after.copies.chains[-count:]
    back = Population(last, (yield from _look(level.factor)(last)), chains)
    if not bool((back.margins <= 0).any()):
        return None
    back_share, back_variance = back.share_below(0.0)
    log = level.log + math.log(share) - math.log(back_share)
    return replace(after, log=log, variance=level.variance + variance + back_variance)


def _next_factor(level: Level) -> Search[tuple[float, Population] | None]:
    """Find the next smaller factor, at least 1, at which about `SHARE` of the copies flip, with their margins there."""
    lowest, high = max(1.0, level.factor / LARGEST_RATIO), level.factor
    factor, low = max(lowest, _guess(level)), None
    for _ in range(TRIES):
        copies = replace(level.copies, margins=(yield from _look(factor)(level.copies.noise)))
        share = float((copies.margins <= 0).double().mean())
        if share >= LEAST_SHARE and (share <= MOST_SHARE or factor == lowest):
            return factor, copies
        low, high = (factor, high) if share < LEAST_SHARE else (low, factor)
        factor = lowest if low is None else (low * high) ** 0.5
    return None


def _guess(level: Level) -> float:
    """Return the factor at which a half-space of flips would have the share `SHARE` of its current probability."""
    quantile, later_quantile = (float(special.ndtri(share * math.exp(level.log))) for share in (1.0, SHARE))
    return max(1.0, level.factor * quantile / later_quantile) if quantile < 0 else level.factor**0.5
