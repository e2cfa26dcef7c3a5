"""What the numbers in a detector, in the identity of a model and in a pseudo-margin may be."""

from __future__ import annotations

import math

from brittle.errors import ParameterError
from brittle.scores.one_pass import LARGEST

SMALLEST = 2.0**-149
"""The smallest positive one: no two different inputs lie nearer to one another."""

MOST_AXES = 2.0**40
"""More numbers than any input has; a box has at most `MOST_AXES` times its edge from corner to
corner in L1, `sqrt(MOST_AXES)` times in L2."""


def check_share(name: str, value: float) -> None:
    """Raise unless `value` and its complement lie between 0 and 1."""
    if not (0.0 < value < 1.0 and 0.0 < 1.0 - value < 1.0):
        raise ParameterError(f"{name} must lie between 0 and 1, and not round to either; found {value!r}")


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raise unless `low <= value <= high`."""
    if not low <= value <= high:
        raise ParameterError(f"{name} must lie in [{low:g}, {high:g}]; found {value!r}")


def check_interval(name: str, value: float | None, low: float, high: float, span: tuple[float, float]) -> None:
    """Raise unless `span[0] <= low <= value <= high <= span[1]`; a value that is not known may lie anywhere."""
    first, last = span
    inside = low <= high if value is None else low <= value <= high
    if not (inside and first <= low and high <= last):
        raise ParameterError(
            f"{name} and its interval must be in order within [{first:g}, {last:g}]; found {value!r} in "
            f"[{low!r}, {high!r}]",
        )


def check_input_numbers(name: str, numbers: tuple[float, ...] | None, *, positive: bool = False) -> None:
    """Raise unless single precision has these numbers, which are subtracted from inputs or divide them."""
    if numbers is None:
        return
    least = SMALLEST if positive else -LARGEST
    if not numbers or not all(least <= number <= LARGEST for number in numbers):
        wanted = "positive" if positive else "finite"
        raise ParameterError(f"every {name} must be {wanted} in single precision; found {list(numbers)!r:.80}")


def largest_margin(width: float, norm: str, bounded: bool) -> float:
    """No margin between inputs within bounds `width` apart is larger; outside, none that single precision has."""
    if not bounded or width == math.inf:
        return LARGEST
    return width * {"linf": 1.0, "l2": math.sqrt(MOST_AXES), "l1": MOST_AXES}[norm]
