"""A run that was stopped goes on, refuses to become another run, and is written by one process at a time."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pytest
import torch
from checks import faults
from checks.faults import contents, kills_at_steps, random_kills, reference, steps
from helpers.problems import inputs, small_network
from helpers.processes import LIMIT, started

import brittle
from brittle.cli import main
from brittle.data import open_points
from brittle.errors import ModelError, ParameterError, ResumeError, StorageError
from brittle.model.loading.load import load_model
from brittle.run import execute, identity, make_job
from brittle.run.record import describe
from brittle.scores import LogitMargin, Moments, Softmax
from brittle.store.account import Account
from brittle.store.files.lock import NAME, Lock
from brittle.store.folder import RunFolder

SHARD = 8


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)


def classifier(bounds: tuple[float, float] = (0, 1), **options: Any) -> brittle.Classifier:
    return brittle.Classifier(small_network(), bounds, **options)


def run(
    out: Path, *, model: brittle.Classifier | None = None, count: int = 20, first: int = 0, **options: Any
) -> brittle.Table:
    data = (inputs(count, seed=first), torch.arange(count) % 4)
    return brittle.score(
        model or classifier(), data, **({"scores": [Moments(0.1, draws=4)], "out": out, "resume": True} | options)
    )


# Kills


def test_kills_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the kills that `make test-faults` makes all of, in longer runs: at random moments, and at steps."""
    monkeypatch.setattr(faults, "SHARDS", 5)
    expected = reference(tmp_path)
    whole = steps(tmp_path)
    assert whole > 75
    random_ones = random_kills(tmp_path, 3, expected)
    at_steps = kills_at_steps(tmp_path, [0, 3, 8, 13, 15, 17, 19, whole - 1], expected)
    assert (random_ones.kills, at_steps.kills) == (3, 8)
    assert (random_ones.faults, at_steps.faults) == (0, 0), (random_ones, at_steps)


# Resuming


def test_a_finished_run_costs_no_pass(tmp_path: Path) -> None:
    first = run(tmp_path / "run")
    model = classifier()
    again = run(tmp_path / "run", model=model)
    assert model.passes == 0
    assert again.scores.equals(first.scores)
    assert again.provenance == first.provenance


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    first = classifier()
    whole = run(tmp_path / "whole", model=first)
    run(tmp_path / "run")
    before = contents(tmp_path / "run")
    damaged = tmp_path / "run" / "scores-00001.parquet"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    model = classifier()
    again = run(tmp_path / "run", model=model)
    assert again.scores.equals(whole.scores)
    assert contents(tmp_path / "run") == before
    account = whole.provenance["account"]
    examination = first.passes - account["passes"] - account["check_passes"]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    checks = manifest["shards"][1]["account"]["check_passes"]
    assert model.passes == examination + SHARD * 5 + checks


