"""A Ray cluster of several nodes on this machine, and its processes that a test may kill."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
"""Environment of a cluster that requires a token, and of its users."""

STORE_BYTES = 100 << 20


@dataclass
class Nodes:
    """A head that computes nothing, and nodes of one CPU each.

    Attributes:
        cluster: the cluster of Ray.
        environment: variables of its processes and of its users.
        members: the nodes that compute.
        stopped: nodes that were stopped.
    """

    cluster: Any
    environment: dict[str, str]
    members: list[Any] = field(default_factory=list)
    stopped: list[Any] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Return the address of the head."""
        return self.cluster.address

    def kill(self, position: int) -> None:
        """End all processes of a node by SIGKILL, and check that they are gone."""
        node = self.members.pop(position)
        raylet = raylet_of(node)
        self.cluster.remove_node(node, allow_graceful=False)
        deadline = time.monotonic() + 10
        while raylet.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert raylet.returncode == -signal.SIGKILL, raylet.returncode

    def kill_head(self) -> None:
        """End the process of the head that holds the state of the cluster."""
        gcs = self.cluster.head_node.all_processes["gcs_server"][0].process
        gcs.kill()
        gcs.wait(10)

    def stop(self, position: int) -> None:
        """Stop the processes of a node, which then answers nobody while its connections stay open."""
        node = self.members.pop(position)
        self.stopped.append(node)
        for process in family(raylet_of(node).pid):
            os.kill(process, signal.SIGSTOP)

    def renew(self, count: int) -> None:
        """Bring the cluster back to `count` nodes; stopped ones are killed."""
        for node in self.stopped:
            for process in family(raylet_of(node).pid):
                os.kill(process, signal.SIGKILL)
            self.cluster.remove_node(node, allow_graceful=False)
        self.stopped.clear()
        while len(self.members) < count:
            with variables(self.environment):
                self.members.append(self.cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES))


@contextmanager
def nodes(count: int, token: bool = True) -> Iterator[Nodes]:
    """Start a cluster of so many nodes besides its head; with `token`, it requires one."""
    environment = {"RAY_USAGE_STATS_ENABLED": "0"} | (TOKEN if token else {"RAY_AUTH_MODE": "disabled"})
    with variables(environment):
        from ray._private.authentication_test_utils import reset_auth_token_state
        from ray.cluster_utils import Cluster

        reset_auth_token_state()  # Ray reads the variables when it is imported
        head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
    members = Nodes(cluster, environment)
    try:
        members.renew(count)
        yield members
    finally:
        members.renew(0)
        cluster.shutdown()


@contextmanager
def variables(changed: dict[str, str]) -> Iterator[None]:
    """Set these environment variables while the block runs."""
    before = dict(os.environ)
    os.environ.update(changed)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def raylet_of(node: Any) -> subprocess.Popen[bytes]:
    """Return the process of a node that starts the others."""
    return node.all_processes["raylet"][0].process


def workers() -> list[int]:
    """Return the processes of the workers of runs."""
    processes = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (place / "cmdline").read_bytes().startswith(b"ray::ClusterStation"):
                processes.append(int(place.name))
    return sorted(processes)


def family(process: int) -> list[int]:
    """Return a process and its descendants, the youngest first."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children.setdefault(parent(int(place.name)), []).append(int(place.name))
    processes = [process]
    for member in processes:
        processes += children.get(member, [])
    return processes[::-1]


def parent(process: int) -> int:
    """Return the process that started `process`."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
