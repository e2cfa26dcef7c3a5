"""Runs with input margins, as the worst-case chapter reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers.pages import values_of
from helpers.tables import with_rows

from brittle.extensions.worst_case import chapter as worst_case
from brittle.store.table import Table

SCORED = ("logit_margin", "entropy", "input_margin")
LABEL = "input_margin(norm=linf)"


def first_case(table: Table, epsilon: float | None = None) -> dict[str, Any]:
    """Return the values of the chapter on the worst case for the first norm of a run."""
    return values_of(worst_case.CHAPTER, table, epsilon=epsilon)["cases"][0]


def margins(table: Table) -> np.ndarray:
    """Return the input margins of `table`, NaN where there is none."""
    rows = table.long()
    return rows.loc[rows["score"] == "input_margin", "value"].to_numpy(dtype=np.float64)


def with_status(table: Table, status: str) -> Table:
    """Return `table` with the status of every input margin replaced."""
    rows = table.long()
    rows.loc[rows["score"] == "input_margin", "status"] = status
    return with_rows(table, rows)
