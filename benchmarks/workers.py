"""How much faster two workers are than one, on the same run, and that they write the same bytes.

    python benchmarks/workers.py [POINTS]

Scores random images of 32 x 32 pixels by Monte Carlo with a network of the ResNet-18 shape, by the command line; the
time is that of the whole command, with the start of the processes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import print_table

NETWORK = """
import sys

sys.path.insert(0, {place!r})
from networks import resnet18


def make():
    return resnet18(10)
"""


def run(folder: Path, workers: int) -> tuple[float, str]:
    """Seconds of a run with so many workers, and the digest of what it wrote."""
    out = folder / f"run-{workers}"
    options = ["--out", str(out), "--scores", "monte_carlo", "--draws", "8", "--workers", str(workers), "--quiet"]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "brittle", "score", f"{folder / 'net.py'}:make", str(folder / "data.npz"), *options],
        check=True,
    )
    seconds = time.perf_counter() - began
    content = b"".join(path.read_bytes() for path in sorted(out.glob("*.parquet")))
    return seconds, hashlib.sha256(content).hexdigest()


def main(arguments: list[str]) -> None:
    """One and two workers."""
    points = int(arguments[0]) if arguments else 1024
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "net.py").write_text(NETWORK.format(place=str(Path(__file__).parent)))
        np.savez(folder / "data.npz", x=np.random.default_rng(0).random((points, 3, 32, 32), dtype=np.float32))
        one, two = run(folder, 1), run(folder, 2)
    rows = [[1, one[0], 1.0, one[1][:12]], [2, two[0], one[0] / two[0], two[1][:12]]]
    print_table([f"workers, {points:,} points", "seconds", "times faster", "sha256"], rows)


if __name__ == "__main__":
    main(sys.argv[1:])
