"""Worker processes that compute the shards of a run: on this machine here, on a Ray cluster in `cluster`.

A worker opens the job, returns its description, and computes one shard after another. Only the process that holds the
run folder writes there, so the bytes of the table depend neither on the order nor on the processes. A row that kills
its process is found by bisecting its shard, and left out.
"""

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

MOST_WORKERS = 256  # processes of one machine at most; a larger number is a mistyped number
MOST_DEATHS = 10  # deaths allowed at one shard that no row explains, and deaths in a row before a worker opens the job
MOST_LOST = 16  # rows of one shard that may kill a worker; with more of them the run stops
CARDS = "CUDA_VISIBLE_DEVICES"  # environment variable that lists the cards a process sees
LOOK_SECONDS = 1.0  # longest wait for an answer before the run looks at its cluster
PARENT_SECONDS = 0.5  # time between two looks of a worker at its parent process


class Worker(Protocol):
    """A process that computes shards: it answers calls of `Station`, an error as a value, until it is closed."""

    def submit(self, method: str, *arguments: Any) -> Future[Any]: ...

    def close(self) -> None: ...


class Station:
    """The part that runs in a worker: it holds the job and computes shards."""

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
    """Workers that share shards; a worker that dies is replaced, and its shard is computed again.

    The answer of a dead worker raises one of `death_errors`; `look` is called every second or so, and may raise.
    """

    hire: Callable[[], Worker]
    opening: Opening
    death_errors: tuple[type[BaseException], ...]
    look: Callable[[], None] = lambda: None
    _busy: dict[Future[Any], tuple[Worker, int | None]] = field(default_factory=dict, init=False)

    def shards(self, numbers: Sequence[int], size: int, job: Job, expected: Opened) -> Generator[Shard]:
        waiting, unfinished, deaths = deque(numbers), set(numbers), Counter[int | None]()
        lost: dict[int, dict[int, str]] = {number: {} for number in numbers}
        try:
            for _ in range(min(size, len(waiting))):
                self._open()
            while unfinished:  # do not wait for a worker without room once all are done
                future = self._next(self._busy)
                worker, number = self._busy.pop(future)
                try:
                    answer = _answer(future)
                except self.death_errors as error:
                    worker.close()
                    deaths[number] += 1
                    if number is not None:
                        waiting.appendleft(number)
                        if deaths[number] > 1 and (row := self._fatal_row(number, job, lost[number])) is not None:
                            lost[number][row] = "the process that computed it died"
                            deaths[number] = 0
                    if deaths[number] > MOST_DEATHS or (number is not None and len(lost[number]) > MOST_LOST):
                        occasion = "before they open the run" if number is None else f"of shard {number}"
                        raise ModelError(
                            "workers_die",
                            f"the worker processes die {occasion} ({last_line(error)}); their output is above, or in "
                            f"the logs of Ray; run in one process (without --workers, --cluster) to see why",
                        ) from error
                    self._open()
                    continue
                if number is None:
                    deaths[None] = 0
                    _check_opened(expected, answer)
                else:
                    unfinished.discard(number)
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
        while True:
            done, _ = wait(futures, LOOK_SECONDS, FIRST_COMPLETED)
            self.look()
            if done:
                return done.pop()

    def _fatal_row(self, number: int, job: Job, lost: Mapping[int, str]) -> int | None:
        """Bisect a shard for the row that kills its process alone, twice; None where no row does. Rows keep their
        places in their batches, so a row gets the same numbers whichever rows are computed with it."""
        rows = [row for batch in job.batches(number) for row in batch.rows]
        workers: list[Worker] = []

        def kills(trial_rows: Sequence[int]) -> bool:
            left_out, submitted = {row: "left out for a trial" for row in rows if row not in trial_rows}, False
            try:
                if not workers:
                    workers.append(self.hire())
                    _answer(self._next({workers[0].submit("open", self.opening): None}))
                submitted = True
                _answer(self._next({workers[0].submit("shard", number, {**left_out, **lost}): None}))
            except self.death_errors:
                workers.pop().close()
                return submitted
            return False

        suspects = [row for row in rows if row not in lost]
        try:
            while len(suspects) > 1:
                first_half, second_half = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
                suspects = first_half if kills(first_half) else second_half
            return suspects[0] if suspects and kills(suspects) and kills(suspects) else None
        finally:
            for worker in workers:
                worker.close()


