"""Ray in this process: found, joined with a token, and watched."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brittle.errors import ClusterError, ClusterLostError

OLDEST_RAY = (2, 52)
"""The first release of Ray whose clusters can ask for a token."""

WATCH_SECONDS, LOST_SECONDS = 3.0, 15.0
"""How often the run looks whether the head of the cluster is there, and after how long without it is lost."""


def library() -> Any:
    """The library.

    Raises:
        ClusterError: it is not installed, or too old.
    """
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


@dataclass
class Watch:
    """Whether the head of a cluster is still there; where it is not, Ray ends the whole process after a minute.

    Attributes:
        ray: the connected library.
        address: of the cluster, for messages.
    """

    ray: Any
    address: str
    _answered: float = field(default_factory=lambda: time.monotonic(), init=False)
    _looked: float = field(default_factory=lambda: time.monotonic(), init=False)

    def look(self) -> None:
        """Look, unless that was done a moment ago.

        Raises:
            ClusterLostError: nobody has listened there for `LOST_SECONDS`.
        """
        now = time.monotonic()
        if now - self._looked < WATCH_SECONDS:
            return
        self._looked = now
        try:
            check_listens(self.ray.get_runtime_context().gcs_address)
        except OSError as error:
            if now - self._answered > LOST_SECONDS:
                raise lost(self.address, str(error)) from error
        else:
            self._answered = now


def lost(address: str, why: str) -> ClusterLostError:
    """The error for a cluster that is gone in the middle of a run."""
    return ClusterLostError(
        "cluster_lost",
        f"the cluster at {address} is lost ({why}); what is done is in the folder, go on with --resume",
    )


def check_listens(address: str) -> None:
    """Raise OSError where nobody listens at host:port; Ray would wait for long."""
    place = host_and_port(address)
    if place is not None:
        with socket.create_connection(place, timeout=10):
            pass


def host_and_port(address: str) -> tuple[str, int] | None:
    """The parts of host:port; None where it is none."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        return None
    return host.strip("[]"), int(port)


def has_token() -> bool:
    """Whether this machine has a token for Ray clusters and is to use it, by the settings that Ray documents."""
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    if mode not in ("", "token"):
        return False
    if os.environ.get("RAY_AUTH_TOKEN"):
        return True
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    return path.is_file() and path.stat().st_size > 0


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """These environment variables while the block runs; None takes one away."""
    kept = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(kept)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
