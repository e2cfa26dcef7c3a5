"""Subset simulation that follows no margin: noise is stretched until it flips, and then stretched less and less."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from scipy import special
from torch import Tensor

from brittle.measure.rare.asking import Ask, Search
from brittle.measure.rare.subset import ACCEPTED, CHAIN, FIRST_STEP, LEAST_STEP, MOST_STEP, SHARE, Draw, share_of

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
class Descent:
    """What is left of the flips of stretched noise where it is not stretched.

    Attributes:
        log_probability: logarithm of the probability of such a flip; minus infinity where the chains did not get there.
        variance: of that logarithm.
        levels: how many levels there were.
        flipped: noise, not stretched, that flips, `[m, n]`, about as it is distributed given a flip.
    """

    log_probability: float
    variance: float
    levels: int
    flipped: Tensor


@dataclass(frozen=True)
class Stretched:
    """What stretched and shrunk noise says of one point.

    Attributes:
        descent: of the flips; None where no stretched copy flipped.
        flipped: the noise of the stretched copies that flipped, stretched, `[m, n]`.
        shrunk: copies with shrunk noise that flip.
    """

    descent: Descent | None
    flipped: Tensor
    shrunk: int


@dataclass(frozen=True)
class Level:
    """Noise that flips where it is stretched by a factor, and what is known so far.

    Attributes:
        noise: before it is stretched, `[N, n]`, in the order of chains.
        chains: from which chain of the level before each comes, `[N]`.
        factor: by which it is stretched.
        log: logarithm of the probability that noise flips so.
        variance: of that logarithm.
        step: the share of fresh noise in the next move.
    """

    noise: Tensor
    chains: Tensor
    factor: float
    log: float
    variance: float
    step: float


def stretched(draw: Draw, copies: int) -> Search[Stretched]:
    """The flip probability of one point, from noise that is stretched less and less; only whether copies flip counts.

    `P_s`, the probability that `x + s e` flips, is counted at a factor `s` where it is common. From one factor to the
    next one, `P_s' / P_s = P(s' e flips | s e flips) / P(s e flips | s' e flips)`, which holds for flips of any shape;
    moves as those of subset simulation leave the noise as it is distributed given a flip.

    Source: K. Cheng, I. Papaioannou, Z. Lu, X. Zhang, Y. Wang, Rare event estimation with sequential directional
    importance sampling, Struct. Saf. 100 (2023), for the sequence of factors; the moves are those of `subset`.

    Args:
        draw: noise.
        copies: in every level.
    """
    shrunk = 0
    for factor in SHRUNK:
        shrunk += int((yield from _flips(draw(shrunk_copies(copies) // len(SHRUNK)), factor)).sum())
    factor, noise, flips = yield from _scan(draw, SCANNED * copies)
    flipped = noise[flips] * factor
    if not bool(flips.any()):
        return Stretched(None, flipped, shrunk)
    return Stretched((yield from _descent(noise, flips, factor, draw, copies)), flipped, shrunk)


def _scan(draw: Draw, count: int) -> Search[tuple[float, Tensor, Tensor]]:
    """The first factor at which flips are common, or the last, `count` copies at it, and which of them flip."""
    factor, noise, flips = 1.0, draw(0), torch.zeros(0, dtype=torch.bool)
    for factor in STRETCHES:
        noise = draw(count)
        flips = yield from _flips(noise, factor)
        if float(flips.double().mean()) >= OFTEN:
            break
    return factor, noise, flips


def shrunk_copies(copies: int) -> int:
    """Copies with shrunk noise, beside `copies` in every level."""
    return len(SHRUNK) * (copies // 4)


def _flips(noise: Tensor, factor: float) -> Search[Tensor]:
    """Whether copies with stretched noise flip, `[m]`; a tie is a flip, and so are broken logits."""
    seen = yield Ask(noise * factor)
    return seen.margins <= 0


def _descent(noise: Tensor, flips: Tensor, factor: float, draw: Draw, copies: int) -> Search[Descent]:
    """From copies of which `flips` do so at a factor, down to noise that is not stretched."""
    chains = torch.arange(len(noise), device=noise.device)
    share, variance = share_of(flips, chains)
    level = Level(noise, chains, factor, math.log(share), variance, FIRST_STEP)
    level, number = (yield from _moved(level, flips, factor, draw, copies // CHAIN)), 1
    while level.factor > 1.0 and number <= MOST_LEVELS:
        after = yield from _next(level, draw)
        if after is None:
            break
        level, number = after, number + 1
    if level.factor > 1.0:
        return Descent(-math.inf, 0.0, number, noise[:0])
    return Descent(level.log, level.variance, number, level.noise)


def _moved(level: Level, flips: Tensor, factor: float, draw: Draw, count: int) -> Search[Level]:
    """`count` chains from the copies of `level` that flip at `factor`, each of which flips there, too."""
    below = flips.nonzero().flatten()
    seeds = below[torch.arange(count, device=below.device) * len(below) // count]
    noise, step, found = level.noise[seeds], level.step, [level.noise[seeds]]
    for _ in range(CHAIN - 1):
        moved = (1.0 - step**2) ** 0.5 * noise + step * draw(count)
        kept = yield from _flips(moved, factor)
        noise = torch.where(kept[:, None], moved, noise)
        found.append(noise)
        step = min(MOST_STEP, max(LEAST_STEP, step * math.exp(float(kept.double().mean()) - ACCEPTED)))
    chains = torch.unique(level.chains[seeds], return_inverse=True)[1].repeat(CHAIN)
    return replace(level, noise=torch.cat(found), chains=chains, factor=factor, step=step)


def _next(level: Level, draw: Draw) -> Search[Level | None]:
    """The level of the next factor; None where none is found at which a fair share of the copies flips."""
    found = yield from _next_factor(level)
    if found is None:
        return None
    factor, flips = found
    share, variance = share_of(flips, level.chains)
    count = len(level.noise) // CHAIN
    after = yield from _moved(level, flips, factor, draw, count)
    back = yield from _flips(after.noise[-count:], level.factor)
    if not bool(back.any()):
        return None
    back_share, back_variance = share_of(back, after.chains[-count:])
    log = level.log + math.log(share) - math.log(back_share)
    return replace(after, log=log, variance=level.variance + variance + back_variance)


def _next_factor(level: Level) -> Search[tuple[float, Tensor] | None]:
    """The next smaller factor, 1 at last, and which copies flip there: about `SHARE` of them; None if none is found."""
    least, high = max(1.0, level.factor / LARGEST_RATIO), level.factor
    factor, low = max(least, _guess(level)), None
    for _ in range(TRIES):
        flips = yield from _flips(level.noise, factor)
        share = float(flips.double().mean())
        if share >= LEAST_SHARE and (share <= MOST_SHARE or factor == least):
            return factor, flips
        low, high = (factor, high) if share < LEAST_SHARE else (low, factor)
        factor = least if low is None else (low * high) ** 0.5
    return None


def _guess(level: Level) -> float:
    """The factor at which a half-space of flips would have the share `SHARE` of its probability now."""
    now, then = (float(special.ndtri(share * math.exp(level.log))) for share in (1.0, SHARE))
    return max(1.0, level.factor * now / then) if now < 0 else level.factor**0.5
