"""Which worker computes which shard: each comes once, whatever order and whoever dies; with a Ray that is played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brittle.errors import BrittleError, ClusterLostError
from brittle.run.workers import posts
from brittle.run.workers.posts import Posts
from brittle.store.account import Account
from brittle.store.folder import PackedShard


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class Played:
    """A Ray whose answers come in an order, and whose actors die, as `choose` says; its clock goes on with each wait.

    Attributes:
        given: every shard that was given to a worker, in order.
        killed: workers that were killed by the run.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, choose: Any, silent: frozenset[int] = frozenset()) -> None:
        self.choose, self.silent = choose, silent
        self.given: list[tuple[int, int]] = []
        self.killed: list[int] = []
        self.hired = 0
        self.now = 0.0
        self.deaths = 0

    def hire(self) -> Any:
        self.hired += 1
        who = self.hired

        def shard(number: int) -> tuple[str, int, int]:
            assert who not in self.killed
            self.given.append((who, number))
            return ("shard", who, number)

        return SimpleNamespace(
            who=who,
            start=SimpleNamespace(remote=lambda: ("start", who, -1)),
            shard=SimpleNamespace(remote=shard),
        )

    def wait(self, references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        assert references
        self.now += 1
        assert self.now < 1000, "it waits for ever"
        heard = [one for one in references if one[0] == "start" or one[1] not in self.silent]
        return ([heard[self.choose(len(heard))]] if heard else []), references

    def get(self, reference: Any) -> Any:
        kind, _, number = reference
        if self.choose(4) == 3 and self.deaths < 5:
            self.deaths += 1
            raise RayError("somewhere\nthe actor died")
        return {} if kind == "start" else PackedShard(number, Account(), {})

    def kill(self, station: Any) -> None:
        self.killed.append(station.who)


def run(ray: Played, count: int, size: int) -> list[int]:
    return [shard.number for shard in Posts(ray, ray.hire, lambda: None, print).shards(range(count), size)]


@given(data=st.data(), count=st.integers(1, 12), size=st.integers(1, 5))
def test_every_shard_comes_once(data: st.DataObject, count: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        ray = Played(lambda most: data.draw(st.integers(0, most - 1)))
        patch.setattr(posts.time, "monotonic", lambda: ray.now)
        assert sorted(run(ray, count, size)) == list(range(count))
    assert ray.hired == size + ray.deaths


@given(data=st.data(), count=st.integers(2, 12), size=st.integers(2, 5), silent=st.integers(1, 5))
def test_a_worker_that_falls_silent_holds_nothing_up(data: st.DataObject, count: int, size: int, silent: int) -> None:
    """One worker never answers for a shard; every shard still comes, once, after at most twice the longest."""
    with pytest.MonkeyPatch.context() as patch:
        ray = Played(lambda most: data.draw(st.integers(0, most - 1)), frozenset({silent}))
        patch.setattr(posts.time, "monotonic", lambda: ray.now)
        patch.setattr(ray, "deaths", 5)  # nobody dies
        assert sorted(run(ray, count, size)) == list(range(count))
    assert ray.now < 10 * (count + size)


def test_a_shard_that_comes_late_comes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first worker is slow, not silent: its shard is given to a second one, and both answer at the end."""
    ray = Played(lambda most: 0, frozenset({1}))
    monkeypatch.setattr(posts.time, "monotonic", lambda: ray.now)
    give = ray.wait

    def wait(references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        copies = [one for one in references if one[0] == "shard" and one[1] != 1 and (1, one[2]) in ray.given]
        if copies:
            ray.silent = frozenset()
            return [copies[0], *(one for one in references if one[1] == 1)], references
        return give(references, num_returns, timeout)

    monkeypatch.setattr(ray, "wait", wait)
    assert sorted(run(ray, 6, 3)) == list(range(6))
    assert len(ray.given) == 7


def test_another_shard_than_was_asked_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Played(lambda most: 0)
    monkeypatch.setattr(ray, "get", lambda reference: {} if reference[0] == "start" else PackedShard(1, Account(), {}))
    with pytest.raises(BrittleError, match="gave shard 1 where 0 was asked for") as caught:
        run(ray, 3, 1)
    assert caught.value.code == "worker_differs"


def test_a_cluster_that_is_gone_stops_the_run() -> None:
    def watch() -> None:
        raise ClusterLostError("cluster_lost", "nobody listens")

    ray = Played(lambda most: 0)
    with pytest.raises(ClusterLostError):
        list(Posts(ray, ray.hire, watch, print).shards(range(3), 1))


def test_no_shard_is_given_twice_where_all_answer_at_once() -> None:
    ray = Played(lambda most: 0)
    assert sorted(run(ray, 20, 3)) == list(range(20))
    assert len(ray.given) == 20


def test_a_shard_whose_workers_always_die_stops_the_run() -> None:
    ray = Played(lambda most: most - 1)
    ray.deaths = -100
    with pytest.raises(BrittleError, match="the actor died") as caught:
        run(ray, 3, 1)
    assert caught.value.code == "workers_die"
    assert ray.hired <= 2 * posts.MOST_DEATHS


def test_what_a_worker_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Played(lambda most: 0)
    error = {"error": "value_range", "sentence": "row 3 is outside", "exit_code": 3}
    monkeypatch.setattr(ray, "get", lambda reference: error)
    with pytest.raises(BrittleError, match="row 3 is outside") as caught:
        run(ray, 3, 1)
    assert (caught.value.code, caught.value.exit_code) == ("value_range", 3)


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Played(lambda most: 0)

    def fail(reference: Any) -> None:
        raise RayTaskError("ZeroDivisionError")

    monkeypatch.setattr(ray, "get", fail)
    with pytest.raises(RayTaskError):
        run(ray, 3, 1)


def test_the_user_hears_that_no_worker_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    ray = Played(lambda most: 0)
    monkeypatch.setattr(posts.time, "monotonic", lambda: ray.now)
    answer = ray.wait

    def wait(references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        found = answer(references, num_returns, timeout)
        return found if ray.now > 100 else ([], references)

    monkeypatch.setattr(ray, "wait", wait)
    shards = Posts(ray, ray.hire, lambda: None, told.append).shards([0, 1], 1)
    assert [shard.number for shard in shards] == [0, 1]
    assert len(told) == 1
    assert "no worker for 30 s" in told[0]
