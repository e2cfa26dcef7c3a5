"""Stretched noise: noise is stretched until it flips, then less and less; it follows no margin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from scipy import special
from torch import Tensor

from brittle.extensions.rare_events.subset import (
    CHAIN,
    FIRST_STEP,
    SHARE,
    Draw,
    LevelProduct,
    Population,
    Search,
    follow,
)

STRETCHES = (1.5, 2.0, 3.0, 4.5)
"""Factors by which noise is stretched, one after another, until it flips often."""

SCANNED = 2
"""Stretched copies at each of them, times those of a level."""

OFTEN = 0.025
"""Share of stretched copies that flip from which on they start the chains."""

SHRUNK = (0.5, 0.75, 0.9)
"""Factors by which noise is shrunk: flips that only noise shorter than usual meets show here alone."""

LEAST_SHARE, MOST_SHARE = 0.08, 0.5
"""Share of a level that also flips at the next one."""

TRIES = 8
"""Factors that are tried for the next level."""

LARGEST_RATIO = 1.15
"""Of two factors in a row: flips that a ray leaves again within less than this are lost on the way."""

MOST_LEVELS = 30
"""Levels after which it gives up."""


@dataclass(frozen=True)
class Stretched:
    """Flips of stretched and shrunk noise at one point. `product` is the flip probability; None where no stretched copy
    flipped."""

    product: LevelProduct | None
    shrunk: int


@dataclass(frozen=True)
class Level:
    """Noise that flips where it is stretched by a factor, and what is known so far.

    `copies` hold the noise before it is stretched, with its margins where it is; `log` and `variance` are those of the
    logarithm of the probability that noise flips so. `step` is the share of fresh noise in the next move.
    """

    copies: Population
    factor: float
    log: float
    variance: float
    step: float


def stretched(draw: Draw, copies: int) -> Search[Stretched]:
    """The flip probability of one point, from noise that is stretched less and less; only whether copies flip counts.

    `P_s`, the probability that `x + s e` flips, is counted at a factor `s` where it is common. From one factor to the
    next one, `P_s' / P_s = P(s' e flips | s e flips) / P(s e flips | s' e flips)`, which holds for flips of any shape.
    A tie is a flip, and so are logits that are not finite.

    Source: K. Cheng, I. Papaioannou, Z. Lu, X. Zhang, Y. Wang, Rare event estimation with sequential directional
    importance sampling, Struct. Saf. 100 (2023), for the sequence of factors; the moves are those of `subset`.
    """
    shrunk = 0
    for factor in SHRUNK:
        margins = yield from _look(factor)(draw(shrunk_copies(copies) // len(SHRUNK)))
        shrunk += int((margins <= 0).sum())
    factor, first = 1.0, Population.independent(draw(0), torch.zeros(0))
    for factor in STRETCHES:
        noise = draw(SCANNED * copies)
        first = Population.independent(noise, (yield from _look(factor)(noise)))
        if float((first.margins <= 0).double().mean()) >= OFTEN:
            break
    if not bool((first.margins <= 0).any()):
        return Stretched(None, shrunk)
    share, variance = first.share_below(0.0)
    level, number = Level(first, factor, math.log(share), variance, FIRST_STEP), 1
    level = yield from _moved(level, draw, copies // CHAIN)
    while level.factor > 1.0 and number <= MOST_LEVELS and (after := (yield from _next(level, draw))):
        level, number = after, number + 1
    log, variance = (-math.inf, 0.0) if level.factor > 1.0 else (level.log, level.variance)
    return Stretched(LevelProduct(log, variance, number), shrunk)


def shrunk_copies(copies: int) -> int:
    """Copies with shrunk noise, beside `copies` in every level."""
    return len(SHRUNK) * (copies // 4)


def _look(factor: float) -> Callable[[Tensor], Search[Tensor]]:
    """The nearest margins at noise that is stretched by a factor, `[m]`."""

    def look(noise: Tensor) -> Search[Tensor]:
        every = yield noise * factor
        return every.amin(dim=1)

    return look


def _moved(level: Level, draw: Draw, count: int) -> Search[Level]:
    """`count` chains from the copies of `level` that flip at its factor, each of which flips there, too."""
    copies, step, _ = yield from follow(level.copies, 0.0, _look(level.factor), draw, count, level.step)
    return replace(level, copies=copies, step=step)


def _next(level: Level, draw: Draw) -> Search[Level | None]:
    """The level of the next factor; None where none is found at which a fair share of the copies flips."""
    found = yield from _next_factor(level)
    if found is None:
        return None
    factor, copies = found
    share, variance = copies.share_below(0.0)
    count = len(copies.noise) // CHAIN
    after = yield from _moved(replace(level, copies=copies, factor=factor), draw, count)
    last, chains = after.copies.noise[-count:], after.copies.chains[-count:]
    back = Population(last, (yield from _look(level.factor)(last)), chains)
    if not bool((back.margins <= 0).any()):
        return None
    back_share, back_variance = back.share_below(0.0)
    log = level.log + math.log(share) - math.log(back_share)
    return replace(after, log=log, variance=level.variance + variance + back_variance)


def _next_factor(level: Level) -> Search[tuple[float, Population] | None]:
    """The next smaller factor, 1 at last, at which about `SHARE` of the copies flip, and their margins there."""
    least, high = max(1.0, level.factor / LARGEST_RATIO), level.factor
    factor, low = max(least, _guess(level)), None
    for _ in range(TRIES):
        copies = replace(level.copies, margins=(yield from _look(factor)(level.copies.noise)))
        share = float((copies.margins <= 0).double().mean())
        if share >= LEAST_SHARE and (share <= MOST_SHARE or factor == least):
            return factor, copies
        low, high = (factor, high) if share < LEAST_SHARE else (low, factor)
        factor = least if low is None else (low * high) ** 0.5
    return None


def _guess(level: Level) -> float:
    """The factor at which a half-space of flips would have the share `SHARE` of its probability now."""
    now, then = (float(special.ndtri(share * math.exp(level.log))) for share in (1.0, SHARE))
    return max(1.0, level.factor * now / then) if now < 0 else level.factor**0.5
