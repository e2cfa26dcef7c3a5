"""Runs on a Ray cluster: refusals, messages, tokens; `make test-cluster` kills nodes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from checks.cluster_faults import NETWORK, Runs
from helpers.documents import blocks
from helpers.processes import LIMIT
from helpers.ray_nodes import TOKEN, Nodes, nodes

import brittle
from brittle.cli.commands import main
from brittle.errors import BrittleError
from brittle.extensions.workers.cluster import Cluster
from brittle.store.reading import verify

pytestmark = pytest.mark.xdist_group("ray")  # one cluster after the other

NODES = 2
"""Nodes of the cluster besides its head; `make test-cluster` has three."""


def cluster(address: str, **options: Any) -> Cluster:
    return Cluster(address, lambda: Any, **options)  # type: ignore[arg-type, return-value]


def refused(address: str, **options: Any) -> BrittleError:
    with pytest.raises(BrittleError) as caught:
        list(cluster(address, **options).shards([0], Any, Any))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.slow
def test_nobody_listens(token: None) -> None:
    """Ray alone waits for a quarter of an hour."""
    assert refused("127.0.0.1:9").code == "cluster"


@pytest.fixture
def token(no_token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")


@pytest.fixture(scope="module")
def started() -> Iterator[Nodes]:
    with nodes(NODES) as cluster_nodes:
        yield cluster_nodes


@pytest.fixture(scope="module")
def runs(started: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs.prepare(tmp_path_factory.mktemp("runs"), started, 6)


@pytest.mark.slow
def test_another_model_on_a_node_is_refused(started: Nodes, tmp_path: Path) -> None:
    """A node makes another model, or none; an error of the model itself names the node."""
    seed = "torch.manual_seed(int('ray::' in open('/proc/self/cmdline').read()))"
    fails = "def make():\n    if 'ray::' in open('/proc/self/cmdline').read():\n        return None\n"
    changes = {"another": ("torch.manual_seed(0)", seed), "none": ("def make():\n", fails)}
    runs_by_name: dict[str, Runs] = {}
    for name, change in changes.items():
        (tmp_path / name).mkdir()
        runs_by_name[name] = Runs.prepare(tmp_path / name, started, 1, NETWORK.replace(*change))
    processes = [runs.start("run") for runs in runs_by_name.values()]
    assert [run.wait(LIMIT) for run in processes] == [3, 3]
    another, none = (runs.said("run") for runs in runs_by_name.values())
    assert "worker_differs" in another
    assert re.search(r"model.state_sha256 \w+ in the run, \w+ in a worker", another)
    assert "the node " in none
    assert not list(tmp_path.glob("*/run/*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run(number: signal.Signals, code: int, runs: Runs) -> None:
    """The exit code is that of the signal, and the folder is sound; Ray replaces the handler of SIGTERM."""
    name = f"signal-{number}"
    run = runs.start(name)
    runs.wait_for(name, 2, run)
    run.send_signal(number)
    assert run.wait(LIMIT) == code, runs.said(name)
    assert "--resume" in runs.said(name)
    assert "Traceback" not in runs.said(name)
    assert verify(runs.place / name) == []


@pytest.mark.slow
def test_a_node_without_room_is_told(runs: Runs) -> None:
    large = replace(runs, environment=runs.environment | {"OMP_NUM_THREADS": "99"})
    assert large.start("no-room").wait(LIMIT) == 3
    assert f"none of the {NODES + 1} nodes" in runs.said("no-room")


@pytest.mark.slow
def test_a_cluster_that_asks_nobody_for_a_token(tmp_path: Path) -> None:
    """A run with a token gets no workers where the nodes ask for none."""
    with nodes(1, token=False) as open_to_all:
        runs = replace(Runs.prepare(tmp_path, open_to_all, 1), environment=TOKEN)
        assert runs.start("careful").wait(LIMIT) == 3
    assert "workers_die" in runs.said("careful")
    assert not (tmp_path / "careful").exists()


@pytest.mark.slow
def test_a_head_that_dies_is_told(tmp_path: Path) -> None:
    """Long before Ray ends the process; the run goes on without the cluster."""
    with nodes(1) as cluster_nodes:
        runs = Runs.prepare(tmp_path, cluster_nodes, 120)
        run = runs.start("run")
        runs.wait_for("run", 2, run)
        cluster_nodes.kill_head()
        began = time.monotonic()
        assert run.wait(LIMIT) == 7, runs.said("run")
        assert time.monotonic() - began < 45
    assert "cluster_lost" in runs.said("run")
    assert 2 <= runs.done("run") < 120
    assert verify(tmp_path / "run") == []


@pytest.mark.slow
def test_the_example_of_three_machines(tmp_path: Path) -> None:
    """The commands of docs/how-to/cluster.md as they stand, but for the name and the port of the first machine."""
    head, join, run = blocks("docs/how-to/cluster.md", "console")[2:]
    (tmp_path / "mynet.py").write_text(NETWORK)
    x = np.random.default_rng(0).random((600, 12), dtype=np.float32)
    np.savez(tmp_path / "mydata.npz", x=x, y=np.arange(600) % 3)
    with tempfile.TemporaryDirectory(prefix="ray-") as short:
        home = {"HOME": str(tmp_path), "RAY_TMPDIR": short, "RAY_USAGE_STATS_ENABLED": "0"}
        bare = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment = bare | home | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        port = str(free_port())
        lines = (head + join + join + run).replace("6379", port).replace("first:", "127.0.0.1:")
        try:
            done = subprocess.run(
                ["bash", "-euc", lines], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
            )
        finally:
            end_all_with(str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "myrun" / "report.html").is_file()
    assert (tmp_path / ".ray" / "auth_token").stat().st_mode & 0o077 == 0
    assert verify(tmp_path / "myrun") == []
    assert len(brittle.read_table(tmp_path / "myrun").points) == 600


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]


def end_all_with(home: str) -> None:
    """Kill the processes with this home: `ray stop` would end every cluster of this machine."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={home}" in (place / "environ").read_bytes().decode(errors="replace").split("\0"):
                os.kill(int(place.name), signal.SIGKILL)


