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

MOST, HALF = 0.8, 0.5
"""Shares of the cases: from the first nearly all are as a paper says, up to the second it does not agree."""


def judged(holds: Iterable[bool]) -> Agreement:
    """Whether something that a paper says holds in all cases that were looked at, in some, or in none."""
    found = [*holds]
    if not found:
        return Agreement.UNMEASURED
    return Agreement.AGREES if all(found) else Agreement.IN_PART if any(found) else Agreement.DIFFERS


def judged_by_share(holds: Iterable[bool]) -> Agreement:
    """Whether something that a paper says of nearly all cases holds in nearly all, in most, or in no more than half."""
    found = [*holds]
    if not found:
        return Agreement.UNMEASURED
    share = sum(found) / len(found)
    return Agreement.AGREES if share >= MOST else Agreement.IN_PART if share > HALF else Agreement.DIFFERS
