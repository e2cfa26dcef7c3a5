"""Whether what was found agrees with what a paper says: rules and limits that studies share."""

from __future__ import annotations

from collections.abc import Iterable

from studies.study import Agreement

CONVERGED = 1.1
"""Ratio to the error with the most draws up to which an estimator has converged."""

CLOSELY = 2.0
"""Ratio of two errors up to which one follows the other closely."""

MILD = 0.7
"""Correlation below which two quantities are only mildly related."""


def judged(holds: Iterable[bool]) -> Agreement:
    """Whether something that a paper says holds in all cases that were looked at, in some, or in none."""
    found = [*holds]
    if not found:
        return Agreement.UNMEASURED
    return Agreement.AGREES if all(found) else Agreement.IN_PART if any(found) else Agreement.DIFFERS
