"""Workers on the nodes of a Ray cluster. Ray places them; shards, their order and the run folder are ours."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brittle.errors import ClusterError, ParameterError, UsageError
from brittle.run.workers.base import Expected
from brittle.run.workers.joining import (
    Watch,
    check_listens,
    environment,
    has_token,
    host_and_port,
    library,
    lost,
)
from brittle.run.workers.posts import Posts, last_line
from brittle.run.workers.signals import Signals
from brittle.run.workers.station import Station
from brittle.run.workers.worker import worker_threads
from brittle.store.folder import PackedShard

LOCAL, AUTO = "local", "auto"
"""Addresses: a cluster of this machine alone, which ends with the run; and the one that this machine belongs to."""

STORE_BYTES = 200 << 20
"""Size of the object store of a cluster of this machine; a shard's files pass through it."""

JOIN_TRIES = "RAY_gcs_server_port_wait_time_s"
"""The variable that says how often Ray tries to join a cluster, 40 seconds each: 20 times by default, a quarter of an
hour of silence."""

LOOPBACK = "127.0.0.1"
"""The address of a cluster of this machine, which no other machine reaches."""

ONE_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""The variable that says, by 0, that a cluster is of one machine, which Ray reads when it is imported. Without it Ray
takes another address than the loopback one for itself, and its processes listen on every interface."""

MOST_ON_CLUSTER = 4096
"""More workers than this are a mistyped number."""


@dataclass
class Cluster:
    """Workers on a Ray cluster that share the shards of a run.

    A worker that dies with its process, its actor or its node is replaced, where there is room, and its shard is
    computed again by whoever is free.

    Attributes:
        address: `local`, `auto`, or host:port of a cluster that this machine belongs to.
        arguments: of the command `brittle` that the workers repeat.
        notify: called with sentences for the user.
        size: how many workers; None is as many as the cluster has room for.
        gpus: of each worker; a share of one where it is below 1.
        insecure: whether to join without a token, which a cluster takes only where it asks nobody for one.

    Raises:
        UsageError: the address is of a kind that is not supported.
        ParameterError: a number of workers or GPUs that cannot be.
        ClusterError: no token is set here, and `insecure` is not.
    """

    address: str
    arguments: Sequence[str]
    notify: Callable[[str], None]
    size: int | None = None
    gpus: float = 0.0
    insecure: bool = False

    def __post_init__(self) -> None:
        if self.address not in (LOCAL, AUTO) and host_and_port(self.address) is None:
            raise UsageError(
                f"--cluster takes local, auto or host:port of a cluster's head; found {self.address!r:.100} (run the "
                f"command on a node of the cluster, ray:// is not supported)",
            )
        if self.size is not None and not 1 <= self.size <= MOST_ON_CLUSTER:
            raise ParameterError(f"workers must be between 1 and {MOST_ON_CLUSTER}; found {self.size}")
        if not (0 <= self.gpus <= 1 or (math.isfinite(self.gpus) and self.gpus > 1 and self.gpus % 1 == 0)):
            raise ParameterError(
                f"a worker takes a share of a GPU between 0 and 1, or a whole number of them; found {self.gpus:g}",
            )
        if self.address != LOCAL and not self.insecure and not has_token():
            raise ClusterError(
                "insecure_cluster",
                f"no token is set here for the cluster at {self.address}, so whoever reaches it may run code on it; "
                f"set RAY_AUTH_MODE=token and a token on every node (ray get-auth-token --generate), or say "
                f"--insecure-cluster",
            )

    def prepare(self) -> None:
        """Import Ray as this cluster needs it. To be called before a model is opened, which might import it otherwise.

        Raises:
            ClusterError: it is not installed, or too old.
        """
        with environment(self._variables()):
            library()

    def shards(self, numbers: Sequence[int], expected: Expected | None = None) -> Generator[PackedShard]:
        """As `Workers.shards`.

        Raises:
            ClusterError: Ray is not installed or too old, the cluster cannot be joined, has no room, or is lost.
            BrittleError: as there.
        """
        if not numbers:
            return
        signals = Signals()
        with signals.record(), self._connected(signals) as ray:
            watch = Watch(ray, self.address)

            def look() -> None:
                signals.deliver()
                watch.look()

            posts = Posts(ray, self._hiring(ray, expected), look, self.notify)
            try:
                room = self._room(ray)
                yield from posts.shards(numbers, min(len(numbers), self.size or room))
            except SystemError as error:  # how Ray passes on what a second signal raises
                if error.__cause__ is None or isinstance(error.__cause__, Exception):
                    raise
                raise error.__cause__ from None
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError as error:
                raise lost(self.address, last_line(error)) from error

    def _hiring(self, ray: Any, expected: Expected | None) -> Callable[[], Any]:
        """What asks Ray for one more worker."""
        threads = worker_threads()
        options = {"num_cpus": _whole(threads), "num_gpus": self.gpus, "max_restarts": 0}
        remote = ray.remote(Station).options(**options, scheduling_strategy="SPREAD")
        return lambda: remote.remote(list(self.arguments), str(Path.cwd()), threads, expected)

    @contextmanager
    def _connected(self, signals: Signals) -> Iterator[Any]:
        """Ray, connected to the cluster; one of this machine is started, and ended afterwards."""
        own: dict[str, Any] = {}
        if self.address == LOCAL:
            cpus = None if self.size is None else self.size * _whole(worker_threads())
            own = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": STORE_BYTES}
            own["_node_ip_address"] = LOOPBACK
        with environment(self._variables()):
            ray = library()
            try:
                check_listens(self.address)
                ray.init(self.address, log_to_driver=False, logging_level="ERROR", **own)
            except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
                raise self._unreachable(error) from error
        try:
            self._check_at_home(ray)
            signals.take()
            signals.deliver()
            yield ray
        finally:
            ray.shutdown()

    def _check_at_home(self, ray: Any) -> None:
        """Raise where a cluster of this machine can be reached from others.

        Raises:
            ClusterError: it can: this version of Ray is not told what to bind to in this way.
        """
        address = ray.get_runtime_context().gcs_address
        if self.address == LOCAL and (host_and_port(address) or ("", 0))[0] != LOOPBACK:
            raise ClusterError(
                "cluster",
                f"Ray {ray.__version__} listens at {address}, where other machines reach it, and not at {LOOPBACK} "
                f"alone; use --workers, or another version of Ray",
            )

    def _unreachable(self, error: Exception) -> ClusterError:
        token = "" if self.insecure or self.address == LOCAL else " and has the same token"
        return ClusterError(
            "cluster",
            f"the cluster at {self.address} cannot be joined ({last_line(error)}); see that this machine is one of its "
            f"nodes (ray status){token}",
        )

    def _variables(self) -> dict[str, str | None]:
        """Environment variables that Ray reads when it is imported and when it starts; None for those it must not."""
        if self.address == LOCAL:
            token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            return {"RAY_ADDRESS": None, "RAY_USAGE_STATS_ENABLED": "0", ONE_MACHINE: "0", **token}
        joining = {"RAY_ADDRESS": None, JOIN_TRIES: os.environ.get(JOIN_TRIES, "1")}
        return joining if self.insecure else joining | {"RAY_AUTH_MODE": "token"}

    def _room(self, ray: Any) -> int:
        """How many workers the cluster has room for."""
        cpus = _whole(worker_threads())
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        room = sum(
            int(min(node.get("CPU", 0) / cpus, node.get("GPU", 0) / self.gpus if self.gpus else math.inf))
            for node in nodes
        )
        if room == 0:
            raise ClusterError(
                "cluster",
                f"none of the {len(nodes)} nodes of the cluster at {self.address} has {cpus} CPUs and {self.gpus:g} "
                f"GPUs for a worker; start Ray there with more (ray start --num-cpus, --num-gpus)",
            )
        return min(room, MOST_ON_CLUSTER)


def _whole(threads: str) -> int:
    """CPUs of a worker with so many threads."""
    return int(threads) if threads.isascii() and threads.isdigit() and int(threads) > 0 else 1
