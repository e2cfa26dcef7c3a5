"""Rows of frames and columns of tables, found by name."""

from __future__ import annotations

from brittle.store.table import Table

TWO_SIGMAS = {"sigmas": (0.1, 0.2), "budgets": (10, 400)}


def column(table: Table, label: str):
    return next(column for column in table.columns if column.label == label)
