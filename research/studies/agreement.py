"""Agreement of findings with papers: rules and limits that studies share."""

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
    """Return whether a claim holds in all observed cases, in some, or in none."""
    verdicts = [*holds]
    if not verdicts:
        return Agreement.UNMEASURED
    return Agreement.AGREES if all(verdicts) else Agreement.IN_PART if any(verdicts) else Agreement.DIFFERS


def judged_by_share(holds: Iterable[bool]) -> Agreement:
    """Return whether a claim on nearly all cases holds in nearly all, in most, or in no more than half."""
    verdicts = [*holds]
    if not verdicts:
        return Agreement.UNMEASURED
    share = sum(verdicts) / len(verdicts)
    return Agreement.AGREES if share >= MOST else Agreement.IN_PART if share > HALF else Agreement.DIFFERS
