"""Worker processes on this machine, side by side."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from brittle.errors import ParameterError
from brittle.run.workers.base import Expected
from brittle.run.workers.poison import whole
from brittle.run.workers.worker import Worker, environment_of
from brittle.store.folder import PackedShard

MOST_WORKERS = 256
"""More processes than one machine is given; a larger number is a mistyped number."""

Done = PackedShard | BaseException


@dataclass
class Crew:
    """Processes of this machine that share the shards of a run.

    Attributes:
        command: what starts one.
        size: how many there are.
        handed: the line that each is given first, or empty.

    Raises:
        ParameterError: fewer than 1 or more than `MOST_WORKERS`.
    """

    command: Sequence[str]
    size: int
    handed: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MOST_WORKERS:
            raise ParameterError(f"workers must be between 1 and {MOST_WORKERS}; found {self.size}")

    def shards(self, numbers: Sequence[int], expected: Expected | None = None) -> Generator[PackedShard]:
        """As `Workers.shards`."""
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in numbers:
            waiting.put(number)
        done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        stop = threading.Event()
        workers = [
            Worker(self.command, environment_of(), expected, handed=self.handed)
            for _ in range(min(self.size, len(numbers)))
        ]
        threads = [
            threading.Thread(target=_work, args=(worker, waiting, done, stop), daemon=True) for worker in workers
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in numbers:
                shard = done.get()
                if isinstance(shard, BaseException):
                    raise shard
                yield shard
        finally:
            stop.set()
            for worker in workers:
                worker.close()
            for thread in threads:
                thread.join()


def _work(
    worker: Worker, waiting: queue.SimpleQueue[int], done: queue.SimpleQueue[Done], stop: threading.Event
) -> None:
    """Let one worker compute shards until none is waiting."""
    while not stop.is_set():
        try:
            number = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            done.put(whole(worker, number))
        except BaseException as error:  # noqa: BLE001 (the thread that waits raises it)
            if not stop.is_set():
                done.put(error)
            return
