"""Runs what of the suite computes as on other processors, with one thread and with two, and prints a table.

    PYTHONPATH=tests python -m checks.processors [CAPABILITY ...]

PyTorch and the libraries under it, oneDNN and MKL, choose their kernels by what the processor can do. Each has a
variable that has it take those of a lesser one, and all three are set: `default` (no vector instructions beyond the
platform's), `avx2`, `avx512`. A capability that this processor lacks is said and skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1]

CAPABILITIES = {"default": ("SSE41", "SSE4_2"), "avx2": ("AVX2", "AVX2"), "avx512": ("AVX512_CORE", "AVX512")}
"""Kernels as PyTorch calls them, with the names that oneDNN and MKL have for them."""

THREADS = (1, 2)

LIMIT = 7200.0
"""Seconds of one run."""

ROOMS = ("decisions", "detector", "doctor", "measure", "model", "noise", "orthant", "run", "scores")
"""Rooms of tests in which networks compute; those of the others only fill files and pages."""


def environment(capability: str, threads: int) -> dict[str, str]:
    """Variables of a run."""
    onednn, mkl = CAPABILITIES[capability]
    kernels = {"ATEN_CPU_CAPABILITY": capability, "ONEDNN_MAX_CPU_ISA": onednn, "MKL_ENABLE_INSTRUCTIONS": mkl}
    return os.environ | kernels | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}


def ran(command: Sequence[str], capability: str, threads: int) -> tuple[int, str]:
    """The exit code of a command of Python, and what it said."""
    out, place = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}, TESTS.parent
    variables = environment(capability, threads)
    done = subprocess.run([sys.executable, *command], cwd=place, env=variables, timeout=LIMIT, **out)
    return done.returncode, done.stdout


def main(capabilities: Sequence[str]) -> int:
    """All of it; prints a table, and below it what failed."""
    if unknown := set(capabilities) - CAPABILITIES.keys():
        print(f"no capability is called {', '.join(sorted(unknown))}; there are {', '.join(CAPABILITIES)}")
        return 2
    print(f"{'capability':10}  {'threads':>7}  {'seconds':>7}", flush=True)
    bad = []
    for capability in capabilities or CAPABILITIES:
        known = ran(["-c", "import torch; print(torch.backends.cpu.get_cpu_capability())"], capability, 1)[1]
        if known.strip().lower() != capability:
            print(f"{capability:10}  this processor, or this build of PyTorch, has it not: skipped", flush=True)
            continue
        for threads in THREADS:
            began = time.monotonic()
            side_by_side = str(max(THREADS) // threads)  # threads that wait for a core slow each other down many times
            rooms = [str(TESTS / room) for room in ROOMS]
            pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", side_by_side, *rooms]
            code, said = ran(pytest, capability, threads)
            last = said.rstrip().rpartition("\n")[2]
            print(f"{capability:10}  {threads:7}  {time.monotonic() - began:7.0f}  {last}", flush=True)
            if code != 0:
                failed = re.findall(r"^(?:FAILED|ERROR) .*$", said, re.M) or [f"exit code {code}", said[-2000:]]
                bad += [f"{capability}, {threads} threads: {line}" for line in failed]
    print(*bad, sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
