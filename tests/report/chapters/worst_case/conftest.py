"""A run with input margins in two norms, with all that can become of them."""

from __future__ import annotations

import pytest
from helpers.margin_runs import SCORED
from helpers.tables import make_table

from brittle.store.table import Table


@pytest.fixture(scope="session")
def table() -> Table:
    return make_table(points=240, scores=SCORED, norms=("linf", "l2"), broken=3, not_found=4, masked=6, certified=True)
