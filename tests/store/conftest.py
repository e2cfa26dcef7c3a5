"""Fixtures shared by several files of this room."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.tables import make_table

from brittle.store.folder import RunFolder, Shard
from brittle.store.record import Account


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write a run of three shards."""
    table = make_table(points=20, scores=("moments", "input_margin"), sigmas=(0.1,), budgets=(10,))
    with RunFolder(tmp_path / "run").open() as folder:
        folder.note(table.record)
        for number in range(3):
            tables = {"points": table.points, "scores": table.scores, "counterexamples": table.counterexamples}
            folder.commit(Shard(number, tables, Account()))
        folder.note(table.record)
    return tmp_path / "run"