@pytest.fixture
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make a home without a token, and unset the settings of Ray."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("address", ["auto", "[::1]:6379"])
def test_an_address_without_a_token_is_refused(address: str, no_token: Path) -> None:
    error = refused(address)
    assert error.code == "insecure_cluster"
    assert address in error.args[0]


def test_where_a_token_may_lie(no_token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    cluster("auto")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert refused("auto").code == "insecure_cluster"
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(no_token / "token"))
    assert refused("auto").code == "insecure_cluster"
    (no_token / "token").write_text("secret")
    cluster("auto")
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
    assert refused("auto").code == "insecure_cluster"
    (no_token / ".ray").mkdir()
    (no_token / ".ray" / "auth_token").write_text("")
    assert refused("auto").code == "insecure_cluster"
    (no_token / ".ray" / "auth_token").write_text("secret")
    cluster("auto")


@pytest.mark.parametrize("address", ["", "ray://head:10001", "head:", ":6379", "head:99999", "head:²"])
def test_a_malformed_address_is_refused(address: str) -> None:
    assert refused(address).code == "usage"


def test_ray_sends_no_usage_reports(token: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither at import nor when it joins a cluster; the caller's setting is restored afterwards."""
    usage_settings: list[str | None] = []

    def init(address: str, **options: Any) -> None:
        usage_settings.append(os.environ.get("RAY_USAGE_STATS_ENABLED"))
        raise ConnectionError

    ray, exceptions = ModuleType("ray"), ModuleType("ray.exceptions")
    vars(exceptions).update(RayError=OSError, RayActorError=OSError, ObjectLostError=OSError, RaySystemError=OSError)
    vars(ray).update(__version__="2.60.0", __spec__=ModuleSpec("ray", None), init=init, exceptions=exceptions)
    for module in (ray, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    assert refused("auto").code == "cluster"
    assert (usage_settings, os.environ["RAY_USAGE_STATS_ENABLED"]) == (["0"], "1")


def test_without_ray(no_token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The missing package is reported before the missing token, which Ray must check."""
    monkeypatch.setitem(sys.modules, "ray", None)
    error = refused("auto")
    assert error.code == "cluster"
    assert "pip install 'brittle[ray]'" in error.args[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster", "auto", "--device", "cuda:1"], "give --device cuda"),
        (["--cluster", "head:6379"], "no token is set here"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], message: str, no_token: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options are refused before the model is opened: it does not exist."""
    code = main(["score", "no.py:make", "no.npz", "--out", str(no_token / "run"), *options])
    assert code in (2, 3)
    assert message in capsys.readouterr().err
    assert not (no_token / "run").exists()