def test_the_account_of_a_resumed_run_is_that_of_all(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole").provenance
    run(tmp_path / "run")
    (tmp_path / "run" / "points-00002.parquet").unlink()
    again = run(tmp_path / "run").provenance
    assert again["account"] == whole["account"]
    assert again["passes"] == whole["passes"]


def test_a_run_is_not_resumed_unasked(tmp_path: Path) -> None:
    run(tmp_path / "run")
    with pytest.raises(StorageError, match="--resume") as caught:
        run(tmp_path / "run", resume=False)
    assert caught.value.code == "run_exists"


# Identity


def other_weights() -> brittle.Classifier:
    return brittle.Classifier(small_network(seed=1), bounds=(0, 1))


CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
    "seed": lambda: {"seed": 1},
    "confidence": lambda: {"confidence": 0.9},
    "batch_size": lambda: {"batch_size": 7},
    "scores": lambda: {"scores": [Moments(0.2, draws=4)]},
    "model.state_sha256": lambda: {"model": other_weights()},
    "model.bounds": lambda: {"model": classifier(bounds=(-1, 1))},
    "model.mean": lambda: {"model": classifier(mean=0.5)},
    "model.std": lambda: {"model": classifier(std=0.5)},
    "model.head": lambda: {"model": classifier(head="5")},
    "model.dtype": lambda: {"model": brittle.Classifier(small_network().double())},
    "data.points": lambda: {"count": 21},
    "data.sha256": lambda: {"first": 1},
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_experiment_is_refused_by_name(name: str, tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(ResumeError) as caught:
        run(tmp_path / "run", **CHANGES[name]())
    assert caught.value.exit_code == 5
    assert f"{name} " in str(caught.value)
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize("name", sorted(identity.IDENTITY))
def test_every_field_of_the_identity_is_compared(name: str) -> None:
    """Each field changed alone is refused, and named with both values."""
    room, _, key = name.partition(".")
    record = {room: {key: "old", "other": 1} if key else "old"}
    changed = {room: {key: "new", "other": 1} if key else "new"}
    with pytest.raises(ResumeError, match=rf"{name} old there, new now"):
        identity.check_same(record, changed, "run")
    identity.check_same(record, dict(record), "run")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ([0.5, 0.4, 0.5], [0.5, 0.5, 0.5], "[0.5, 0.4, 0.5] there, [0.5, 0.5, 0.5] now"),
        ([{"label": "a"}, {"label": "b"}], [{"label": "b"}, {"label": "c"}], "a only there, c only now"),
        ([{"label": str(draws)} for draws in range(5)], [], "4, 3, 2 and 2 more only there, nothing only now"),
        ([{"label": "a", "k": 1}], [{"label": "a", "k": 2}], "[{'label': 'a', 'k': 1}] there"),
        ("0" * 100 + "1", "0" * 100 + "2", f"…{'0' * 20}1 there, …{'0' * 20}2 now"),
        ("1" + "0" * 100, "2" + "0" * 100, f"1{'0' * 59}… there, 2{'0' * 59}… now"),
    ],
)
def test_how_a_difference_is_told(old: Any, new: Any, said: str) -> None:
    with pytest.raises(ResumeError, match=re.escape(f": scores {said}")):
        identity.check_same({"scores": old}, {"scores": new}, "run")


@pytest.mark.parametrize("name", sorted(identity.RUN_TIME))
def test_no_field_of_the_run_time_is(name: str) -> None:
    room, _, key = name.partition(".")
    identity.check_same({room: {key: 1} if key else 1}, {room: {key: 2} if key else 2}, "run")


def test_nothing_else_is_left_out_of_the_identity() -> None:
    """A field that is not compared lets rows of another experiment into a run, so whoever adds one says it twice."""
    expected = {
        *("command", "doctor", "created", "finished", "seconds", "passes", "failed_points", "warnings"),
        *(f"account.{field.name}" for field in dataclasses.fields(Account)),
        *("model.file", "model.runs_code", "model.written_by_torch", "model.classes", "model.taken", "model.weights"),
        *("data.path", "data.files", "data.other_files", "data.input_shape"),
        *("versions.python", "machine.threads", "machine.platform"),
    }
    assert expected == identity.RUN_TIME


def test_every_field_of_a_record_is_classed(tmp_path: Path) -> None:
    """A new field of a run's record, of a data format's or of a model's must be put on one of the two lists."""
    from helpers.data_files import LABELS, LEVELS, READERS

    (tmp_path / "net.py").write_text("import torch\n\n\ndef make():\n    return torch.nn.Flatten()\n")
    models = [brittle.Classifier(torch.nn.Flatten(), source=load_model(f"{tmp_path / 'net.py'}:make").provenance)]
    program = torch.export.export(
        small_network(), (inputs(2),), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=False
    )
    torch.export.save(program, tmp_path / "net.pt2")
    loaded = load_model(tmp_path / "net.pt2")
    models += [brittle.Classifier(loaded.module, source=loaded.provenance), classifier()]
    seen = set()
    for place, reader in enumerate(READERS):
        folder = tmp_path / str(place)
        folder.mkdir()
        for model in models:
            job = make_job(model, reader(folder, LEVELS, LABELS), [Softmax()], 0, 2, 0.9)
            seen |= {name for name, _ in identity.fields(describe(job, None))}
    seen |= {name for name, _ in identity.fields(run(tmp_path / "run").provenance)}
    assert seen <= identity.IDENTITY | identity.RUN_TIME, seen - identity.IDENTITY - identity.RUN_TIME
    assert not identity.IDENTITY & identity.RUN_TIME
    assert seen >= identity.IDENTITY, identity.IDENTITY - seen


