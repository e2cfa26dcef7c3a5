"""Rows that kill workers are left out, and no row is blamed for a kill from outside."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.crews import COUNT, POISONED, run

import brittle
from brittle.run.workers.crew import Crew
from brittle.store.account import Account
from brittle.store.files.strict_json import dump

pytestmark = pytest.mark.xdist_group("crew")  # one run of one worker for all


@pytest.mark.slow
def test_a_row_that_kills_its_worker_is_left_out(alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row kills whoever computes it; all others get the numbers that they have without it."""
    monkeypatch.setenv("POISON", "1")
    assert run(project, "run", monkeypatch, "--workers", "2", "--batch-size", "16") == 4
    found, whole = (brittle.read_table(place) for place in (project / "run", alone))
    dead = [row for row in found.points.to_pylist() if row["status"] == "worker_died"]
    assert [row["row"] for row in dead] == [POISONED]
    assert "signal 11" in dead[0]["detail"]
    names = {row["point"] for row in dead}
    mine, theirs = ([row for row in table.scores.to_pylist() if row["point"] not in names] for table in (found, whole))
    assert len(mine) == 2 * (COUNT - 1)
    for own, other in zip(mine, theirs, strict=True):
        assert own["value"] == pytest.approx(other["value"], rel=1e-5, abs=1e-12)


POISONOUS = """
import json, os, signal, sys

print(json.dumps({"hello": {}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"begun": list(range(8))}), flush=True)
    if sys.argv[1] not in request["lost"]:
        os.kill(os.getpid(), signal.SIGKILL)
    account = json.loads(sys.argv[2]) | {"failures": list(request["lost"])}
    shard = {"number": request["shard"], "account": account, "files": {}}
    print(json.dumps({"done": shard if request["only"] is None else None}), flush=True)
"""


@pytest.mark.parametrize("row", ["0", "3", "5", "7"])
def test_the_row_that_kills_is_found_wherever_it_stands(row: str, tmp_path: Path) -> None:
    """Of eight rows, by halves, and no other is left out."""
    (tmp_path / "worker.py").write_text(POISONOUS)
    workers = Crew([sys.executable, "-I", str(tmp_path / "worker.py"), row, dump(Account())], 1)
    (shard,) = workers.shards([0])
    assert shard.account.failures == (row,)


SCRIPTED = """
import json, os, signal, sys
from pathlib import Path

asked = Path(sys.argv[1])
print(json.dumps({"hello": {}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    with asked.open("a") as log:
        log.write(line)
    print(json.dumps({"begun": [0, 1, 2, 3]}), flush=True)
    count = len(asked.read_text().splitlines())
    if count <= 2:
        os.kill(os.getpid(), signal.SIGKILL)
    account = json.loads(sys.argv[2]) | {"failures": list(request["lost"])}
    shard = {"number": request["shard"], "account": account, "files": {}}
    print(json.dumps({"done": shard}), flush=True)
    if count == 6:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_row_is_blamed_for_a_kill_from_outside(tmp_path: Path) -> None:
    """A worker killed twice at one batch and healthy afterwards loses no row; nor does one that dies between shards."""
    (tmp_path / "worker.py").write_text(SCRIPTED)
    workers = Crew([sys.executable, str(tmp_path / "worker.py"), str(tmp_path / "asked"), dump(Account())], 1)
    shards = list(workers.shards([0, 1, 2]))
    assert [shard.number for shard in shards] == [0, 1, 2]
    assert all(shard.account == Account() for shard in shards)