@dataclass
class Processes:
    """Processes of this machine that share the shards of a run; where `opening` is None each gets a copy of the job."""

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
    """Return the cards that the workers of a run on this device share, as `CUDA_VISIBLE_DEVICES` names them: all that
    this process sees where it computes on its first, and none where the device is another."""
    if device.type != "cuda" or device.index or (count := torch.cuda.device_count()) < 2:
        return [None]
    visible_cards: list[str | None] = [name.strip() for name in os.environ.get(CARDS, "").split(",") if name.strip()]
    return (visible_cards or [str(card) for card in range(count)])[:count]


class Process:
    """A single-process executor, so that a crash names its shard. Uses the card with the fewest `workers_on` it."""

    def __init__(self, workers_on: Counter[str | None]) -> None:
        self._workers_on, self._card = workers_on, min(workers_on, key=lambda card: workers_on[card])
        workers_on[self._card] += 1
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, (os.getpid(),))
        self._children: list[Any] = []

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        if self._children:
            return self._pool.submit(_call, method, *arguments)
        before = multiprocessing.active_children()
        tokens = (name for name in os.environ if name.startswith("RAY_AUTH_TOKEN"))
        # A fixed number of threads, no current folder on `sys.path`, no token of Ray, one card
        variables = dict.fromkeys(tokens) | {"OMP_NUM_THREADS": str(worker_threads()), "PYTHONSAFEPATH": "1"}
        with environment(variables | ({} if self._card is None else {CARDS: self._card})), _without_program():
            future = self._pool.submit(_call, method, *arguments)
        self._children = [child for child in multiprocessing.active_children() if child not in before]
        return future

    def close(self) -> None:
        self._workers_on[self._card] -= 1
        for child in self._children:
            child.kill()
        self._pool.shutdown(cancel_futures=True)


def send(job: Job) -> Opening:
    """Pickle a job from Python for the workers."""
    sink = BytesIO()
    try:
        _Pickler(sink).dump(job)
    except Exception as error:  # objects say in many ways that they cannot be pickled
        raise _send_error(error) from error
    return partial(_receive, sink.getvalue())


def _receive(content: bytes) -> Job:
    try:
        return pickle.loads(content)
    except (ImportError, AttributeError) as error:
        raise _send_error(error) from error


class _Pickler(pickle.Pickler):
    """Refuses objects that the main program defines: a worker does not run it and cannot import them."""

    def reducer_override(self, value: Any) -> Any:
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            raise AttributeError(f"{value.__qualname__} is defined in the program that you started, or in a notebook")
        return NotImplemented


def _send_error(error: Exception) -> ParameterError:
    return ParameterError(
        f"the model, the data or a score cannot be sent to another process ({str(error).partition(chr(10))[0]:.200}); "
        f"put what you define into a module that is imported (from mymodel import Net), or leave out workers="
    )


def worker_threads() -> int:
    """Return the number of threads of a worker: `OMP_NUM_THREADS`, or 1."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return int(setting) if setting.isascii() and setting.isdigit() and int(setting) else 1


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables while the block runs; None removes a variable."""
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
    """Keep processes that start in the block from running the main program again, as spawned ones do."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


_STATION = Station()  # the station of this process, where it is a worker


def _begin(parent: int) -> None:
    """Begin a worker process: it ignores Ctrl-C, which is for its parent, and ends when its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: int) -> None:
    parent_process = multiprocessing.parent_process()  # on Windows `getppid` keeps the number of a dead parent
    while os.getppid() == parent and parent_process is not None and parent_process.is_alive():
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
    (record, reference), (worker_record, logits) = expected, opened
    places, ignored = ("in the run", "in a worker"), UNDECISIVE - {"machine.platform"}
    if mismatches := differences(record, worker_record, places, ignored):
        raise ModelError(
            "worker_differs",
            f"a worker would compute another run: {'; '.join(mismatches)}; let it find the same files and versions",
        )
    check_alike(reference, logits, "in a worker")


def last_line(error: BaseException) -> str:
    """Return the last line of an error's message, the cause; Ray writes the place in the lines before."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1] if lines else type(error).__name__)[:200]
