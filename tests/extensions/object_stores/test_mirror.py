"""A run is written in two places and can resume from either, whichever dies at whatever step."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checks.faults import contents, in_child

import brittle
from brittle.cli.commands import main
from brittle.errors import ResumeError, StorageError
from brittle.scores import LogitMargin, Moments
from brittle.store.folder import MANIFEST, RECORD
from brittle.store.reading import open_run, verify

pytestmark = pytest.mark.xdist_group("faults")  # children of a process without other threads

EVERY = 9
"""Steps between two kills in the suite; `make test-slow` kills at every step."""


def score(out: Path, mirror: str) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 3))
    scores = [Moments(0.1, draws=4), LogitMargin()]
    options = {"out": out, "mirror": mirror, "resume": True, "skip_doctor": True, "batch_size": 16}
    brittle.score(brittle.Classifier(network), (torch.rand(44, 6), None), scores, **options)


def at_every_step(do: Callable[[], None], out: Path, mirror: Path) -> None:
    """Run with `do` called before every flush and every rename, of either side."""

    def wrap(function: Callable) -> Callable:
        def call(*arguments):
            do()
            return function(*arguments)

        return call

    os.fsync = wrap(os.fsync)
    Path.replace = wrap(Path.replace)  # type: ignore[method-assign]
    score(out, str(mirror))


def kill_at(step: int, out: Path, mirror: Path) -> int:
    """Run until the run kills itself at a step; return its exit code."""
    countdown = iter(range(step, -1, -1))

    def step_or_die() -> None:
        if next(countdown, 1) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return in_child(lambda: at_every_step(step_or_die, out, mirror))


def kill_everywhere(folder: Path, steps: range) -> int:
    """Count the kills that landed; after each the mirror is sound, and the run resumes from either side."""
    assert in_child(lambda: score(folder / "whole", str(folder / "copy"))) == 0
    expected = contents(folder / "whole")
    assert contents(folder / "copy") == expected
    for landed, step in enumerate(steps):
        out, mirror = folder / f"run{step}", folder / f"mirror{step}"
        if kill_at(step, out, mirror) != signal.SIGKILL:
            return landed
        if (mirror / RECORD).exists() and (mirror / MANIFEST).exists():
            assert all(fault.stray for fault in verify(mirror)), step
        if step % 2:
            shutil.rmtree(out, ignore_errors=True)
        assert in_child(lambda out=out, mirror=mirror: score(out, str(mirror))) == 0
        assert contents(out) == expected, step
        digests = {name: digest for name, digest in contents(mirror).items() if not name.startswith(".")}
        assert digests == expected, step
    raise AssertionError("no run came to its end")


def test_kills_lose_nothing(tmp_path: Path) -> None:
    assert kill_everywhere(tmp_path, range(0, 1000, EVERY)) > 5


@pytest.mark.slow
def test_kills_at_every_step_lose_nothing(tmp_path: Path) -> None:
    assert kill_everywhere(tmp_path, range(1000)) > 5 * EVERY


def test_a_place_that_holds_a_run_is_not_written_over(tmp_path: Path) -> None:
    score(tmp_path / "run", str(tmp_path / "mirror"))
    with pytest.raises(StorageError) as caught:
        brittle.score(
            torch.nn.Linear(6, 3),
            (torch.rand(44, 6), None),
            [LogitMargin()],
            out=tmp_path / "other",
            mirror=str(tmp_path / "mirror"),
        )
    assert caught.value.code == "exists"
    assert not (tmp_path / "other").exists()


def test_another_run_in_the_mirror_is_not_written_over(tmp_path: Path) -> None:
    score(tmp_path / "run", str(tmp_path / "mirror"))
    expected = contents(tmp_path / "mirror")
    network, x = torch.nn.Linear(6, 3), torch.rand(44, 6)
    brittle.score(network, (x, None), [LogitMargin()], out=tmp_path / "other")
    with pytest.raises(ResumeError) as caught:
        brittle.score(
            network, (x, None), [LogitMargin()], out=tmp_path / "other", mirror=str(tmp_path / "mirror"), resume=True
        )
    assert caught.value.code == "other_run"
    assert contents(tmp_path / "mirror") == expected


def test_a_run_that_is_refused_leaves_both_places_as_they_were(tmp_path: Path) -> None:
    """A command neither takes another run's mirror nor sends another run's folder."""
    score(tmp_path / "run", str(tmp_path / "mirror"))
    for out, mirror in (("other", "mirror"), ("run", "new")):
        before = {folder.name: contents(folder) for folder in tmp_path.iterdir()}
        with pytest.raises(ResumeError):
            brittle.score(
                torch.nn.Linear(6, 3),
                (torch.rand(44, 6), None),
                [LogitMargin()],
                out=tmp_path / out,
                mirror=str(tmp_path / mirror),
                resume=True,
            )
        (tmp_path / "new").rmdir() if mirror == "new" else None  # the folder was made, and is empty
        assert {folder.name: contents(folder) for folder in tmp_path.iterdir()} == before


def test_each_place_gets_the_shards_that_it_lacks(tmp_path: Path) -> None:
    """Two machines wrote into one mirror: no shard is computed again or lost."""
    run, mirror, stale = (tmp_path / name for name in ("run", "mirror", "stale"))
    score(run, str(mirror))
    all_shards = json.loads((run / MANIFEST).read_text())["shards"]
    assert len(all_shards) > 2
    for place, numbers in ((stale, (0, 1)), (mirror, (0, 2))):
        shutil.copytree(run, place, dirs_exist_ok=True)
        shards = [shard for shard in all_shards if shard["number"] in numbers]
        (place / MANIFEST).write_text(json.dumps({"format": 1, "shards": shards}))
    for folder in (stale, mirror):
        record, manifest = open_run(folder)
        assert (record.finished, len(manifest.shards)) == (None, 2), "shards are lost, so the run has not finished"
    stamps = {name: (stale / f"scores-{number:05d}.parquet").stat().st_mtime_ns for number, name in enumerate("ab")}
    score(stale, str(mirror))
    assert contents(stale) == contents(mirror) == contents(run)
    assert stamps == {
        name: (stale / f"scores-{number:05d}.parquet").stat().st_mtime_ns for number, name in enumerate("ab")
    }


def test_a_folder_without_a_record_refuses_another_runs_mirror(tmp_path: Path) -> None:
    """A first write that failed half way leaves such a folder."""
    score(tmp_path / "run", str(tmp_path / "mirror"))
    expected = contents(tmp_path / "mirror")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text('{"format": 1, "shards": []}')
    data = torch.rand(44, 6), None
    options = {"out": tmp_path / "out", "mirror": str(tmp_path / "mirror"), "resume": True}
    with pytest.raises(ResumeError):
        brittle.score(torch.nn.Linear(6, 3), data, [LogitMargin()], **options)  # type: ignore[arg-type]
    assert contents(tmp_path / "mirror") == expected


def test_a_file_that_the_mirror_lost_is_sent_again(tmp_path: Path) -> None:
    score(tmp_path / "run", str(tmp_path / "mirror"))
    (tmp_path / "mirror" / "scores-00001.parquet").unlink()
    score(tmp_path / "run", str(tmp_path / "mirror"))
    assert contents(tmp_path / "mirror") == contents(tmp_path / "run")


def test_a_damaged_file_of_the_mirror_is_computed_again(tmp_path: Path) -> None:
    score(tmp_path / "run", str(tmp_path / "mirror"))
    expected = contents(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "mirror" / "scores-00001.parquet").write_bytes(b"other")
    (tmp_path / "mirror" / "points-00000.parquet").unlink()
    score(tmp_path / "run", str(tmp_path / "mirror"))
    assert contents(tmp_path / "run") == contents(tmp_path / "mirror") == expected


def test_a_mirror_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(brittle.errors.ParameterError):
        brittle.score(torch.nn.Linear(6, 3), (torch.rand(4, 6), None), mirror=str(tmp_path / "mirror"))
    assert not (tmp_path / "mirror").exists()
    assert main(["score", "x.pt2", "y.npz", "--out", str(tmp_path / "run"), "--mirror", "nostore://x"]) != 0
    assert "nostore://x" in capsys.readouterr().err
