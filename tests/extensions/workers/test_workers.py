"""Workers write the bytes of one process, survive kills, and lose only a row that kills its process."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL, PIPE
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from checks.faults import contents
from helpers.artefacts import refused
from helpers.crews import COUNT, NETWORK, POISONED, line, prepare, run
from helpers.problems import small_classifier
from helpers.processes import started
from helpers.tables import make_table
from PIL import Image
from torch import nn

import brittle
from brittle.data import open_points
from brittle.decisions import Custom
from brittle.errors import BrittleError, DataError, ModelError
from brittle.extensions.workers import workers
from brittle.extensions.workers.workers import MOST_DEATHS, Processes, Team, send
from brittle.run import make_job
from brittle.scores import LogitMargin, Moments

pytestmark = pytest.mark.xdist_group("crew")  # one run of this process alone for all


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return prepare(tmp_path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the run of this process alone."""
    place = prepare(tmp_path_factory.mktemp("alone"))
    with pytest.MonkeyPatch.context() as patch:
        assert run(place, "run", patch) == 0
    return place / "run"


def test_workers_write_the_bytes_of_one_process_despite_kills(
    alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers are killed, each while it computes."""
    killed: list[int] = []
    done = threading.Event()

    def kill_some() -> None:
        while len(killed) < 2 and not done.is_set():
            for child in multiprocessing.active_children():
                if child.pid not in killed and len(killed) < 2:
                    time.sleep(0.5)
                    with suppress(ProcessLookupError):
                        os.kill(child.pid or 0, signal.SIGKILL)
                        killed.append(child.pid or 0)
            time.sleep(0.05)

    killer = threading.Thread(target=kill_some)
    killer.start()
    try:
        assert run(project, "run", monkeypatch, "--workers", "2") == 0
    finally:
        done.set()
        killer.join()
    assert len(killed) == 2
    assert contents(project / "run") == contents(alone)
    assert brittle.read_table(project / "run").record.account == brittle.read_table(alone).record.account


@pytest.mark.slow
def test_a_row_that_kills_its_process_is_left_out(alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All other rows get the numbers of a run without the kill."""
    monkeypatch.setenv("POISON", "1")
    assert run(project, "run", monkeypatch, "--workers", "2") == 4
    poisoned, plain = (brittle.read_table(place) for place in (project / "run", alone))
    dead = [row for row in poisoned.points.to_pylist() if row["status"] == "worker_died"]
    assert [row["row"] for row in dead] == [POISONED]
    poisoned_rows, plain_rows = (
        [row for row in table.scores.to_pylist() if row["point"] != str(POISONED)] for table in (poisoned, plain)
    )
    assert poisoned_rows == plain_rows
    assert len(poisoned_rows) == 2 * (COUNT - 1)


RECORD = make_table(points=2).record
REFERENCE = {"rows": [0], "logits": [[1.0, 2.0]], "explained": [[0.1, 0.1]]}


class Pretended:
    """A worker that answers at once, or dies where `dies(shard, lost rows)` is true."""

    opened: Any = (RECORD, REFERENCE)

    def __init__(self, dies: Callable[[int, Mapping[int, str]], bool], begins: Callable[[], bool] = lambda: True):
        self.dies, self.begins = dies, begins

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if not self.begins() if method == "open" else self.dies(*arguments):
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(self.opened if method == "open" else arguments)
        return future

    def close(self) -> None:
        pass


JOB: Any = SimpleNamespace(batches=lambda number: [SimpleNamespace(rows=(10, 11, 12)), SimpleNamespace(rows=(13, 14))])
"""Two batches in every shard."""


def shards(hire: Callable[[], Any], numbers: list[int]) -> list[Any]:
    team = Team(hire, lambda: JOB, (BrokenProcessPool,))
    return list(team.shards(numbers, 2, JOB, (RECORD, REFERENCE)))


@pytest.mark.parametrize("fatal", [{10}, {14}, {11, 12, 13}])
def test_the_rows_that_kill_are_found_wherever_they_stand(fatal: set[int]) -> None:
    """Bisection finds exactly these rows."""
    worker = Pretended(lambda number, lost: number == 1 and not fatal <= lost.keys())
    lost_by_shard = dict(shards(lambda: worker, [0, 1, 2]))
    assert {number: {*lost} for number, lost in lost_by_shard.items()} == {0: set(), 1: fatal, 2: set()}


def test_no_row_is_blamed_for_a_kill_from_outside() -> None:
    """Two deaths at one shard and one at each other lose no row."""
    deaths = [0, 0, 1, 2]

    def dies(number: int, lost: Mapping[int, str]) -> bool:
        if number in deaths:
            deaths.remove(number)
            return True
        return False

    assert sorted(shards(lambda: Pretended(dies), [0, 1, 2])) == [(0, {}), (1, {}), (2, {})]


def test_a_worker_that_has_no_room_is_not_waited_for() -> None:
    """One worker never opens; the other computes all shards."""
    hired: list[Pretended] = []

    def hire() -> Pretended:
        worker = Pretended(lambda number, lost: False)
        if hired:
            worker.submit = lambda method, *arguments: Future()  # type: ignore[method-assign]
        hired.append(worker)
        return worker

    assert sorted(shards(hire, [0, 1, 2])) == [(0, {}), (1, {}), (2, {})]
    assert len(hired) == 2


@pytest.mark.parametrize("begins", [True, False])
def test_workers_that_die_whatever_they_do_stop_the_run(begins: bool) -> None:
    hired: list[int] = []

    def hire() -> Pretended:
        hired.append(0)
        return Pretended(lambda number, lost: True, lambda: begins)

    with pytest.raises(BrittleError) as caught:
        shards(hire, [0])
    assert caught.value.code == "workers_die"
    assert len(hired) < 10 * MOST_DEATHS


@pytest.mark.parametrize(
    ("opened", "code"),
    [
        ((replace(RECORD, machine=replace(RECORD.machine, platform="other")), REFERENCE), "worker_differs"),
        ((RECORD, REFERENCE | {"logits": [[1.0, 2.5]]}), "model_changed"),
        (DataError("corrupt", "not there"), "corrupt"),
    ],
    ids=["platform", "logits", "error"],
)
def test_a_worker_that_opens_something_else_is_refused(opened: Any, code: str) -> None:
    def hire() -> Pretended:
        worker = Pretended(lambda number, lost: False)
        worker.opened = opened
        return worker

    with pytest.raises(BrittleError) as caught:
        shards(hire, [0])
    assert caught.value.code == code


def test_a_run_that_goes_on_has_not_finished(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record says so from the first moment; workers that cannot start leave no new run behind."""

    def fail(*arguments: Any) -> Any:
        raise ModelError("workers_die", "nobody is there")
        yield

    project = alone.parent
    shutil.copytree(alone, project / "again")
    (project / "again" / "scores-00001.parquet").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Processes, "shards", fail)
        assert run(project, "again", monkeypatch, "--workers", "2", "--resume") == 3
        assert run(project, "new", monkeypatch, "--workers", "2") == 3
    assert json.loads((project / "again" / "run.json").read_text())["finished"] is None
    assert not (project / "new").exists()
    assert run(project, "again", monkeypatch, "--resume") == 0
    assert contents(alone) == contents(project / "again")


def test_a_worker_ends_with_its_parent(project: Path) -> None:
    """It ends even while it computes."""
    network = NETWORK.replace(
        "        return self", "        len(x) > 8 and __import__('time').sleep(60)\n        return self"
    )
    (project / "net.py").write_text(network)
    code = (
        "import multiprocessing, sys, time\n"
        "from collections import Counter\n"
        "from functools import partial\n"
        "from brittle.cli.score import open_again\n"
        "from brittle.extensions.workers.workers import Process\n"
        "worker = Process(Counter({None: 0}))\n"
        "worker.submit('open', partial(open_again, sys.argv[1:])).result()\n"
        "worker.submit('shard', 0, {})\n"
        "print(multiprocessing.active_children()[0].pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, *line(project, "run")]
    with started(command, stdout=PIPE, stdin=DEVNULL) as parent:
        assert parent.stdout is not None
        child = int(next(output for output in parent.stdout if output.strip().isdecimal()))
        assert Path(f"/proc/{child}").exists()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


CARDED = NETWORK.replace(
    '    print("a model that talks")',
    '    with open("cards", "a") as cards:\n        print(os.environ.get("CUDA_VISIBLE_DEVICES", "none"), file=cards)',
)


def test_workers_share_the_cards(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes one of two, more workers share these evenly, and the replacement of a dead worker takes its card."""
    monkeypatch.setattr(workers, "cards_of", lambda device: ["4", "7"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.chdir(project)
    (project / "net.py").write_text(CARDED)
    assert run(project, "run", monkeypatch, "--workers", "1") == 0
    assert (project / "cards").read_text().split() == ["none", "4"]
    used = Counter[str | None]({"4": 0, "7": 0})
    team = [workers.Process(used) for _ in range(4)]
    assert used == {"4": 2, "7": 2}
    team[1].close()
    team.append(workers.Process(used))
    assert used == {"4": 2, "7": 2}
    for number in (0, 2, 3, 4):
        team[number].close()
    assert not any(used.values())


def test_cards_are_those_that_this_process_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert workers.cards_of(torch.device("cuda", 0)) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 2")
    assert workers.cards_of(torch.device("cuda")) == ["5", "2"]
    assert workers.cards_of(torch.device("cuda", 1)) == workers.cards_of(torch.device("cpu")) == [None]


def network() -> brittle.Classifier:
    torch.manual_seed(0)
    return brittle.Classifier(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).eval(), mean=0.5, std=0.5)


def inputs() -> torch.Tensor:
    return torch.rand(300, 1, 4, 4, generator=torch.Generator().manual_seed(0))


SCORES = [Moments(0.1, draws=8), LogitMargin()]


def test_points_of_files_are_the_same_in_another_process(tmp_path: Path) -> None:
    for row, levels in enumerate((255 * inputs()[:5, 0]).byte().numpy()):
        Image.fromarray(levels).save(tmp_path / f"{row}.png")
    points = open_points(tmp_path, limit=5)
    again = send(make_job(network(), points, SCORES, 0, None, 0.99))().points
    for batch, sent_batch in zip(points.batches(3), again.batches(3), strict=True):
        assert torch.equal(batch.inputs, sent_batch.inputs)
        assert batch.ids == sent_batch.ids


def test_the_table_from_python_is_that_of_one_process() -> None:
    data = (inputs(), torch.arange(300) % 3)
    plain, shared = (brittle.score(network(), data, SCORES, workers=size) for size in (None, 1))
    assert plain.points.equals(shared.points)
    assert plain.scores.equals(shared.scores)
    assert plain.record.account == shared.record.account


class _Local(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1)[:, :3]


def _of_the_program() -> nn.Module:
    kind = type("Typed", (_Local,), {"__module__": "__main__"})
    return kind()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: brittle.Classifier(_of_the_program()), "Typed"),
        (lambda: brittle.Classifier(_Local(), decision=Custom(lambda a, b: (a - b).sum(1) == 0)), "lambda"),
    ],
)
def test_objects_that_workers_cannot_import_are_refused(make: Callable[[], brittle.Classifier], name: str) -> None:
    refused("parameter", name, brittle.score, make(), inputs(), SCORES[:1], workers=2)


@pytest.mark.parametrize("number", [0, 1000, 2.0, True, "2"])
def test_numbers_that_cannot_be_started_are_refused(number: Any) -> None:
    refused("parameter", "workers", brittle.score, small_classifier(), inputs(), SCORES, workers=number)


def test_a_run_does_not_finish_without_all_its_shards(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "shards", lambda *arguments: (shard for shard in ()))
    with pytest.raises(RuntimeError, match=r"0 of \d+ shards"):
        run(project, "run", monkeypatch, "--workers", "2")
