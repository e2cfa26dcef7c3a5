"""Wide laws: the suite runs every other case, of the widest every third, and `make test-slow` all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

WIDEST = 16
"""Number of cases of the widest laws."""


def leave_every_other(items: Iterable[pytest.Item]) -> None:
    """Mark as slow the second, the fourth, ... case of each law that has the marker `every_other`.

    Several parameters form a chessboard: every value of each parameter stays in the suite. Of the widest laws of one
    parameter every third case stays.
    """
    laws: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("every_other") is not None:
            laws[item.nodeid.partition("[")[0]].append(item)
    for cases in laws.values():
        parameters = _parameters(cases)
        step = 3 if len(parameters) == 1 and len(cases) >= WIDEST else 2
        for case, places in zip(cases, zip(*parameters, strict=True), strict=True):
            if sum(places) % step:
                case.add_marker(pytest.mark.slow)


def _parameters(cases: Sequence[pytest.Item]) -> set[tuple[int, ...]]:
    """Return the places of the cases' values for each parameter; arguments that vary together are one."""
    indices = [case.callspec.indices for case in cases]  # type: ignore[attr-defined]
    return {tuple(places[name] for places in indices) for name in indices[0]}
