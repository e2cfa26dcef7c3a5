"""A Ray cluster of several nodes on this machine, and the processes on it that a test may kill."""

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
"""Environment of a cluster that asks for a token, and of whoever has it."""

STORE_BYTES = 100 << 20


@dataclass
class Nodes:
    """A head that computes nothing, and nodes of one CPU each.

    Attributes:
        cluster: Ray's own.
        environment: variables that its processes have, and that whoever uses it needs.
        members: the nodes that compute.
        stopped: nodes that were stopped.
    """

    cluster: Any
    environment: dict[str, str]
    members: list[Any] = field(default_factory=list)
    stopped: list[Any] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Of the head."""
        return self.cluster.address

    def kill(self, position: int) -> None:
        """End all processes of a node by SIGKILL, and see that they are gone."""
        node = self.members.pop(position)
        raylet = raylet_of(node)
        self.cluster.remove_node(node, allow_graceful=False)
        deadline = time.monotonic() + 10
        while raylet.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert raylet.returncode == -signal.SIGKILL, raylet.returncode

    def kill_head(self) -> None:
        """End the process that knows the cluster."""
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
        """Make it `count` nodes again; those that were stopped are killed."""
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
    """A cluster of so many nodes besides its head; with `token`, it asks for one."""
    environment = {"RAY_USAGE_STATS_ENABLED": "0"} | (TOKEN if token else {"RAY_AUTH_MODE": "disabled"})
    with variables(environment):
        from ray._private.authentication_test_utils import reset_auth_token_state
        from ray.cluster_utils import Cluster

        reset_auth_token_state()  # Ray reads the variables when it is imported
        head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
    found = Nodes(cluster, environment)
    try:
        found.renew(count)
        yield found
    finally:
        found.renew(0)
        cluster.shutdown()


@contextmanager
def variables(changed: dict[str, str]) -> Iterator[None]:
    """These environment variables while the block runs."""
    kept = dict(os.environ)
    os.environ.update(changed)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def raylet_of(node: Any) -> subprocess.Popen[bytes]:
    """The process of a node that starts the others."""
    return node.all_processes["raylet"][0].process


def workers() -> list[int]:
    """The processes of the workers of runs."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (place / "cmdline").read_bytes().startswith(b"ray::ClusterStation"):
                found.append(int(place.name))
    return sorted(found)


def family(process: int) -> list[int]:
    """A process and all that came from it, the youngest first."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children.setdefault(parent(int(place.name)), []).append(int(place.name))
    found = [process]
    for each in found:
        found += children.get(each, [])
    return found[::-1]


def parent(process: int) -> int:
    """The process that started `process`."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
