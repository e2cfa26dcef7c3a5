"""Processes that compute the shards of a run side by side; what each of them writes is the same as ever.

A worker is the same command in another process, so nothing is sent to it but shard numbers: it opens the same model and
the same data, computes a shard, writes its files, and says their digests on its standard output, a line of JSON each
way. The process that holds the folder enters them in the manifest.

Where a worker dies, its shard is computed again; where it dies of the same rows twice, the row that kills it is found
by bisection, and becomes a row without a number.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from brittle.data import Batch
from brittle.errors import BrittleError, ModelError, ParameterError
from brittle.folder import write_shard
from brittle.run.job import Job

MOST_LOST = 16
"""Rows of one shard that may kill a worker; with more of them the run stops."""

MOST_STARTS = 10
"""How often a shard is begun again by workers that were killed before they began to compute."""

PARENT_SECONDS = 0.5
"""How often a worker looks whether its parent is there."""

MOST_WORKERS = 256
"""More processes than one machine is given; a larger number is a slip of the finger."""

Begun = Callable[[int, int], None]
"""Called with a shard and the first row of each batch that is begun."""


class WorkerDied(Exception):
    """A worker ended in the middle of a request.

    Attributes:
        rows: the rows of the batch that it had begun; empty before the first.
        by_signal: whether a signal ended it.
        how: how it ended, in words.
    """

    def __init__(self, rows: Sequence[int], code: int) -> None:
        self.rows = tuple(rows)
        self.by_signal = code < 0
        self.how = f"signal {-code}" if code < 0 else f"exit code {code}"
        super().__init__(self.how)


def serve(job: Job, folder: Path, requests: IO[str], answers: IO[str]) -> None:
    """What a worker does: compute the shards that it is asked for, until there are no more requests."""

    def say(content: Mapping[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    def begun(batch: Batch) -> None:
        say({"begun": list(batch.rows)})

    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    for line in requests:
        request = json.loads(line)
        lost = {int(row): why for row, why in request["lost"].items()}
        try:
            shard = job.shard(request["shard"], lost, begun, only=request["only"])
            done = {} if request["only"] is not None else write_shard(folder, shard.number, shard.tables, shard.account)
        except BrittleError as error:
            say({"error": error.code, "sentence": error.args[0], "exit_code": error.exit_code})
        else:
            say({"done": done})


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: nobody else may write the folder then."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


@dataclass
class Worker:
    """One process at work; started when it is first asked, and again after it died.

    Attributes:
        command: what starts it.
        environment: its environment variables.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _change: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def closed(self) -> bool:
        """Whether it was told to end."""
        return self._closed

    def ask(
        self, shard: int, lost: Mapping[int, str], only: int | None, begun: Callable[[int], None]
    ) -> dict[str, Any]:
        """The manifest entry of a shard; empty where only one batch of it was to be tried.

        Raises:
            WorkerDied: the process ended.
            BrittleError: what the worker raised.
        """
        rows: list[int] = []
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"shard": shard, "lost": dict(lost), "only": only}) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._death(rows) from None
        for line in process.stdout:
            answer = _answer(line)
            if answer is None:
                break  # half a line: it died while it spoke
            if "begun" in answer:
                rows = answer["begun"]
                begun(rows[0])
            elif "error" in answer:
                raise _raised(answer)
            elif "done" in answer:
                return answer["done"]
        raise self._death(rows)

    def close(self) -> None:
        """End the process; no other is started."""
        self._closed = True
        self._end()

    def _started(self) -> subprocess.Popen[str]:
        with self._change:
            if self._closed:
                raise WorkerDied((), -signal.SIGKILL)
            if self._process is None:
                self._process = subprocess.Popen(
                    self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            return self._process

    def _end(self) -> int:
        """Exit code of the process, which is ended if it still runs."""
        with self._change:
            process, self._process = self._process, None
        if process is None:
            return -signal.SIGKILL
        if self._closed:
            process.kill()
        with suppress(BrokenPipeError), process:  # closes its pipes, where a request may be left, and waits for it
            pass
        return process.wait()

    def _death(self, rows: Sequence[int]) -> WorkerDied:
        return WorkerDied(rows, self._end())


@dataclass
class Crew:
    """Workers that share the shards of a run.

    Attributes:
        command: what starts a worker.
        size: how many there are.

    Raises:
        ParameterError: fewer than 1 or more than `MOST_WORKERS`.
    """

    command: Sequence[str]
    size: int

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MOST_WORKERS:
            raise ParameterError("workers", f"workers must be between 1 and {MOST_WORKERS}; found {self.size}")

    def entries(self, shards: Iterable[int], begun: Begun | None = None) -> Iterator[dict[str, Any]]:
        """The manifest entries of `shards`, in the order in which they are done.

        Raises:
            BrittleError: what a worker raised, or that workers die whatever they compute.
        """
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        count = 0
        for number in shards:
            waiting.put(number)
            count += 1
        done: queue.SimpleQueue[dict[str, Any] | BaseException] = queue.SimpleQueue()
        stop = threading.Event()
        workers = [Worker(self.command, _environment()) for _ in range(min(self.size, count))]
        threads = [
            threading.Thread(target=_work, args=(worker, waiting, done, stop, begun), daemon=True) for worker in workers
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in range(count):
                entry = done.get()
                if isinstance(entry, BaseException):
                    raise entry
                yield entry
        finally:
            stop.set()
            for worker in workers:
                worker.close()
            for thread in threads:
                thread.join()


def _work(
    worker: Worker,
    waiting: queue.SimpleQueue[int],
    done: queue.SimpleQueue[dict[str, Any] | BaseException],
    stop: threading.Event,
    begun: Begun | None,
) -> None:
    """Let one worker compute shards until none is waiting."""
    while not stop.is_set():
        try:
            number = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            done.put(_whole(worker, number, begun))
        except (
            BrittleError,
            OSError,
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            AttributeError,
            WorkerDied,
        ) as error:
            if not stop.is_set():
                done.put(error)
            return


def _whole(worker: Worker, number: int, begun: Begun | None) -> dict[str, Any]:
    """The entry of a shard, whatever rows of it kill the worker."""
    lost: dict[int, str] = {}
    deaths: dict[tuple[int, ...], int] = {}

    def tell(row: int) -> None:
        if begun is not None:
            begun(number, row)

    while True:
        try:
            return worker.ask(number, lost, None, tell)
        except WorkerDied as death:
            if worker.closed:
                raise
            deaths[death.rows] = deaths.get(death.rows, 0) + 1
            suspects = [row for row in death.rows if row not in lost]
            if deaths[death.rows] < (2 if death.rows or not death.by_signal else MOST_STARTS):
                continue  # killed from outside, perhaps: the same again
            if not suspects or len(lost) == MOST_LOST:
                raise ModelError(
                    "workers_die",
                    f"the processes that compute shard {number} end with {death.how}, {len(lost)} rows left out; run "
                    f"it in one process (without --workers) to see why",
                ) from death
            row = _culprit(worker, number, lost, death.rows)
            if row is not None:
                lost[row] = f"the process that computed it ended with {death.how}"
            deaths.clear()


def _culprit(worker: Worker, number: int, lost: Mapping[int, str], batch: Sequence[int]) -> int | None:
    """The first row of a batch that kills the worker, found by leaving out halves of it; None where none does alone."""

    def kills(rows: Sequence[int]) -> bool:
        others = {row: "left out for a trial" for row in batch if row not in rows}
        try:
            worker.ask(number, {**others, **lost}, batch[0], lambda row: None)
        except WorkerDied:
            return True
        return False

    suspects = [row for row in batch if row not in lost]
    while len(suspects) > 1:
        half, rest = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
        suspects = half if kills(half) else rest
    return suspects[0] if kills(suspects) else None


def _environment() -> dict[str, str]:
    """That of this process, with one thread for each worker unless told: bytes then do not depend on how many."""
    return {"OMP_NUM_THREADS": "1", **os.environ}


def _answer(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _raised(answer: Mapping[str, Any]) -> BrittleError:
    error = BrittleError(answer["error"], answer["sentence"])
    error.exit_code = answer["exit_code"]
    return error


def claim_output() -> IO[str]:
    """The standard output of this process for its answers alone; what a model prints goes to the standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def command_of(arguments: Sequence[str]) -> list[str]:
    """What starts a worker of the command `brittle ARGUMENTS`."""
    talk = [argument for argument in arguments if argument != "--quiet"]
    return [sys.executable, "-P", "-m", "brittle", *talk, "--as-worker", "--quiet"]
