"""The declared range of an input."""

from __future__ import annotations

import math
from collections.abc import Sequence

from brittle.errors import ParameterError

TOLERANCE = 1e-6
"""How far outside the bounds an input may lie, as a share of their distance."""


def check_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    """`(low, high)` as numbers.

    Raises:
        ParameterError: they are not two finite, increasing numbers.
    """
    try:
        numbers = tuple(float(end) for end in bounds)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            "bounds", f"bounds must be two numbers, finite and increasing, such as (0, 1); found {bounds!r:.40}"
        ) from error
    if len(numbers) != 2 or not all(map(math.isfinite, numbers)) or not numbers[0] < numbers[1]:
        found = ", ".join(f"{number:g}" for number in numbers)
        raise ParameterError("bounds", f"bounds must be two numbers, finite and increasing; found {found}")
    return numbers[0], numbers[1]


def allowed_range(bounds: tuple[float, float]) -> tuple[float, float]:
    """The bounds, and the rounding beyond them that an input may have."""
    low, high = bounds
    slack = TOLERANCE * (high - low)
    return low - slack, high + slack
