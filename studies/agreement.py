"""Whether what was found agrees with what a paper says, by cases."""

from __future__ import annotations

from collections.abc import Iterable

from studies.study import Agreement


def judged(holds: Iterable[bool]) -> Agreement:
    """Whether something that a paper says holds in all cases that were looked at, in some, or in none."""
    found = [*holds]
    if not found:
        return Agreement.UNMEASURED
    return Agreement.AGREES if all(found) else Agreement.IN_PART if any(found) else Agreement.DIFFERS
