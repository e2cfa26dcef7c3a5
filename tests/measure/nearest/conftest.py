"""What the tests of the search share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from brittle.measure.nearest import EFFORTS

SHARE = 5
"""By how much fewer sign vectors are tried."""


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search by signs, which takes most of the time, is short: for laws that do not ask how near it comes."""
    for name, effort in EFFORTS.items():
        monkeypatch.setitem(EFFORTS, name, replace(effort, queries=effort.queries // SHARE))