def test_a_run_of_a_moved_data_set_is_the_same_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "data.npz", x=inputs(20).numpy())
    for name in ("one", "two"):
        job = make_job(classifier(), open_points(tmp_path / name / "data.npz"), [LogitMargin()], 0, None, 0.99)
        execute(job, tmp_path / "run")
    assert len(brittle.read_table(tmp_path / "run").points) == 20


# One process at a time


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from brittle.store.files.lock import Lock\n"
        "with Lock(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with started([sys.executable, "-c", holding, str(tmp_path)], stdout=PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(StorageError, match=rf"process {other.pid} on ") as caught:
            run(tmp_path)
        assert caught.value.code == "locked"
        assert time.monotonic() - began < 5
    assert (tmp_path / NAME).exists()
    run(tmp_path)  # the lock of a dead process is free
    assert not (tmp_path / NAME).exists()


def test_a_lock_is_held_by_one_of_two_in_one_process(tmp_path: Path) -> None:
    with Lock(tmp_path):
        with pytest.raises(StorageError), Lock(tmp_path):
            pass
        assert json.loads((tmp_path / NAME).read_text())["pid"] == os.getpid()
    with Lock(tmp_path):
        pass


# Storage


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(tmp_path / "whole")
    real, left = os.fsync, [10]

    def fsync(file: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError, match="No space left") as caught:
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
    with pytest.raises(StorageError, match="cannot be made"):
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


@pytest.mark.parametrize("how", ["link", "name"])
def test_a_shard_outside_the_folder_is_computed_again(how: str, tmp_path: Path) -> None:
    """Not even one of the very bytes that were written is kept."""
    run(tmp_path / "run")
    before = contents(tmp_path / "run")
    (tmp_path / "run" / "scores-00001.parquet").rename(tmp_path / "scores-00001.parquet")
    if how == "link":
        (tmp_path / "run" / "scores-00001.parquet").symlink_to(tmp_path / "scores-00001.parquet")
    else:
        manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
        manifest["shards"][1]["scores"]["file"] = "../scores-00001.parquet"
        (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    run(tmp_path / "run")
    assert not (tmp_path / "run" / "scores-00001.parquet").is_symlink()
    assert contents(tmp_path / "run") == before


# The command


def command_line(folder: Path, *options: str) -> list[str]:
    return ["score", f"{folder / 'net.py'}:make", str(folder / "data.npz"), "--out", str(folder / "run"), *options]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 4)).eval()\n"
    )
    np.savez(tmp_path / "data.npz", x=inputs(20).numpy(), y=np.arange(20) % 4)
    return tmp_path


def test_resume_on_the_command_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = command_line(project, "--scores", "logit_margin")
    assert main(line) == 0
    assert main(line) == 7
    assert "--resume" in capsys.readouterr().err
    assert main([*line, "--resume"]) == 0
    assert main([*line, "--resume", "--seed", "3"]) == 5
    assert "seed 0 there, 3 now" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_stop_cleanly(number: signal.Signals, code: int, project: Path) -> None:
    line = command_line(project, "--scores", "monte_carlo", "--draws", "5000000", "--quiet")
    with started([sys.executable, "-m", "brittle", *line], stderr=PIPE) as running:
        deadline = time.monotonic() + LIMIT
        while not (project / "run" / "run.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        running.send_signal(number)
        _, said = running.communicate(timeout=30)
        assert running.returncode == code
    assert "--resume" in said
    assert "Traceback" not in said
    assert not (project / "run" / NAME).exists()


def test_shards_without_a_record_belong_to_no_run(tmp_path: Path) -> None:
    run(tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    with pytest.raises(StorageError, match="--resume"):
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
    with pytest.raises(StorageError, match="not a list of shards") as caught:
        run(tmp_path / "run")
    assert caught.value.code == "run_damaged"


def test_a_resumed_run_keeps_the_day_it_began(tmp_path: Path) -> None:
    run(tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps(record | {"created": "1999-12-31T00:00:00+00:00"}))
    (tmp_path / "run" / "points-00001.parquet").unlink()
    assert run(tmp_path / "run").provenance["created"] == "1999-12-31T00:00:00+00:00"
