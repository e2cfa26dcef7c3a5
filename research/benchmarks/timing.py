"""Helpers of the benchmarks: threads, best-of timing, peak memory, a plain table."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence

import torch

THREADS = 2


def set_threads() -> None:
    """Use `THREADS` threads and say so."""
    torch.set_num_threads(THREADS)
    print(f"{THREADS} threads, torch {torch.__version__}")


def interleaved(
    functions: Sequence[Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the shortest time of each function over `rounds` that call all in turn, after one warm-up each."""
    times: list[list[float]] = [[] for _ in functions]
    for number in range(rounds + 1):
        for function, function_times in zip(functions, times, strict=True):
            start = clock()
            function()
            if number:
                function_times.append(clock() - start)
    return [min(function_times) for function_times in times]


def peak_mebibytes() -> float:
    """Return the peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print aligned columns."""
    cells = [list(header), *([f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
