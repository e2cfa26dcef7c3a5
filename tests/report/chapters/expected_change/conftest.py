"""A run with a Laplacian and sampled changes."""

from __future__ import annotations

import pytest
from helpers.change_runs import change_run

from brittle.store.table import Table


@pytest.fixture(scope="session")
def table() -> Table:
    return change_run()
