"""A run folder: whatever stops the writing, what is there is whole."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from checks.faults import contents
from helpers.resumed import SHARD, classifier, run

import brittle
from brittle.errors import ModelError, ParameterError, StorageError
from brittle.store.folder import RunFolder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(tmp_path / "whole")
    real, left = os.fsync, [10]

    def fsync(file: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError) as caught:
        run(tmp_path / "run")
    assert caught.value.exit_code == 7
    assert not list((tmp_path / "run").glob(".*.tmp"))
    monkeypatch.setattr(os, "fsync", real)
    assert len(brittle.read_table(tmp_path / "run").points) == SHARD
    assert run(tmp_path / "run").scores.equals(whole.scores)


def test_a_file_gets_its_name_when_its_bytes_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes, then the name, then the folder: whatever a power cut leaves is whole."""
    seen: list[tuple[str, str, int]] = []
    fsync, replace = os.fsync, Path.replace

    def flushed(file: int) -> None:
        fsync(file)
        path = Path(f"/proc/self/fd/{file}").readlink()
        name = re.sub(r"\.[0-9a-f]{12}\.tmp$", ".TOKEN.tmp", path.name)
        seen.append(("flushed", name, 0 if path.is_dir() else os.fstat(file).st_size))

    def renamed(path: Path, target: Path) -> Path:
        seen.append(("named", target.name, path.stat().st_size))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", renamed)
    run(tmp_path / "run", count=SHARD)
    sizes = [size for what, _, size in seen if what == "named"]
    files = ["manifest.json", "run.json", "points-00000.parquet", "scores-00000.parquet", "manifest.json", "run.json"]
    assert all(sizes)
    assert seen == [
        step
        for name, size in zip(files, sizes, strict=True)
        for step in (("flushed", f".{name}.TOKEN.tmp", size), ("named", name, size), ("flushed", "run", 0))
    ]


def test_an_unwritable_folder_is_said_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = classifier()
    with pytest.raises(StorageError):
        run(tmp_path / "file" / "run", model=model)
    assert model.passes == 0


def test_what_a_dead_process_left_is_removed(tmp_path: Path) -> None:
    run(tmp_path)
    before = contents(tmp_path)
    (tmp_path / ".scores-00007.parquet.tmp").write_bytes(b"half")
    (tmp_path / "scores-00007.parquet").write_bytes(b"half")
    (tmp_path / "report.html").write_text("mine")
    with RunFolder.open(tmp_path):
        pass
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").unlink()
    assert contents(tmp_path) == before


def test_a_shard_outside_the_folder_is_computed_again(tmp_path: Path) -> None:
    """Not even one of the very bytes that were written is kept."""
    run(tmp_path / "run")
    before = contents(tmp_path / "run")
    (tmp_path / "run" / "scores-00001.parquet").rename(tmp_path / "scores-00001.parquet")
    (tmp_path / "run" / "scores-00001.parquet").symlink_to(tmp_path / "scores-00001.parquet")
    run(tmp_path / "run")
    assert not (tmp_path / "run" / "scores-00001.parquet").is_symlink()
    assert contents(tmp_path / "run") == before


def test_shards_without_a_record_belong_to_no_run(tmp_path: Path) -> None:
    run(tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    with pytest.raises(StorageError):
        run(tmp_path / "run", resume=False)
    other = run(tmp_path / "run", seed=1)
    assert other.scores.equals(run(tmp_path / "other", seed=1).scores)


def test_a_folder_of_the_users_own_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ParameterError):
        run(tmp_path / "mine", seed=-1)
    with pytest.raises(ModelError):
        run(tmp_path / "mine", model=brittle.Classifier(torch.nn.Flatten(start_dim=0)))
    assert (tmp_path / "mine").is_dir()


@pytest.mark.parametrize("shards", [None, 3, [5], [{}], [{"number": 0, "points": {}}]])
def test_a_manifest_of_another_form_is_named(shards: Any, tmp_path: Path) -> None:
    run(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest | {"shards": shards}))
    with pytest.raises(StorageError, match=r"manifest\.json.*shards") as caught:
        run(tmp_path / "run")
    assert caught.value.code == "run_damaged"
