"""Wide laws: the suite runs every other case, and `make test-slow` all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest


def leave_every_other(items: Iterable[pytest.Item]) -> None:
    """Mark as slow the second, the fourth, ... case of each law that has the marker `every_other`.

    Several parameters form a chessboard: every value of each parameter stays in the suite.
    """
    laws: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("every_other") is not None:
            laws[item.nodeid.partition("[")[0]].append(item)
    for cases in laws.values():
        for case, place in zip(cases, _places(cases), strict=True):
            if place % 2:
                case.add_marker(pytest.mark.slow)


def _places(cases: Sequence[pytest.Item]) -> list[int]:
    """Return the sum of the places of each case's values; arguments that vary together count once."""
    indices = [case.callspec.indices for case in cases]  # type: ignore[attr-defined]
    parameters = {tuple(places[name] for places in indices) for name in indices[0]}
    return [sum(values) for values in zip(*parameters, strict=True)]
