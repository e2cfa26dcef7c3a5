"""Several processes of one command, side by side: one for each core."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from studies.errors import StudyError


@contextmanager
def processes_beside(module: str, arguments: Sequence[str], count: int) -> Iterator[None]:
    """Run `python -m MODULE ARGUMENTS` in `count` processes while the block does; on leaving it they are waited for.

    Where the block raises, or Ctrl-C is pressed, they are stopped.

    Raises:
        StudyError: one of them failed.
    """
    started = [subprocess.Popen([sys.executable, "-m", module, *arguments]) for _ in range(count)]
    try:
        yield
        codes = [process.wait() for process in started]
    finally:
        for process in started:
            process.terminate()
            process.wait()
    if failed := [code for code in codes if code]:
        raise StudyError(
            f"{len(failed)} of {count} processes side by side ended with {failed[0]}; what went wrong is said above"
        )
