"""Fixtures of the tests of the search."""

from __future__ import annotations

from copy import copy

import pytest

from brittle.measure.nearest import EFFORTS

SHARE = 5
"""Factor by which fewer sign vectors are tried."""


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the search by signs, which takes most of the time, for laws that do not depend on its distance."""
    for name, effort in EFFORTS.items():
        monkeypatch.setitem(EFFORTS, name, copy(effort))
        EFFORTS[name].queries //= SHARE
