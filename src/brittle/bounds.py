"""The declared range of an input."""

from __future__ import annotations

import math
from collections.abc import Sequence

from brittle.errors import ParameterError


def check_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    """`(low, high)` as numbers.

    Raises:
        ParameterError: they are not two finite, increasing numbers.
    """
    numbers = tuple(float(end) for end in bounds)
    if len(numbers) != 2 or not all(map(math.isfinite, numbers)) or not numbers[0] < numbers[1]:
        shown = ", ".join(f"{number:g}" for number in numbers)
        raise ParameterError("bounds", f"bounds must be two numbers, finite and increasing; found {shown}")
    return numbers[0], numbers[1]
