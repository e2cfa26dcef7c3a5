"""Plain text: numbers, counts and shares in words, cells in columns, and a size as people write it."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from brittle.errors import ParameterError, printable

FORMAT = 1  # version of the JSON that commands print


def number(value: float) -> str:
    """Return a number with three digits that count, in thousands without an exponent; `-` for none."""
    text = f"{value:.3g}"
    return "-" if math.isnan(value) else f"{float(text):.0f}" if 1e3 <= abs(value) < 1e6 else text


def as_json(**content: Any) -> str:
    """Return the result of a command as JSON, with the version of its form; null for numbers that JSON lacks."""
    return json.dumps(_finite({"format": FORMAT, **content}), indent=2, allow_nan=False, default=lambda x: x.item())


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(name): _finite(part) for name, part in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(part) for part in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def span(low: float, high: float) -> str:
    """Return an interval, such as `0.2 to 0.31`; `-` for none."""
    return "-" if math.isnan(low) else f"{number(low)} to {number(high)}"


def duration(seconds: float) -> str:
    """Return a time in the largest unit of which it has two or more; in seconds where these are few."""
    if not math.isfinite(seconds):
        return "an unknown time"
    for unit, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.2g} s"


def by_number(count: int, singular: str, plural: str) -> str:
    """Return the word that goes with a number of things: `singular` for 1, `plural` for 0, for 2 and for more."""
    return singular if count == 1 else plural


def verb_of(count: int, total: int, singular: str, plural: str) -> str:
    """Return the verb after `share_of`: `singular` where it speaks of 1, or of some of 1."""
    return singular if 1 in (count, total) else plural


def share_of(count: int, total: int, noun: str) -> str:
    """Return some of a number of things, such as `646 of 2,000 predictions (32%)`; never rounded to none or to all."""
    share = 100.0 * count / total
    if 0 < count < total:
        rounded = "under 1%" if share < 1.0 else "over 99%" if share > 99.0 else f"{share:.0f}%"
    else:
        rounded = f"{share:.0f}%"
    return f"{count:,} of {total:,} {by_number(total, noun, f'{noun}s')} ({rounded})"


def chosen_text(points: int, data: Any) -> str:
    """Say how the points of a run were chosen from its data, a `brittle.store.record.DataRecord`, or ""."""
    if data.chosen_from is None:
        return ""
    how = "drawn at random" if data.sample_seed is not None else f"chosen by {by_number(points, 'its id', 'their ids')}"
    return f"{how} out of {data.chosen_from:,}"


def clipped(text: str, length: int = 120) -> str:
    r"""Return a text in one line, a long one without its middle: its ends tell it from others."""
    line = " ".join(text.split())
    half = length // 2
    return line if len(line) <= length else f"{line[:half]}…{line[half + 1 - length :]}"


def with_interval(row: Mapping[Any, Any], name: str) -> str:
    """Return the number `name` of a row with the interval that stands beside it, as `named_interval` puts it there."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    return "-" if math.isnan(value) else f"{number(value)} [{number(low)}, {number(high)}]"


def named_interval(name: str, value: float, low: float, high: float) -> dict[str, float]:
    """Return the fields of a row for a number and its interval."""
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns, two blanks before each row: the first flush left, the others flush right; each in one line."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]


def in_markdown(text: str) -> str:
    """Text that is nothing but text in Markdown: no link, no mention, no column."""
    plain = printable(text).replace("&", "&amp;")
    plain = re.sub(r"([\\`*_\[\]<>|#!~])", r"\\\1", plain)
    return plain.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")


def parse_epsilon(text: float | str) -> float:
    """Return a perturbation size: a positive number, or a fraction of two such as `8/255`, rounded once."""
    above, bar, below = str(text).partition("/")
    try:
        value = float(above) / float(below if bar else 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not 0.0 < value < math.inf:
        raise ParameterError(f"epsilon must be a positive number or a fraction as 8/255; found {text!r:.60}")
    return value


def check_epsilon(epsilon: float) -> float:
    """Return a distance as a float, if it is at least 0."""
    if not epsilon >= 0.0:
        raise ParameterError(f"epsilon must be a distance of at least 0; found {epsilon}")
    return float(epsilon)
