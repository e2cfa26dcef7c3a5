"""Files of a run folder, read without trust: damage by a disk is named, and no name leads elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.damaged import parquet_bytes, signed
from helpers.tables import make_table

from brittle.cli.commands import main
from brittle.errors import ArtefactError, StorageError
from brittle.store.reading import export_run, read_table, verify


def test_a_sound_run_has_no_faults(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(run) == []
    assert main(["verify", str(run)]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"brittle: every shard of {run} is what was written\n")
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"finished": None}))
    assert main(["verify", str(run)]) == 0
    assert "what was written; the run has not finished, score --resume goes on with it\n" in capsys.readouterr().err


def test_flipped_bits_are_all_named(run: Path) -> None:
    """Name the shard file with a flipped bit, drawn by its size, and no other."""
    rng = np.random.default_rng(0)
    files = sorted(run.glob("*.parquet"))
    sizes = np.array([path.stat().st_size for path in files])
    assert len(files) == 9
    for which in rng.choice(len(files), 30, p=sizes / sizes.sum()):
        path, place = files[which], rng.integers(sizes[which])
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        (fault,) = verify(run)
        assert (fault.file, fault.stray) == (path.name, False)
        assert "its sha256 differs" in fault.problem
        path.write_bytes(content)
    assert verify(run) == []


def test_page_checksums_are_verified_behind_the_digest(run: Path) -> None:
    """Flips in a page whose digest was recomputed: 30 of 30 are named by the checksum of the page."""
    rng = np.random.default_rng(1)
    name = "scores-00001.parquet"
    content = (run / name).read_bytes()
    column = pq.ParquetFile(BytesIO(content)).metadata.row_group(0).column(3)  # the values
    assert column.path_in_schema == "value"
    start, end = column.dictionary_page_offset + 40, column.data_page_offset - 8  # inside the page of all values
    assert end - start > 100
    for place in rng.integers(start, end, 30):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        signed(run, name, bytes(damaged))
        (fault,) = verify(run)
        assert fault.file == name
        assert "cannot be read as Parquet" in fault.problem


def test_verify_names_every_fault(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "points-00000.parquet").unlink()
    (run / "scores-00001.parquet").write_bytes((run / "scores-00001.parquet").read_bytes()[:-1])
    signed(run, "points-00002.parquet", parquet_bytes(pa.table({"x": [1]})))
    signed(run, "scores-00002.parquet", b"no table at all")
    for stray in ("points-00007.parquet", ".manifest.json.tmp", ".run.json.a\nb.tmp"):
        (run / stray).write_bytes(b"half")
    (run / "report.html").write_text("a report is no stray")
    assert main(["verify", str(run)]) == StorageError.exit_code
    printed = capsys.readouterr()
    missing, *damaged = printed.out.splitlines()
    assert missing == "points-00000.parquet: is missing"
    assert re.fullmatch(r"scores-00001.parquet: has \d+ bytes, not the \d+ of the manifest", damaged[0])
    assert damaged[1].startswith("points-00002.parquet: has other columns than a run writes")
    assert damaged[2].startswith("scores-00002.parquet: cannot be read as Parquet")
    assert len(damaged) == 3
    strays = [line.partition(":")[0] for line in printed.err.splitlines()[:3]]
    assert strays == [".manifest.json.tmp", ".run.json.a\\nb.tmp", "points-00007.parquet"]
    assert "4 shard files" in printed.err
    shutil.rmtree(run)
    table = make_table(points=3)
    table.save(run)
    (run / "scores-00009.parquet").write_bytes(b"")  # a stray alone is no damage
    assert main(["verify", str(run)]) == 0


@pytest.mark.parametrize("reader", [read_table, verify])
def test_a_manifest_names_no_file_and_each_shard_once(reader: Callable[[Path], Any], run: Path) -> None:
    """The name of a shard file follows from its number, so none leads out of the folder."""
    manifest = json.loads((run / "manifest.json").read_text())
    outside_file = manifest["shards"][0]["points"] | {"file": "../../secret.parquet"}
    duplicated = [*manifest["shards"], manifest["shards"][0]]
    for shards in (None, [5], [manifest["shards"][0] | {"points": outside_file}], duplicated):
        (run / "manifest.json").write_text(json.dumps(manifest | {"shards": shards}))
        with pytest.raises(StorageError) as caught:
            reader(run)
        assert caught.value.code == "run_damaged"


@pytest.mark.parametrize("name", ["points-00000.parquet", "run.json", "manifest.json"])
def test_a_link_cannot_lead_out_of_its_folder(name: str, run: Path) -> None:
    (run / name).rename(run.parent / name)
    (run / name).symlink_to(run.parent / name)
    with pytest.raises(ArtefactError, match=name) as caught:
        read_table(run)
    assert caught.value.code == "file_refused"


@pytest.mark.parametrize("name", ["manifest.json", "points-00000.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_pipes_and_folders_are_not_waited_for(name: str, kind: str, run: Path) -> None:
    (run / name).unlink()
    os.mkfifo(run / name) if kind == "pipe" else (run / name).mkdir()
    with pytest.raises(StorageError, match=name):
        read_table(run)


@pytest.mark.parametrize("name", ["run.json", "manifest.json"])
@pytest.mark.parametrize("content", [b"[]", b"[" * 100_000, b"\xff", b'{"x": ' + b"9" * 9999 + b"}"])
def test_records_that_are_no_object_are_refused(name: str, content: bytes, run: Path) -> None:
    (run / name).write_bytes(content)
    with pytest.raises(StorageError, match=name) as caught:
        read_table(run)
    assert caught.value.code == "run_damaged"


@pytest.mark.parametrize("kind", ["points", "scores"])
def test_a_duplicate_point_is_refused(kind: str, run: Path, tmp_path: Path) -> None:
    """The digest is valid, the values are not: no number of one row is taken for that of another."""
    name = f"{kind}-00000.parquet"
    rows = pq.read_table(run / name)
    ids = rows["point"].to_pylist()
    duplicate_ids = pa.array([ids[0] if id_ == ids[-1] else id_ for id_ in ids])
    signed(run, name, parquet_bytes(rows.set_column(0, rows.schema.field(0), duplicate_ids)))
    for read in (lambda: read_table(run).frame(), lambda: export_run(run, tmp_path / "rows.csv")):
        with pytest.raises(StorageError) as caught:
            read()
        assert caught.value.code == "run_damaged"
