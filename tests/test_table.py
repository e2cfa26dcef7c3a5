"""The run folder: what was committed is read back, and what was damaged is said."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tables import make_table

import brittle
from brittle.errors import StorageError
from brittle.table import POINTS, SCORES, RunWriter


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_table().to_parquet(tmp_path / "run")
    return tmp_path / "run"


def test_round_trip(run: Path) -> None:
    table, found = make_table(), brittle.read_table(run)
    assert found.points.equals(table.points.cast(POINTS))
    assert found.scores.equals(table.scores.cast(SCORES))
    assert found.provenance == json.loads(json.dumps(table.provenance))


def test_several_shards_are_one_table(tmp_path: Path) -> None:
    table = make_table()
    writer = RunWriter.create(tmp_path / "run", table.provenance)
    for _ in range(3):
        writer.commit(table.points, table.scores)
    assert writer.finish(table.provenance).points.num_rows == 3 * table.points.num_rows


def test_no_temporary_file_is_left(run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == [
        "manifest.json",
        "points-00000.parquet",
        "run.json",
        "scores-00000.parquet",
    ]


def test_what_the_manifest_does_not_name_does_not_exist(run: Path) -> None:
    (run / "scores-00001.parquet").write_bytes(b"half a shard")
    (run / ".scores-00002.parquet.tmp").write_bytes(b"")
    assert brittle.read_table(run).scores.num_rows == make_table().scores.num_rows


@pytest.mark.parametrize("name", ["points-00000.parquet", "scores-00000.parquet"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_shard_is_named(run: Path, name: str, damage: str) -> None:
    content = bytearray((run / name).read_bytes())
    if damage == "remove":
        (run / name).unlink()
    else:
        content[len(content) // 2] ^= 1
        (run / name).write_bytes(content if damage == "flip" else content[:-1])
    with pytest.raises(StorageError, match=name) as caught:
        brittle.read_table(run)
    assert caught.value.code == "shard_damaged"
    assert caught.value.exit_code == 7


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("run.json", "{", "run_damaged"),
        ("manifest.json", "[", "run_damaged"),
        ("manifest.json", '{"format": 99}', "run_format"),
        ("run.json", None, "no_run"),
    ],
)
def test_a_damaged_record_is_named(run: Path, name: str, content: str | None, code: str) -> None:
    (run / name).unlink()
    if content is not None:
        (run / name).write_text(content)
    with pytest.raises(StorageError) as caught:
        brittle.read_table(run)
    assert caught.value.code == code


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be made") as caught:
        make_table().to_parquet(tmp_path / "file" / "run")
    assert caught.value.code == "unwritable"


def test_page_checksums_are_written(run: Path) -> None:
    assert pq.ParquetFile(run / "scores-00000.parquet", page_checksum_verification=True).read().num_rows > 0
