"""Workers on the nodes of a Ray cluster. Ray places them; shards, their order and the run folder are ours."""

import math
import os
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from brittle.errors import BrittleError, ClusterError, ClusterLostError, ModelError, ParameterError, UsageError
from brittle.extensions.workers.workers import Station, Team, environment, last_line, worker_threads
from brittle.run.job import Job, Opened, Opening
from brittle.store.folder import Shard

AUTO = "auto"  # the address of the cluster that this machine belongs to
OLDEST_RAY = (2, 52)  # the first release of Ray whose clusters can ask for a token

JOIN_TRIES = "RAY_gcs_server_port_wait_time_s"
"""Environment variable for the number of times that Ray tries to join a cluster, 40 seconds each, by default 20."""

LOST_SECONDS = 15.0  # seconds without an answer after which the head is lost: Ray ends the whole process after a minute


@dataclass
class Cluster:
    """Workers on a Ray cluster that share the shards of a run.

    A worker that dies with its actor or its node is replaced where the cluster has room, and any free worker computes
    its shard again. Workers open the job in a folder of the same name as the current one. A `size` of None is as many
    workers as the cluster has room for; each has `gpus`.
    """

    address: str
    opening: Opening
    size: int | None = None
    gpus: int = 0
    _answered: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.address != AUTO and _host_and_port(self.address) is None:
            raise UsageError(
                f"--cluster takes auto or host:port of a cluster's head; found {self.address!r:.100} (run the command "
                f"on a node of the cluster, ray:// is not supported; on one machine --workers does the same)"
            )
        if self.size is not None and self.size < 1:
            raise ParameterError(f"workers must be 1 or more; found {self.size}")
        if find_spec("ray") is None:
            raise ClusterError("cluster", "--cluster needs Ray, which is not installed: pip install 'brittle[ray]'")
        if not _has_token():
            raise ClusterError(
                "insecure_cluster",
                f"no token is set here for the cluster at {self.address}, so whoever reaches it may run code on it; "
                f"set RAY_AUTH_MODE=token and a token on every node (ray get-auth-token --generate)",
            )

    def prepare(self) -> None:
        """Import Ray with the settings of this cluster, before a model is opened that may import it with others."""
        with environment(self._variables()):
            _library()

    def shards(self, numbers: Sequence[int], job: Job, expected: Opened) -> Generator[Shard]:
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
        with environment(self._variables()), _keep_sigterm():
            ray = _library()
            try:
                _check_listens(self.address)
                ray.init(self.address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
                raise ClusterError(
                    "cluster",
                    f"the cluster at {self.address} cannot be joined ({last_line(error)}); see that this machine is "
                    f"one of its nodes (ray status) and has the same token",
                ) from error
        try:
            self._answered = time.monotonic()
            yield ray
        finally:
            ray.shutdown()

    def _look(self, ray: Any) -> None:
        try:
            _check_listens(ray.get_runtime_context().gcs_address)
            self._answered = time.monotonic()
        except OSError as error:
            if time.monotonic() - self._answered > LOST_SECONDS:
                raise ClusterLostError(
                    "cluster_lost",
                    f"the cluster at {self.address} is lost ({error}); what is done is in the folder, go on with "
                    f"--resume",
                ) from error

    def _variables(self) -> dict[str, str | None]:
        """Return the environment variables that Ray reads at import and at its start; None removes a variable."""
        fixed = {"RAY_ADDRESS": None, "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
        return {**fixed, JOIN_TRIES: os.environ.get(JOIN_TRIES, "1")}

    def _room(self, ray: Any) -> int:
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
        return room


class ClusterStation(Station):
    """A station on a node, in the folder that the run was started in."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def open(self, opening: Opening) -> Any:
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
    ray: Any
    handle: Any

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        return getattr(self.handle, method).remote(*arguments).future()

    def close(self) -> None:
        self.ray.kill(self.handle)


def _library() -> Any:
    """Import and return Ray; raise `ClusterError` where it cannot be imported or is too old."""
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ClusterError("cluster", f"--cluster needs Ray, which cannot be imported ({error})") from error
    if tuple(int(part) for part in ray.__version__.split(".")[:2]) < OLDEST_RAY:
        oldest = ".".join(map(str, OLDEST_RAY))
        raise ClusterError(
            "cluster", f"--cluster needs Ray {oldest} or later, which can ask for a token; found {ray.__version__}"
        )
    return ray


@contextmanager
def _keep_sigterm() -> Iterator[None]:
    """Restore the handler of SIGTERM afterwards: Ray replaces it at its start."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _check_listens(address: str) -> None:
    """Raise OSError where no process listens at host:port; Ray would wait for long."""
    place = _host_and_port(address)
    if place is not None:
        with socket.create_connection(place, timeout=10):
            pass


def _host_and_port(address: str) -> tuple[str, int] | None:
    """Return host and port; None where the text is not host:port."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        return None
    return host.strip("[]"), int(port)


def _has_token() -> bool:
    """Return whether the settings that Ray documents give this machine a token and do not disable its use."""
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    if mode not in ("", "token"):
        return False
    if os.environ.get("RAY_AUTH_TOKEN"):
        return True
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    return path.is_file() and path.stat().st_size > 0
