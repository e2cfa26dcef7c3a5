"""One worker process, for the process that asks it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brittle.doctor.reference import check_alike
from brittle.errors import ModelError
from brittle.run.identity import differences
from brittle.run.workers.base import Expected
from brittle.run.workers.service import error_of, shard_of
from brittle.store.files.records import MOST_TEXT
from brittle.store.files.strict_json import FormatProblem, convert
from brittle.store.folder import PackedShard
from brittle.store.record import RunRecord

ALIKE = ("machine.platform",)
"""Fields of a record that workers of one run must share, beyond those that make its identity."""


ENDING = 10.0
"""Seconds that a worker which says no more is given to end by itself, before it is killed."""


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


@dataclass
class Worker:
    """One process at work; started when it is first asked, and again after it died.

    Attributes:
        command: what starts it.
        environment: its environment variables.
        expected: what it must have opened; one that opened something else is refused. None takes any.
        directory: its working directory; None is that of this process.
        place: the machine it runs on, for messages; empty for this one.
        handed: the line that it is given first, or empty.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    expected: Expected | None = None
    directory: Path | None = None
    place: str = ""
    handed: str = field(default="", repr=False)
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _greeted: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)
    _change: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def closed(self) -> bool:
        """Whether it was asked to end."""
        return self._closed

    def start(self) -> None:
        """Start the process, unless it runs, and see that it opened what this one did.

        Raises:
            WorkerDied: it ended.
            ModelError: it opened something else.
            BrittleError: what it raised.
        """
        process = self._started()
        if self._greeted:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        if self.handed:
            with suppress(BrokenPipeError):  # it died, as it does not answer either
                process.stdin.write(self.handed + "\n")
                process.stdin.flush()
        answer = _answer(process.stdout.readline())
        if answer is None:
            raise self._death(())
        if "error" in answer:
            raise error_of(answer, self.place)
        self._check(answer["hello"])
        self._greeted = True

    def ask(
        self, shard: int, lost: Mapping[int, str], only: int | None, begun: Callable[[int], None]
    ) -> PackedShard | None:
        """A shard; None where only one batch of it was to be tried.

        Args:
            shard: its number.
            lost: rows of the data that are not to be measured, and why.
            only: try the one batch that begins with this row.
            begun: called with the first row of each batch before it is measured.

        Raises:
            WorkerDied: the process ended.
            BrittleError: what the worker raised.
        """
        self.start()
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
                raise error_of(answer, self.place)
            elif "done" in answer:
                return None if answer["done"] is None else self._check_number(shard, shard_of(answer["done"]))
        raise self._death(rows)

    def close(self) -> None:
        """End the process; no other is started."""
        self._closed = True
        self._end()

    def _check(self, hello: Mapping[str, Any]) -> None:
        if self.expected is None:
            return
        where = f"in a worker {self._where}"
        try:
            opened = convert(RunRecord, hello["record"], MOST_TEXT)
        except FormatProblem as problem:
            raise ModelError(
                "worker_differs",
                f"a run is described {where} as here it is not: {problem}; install one version",
            ) from problem
        found = differences(self.expected.record, opened, ("in the run", where), ALIKE)
        if found:
            raise ModelError(
                "worker_differs",
                f"a worker would compute another run: {'; '.join(found)}; let it find the same files and versions",
            )
        check_alike(self.expected.reference, hello["reference"], where)

    def _check_number(self, number: int, shard: PackedShard) -> PackedShard:
        if shard.number != number:
            raise ModelError(
                "worker_differs", f"a worker {self._where} gave shard {shard.number} where {number} was asked for"
            )
        return shard

    @property
    def _where(self) -> str:
        return f"on {self.place}" if self.place else "of this machine"

    def _started(self) -> subprocess.Popen[str]:
        with self._change:
            if self._closed:
                raise WorkerDied((), -signal.SIGKILL)
            if self._process is None:
                self._greeted = False
                try:
                    self._process = subprocess.Popen(
                        self.command,
                        env=self.environment,
                        cwd=self.directory,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                        process_group=0,  # Ctrl-C is for the process that was started; it ends its workers
                    )
                except OSError as error:
                    raise ModelError(
                        "workers_die", f"a worker {self._where} cannot be started ({error}); see what is short there"
                    ) from error
            return self._process

    def _end(self) -> int:
        """Exit code of the process, which is ended if it still runs."""
        with self._change:
            process, self._process = self._process, None
        if process is None:
            return -signal.SIGKILL
        if not self._closed:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING)  # it says no more, so it is at its end, and its exit code tells why
        process.kill()
        with suppress(BrokenPipeError), process:  # closes its pipes, where a request may be left, and waits for it
            pass
        return process.wait()

    def _death(self, rows: Sequence[int]) -> WorkerDied:
        return WorkerDied(rows, self._end())


def command_of(arguments: Sequence[str]) -> list[str]:
    """What starts a worker of the command `brittle ARGUMENTS`."""
    talk = [argument for argument in arguments if argument != "--quiet"]
    return [sys.executable, "-P", "-m", "brittle", *talk, "--as-worker", "--quiet"]


def environment_of(threads: str | None = None) -> dict[str, str]:
    """That of this process, with so many threads for each worker, by default one unless `OMP_NUM_THREADS` says other.

    Bytes then do not depend on how many workers there are. A token of Ray is left out: it is not for models.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_TOKEN")}
    return own | {"OMP_NUM_THREADS": threads or worker_threads()}


def worker_threads() -> str:
    """Threads of a worker: one, unless `OMP_NUM_THREADS` says other."""
    return os.environ.get("OMP_NUM_THREADS") or "1"


def _answer(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
