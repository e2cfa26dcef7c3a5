"""Speed of several workers and of joined parts against one process, with a check that all write the same bytes.

    python research/benchmarks/workers.py [POINTS]

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

from brittle.extensions.workers.join import join

NETWORK = """
import sys

sys.path.insert(0, {place!r})
from networks import resnet18


def make():
    return resnet18(10)
"""


WAYS = {
    "1 process": ("--workers", "1"),
    "2 processes": ("--workers", "2"),
}


def line(folder: Path, name: str) -> list[str]:
    """Return the arguments of a run into the folder `name`."""
    options = ["--scores", "monte_carlo", "--draws", "4", "--quiet"]
    return ["score", f"{folder / 'net.py'}:make", str(folder / "data.npz"), "--out", str(folder / name), *options]


def run(folder: Path, name: str) -> tuple[float, str]:
    """Return the seconds of a run, and the digest of its files."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "brittle", *line(folder, name), *WAYS[name]], check=True)
    return time.perf_counter() - began, digest(folder / name)


def parts(folder: Path, count: int) -> tuple[float, str]:
    """Do the same for so many parts, one after the other, and joined."""
    began = time.perf_counter()
    for number in range(1, count + 1):
        command = [sys.executable, "-m", "brittle", *line(folder, f"part-{number}"), "--part", f"{number}/{count}"]
        subprocess.run(command, check=True)
    join(folder / "joined", [folder / f"part-{number}" for number in range(1, count + 1)])
    return time.perf_counter() - began, digest(folder / "joined")


def digest(out: Path) -> str:
    """Return the sha256 of the shard files of a run, in the order of their names."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(out.glob("*.parquet")))).hexdigest()


def main(arguments: list[str]) -> int:
    """Time every kind of run, and return 1 where the bytes differ."""
    points = int(arguments[0]) if arguments else 2048
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "net.py").write_text(NETWORK.format(place=str(Path(__file__).parent)))
        np.savez(folder / "data.npz", x=np.random.default_rng(0).random((points, 3, 32, 32), dtype=np.float32))
        runs = {name: run(folder, name) for name in WAYS} | {"2 parts, in turn": parts(folder, 2)}
    baseline = runs["1 process"][0]
    rows = [[name, seconds, baseline / seconds, digest[:12]] for name, (seconds, digest) in runs.items()]
    print_table([f"{points:,} points", "seconds", "times faster", "sha256"], rows)
    same = len({digest for _, digest in runs.values()}) == 1
    print("one sha256" if same else "the bytes differ")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
