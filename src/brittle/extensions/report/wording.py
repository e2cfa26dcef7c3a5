"""Numbers, names and terms as the report writes them."""

import math
from collections.abc import Sequence
from typing import Any

MISSING = "–"  # stands where there is nothing to say
LEAST_SHARE = 1e-6  # a share below this is written as a bound: no network and no model of one is known as well as that


def show(value: Any, limit: int | None = None) -> str:
    """`value` as text that can be read: control, bidirectional and invalid characters as escapes, long text cut."""
    if value is None or value != value:
        return MISSING
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def plural(count: int, noun: str) -> str:
    """`count` of `noun`, such as `1 point` or `1,024 points`."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def fixed(number: float, digits: int = 3) -> str:
    return f"{number:,.{digits}f}" if math.isfinite(number) else MISSING


def interval(low: float, high: float, digits: int = 3) -> str:
    return f"{fixed(low, digits)} to {fixed(high, digits)}"


def short(number: float, digits: int = 2) -> str:
    """Return `number` to a few significant digits, such as `0.034` or `3.2e-7`."""
    if not math.isfinite(number):
        return MISSING
    if number == 0.0:
        return "0"
    if 1e-3 <= abs(number) < 10.0**digits:
        return f"{number:#.{digits}g}".rstrip(".")
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def signed(number: float, digits: int = 2) -> str:
    """Return `number` as `short` writes it, with a true minus; an infinite one as such."""
    text = "∞" if math.isinf(number) else short(abs(number), digits)
    return f"−{text}" if number < 0.0 else text


def reach(low: float, high: float, digits: int = 2) -> str:
    """Return an interval of numbers of any sign and size."""
    return f"{signed(low, digits)} to {signed(high, digits)}"


def with_reach(number: float, low: float, high: float, digits: int = 2) -> str:
    """Return a cell of a number above its interval."""
    return MISSING if math.isnan(number) else f"{signed(number, digits)}\n{reach(low, high, digits)}"


def percent(share: float) -> str:
    """`share` in per cent, with one decimal below 10%."""
    return f"{100.0 * share:.{0 if share >= 0.0995 else 1}f}%" if math.isfinite(share) else MISSING


def percent_interval(low: float, high: float) -> str:
    return f"{percent(low)} to {percent(high)}"


def small_percent(share: float) -> str:
    """`share` in per cent, with as many digits as tell it from none and from all; a bound below `LEAST_SHARE`."""
    if 0.0 < share < LEAST_SHARE:
        return f"less than {100.0 * LEAST_SHARE:.4f}%"
    if 0.995 <= share < 1.0:
        return f"{min(100.0 * share, 99.9):.1f}%"
    return f"{short(100.0 * share)}%" if 0.0 < share < 5e-4 else percent(share)


def p_value(value: float) -> str:
    return MISSING if math.isnan(value) else "below 1e-16" if value < 1e-16 else short(value)


def range_text(texts: Sequence[str]) -> str:
    """Return the first and the last of `texts`, or the one if they are alike."""
    if not texts:
        return MISSING
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
