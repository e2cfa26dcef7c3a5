"""Wide laws of which the suite runs every other case, and `make test-slow` the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def leave_every_other(items: Iterable[pytest.Item]) -> None:
    """Mark the second, the fourth, ... case of each law that has the marker `every_other` as slow."""
    seen: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("every_other") is not None:
            law = item.nodeid.partition("[")[0]
            if seen[law] % 2:
                item.add_marker(pytest.mark.slow)
            seen[law] += 1
