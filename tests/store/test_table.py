"""Run folders: shards that were committed are read back, and damage is reported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from helpers.problems import inputs, small_classifier
from helpers.tables import make_table

import brittle
from brittle.errors import StorageError
from brittle.scores import LogitMargin, MonteCarlo
from brittle.store import table as table_module
from brittle.store.folder import Manifest, RunFolder, Shard
from brittle.store.record import Account, RunRecord, read_object
from brittle.store.schemas import POINTS, SCORES


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_table().save(tmp_path / "run")
    return tmp_path / "run"


def test_round_trip(run: Path) -> None:
    table, loaded = make_table(), brittle.read_table(run)
    assert loaded.points.equals(table.points.cast(POINTS))
    assert loaded.scores.equals(table.scores.cast(SCORES))
    assert loaded.record == table.record
    assert sorted(path.name for path in run.iterdir()) == [
        "manifest.json",
        "points-00000.parquet",
        "run.json",
        "scores-00000.parquet",
    ]


def test_several_shards_are_one_table(tmp_path: Path) -> None:
    table = make_table()
    with RunFolder(tmp_path / "run").open() as folder:
        folder.note(table.record)
        for number in (2, 0, 1):
            tables = {"points": table.points, "scores": table.scores, "counterexamples": table.counterexamples}
            folder.commit(Shard(number, tables, Account()))
        folder.note(table.record)
    assert brittle.read_table(tmp_path / "run").points.num_rows == 3 * table.points.num_rows


READ = """
import sys
from pathlib import Path
import brittle

threads = Path("/proc/self/task")
brittle.read_table  # what importing starts does not count
before = len(list(threads.iterdir()))
brittle.read_table(sys.argv[1])
print(len(list(threads.iterdir())) - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads that Linux lists")
def test_reading_leaves_nothing_to_other_threads(run: Path) -> None:
    """A thread of Arrow that still held Python's bytes when Python ended aborted the process now and then."""
    process = subprocess.run([sys.executable, "-c", READ, str(run)], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (0, "0\n"), process.stderr


def test_a_saved_table_is_the_run_folder_of_its_run(tmp_path: Path) -> None:
    """The same shards with the same accounts, so that a run goes on in it, and a lost shard is computed again."""
    classifier, x, scores = small_classifier(), inputs(600), [LogitMargin(), MonteCarlo(0.1, draws=4, limit=None)]
    table = brittle.score(classifier, x, scores)
    brittle.score(classifier, x, scores, out=tmp_path / "run")
    table.save(tmp_path / "saved")
    saved, original = (read_object(tmp_path / place / "manifest.json", Manifest) for place in ("saved", "run"))
    accounts = [[replace(entry.account, check_passes=0) for entry in manifest.shards] for manifest in (saved, original)]
    assert accounts[0] == accounts[1]
    assert sum(entry.account.check_passes for entry in saved.shards) == table.record.account.check_passes
    (tmp_path / "saved" / "points-00001.parquet").unlink()
    resumed = brittle.score(classifier, x, scores, out=tmp_path / "saved", resume=True)
    assert resumed.points.equals(table.points)
    assert resumed.scores.equals(table.scores)
    assert resumed.record.account.points == 600
    assert resumed.record.account.passes == table.record.account.passes


def test_a_run_written_before_the_lock_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(points=5)
    monkeypatch.setattr(table_module, "RunFolder", Late)
    with pytest.raises(StorageError):
        table.save(tmp_path / "run")


class Late(RunFolder):
    """A run folder in which another process wrote a run before this one had the lock."""

    @contextmanager
    def open(self, expected: RunRecord | None = None) -> Iterator[Self]:
        with RunFolder(self.path).open() as winner:
            winner.note(make_table(points=3).record)
        with super().open(expected) as folder:
            yield folder
