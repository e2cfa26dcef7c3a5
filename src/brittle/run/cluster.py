"""Workers on the nodes of a Ray cluster. Ray places them; shards, their order and the run folder are ours."""

from __future__ import annotations

import math
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brittle.errors import BrittleError, ClusterError, ClusterLostError, ModelError, ParameterError, UsageError
from brittle.run.job import Job
from brittle.run.workers import Opened, Opening, Station, Team, environment, last_line, worker_threads
from brittle.store.folder import PackedShard

LOCAL, AUTO = "local", "auto"
"""Addresses: a cluster of this machine alone, which ends with the run; and the one that this machine belongs to."""

OLDEST_RAY = (2, 52)
"""The first release of Ray whose clusters can ask for a token."""

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

WATCH_SECONDS, LOST_SECONDS = 3.0, 15.0
"""How often the run looks whether the head of the cluster is there, and after how long without it is lost: Ray ends the
whole process after a minute."""


@dataclass
class Cluster:
    """Workers on a Ray cluster that share the shards of a run.

    A worker that dies with its actor or its node is replaced, where there is room, and its shard is computed again by
    whoever is free.

    Attributes:
        address: `local`, `auto`, or host:port of a cluster that this machine belongs to.
        opening: opens the job in a worker, in a folder of the same name as the current one.
        size: how many workers; None is as many as the cluster has room for.
        gpus: of each worker.
        insecure: whether to join without a token, which a cluster takes only where it asks nobody for one.
    """

    address: str
    opening: Opening
    size: int | None = None
    gpus: int = 0
    insecure: bool = False
    _answered: float = field(default=0.0, init=False)
    _looked: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.address not in (LOCAL, AUTO) and _host_and_port(self.address) is None:
            raise UsageError(
                f"--cluster takes local, auto or host:port of a cluster's head; found {self.address!r:.100} (run the "
                f"command on a node of the cluster, ray:// is not supported)",
            )
        if self.size is not None and not 1 <= self.size <= MOST_ON_CLUSTER:
            raise ParameterError(f"workers must be between 1 and {MOST_ON_CLUSTER}; found {self.size}")
        if self.address != LOCAL and not self.insecure and not _has_token():
            raise ClusterError(
                "insecure_cluster",
                f"no token is set here for the cluster at {self.address}, so whoever reaches it may run code on it; "
                f"set RAY_AUTH_MODE=token and a token on every node (ray get-auth-token --generate), or say "
                f"--insecure-cluster",
            )

    def prepare(self) -> None:
        """Import Ray as this cluster needs it, before a model is opened, which might import it otherwise."""
        with environment(self._variables()):
            _library()

    def shards(self, numbers: Sequence[int], job: Job, expected: Opened) -> Generator[PackedShard]:
        """As `brittle.run.workers.Workers.shards`."""
        if not numbers:
            return
        with self._connected() as ray:
            room = self._room(ray)
            actor = ray.remote(ClusterStation).options(
                num_cpus=worker_threads(), num_gpus=self.gpus, max_restarts=0, scheduling_strategy="SPREAD"
            )
            lost = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError, ray.exceptions.RaySystemError)
            team = Team(lambda: Actor(ray, actor.remote(str(Path.cwd()))), self.opening, lost, lambda: self._look(ray))
            yield from team.shards(numbers, self.size or room, job, expected)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray, connected to the cluster; one of this machine is started, and ended afterwards."""
        own: dict[str, Any] = {}
        if self.address == LOCAL:
            cpus = None if self.size is None else self.size * worker_threads()
            own = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": STORE_BYTES}
            own["_node_ip_address"] = LOOPBACK
        with environment(self._variables()), _signals_kept():
            ray = _library()
            try:
                _check_listens(self.address)
                ray.init(self.address, log_to_driver=False, logging_level="ERROR", **own)
            except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
                token = "" if self.insecure or self.address == LOCAL else " and has the same token"
                raise ClusterError(
                    "cluster",
                    f"the cluster at {self.address} cannot be joined ({last_line(error)}); see that this machine is "
                    f"one of its nodes (ray status){token}",
                ) from error
        try:
            self._check_at_home(ray)
            self._answered = self._looked = time.monotonic()
            yield ray
        finally:
            ray.shutdown()

    def _look(self, ray: Any) -> None:
        """Raise where the head of the cluster has not listened for long."""
        now = time.monotonic()
        if now - self._looked < WATCH_SECONDS:
            return
        self._looked = now
        try:
            _check_listens(ray.get_runtime_context().gcs_address)
        except OSError as error:
            if now - self._answered > LOST_SECONDS:
                raise ClusterLostError(
                    "cluster_lost",
                    f"the cluster at {self.address} is lost ({error}); what is done is in the folder, go on with "
                    f"--resume",
                ) from error
        else:
            self._answered = now

    def _check_at_home(self, ray: Any) -> None:
        """Raise where a cluster of this machine can be reached from others: this Ray does not bind as it is told."""
        address = ray.get_runtime_context().gcs_address
        if self.address == LOCAL and (_host_and_port(address) or ("", 0))[0] != LOOPBACK:
            raise ClusterError(
                "cluster",
                f"Ray {ray.__version__} listens at {address}, where other machines reach it, and not at {LOOPBACK} "
                f"alone; use --workers, or another version of Ray",
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
        cpus = worker_threads()
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        room = sum(
            int(min(node.get("CPU", 0) / cpus, node.get("GPU", 0) / self.gpus if self.gpus else math.inf))
            for node in nodes
        )
        if room == 0:
            raise ClusterError(
                "cluster",
                f"none of the {len(nodes)} nodes of the cluster at {self.address} has {cpus} CPUs and {self.gpus} "
                f"GPUs for a worker; start Ray there with more (ray start --num-cpus, --num-gpus)",
            )
        return min(room, MOST_ON_CLUSTER)


class ClusterStation(Station):
    """A station on a node, in the folder that the run was started in."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def open(self, opening: Opening) -> Any:
        """As `Station.open`."""
        node = f"the node {socket.gethostname()}"
        try:
            os.chdir(self._directory)
        except OSError:
            return ModelError("worker_differs", f"{node} has no folder {self._directory} to work in")
        answer = super().open(opening)
        if isinstance(answer, BrittleError):
            answer.args = (f"{node}: {answer.args[0]}",)
        return answer


