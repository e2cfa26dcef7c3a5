"""Whether the head of a cluster is there: by a socket that listens and one that does not, without a cluster."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from brittle.errors import ClusterLostError
from brittle.run.workers import joining
from brittle.run.workers.joining import LOST_SECONDS, WATCH_SECONDS, Watch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that the test moves."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(joining, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_a_head_is_lost_once_nobody_listened_for_long(clock: SimpleNamespace) -> None:
    """Not at the first look that finds nobody, and not when it listens again in between."""
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        address = f"127.0.0.1:{port}"
        context = SimpleNamespace(gcs_address=address)
        watch = Watch(SimpleNamespace(get_runtime_context=lambda: context), address)
        clock.now += 10 * LOST_SECONDS
        watch.look()
    clock.now += LOST_SECONDS - WATCH_SECONDS
    watch.look()
    with socket.create_server(("127.0.0.1", port)):
        clock.now += WATCH_SECONDS
        watch.look()
    clock.now += LOST_SECONDS
    watch.look()
    clock.now += WATCH_SECONDS
    with pytest.raises(ClusterLostError, match=rf"the cluster at {address} is lost \(.*; what is done"):
        watch.look()


def test_it_looks_now_and_then_only(clock: SimpleNamespace) -> None:
    looks: list[float] = []

    def address() -> str:
        looks.append(clock.now)
        return ""  # no address that anybody could ask

    watch = Watch(SimpleNamespace(get_runtime_context=lambda: SimpleNamespace(gcs_address=address())), "head:6379")
    for _ in range(int(10 * WATCH_SECONDS)):
        clock.now += 0.5
        watch.look()
    assert len(looks) == 5
