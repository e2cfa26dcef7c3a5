"""Kill workers, drivers and nodes of runs on a Ray cluster, and count losses and the longer time that runs take.

    PYTHONPATH=tests python -m checks.cluster_faults [KILLS]

The cluster has a head that computes nothing and three nodes of one CPU, all on this machine. A run has 24 shards of
about half a second each, in which the network sleeps, so that two cores are enough for three nodes. A driver's run is
resumed; a new node replaces a killed one after the run. Last, nodes are stopped and not killed: they fall silent with
their connections open, and Ray waits a minute before it gives them up.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checks.faults import Tally, contents, examine
from helpers import crews
from helpers.processes import LIMIT
from helpers.ray_nodes import Nodes, nodes, workers

from brittle.run.job import SHARD

SHARDS, NODES, KILLS = 24, 3, 10

BEGINS = "    def forward(self, x):\n"
NETWORK = crews.NETWORK.replace(BEGINS, f"{BEGINS}        __import__('time').sleep(0.01)\n")


@dataclass
class Runs:
    """Runs of one job, in one folder, on one cluster.

    Attributes:
        place: folder of model, data and runs.
        address: address of the cluster.
        environment: variables for users of the cluster.
        shards: number of shards of a run.
    """

    place: Path
    address: str
    environment: dict[str, str]
    shards: int

    @classmethod
    def prepare(cls, place: Path, cluster: Nodes | None, shards: int, network: str = NETWORK) -> Runs:
        """Write the model and the data; the last shard is not full."""
        crews.prepare(place, SHARD * shards - 100, network)
        return cls(place, cluster.address if cluster else "", cluster.environment if cluster else {}, shards)

    def start(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a run into the folder `name`."""
        fixed = ["--skip-doctor", "--resume", "--batch-size", str(2 * SHARD)]  # a batch is a shard
        line = crews.line(self.place, name, *fixed, *(options or ("--cluster", self.address)))
        with (self.place / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "brittle", *line], stdout=log, stderr=log, env=os.environ | self.environment
            )

    def done(self, name: str) -> int:
        """Return the number of shards in the manifest of a run."""
        try:
            return len(json.loads((self.place / name / "manifest.json").read_text())["shards"])
        except FileNotFoundError:
            return 0

    def wait_for(self, name: str, shards: int, run: subprocess.Popen[bytes]) -> None:
        """Wait until so many shards are written."""
        deadline = time.monotonic() + LIMIT
        while self.done(name) < shards:
            assert time.monotonic() < deadline, f"{name} has {self.done(name)} of {shards} shards after {LIMIT:g} s"
            assert run.poll() is None, f"{name} ended before it was killed: {self.said(name)}"
            time.sleep(0.02)

    def said(self, name: str) -> str:
        """Return the output of the runs into the folder `name`."""
        return (self.place / f"{name}.log").read_text()[-2000:]


Kill = Callable[[Runs, str, subprocess.Popen[bytes], int], None]


def kill_worker(runs: Runs, name: str, run: subprocess.Popen[bytes], number: int) -> None:
    """Kill the process of a worker."""
    victim = workers()[0]
    os.kill(victim, signal.SIGKILL)
    wait_for_end(victim)


def kill_driver(runs: Runs, name: str, run: subprocess.Popen[bytes], number: int) -> None:
    """Kill the command of the run, and start it again."""
    run.kill()
    assert run.wait(LIMIT) == -signal.SIGKILL


def wait_for_end(process: int) -> None:
    """Check that a process ended."""
    deadline = time.monotonic() + 10
    place = Path(f"/proc/{process}/stat")
    while time.monotonic() < deadline:
        try:
            if place.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.02)
    raise AssertionError(f"process {process} lives on")


def survive(runs: Runs, kind: str, number: int, kill: Kill, expected: dict[str, str], tally: Tally) -> None:
    """Kill once, at a random shard of a run, and compare the finished run with an undisturbed one."""
    name = f"{kind}-{number}"
    began = time.monotonic()
    run = runs.start(name)
    runs.wait_for(name, random.Random(name).randint(1, runs.shards * 2 // 3), run)
    kill(runs, name, run, number)
    tally.kills += 1
    if run.poll() is not None:
        run = runs.start(name)
    code = run.wait(LIMIT)
    tally.seconds.append(time.monotonic() - began)
    if code == 0:
        examine(runs.place / name, expected, tally, SHARD * runs.shards - 100)
    else:
        tally.not_resumed.append(f"{name}: exit {code}: {runs.said(name)}")


def run_undisturbed(runs: Runs, name: str, *options: str) -> tuple[float, dict[str, str]]:
    """Return the seconds and files of a run that nobody kills."""
    began = time.monotonic()
    code = runs.start(name, *options).wait(LIMIT)
    assert code == 0, runs.said(name)
    return time.monotonic() - began, contents(runs.place / name)


def node_killer(cluster: Nodes, silent: bool = False) -> Kill:
    """Return a function that kills a node, or only stops it."""

    def kill(runs: Runs, name: str, run: subprocess.Popen[bytes], number: int) -> None:
        count = len(cluster.members)
        assert count > 1
        (cluster.stop if silent else cluster.kill)(number % count)

    return kill


def report(kind: str, tally: Tally, clean: float) -> None:
    longest = max(tally.seconds)
    print(
        f"{kind}: {tally}; seconds at most {longest:.1f}, {longest / clean:.2f} times an undisturbed run",
        flush=True,
    )
    for sentence in tally.not_resumed:
        print(sentence)


def main(arguments: list[str]) -> int:
    """Run every check, and print the losses."""
    kills = int(arguments[0]) if arguments else KILLS
    faults, slow = 0, 0.0
    with tempfile.TemporaryDirectory() as place, nodes(NODES) as cluster:
        runs = Runs.prepare(Path(place), cluster, SHARDS)
        _, expected = run_undisturbed(runs, "processes", "--workers", "1")
        assert len(expected) == 2 * SHARDS + 2
        run_undisturbed(runs, "first")  # Ray's own first start is slower
        clean, digests = run_undisturbed(runs, "clean")
        assert digests == expected
        print(f"undisturbed on {NODES} nodes: {clean:.1f} s, the bytes of one process", flush=True)
        for kind, kill in (
            ("worker", kill_worker),
            ("driver", kill_driver),
            ("node", node_killer(cluster)),
            ("silent node", node_killer(cluster, silent=True)),
        ):
            tally = Tally()
            for number in range(kills):
                survive(runs, kind, number, kill, expected, tally)
                cluster.renew(NODES)
            report(kind, tally, clean)
            faults += tally.faults
            slow = max(slow, 0.0 if kind == "silent node" else max(tally.seconds) / clean)
    print(f"longest, silent nodes left out: {slow:.2f} times an undisturbed run")
    return int(faults > 0 or slow > 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
