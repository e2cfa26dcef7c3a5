"""What a noise family promises of its draws, checked on those of other people's families.

A wrong size would be spread over the input without an error. Draws that come from another generator than the point's
own could not be repeated. A family that says it is symmetric and is not would be scored as its own mixture with its
mirror image, because scores then draw in pairs `(e, -e)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.noise.base import Noise

FEWEST, MOST, NUMBERS = 512, 1024, 2**24
"""Draws that are looked at, fewer of large inputs: all together about `NUMBERS` numbers."""

DIRECTIONS = 4
"""Directions, of random signs, along which they are."""

PLACES = 384
"""Coordinates that are looked at one by one, and in twos and threes."""

LIMIT = 10.0
"""Standard errors that an average over the draws may be off."""

ROUNDING = 1e-3
"""What it may be off beside that, where a coordinate has variance one."""

EVENTS = 1 / 5
"""An average to which less than this share of the draws contributes says nothing: a few large draws would decide."""

FALSE_FAIL = 1e-6
"""Probability at most with which a symmetric family is said not to be."""


def check_draw(noise: Noise, draw: Tensor, size: int) -> Tensor:
    """`draw`, if it has one number for each of `size` coordinates.

    Raises:
        ParameterError: it has not.
    """
    if isinstance(draw, Tensor) and draw.shape == (size,) and not draw.is_complex():
        return draw
    found = f"a tensor of shape {list(draw.shape)}" if isinstance(draw, Tensor) else f"{type(draw).__name__}"
    raise ParameterError(
        f"expected a draw [{size}] of the noise family {noise.name}, one number a coordinate; found {found}",
    )


def check_finite(noise: Noise, draws: Tensor) -> None:
    """Raise where draws are NaN or infinite.

    Raises:
        ParameterError: some are.
    """
    if not bool(draws.isfinite().all()):
        broken = int((~draws.isfinite()).sum())
        raise ParameterError(
            f"{broken} of {draws.numel()} numbers that the noise family {noise.name} drew are NaN or infinite",
        )


@lru_cache(maxsize=64)
def check_promise(noise: Noise, size: int, device: torch.device) -> None:
    """Raise where draws of `noise`, at sigma 1, are not what the family says of them.

    The same generator gives the same draws, and not one draw for ever. Those of a symmetric family are as their mirror
    images (`_check_symmetric`), those of another that says its covariance have mean 0, and the covariance is right:
    averages over the draws, along a few directions and over all coordinates, which are refused where they are more
    than `LIMIT` standard errors from what they should be. A family that keeps its promise is refused less than once in
    a million where its fourth moments are finite; small faults pass.

    Args:
        noise: the family at sigma 1.
        size: coordinates of an input.
        device: where it is to draw.

    Raises:
        ParameterError: a promise is broken; it is said which, with the numbers.
    """
    chance = torch.Generator(device).manual_seed(1)
    along = torch.randint(0, 2, (DIRECTIONS, size), generator=chance, device=device).double() * 2 - 1
    along = torch.cat((torch.ones_like(along[:1]), along)) / size**0.5
    places = torch.randperm(max(size, PLACES), generator=chance, device=device)[:PLACES] % size
    signs = torch.randint(0, 2, (PLACES,), generator=chance, device=device).double() * 2 - 1
    shares, squares, odd = [], [], []
    for draw in _repeated_draws(noise, size, device):
        shares.append(along @ draw)
        squares.append(draw.square().mean(dim=0, keepdim=True))
        some = (draw[places] * signs).view(3, -1)
        pooled = torch.stack([each.sum() for each in (draw.sign(), draw.pow(3), draw * draw.abs())])
        odd.append(torch.cat((shares[-1], pooled, some.flatten(), some[:2].sum(dim=0), some.sum(dim=0))))
    found = torch.stack(shares)
    if noise.is_symmetric:
        _check_symmetric(noise, torch.stack(odd))
    elif noise.has_covariance:
        _check_average(noise, "the mean", found, torch.zeros_like(found[0]))
    if noise.has_covariance and type(noise).at is Noise.at:  # one that depends on the point is not known here
        _check_average(noise, "the variance", found.square(), (noise.covariance(along) * along).sum(dim=1))
        if noise.shape is None:
            square = torch.stack(squares)
            _check_average(noise, "the mean square of a coordinate", square, torch.ones_like(square[0]))


def _repeated_draws(noise: Noise, size: int, device: torch.device) -> Iterator[Tensor]:
    """Draws of a family, `[size]` each, float64.

    Raises:
        ParameterError: they are no draws, or a generator of the same seed gives others, or one draw again and again.
    """
    generators = [torch.Generator(device).manual_seed(2) for _ in range(2)]
    first, alike = None, True
    for number in range(draws := max(FEWEST, min(MOST, NUMBERS // size))):
        draw, again = (check_draw(noise, noise.draw(one, size), size).double().clone() for one in generators)
        check_finite(noise, draw)
        if not torch.equal(draw, again):
            raise _broken(
                noise,
                f"draw {number} differs in {int((draw != again).sum())} of {size} numbers between two generators of "
                f"one seed; it must take all randomness from its generator (generator=generator) and keep nothing",
            )
        first = draw if first is None else first
        alike = alike and torch.equal(draw, first)
        yield draw
    if alike and first is not None and bool(first.any()):
        raise _broken(noise, f"{draws} draws from one generator are all the same; each must take new numbers from it")


def _check_symmetric(noise: Noise, odd: Tensor) -> None:
    """Raise where numbers `[n, P]`, odd functions of `n` draws, are not distributed as their negatives are.

    If they are, then given their sizes the signs are those of fair coins. So of each column the distribution functions
    of the numbers and of their negatives differ by `max_k |S_k| / n` (the two-sample statistic of Kolmogorov and
    Smirnov), with `S_k` the sum of the signs of the `k` smallest in size, and `P(max_k |S_k| >= a sqrt(n)) <= 4
    exp(-a^2 / 2)` (Levy, Hoeffding). All columns together are refused with probability `FALSE_FAIL` at most.
    """
    draws, columns = odd.shape
    order = odd.abs().argsort(dim=0, stable=True)
    apart = odd.sign().gather(0, order).cumsum(dim=0).abs().amax(dim=0) / draws
    most = math.sqrt(2 * math.log(4 * columns / FALSE_FAIL) / draws)
    if bool((apart > most).any()):
        raise _broken(
            noise,
            f"-e is said to be as likely as e, and the distribution functions of an odd function of {draws} draws and "
            f"of their mirror images are {float(apart.max()):.3f} apart, where chance explains {most:.3f}; leave "
            f"symmetric (or normal) out of the family, and scores draw single copies",
        )


def _check_average(noise: Noise, what: str, found: Tensor, expected: Tensor) -> None:
    mean, error = found.mean(dim=0), found.std(dim=0) / len(found) ** 0.5
    events = found.abs().sum(dim=0).square() / found.square().sum(dim=0)
    off = ((mean - expected).abs() > LIMIT * error + ROUNDING * expected.abs().clamp_min(1.0)) & (
        events >= EVENTS * len(found)
    )
    if bool(off.any()):
        worst = int(off.nonzero()[0])
        raise _broken(
            noise,
            f"{what} of {len(found)} draws at sigma 1 is {float(mean[worst]):.3g} where {float(expected[worst]):.3g} "
            f"is said, with an error of {float(error[worst]):.2g}; a family with a covariance has mean 0 and that one",
        )


def _broken(noise: Noise, how: str) -> ParameterError:
    return ParameterError(f"the draws of the noise family {noise.name} are not what a family promises: {how}")
