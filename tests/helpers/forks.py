"""Processes for tests without the seconds of their start: forks of one that has imported the library.

Tests about the start of the program, or about how Python ends, use `subprocess` or `helpers.processes`.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, CompletedProcess
from types import ModuleType
from typing import Any, NoReturn

LIMIT = 140.0
"""Seconds that a test waits for a process; each ends within a few on an idle machine."""

TESTS = str(Path(__file__).parents[1])
SERVE = "from helpers.forks import serve; serve()"

_servers: list[subprocess.Popen[bytes]] = []
"""The process that forks, after the first request."""

_seconds: list[float] = []
"""CPU seconds of the process that forks, and of its children, after each child."""


def forked(
    code: str, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = LIMIT
) -> CompletedProcess[str]:
    """Run a text of Python as `python -c CODE ARGUMENTS` does, in a fork of a process that has imported the library."""
    with tempfile.TemporaryDirectory() as place:
        outputs = [str(Path(place) / name) for name in ("stdout", "stderr")]
        folder, variables = str(cwd or Path.cwd()), dict(os.environ if env is None else env)
        request = {"code": code, "arguments": arguments, "cwd": folder, "env": variables, "outputs": outputs}
        try:
            returncode = _ask(request, timeout)
        except BaseException:
            _stop()
            raise
        return CompletedProcess(["-c", *arguments], returncode, *(Path(output).read_text() for output in outputs))


def _ask(request: Mapping[str, Any], timeout: float) -> int:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request).encode() + b"\n")
    child = int(server.stdout.readline())
    try:
        if not select.select([server.stdout], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a forked process", timeout)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise
    status, seconds = server.stdout.readline().split()
    _seconds.append(float(seconds))
    return int(status)


def cpu_seconds() -> float:
    """Return the CPU seconds of the process that forks, which this process has not waited for."""
    return max(_seconds, default=0.0)


def _server() -> subprocess.Popen[bytes]:
    if not _servers:
        paths = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths}
        _servers.append(
            # from a folder without packages, whose entry points every fork would know
            subprocess.Popen(
                [sys.executable, "-c", SERVE], bufsize=0, stdin=PIPE, stdout=PIPE, env=environment, cwd=TESTS
            )
        )
        atexit.register(_stop)
    return _servers[0]


def _stop() -> None:
    """End the process that forks; the next test that needs one starts another."""
    while _servers:
        server = _servers.pop()
        server.kill()
        server.communicate()
    _seconds.clear()


def serve() -> None:
    """Fork for each line of stdin, and print the process and its exit; one thread, so that every fork is complete."""
    import checks.faults  # noqa: F401 - most of what a test needs is imported once

    import brittle.cli.score  # noqa: F401

    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(**json.loads(line))
        print(child, file=answers, flush=True)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, sum(os.times()[:4]), file=answers, flush=True)


def _run(code: str, arguments: list[str], cwd: str, env: dict[str, str], outputs: list[str]) -> NoReturn:
    """Run the code in the forked process, and end it."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    streams = [os.open(os.devnull, os.O_RDONLY), *(os.open(path, os.O_WRONLY | os.O_CREAT) for path in outputs)]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.argv, sys.path[0:0] = ["-c", *arguments], [""]
    module = sys.modules["__main__"] = ModuleType("__main__")
    try:
        exec(compile(code, "<string>", "exec"), vars(module))
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as Python does with what nothing catches
        traceback.print_exc()
        status = 1
    for output in (sys.stdout, sys.stderr):
        output.flush()
    os._exit(status)
