"""Memory and time of runs of growing length: both per row stay flat, as points are streamed and never listed.

    python benchmarks/million.py [ROWS ...]

Scores `logit_margin` and `max_probability` of random images of 8 x 8 pixels, read from an IDX file, with a small
network, each length in a process of its own; prints peak memory and time per row, and their ratios to the first.
"""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from timing import print_table

import brittle
from brittle.data import open_points
from brittle.run import execute, make_job
from brittle.scores import LogitMargin, MaxProbability

LENGTHS, SIDE, CHUNK = (100_000, 1_000_000), 8, 100_000


def write_images(folder: Path, rows: int) -> None:
    """An IDX file of random images."""
    generator = np.random.default_rng(0)
    with (folder / "test-images-idx3-ubyte").open("wb") as file:
        file.write(bytes([0, 0, 8, 3]) + struct.pack(">3I", rows, SIDE, SIDE))
        for first in range(0, rows, CHUNK):
            count = min(CHUNK, rows - first)
            file.write(generator.integers(0, 256, count * SIDE * SIDE, dtype=np.uint8).tobytes())


def measure(rows: int) -> None:
    """Score so many rows, and print peak memory in MiB and seconds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = torch.nn.Linear(SIDE * SIDE, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_images(folder, rows)
        classifier = brittle.Classifier(torch.nn.Sequential(torch.nn.Flatten(), *layers))
        began = time.perf_counter()
        job = make_job(classifier, open_points(folder), [LogitMargin(), MaxProbability()], 0, 512, 0.99)
        execute(job, folder / "run")
        seconds = time.perf_counter() - began
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds)


def main(arguments: list[str]) -> None:
    """Every length in a process of its own, or one length in this."""
    if arguments[:1] == ["--one"]:
        measure(int(arguments[1]))
        return
    rows: list[list[object]] = []
    first: tuple[float, float] | None = None
    for length in map(int, arguments or LENGTHS):
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(length)], stdout=subprocess.PIPE, text=True, check=True
        )
        peak, seconds = map(float, done.stdout.split())
        first = first or (peak, seconds / length)
        rows.append([f"{length:,}", peak, peak / first[0], 1e6 * seconds / length, seconds / length / first[1]])
    print_table(["rows", "peak MiB", "ratio", "microseconds a row", "ratio"], rows)


if __name__ == "__main__":
    main(sys.argv[1:])
