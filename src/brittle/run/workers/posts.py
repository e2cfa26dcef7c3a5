"""Which worker of a cluster computes which shard, whoever dies."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from brittle.errors import ModelError, printable
from brittle.run.workers.service import error_of
from brittle.store.folder import PackedShard

LOOK_SECONDS = 1.0
"""How long the run waits at a time; a signal is heard after at most as long."""

LATE = 2.0
"""A shard is late when it takes so many times as long as the longest that is done."""

QUIET_SECONDS = 30.0
"""The user gets a note when no worker was there for so long."""

MOST_DEATHS = 10
"""How many workers may die of one shard, or without one that starts between them."""


@dataclass
class Post:
    """What one worker was asked.

    Attributes:
        station: the worker.
        number: of the shard; None where it was asked to start.
        since: when.
    """

    station: Any
    number: int | None
    since: float = field(default_factory=lambda: time.monotonic())

    @property
    def seconds(self) -> float:
        """For how long."""
        return time.monotonic() - self.since


@dataclass
class Posts:
    """The workers of a run, each with the shard that it is at.

    A shard that takes far longer than any other is given to a second worker once nothing else waits, since the first
    may never answer (the backup tasks of Dean and Ghemawat, OSDI 2004, section 3.6). Both would give the same bytes;
    the first answer counts.

    Attributes:
        ray: the connected library.
        hire: asks it for one more worker.
        watch: called every second or so; raises where the cluster is gone.
        notify: called with sentences for the user.
    """

    ray: Any
    hire: Callable[[], Any]
    watch: Callable[[], None]
    notify: Callable[[str], None]
    _posts: dict[Any, Post] = field(default_factory=dict, init=False)
    _waiting: deque[int] = field(default_factory=deque, init=False)
    _idle: list[Any] = field(default_factory=list, init=False)
    _left: set[int] = field(default_factory=set, init=False)
    _longest: float = field(default=math.inf, init=False)
    _deaths: Counter[int | None] = field(default_factory=Counter, init=False)
    _alone_since: float | None = field(default=None, init=False)

    def shards(self, numbers: Sequence[int], size: int) -> Iterator[PackedShard]:
        """The shards with these numbers, by so many workers."""
        self._waiting.extend(numbers)
        self._left.update(numbers)
        for _ in range(size):
            self._hire()
        while self._left:
            ready, _ = self.ray.wait(list(self._posts), num_returns=1, timeout=LOOK_SECONDS)
            for reference in ready:
                shard = self._take_answer(reference)
                if shard is not None:
                    yield shard
            self._employ()
            self.watch()
            self._report_missing_workers()

    def _report_missing_workers(self) -> None:
        """Tell the user, once each time, that there has been no worker for long."""
        if self._idle or any(post.number is not None for post in self._posts.values()):
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > QUIET_SECONDS:
            self.notify(f"there has been no worker for {QUIET_SECONDS:g} s; the cluster may be busy (ray status)")
            self._alone_since = math.inf

    def _hire(self) -> None:
        station = self.hire()
        self._posts[station.start.remote()] = Post(station, None)

    def _take_answer(self, reference: Any) -> PackedShard | None:
        """Take an answer; a shard, where it is one that was not there yet."""
        post = self._posts.pop(reference)
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError:
            raise
        except self.ray.exceptions.RayError as error:
            self.ray.kill(post.station)  # where it is only out of reach, it must not go on
            self._lost(post.number, error)
            return None
        self._idle.append(post.station)
        if isinstance(answer, dict) and "error" in answer:
            raise error_of(answer)
        if post.number is None:
            self._deaths[None] = 0
        if not isinstance(answer, PackedShard) or post.number not in self._left:
            return None
        if answer.number != post.number:
            raise ModelError("worker_differs", f"a worker gave shard {answer.number} where {post.number} was asked for")
        self._left.discard(answer.number)
        self._longest = max(post.seconds, 0 if math.isinf(self._longest) else self._longest)
        return answer

    def _employ(self) -> None:
        """Give those who have nothing to do a shard that waits, or one that is late."""
        while self._idle:
            number = self._waiting.popleft() if self._waiting else self._late()
            if number is None:
                return
            station = self._idle.pop()
            self._posts[station.shard.remote(number)] = Post(station, number)

    def _late(self) -> int | None:
        """A shard that one worker is at for far longer than any other took."""
        at = [post for post in self._posts.values() if post.number in self._left]
        workers = Counter(post.number for post in at)
        limit = LATE * max(self._longest, LOOK_SECONDS)
        return next((post.number for post in at if post.seconds > limit and workers[post.number] == 1), None)

    def _lost(self, number: int | None, error: Exception) -> None:
        """A worker died: its shard waits again, and another takes its place."""
        self._deaths[number] += 1
        if self._deaths[number] > MOST_DEATHS:
            what, then = (
                (
                    "did not start",
                    "see that all nodes have brittle, its libraries, and the token and RAY_AUTH_MODE of this machine",
                )
                if number is None
                else (f"died of shard {number}", "run it in one process (without --cluster) to see why")
            )
            raise ModelError(
                "workers_die", f"{self._deaths[number]} workers {what} ({last_line(error)}); {then}"
            ) from error
        if number in self._left and not any(post.number == number for post in self._posts.values()):
            self._waiting.appendleft(number)
        self._hire()


def last_line(error: BaseException) -> str:
    """The last line of an error of Ray, which is what happened; those before it are where."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1] if lines else type(error).__name__)[:200]
