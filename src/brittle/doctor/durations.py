"""A time in words."""

from __future__ import annotations

import math

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def duration(seconds: float) -> str:
    """So many seconds, in the unit of which there are two or more; in seconds where these are few."""
    if not math.isfinite(seconds):
        return "an unknown time"
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.2g} s"
