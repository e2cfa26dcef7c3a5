"""What the tests of the report share."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """One process runs them all: it draws each figure once, where two would draw nearly all of them twice."""
    item.add_marker(pytest.mark.xdist_group("report"))
