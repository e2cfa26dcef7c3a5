"""A disk that is full loses nothing, and no number depends on what the clock or the times of files say."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from checks.faults import contents
from helpers.resumed import SHARD, run

import brittle
from brittle.errors import StorageError
from brittle.store.reading import verify

COUNT = 20

ASKED: dict[str, Any] = {"skip_doctor": True}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file system of its own, which `resize` makes larger; only root may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip("no file system of a given size can be mounted here, which takes root")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def resize(place: Path, kilobytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", place], check=True)


@pytest.mark.skipif(os.name != "posix", reason="file systems of a given size are mounted on Linux")
def test_a_full_disk_loses_nothing_and_the_run_goes_on(disk: Path, tmp_path: Path) -> None:
    """Room for one file more each time."""
    whole, failures, kilobytes = run(tmp_path / "whole", **ASKED), [], itertools.count(8, 8)
    while (failure := attempt(disk, next(kilobytes), ASKED)) is not None:
        failures.append((failure.code, failure.exit_code))
        points = points_of(disk / "run")
        assert points == whole.points["point"].to_pylist()[: len(points)]
        assert len(points) == COUNT or len(points) % SHARD == 0
    assert len(failures) > 1
    assert set(failures) == {("unwritable", 7)}
    assert contents(disk / "run") == contents(tmp_path / "whole")


def attempt(disk: Path, kilobytes: int, asked: dict[str, Any]) -> StorageError | None:
    """Why the run could not be finished on so large a disk; None where it could."""
    resize(disk, kilobytes)
    try:
        run(disk / "run", count=COUNT, **asked)
    except StorageError as error:
        return error
    return None


def points_of(folder: Path) -> list[str]:
    """The points that a reader sees, none where not even the record had room; what is there is whole."""
    if not (folder / "run.json").exists():
        return []
    assert not [fault for fault in verify(folder) if not fault.stray]
    return brittle.read_table(folder).points["point"].to_pylist()


def test_the_clock_and_the_times_of_files_decide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes back by decades and ahead by a century between the parts of a run, and files come from either."""
    run(tmp_path / "whole", **ASKED)
    for year in (1971, 2126, 1980):

        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:
                return datetime(year, 1, 1, tzinfo=tz)  # noqa: B023 - read within the loop

        monkeypatch.setattr("brittle.run.record.datetime", Clock)
        monkeypatch.setenv("TZ", "Asia/Kathmandu" if year > 2000 else "America/St_Johns")
        run(tmp_path / "run", **ASKED)
        (tmp_path / "run" / "scores-00001.parquet").unlink()  # the next part computes it again
        for place, file in enumerate(sorted((tmp_path / "run").iterdir())):
            os.utime(file, (place * 10**9, place * 10**9))
    run(tmp_path / "run", **ASKED)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
