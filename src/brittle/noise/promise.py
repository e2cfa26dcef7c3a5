"""What a noise family promises of its draws, checked on those of other people's families.

A wrong size would be spread over the input without an error, and a family that is not symmetric would be scored as its
own mixture with its mirror image, because scores draw in pairs `(e, -e)`.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.noise.base import Noise

FEWEST, MOST, NUMBERS = 64, 512, 2**24
"""Draws that are looked at, fewer of large inputs: all together about `NUMBERS` numbers."""

DIRECTIONS = 4
"""Directions, of random signs, along which they are."""

LIMIT = 10.0
"""Standard errors that an average over the draws may be off."""

ROUNDING = 1e-3
"""What it may be off beside that, where a coordinate has variance one."""

EVENTS = 1 / 5
"""An average to which less than this share of the draws contributes says nothing: a few large draws would decide."""


def check_draw(noise: Noise, draw: Tensor, size: int) -> Tensor:
    """`draw`, if it has one number for each of `size` coordinates.

    Raises:
        ParameterError: it has not.
    """
    if isinstance(draw, Tensor) and draw.shape == (size,) and not draw.is_complex():
        return draw
    found = f"a tensor of shape {list(draw.shape)}" if isinstance(draw, Tensor) else f"{type(draw).__name__}"
    raise ParameterError(
        "noise_draw", f"a draw of the noise family {noise.name} is {found}; [{size}], a number a coordinate, is needed"
    )


def check_finite(noise: Noise, draws: Tensor) -> None:
    """Raise where draws are NaN or infinite.

    Raises:
        ParameterError: some are.
    """
    if not bool(draws.isfinite().all()):
        broken = int((~draws.isfinite()).sum())
        raise ParameterError(
            "noise_draw",
            f"{broken} of {draws.numel()} numbers that the noise family {noise.name} drew are NaN or infinite",
        )


@lru_cache(maxsize=64)
def check_promise(noise: Noise, size: int, device: torch.device) -> None:
    """Raise where draws of `noise`, at sigma 1, are not symmetric about zero or not of the covariance that it says.

    Each statement is an average over the draws, along a few directions and over all coordinates; it is refused
    where that is more than `LIMIT` standard errors from what it should be. A family that keeps its promise is refused
    less than once in a million where its fourth moments are finite; small faults pass.

    Args:
        noise: the family at sigma 1.
        size: coordinates of an input.
        device: where it is to draw.

    Raises:
        ParameterError: a promise is broken; it is said which, with the average.
    """
    draws = max(FEWEST, min(MOST, NUMBERS // size))
    signs, drawn = (torch.Generator(device).manual_seed(seed) for seed in (1, 2))
    along = torch.randint(0, 2, (DIRECTIONS, size), generator=signs, device=device).double() * 2 - 1
    along = torch.cat((torch.ones_like(along[:1]), along)) / size**0.5
    looked_at = [_look(noise, check_draw(noise, noise.draw(drawn, size), size).double(), along) for _ in range(draws)]
    shares, sign, square = (torch.stack(column) for column in zip(*looked_at, strict=True))
    _check_average(noise, "the mean", shares, torch.zeros_like(shares[0]))
    _check_average(noise, "the mean sign of a coordinate", sign, torch.zeros_like(sign[0]))
    if noise.has_covariance:
        _check_average(noise, "the variance", shares.square(), (noise.covariance(along) * along).sum(dim=1))
        if noise.shape is None:
            _check_average(noise, "the mean square of a coordinate", square, torch.ones_like(square[0]))


def _look(noise: Noise, draw: Tensor, along: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of one draw its shares along the directions, the mean sign and the mean square of a coordinate."""
    check_finite(noise, draw)
    return along @ draw, draw.sign().mean(dim=0, keepdim=True), draw.square().mean(dim=0, keepdim=True)


def _check_average(noise: Noise, what: str, found: Tensor, expected: Tensor) -> None:
    mean, error = found.mean(dim=0), found.std(dim=0) / len(found) ** 0.5
    events = found.abs().sum(dim=0).square() / found.square().sum(dim=0)
    off = ((mean - expected).abs() > LIMIT * error + ROUNDING * expected.abs().clamp_min(1.0)) & (
        events >= EVENTS * len(found)
    )
    if bool(off.any()):
        worst = int(off.nonzero()[0])
        raise ParameterError(
            "noise_promise",
            f"the draws of the noise family {noise.name} are not what a family promises: {what} of {len(found)} draws "
            f"at sigma 1 is {float(mean[worst]):.3g} where {float(expected[worst]):.3g} is said, with an error of "
            f"{float(error[worst]):.2g}; it must be symmetric, -e as likely as e, and have the covariance that it says",
        )
