"""Runs what of the suite computes as on other processors, with one thread and with two, and prints a table.

    PYTHONPATH=tests python -m checks.processors [CAPABILITY ...]

PyTorch and the libraries under it, oneDNN and MKL, choose their kernels by what the processor can do. Each has a
variable that has it take those of a lesser one, and all three are set: `default` (no vector instructions beyond the
platform's), `avx2`, `avx512`. A capability that this processor lacks is said and skipped. Files in which no network
computes, or whose tests look at files, texts, statistics and processes, are left out by name (`SAME_EVERYWHERE`); a new
file is run until somebody adds it there.
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

SAME_EVERYWHERE = frozenset({"analysis", "data", "report", "store", "workers"})
"""Rooms of tests without a network, and those whose networks only fill files, pages and processes."""

SAME_EVERYWHERE_TOO = frozenset(
    {
        "test_bounds", "test_cases", "test_compare", "test_corrupt", "test_docs", "test_docs_of_checks", "test_errors",
        "test_estimate", "test_fuzz", "test_intervals", "test_processors", "test_progress",
        "test_ranges", "test_tests",
    }
)  # fmt: skip
"""Files of other rooms for which the same holds."""


def chosen() -> list[Path]:
    """The files of the suite that compute."""
    files = sorted(TESTS.rglob("test_*.py"))
    return [path for path in files if path.parent.name not in SAME_EVERYWHERE and not _by_name(path)]


def _by_name(path: Path) -> bool:
    return path.stem in SAME_EVERYWHERE_TOO or path.parent.name == "files"


def can(capability: str) -> bool:
    """Whether PyTorch takes the kernels of `capability` on this processor."""
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(capability, 1), capture_output=True, text=True, timeout=100
    )
    return done.stdout.strip().lower() == capability


def environment(capability: str, threads: int) -> dict[str, str]:
    """Variables of a run."""
    onednn, mkl = CAPABILITIES[capability]
    kernels = {"ATEN_CPU_CAPABILITY": capability, "ONEDNN_MAX_CPU_ISA": onednn, "MKL_ENABLE_INSTRUCTIONS": mkl}
    return os.environ | kernels | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}


def run(capability: str, threads: int, files: Sequence[Path], place: Path) -> tuple[int, str]:
    """Run the tests of `files`; gives the exit code and what was said."""
    side_by_side = str(max(THREADS) // threads)  # threads that wait for a core slow each other down many times
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", side_by_side, *map(str, files)]
    done = subprocess.run(
        command,
        cwd=place,
        env=environment(capability, threads),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    return done.returncode, done.stdout


def counted(said: str) -> dict[str, int]:
    """How many tests passed and failed, by the last line of pytest."""
    last = said.rstrip().rpartition("\n")[2]
    found = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|error)", last)}
    return {"passed": found.get("passed", 0), "failed": found.get("failed", 0) + found.get("error", 0)}


def main(capabilities: Sequence[str]) -> int:
    """All of it; prints a table, and below it what failed."""
    if unknown := set(capabilities) - CAPABILITIES.keys():
        print(
            f"no capability is called {', '.join(sorted(unknown))}; there are {', '.join(CAPABILITIES)}",
            file=sys.stderr,
        )
        return 2
    files = chosen()
    print(f"{len(files)} files that compute; left out: {', '.join(sorted(SAME_EVERYWHERE))}")
    print(f"{'capability':10}  {'threads':>7}  {'passed':>6}  {'failed':>6}  {'seconds':>7}", flush=True)
    bad = []
    for capability in capabilities or CAPABILITIES:
        if not can(capability):
            print(f"{capability:10}  this processor, or this build of PyTorch, has it not: skipped", flush=True)
            continue
        for threads in THREADS:
            began = time.monotonic()
            code, said = run(capability, threads, files, TESTS.parent)
            counts = counted(said)
            seconds = time.monotonic() - began
            print(
                f"{capability:10}  {threads:7}  {counts['passed']:6}  {counts['failed']:6}  {seconds:7.0f}", flush=True
            )
            if code != 0:
                failed = re.findall(r"^(?:FAILED|ERROR) .*$", said, re.M) or [f"exit code {code}", said[-2000:]]
                bad += [f"{capability}, {threads} threads: {line}" for line in failed]
    print(*bad, sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
