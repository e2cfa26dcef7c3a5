"""Configuration shared by the tests of the report."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run these tests in a single process, which draws each figure once; two would draw nearly all of them twice."""
    item.add_marker(pytest.mark.xdist_group("report"))