@dataclass
class Actor:
    """One worker of a cluster, by the handle that the connected library has of it."""

    ray: Any
    handle: Any

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        """Call a method of the station there."""
        return getattr(self.handle, method).remote(*arguments).future()

    def close(self) -> None:
        """End the actor, whatever it does."""
        self.ray.kill(self.handle)


def _library() -> Any:
    """Ray; raises `ClusterError` where it is not installed, or too old."""
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ClusterError(
            "cluster", "--cluster needs Ray, which is not installed: pip install 'brittle[ray]'"
        ) from error
    if tuple(int(part) for part in ray.__version__.split(".")[:2]) < OLDEST_RAY:
        oldest = ".".join(map(str, OLDEST_RAY))
        raise ClusterError(
            "cluster", f"--cluster needs Ray {oldest} or later, which can ask for a token; found {ray.__version__}"
        )
    return ray


@contextmanager
def _signals_kept() -> Iterator[None]:
    """SIGTERM does afterwards what it did before: Ray takes it for itself when it starts."""
    kept = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, kept)


def _check_listens(address: str) -> None:
    """Raise OSError where nobody listens at host:port; Ray would wait for long."""
    place = _host_and_port(address)
    if place is not None:
        with socket.create_connection(place, timeout=10):
            pass


def _host_and_port(address: str) -> tuple[str, int] | None:
    """The parts of host:port; None where it is none."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        return None
    return host.strip("[]"), int(port)


def _has_token() -> bool:
    """Whether this machine has a token for Ray clusters and is to use it, by the settings that Ray documents."""
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    if mode not in ("", "token"):
        return False
    if os.environ.get("RAY_AUTH_TOKEN"):
        return True
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    return path.is_file() and path.stat().st_size > 0
