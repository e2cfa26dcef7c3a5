"""Other processes that compute the shards of a run: of this machine here, of a Ray cluster in `cluster`.

A worker opens the job, says what it has opened, and computes one shard after another. Only the process that holds the
run folder writes there, so the table is the same bytes in any order and by any process. A row that kills its process is
found by halves of its shard, and left out.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from types import ModuleType
from typing import Any, Protocol

import torch

from brittle.doctor.rounding import Reference, check_alike
from brittle.errors import BrittleError, ModelError, ParameterError, printable
from brittle.run.job import Job, Opened, Opening
from brittle.run.record import describe
from brittle.store.folder import Shard
from brittle.store.record import UNDECISIVE, differences

MOST_WORKERS = 256
"""More processes than one machine is given; a larger number is a mistyped number."""

MOST_DEATHS = 10
"""How often workers may die of one shard without a row that kills them, or one after the other before they open it."""

MOST_LOST = 16
"""Rows of one shard that may kill a worker; with more of them the run stops."""

CARDS = "CUDA_VISIBLE_DEVICES"
"""The variable that says which cards a process sees."""

LOOK_SECONDS = 1.0
"""How long the run waits at a time."""

PARENT_SECONDS = 0.5
"""How often a process looks whether the one that started it is there."""


class Worker(Protocol):
    """One process that computes shards: it answers calls of `Station`, an error as a value, until it is closed."""

    def submit(self, method: str, *arguments: Any) -> Future[Any]: ...

    def close(self) -> None: ...


class Station:
    """What runs in a worker: it holds the job, and is asked for shards."""

    def open(self, opening: Opening) -> Opened | BrittleError:
        try:
            self._job = opening()
            self._reference: Reference = self._job.begin()
        except BrittleError as error:
            return error
        return describe(self._job), self._reference.content(self._job.classifier)

    def shard(self, number: int, lost: Mapping[int, str]) -> Shard | BrittleError:
        try:
            return self._job.shard(number, lost, reference=self._reference)
        except BrittleError as error:
            return error


@dataclass
class Team:
    """Workers that share shards; one that dies is replaced, and its shard is computed again.

    `died` is what the answer of a worker raises that is no more; `look` is called every second or so, and raises where
    no worker can answer any more.
    """

    hire: Callable[[], Worker]
    opening: Opening
    died: tuple[type[BaseException], ...]
    look: Callable[[], None] = lambda: None
    _busy: dict[Future[Any], tuple[Worker, int | None]] = field(default_factory=dict, init=False)

    def shards(self, numbers: Sequence[int], size: int, job: Job, expected: Opened) -> Generator[Shard]:
        waiting, left, deaths = deque(numbers), set(numbers), Counter[int | None]()
        lost: dict[int, dict[int, str]] = {number: {} for number in numbers}
        try:
            for _ in range(min(size, len(waiting))):
                self._open()
            while left:  # a worker that has no room yet is not waited for once all are done
                future = self._next(self._busy)
                worker, number = self._busy.pop(future)
                try:
                    answer = _answer(future)
                except self.died as error:
                    worker.close()
                    deaths[number] += 1
                    if number is not None:
                        waiting.appendleft(number)
                        if deaths[number] > 1 and (row := self._fatal_row(number, job, lost[number])) is not None:
                            lost[number][row] = "the process that computed it died"
                            deaths[number] = 0
                    if deaths[number] > MOST_DEATHS or (number is not None and len(lost[number]) > MOST_LOST):
                        what = "before they open the run" if number is None else f"of shard {number}"
                        raise ModelError(
                            "workers_die",
                            f"the processes that compute die {what} ({last_line(error)}); what they said is above, or "
                            f"in the logs of Ray; run it in one process (without --workers, --cluster) to see why",
                        ) from error
                    self._open()
                    continue
                if number is None:
                    deaths[None] = 0
                    _check_opened(expected, answer)
                else:
                    left.discard(number)
                    yield answer
                if waiting:
                    following = waiting.popleft()
                    self._busy[worker.submit("shard", following, lost[following])] = worker, following
                else:
                    worker.close()
        finally:
            for worker, _ in self._busy.values():
                worker.close()

    def _open(self) -> None:
        worker = self.hire()
        self._busy[worker.submit("open", self.opening)] = worker, None

    def _next(self, futures: Mapping[Future[Any], object]) -> Future[Any]:
        """The first of some answers that is there."""
        while True:
            done, _ = wait(futures, LOOK_SECONDS, FIRST_COMPLETED)
            self.look()
            if done:
                return done.pop()

    def _fatal_row(self, number: int, job: Job, lost: Mapping[int, str]) -> int | None:
        """The row of a shard that kills its process alone, twice, found by halves; None where none does.

        The others are left out meanwhile. Rows keep their places in their batches, so those that are computed get the
        numbers that they have beside any others.
        """
        rows = [row for batch in job.batches(number) for row in batch.rows]
        opened: list[Worker] = []

        def kills(some: Sequence[int]) -> bool:
            others, asked = {row: "left out for a trial" for row in rows if row not in some}, False
            try:
                if not opened:
                    opened.append(self.hire())
                    _answer(self._next({opened[0].submit("open", self.opening): None}))
                asked = True
                _answer(self._next({opened[0].submit("shard", number, {**others, **lost}): None}))
            except self.died:
                opened.pop().close()
                return asked
            return False

        suspects = [row for row in rows if row not in lost]
        try:
            while len(suspects) > 1:
                half, rest = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
                suspects = half if kills(half) else rest
            return suspects[0] if suspects and kills(suspects) and kills(suspects) else None
        finally:
            for worker in opened:
                worker.close()


@dataclass
class Processes:
    """Processes of this machine that share the shards of a run. An `opening` of None sends the job itself, a copy to
    each."""

    size: int
    opening: Opening | None = None

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not 1 <= self.size <= MOST_WORKERS:
            raise ParameterError(f"workers must be a whole number from 1 to {MOST_WORKERS}; found {self.size!r:.40}")

    def shards(self, numbers: Sequence[int], job: Job, expected: Opened) -> Generator[Shard]:
        workers_on = Counter(dict.fromkeys(cards_of(job.classifier.device), 0))
        team = Team(partial(Process, workers_on), self.opening or send(job), (BrokenProcessPool,))
        yield from team.shards(numbers, self.size, job, expected)


def cards_of(device: torch.device) -> list[str | None]:
    """The cards that workers of a run on this device share, as `CUDA_VISIBLE_DEVICES` names them; those that this
    process sees where it computes on its first, and none where it was given another."""
    if device.type != "cuda" or device.index or (count := torch.cuda.device_count()) < 2:
        return [None]
    named: list[str | None] = [name.strip() for name in os.environ.get(CARDS, "").split(",") if name.strip()]
    return (named or [str(card) for card in range(count)])[:count]


class Process:
    """One process of this machine, an executor of its own: where it dies, it is known of which shard. Of the cards it
    takes the least used by the `workers_on` each."""

    def __init__(self, workers_on: Counter[str | None]) -> None:
        self._workers_on, self._card = workers_on, min(workers_on, key=lambda card: workers_on[card])
        workers_on[self._card] += 1
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, (os.getpid(),))
        self._children: list[Any] = []

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        if self._children:
            return self._pool.submit(_call, method, *arguments)
        before, tokens = (
            multiprocessing.active_children(),
            (name for name in os.environ if name.startswith("RAY_AUTH_TOKEN")),
        )
        # So many threads for any number of processes, no current folder on its path, no token of Ray, a card
        variables = dict.fromkeys(tokens) | {"OMP_NUM_THREADS": str(worker_threads()), "PYTHONSAFEPATH": "1"}
        with environment(variables | ({} if self._card is None else {CARDS: self._card})), _without_program():
            future = self._pool.submit(_call, method, *arguments)
        self._children = [one for one in multiprocessing.active_children() if one not in before]
        return future

    def close(self) -> None:
        self._workers_on[self._card] -= 1
        for child in self._children:
            child.kill()
        self._pool.shutdown(cancel_futures=True)


def send(job: Job) -> Opening:
    """A job from Python, pickled by the process that starts a run and read by those that it starts."""
    sink = BytesIO()
    try:
        _Pickler(sink).dump(job)
    except Exception as error:  # objects say in many ways that they cannot be pickled
        raise _not_sent(error) from error
    return partial(_receive, sink.getvalue())


def _receive(content: bytes) -> Job:
    try:
        return pickle.loads(content)
    except (ImportError, AttributeError) as error:
        raise _not_sent(error) from error


class _Pickler(pickle.Pickler):
    """Refuses what the main program defines: another process, which does not run it, has no such thing."""

    def reducer_override(self, value: Any) -> Any:
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            raise AttributeError(f"{value.__qualname__} is defined in the program that you started, or in a notebook")
        return NotImplemented


def _not_sent(error: Exception) -> ParameterError:
    return ParameterError(
        f"the model, the data or a score cannot be sent to another process ({str(error).partition(chr(10))[0]:.200}); "
        f"put what you define into a module that is imported (from mymodel import Net), or leave out workers="
    )


def worker_threads() -> int:
    """Threads of a worker: one, unless `OMP_NUM_THREADS` says other."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isascii() and said.isdigit() and int(said) else 1


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """These environment variables while the block runs; None takes one away."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@contextmanager
def _without_program() -> Iterator[None]:
    """Start a process that does not run the main program of this one again, as spawned ones do."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


_STATION = Station()
"""That of this process, where it is a worker."""


def _begin(parent: int) -> None:
    """Begin a worker process: Ctrl-C is for the one that was started, and it ends when its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    started_by = multiprocessing.parent_process()  # on Windows the number of a parent that is gone stays
    while os.getppid() == parent and started_by is not None and started_by.is_alive():
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def _call(method: str, *arguments: Any) -> Any:
    return getattr(_STATION, method)(*arguments)


def _answer(future: Future[Any]) -> Any:
    answer = future.result()
    if isinstance(answer, BrittleError):
        raise answer
    return answer


def _check_opened(expected: Opened, opened: Opened) -> None:
    """Raise where a worker would compute another run."""
    (record, reference), (other, logits) = expected, opened
    if found := differences(record, other, ("in the run", "in a worker"), UNDECISIVE - {"machine.platform"}):
        raise ModelError(
            "worker_differs",
            f"a worker would compute another run: {'; '.join(found)}; let it find the same files and versions",
        )
    check_alike(reference, logits, "in a worker")


def last_line(error: BaseException) -> str:
    """The last line of what an error says, which is what happened; in those of Ray the lines before are where."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1] if lines else type(error).__name__)[:200]
