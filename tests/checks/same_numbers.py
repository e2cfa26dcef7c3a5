"""Digests of the tables of fixed runs, to check that a change of the code left every number as it was.

Run it before and after, and compare the output:

    python tests/checks/same_numbers.py                                # the demo's table
    python tests/checks/same_numbers.py MODEL.pt2 DATA --split test    # and 100 points of this network, by all scores

A digest is over the point, the score with its parameters, and the value, low, high, status and passes columns, row by
row in the order of the file. Two are equal only where every bit of every number is.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = ("point", "score", "parameters", "value", "low", "high", "status", "passes")
"""Columns that must stay the same."""

LIMIT, DRAWS, SIGMAS = 100, 100, ("0.05", "0.1")
"""Points of the other network, noisy copies, and standard deviations of the noise."""


def brittle(*arguments: str) -> int:
    """Run the command, and return its exit code."""
    return subprocess.run([sys.executable, "-m", "brittle", *arguments], stdout=subprocess.DEVNULL).returncode


def digests(run: Path) -> dict[str, str]:
    """Return the digest of each score of a run, and of all together."""
    table = pa.concat_tables([pq.read_table(file) for file in sorted(run.glob("scores-*.parquet"))])
    lines_by_score: dict[str, list[bytes]] = {}
    for row in zip(*(table[name].to_pylist() for name in COLUMNS), strict=True):
        line = b"|".join(_bytes(value) for value in row)
        lines_by_score.setdefault(f"{row[1]} {row[2]}", []).append(line)
    digest_by_score = {
        label: hashlib.sha256(b"\n".join(lines)).hexdigest() for label, lines in sorted(lines_by_score.items())
    }
    return digest_by_score | {"all": hashlib.sha256("".join(digest_by_score.values()).encode()).hexdigest()}


def _bytes(value: object) -> bytes:
    return struct.pack("<d", value) if isinstance(value, float) else str(value).encode()


def names() -> list[str]:
    """Return every score of the catalogue."""
    from brittle.scores.catalogue import CATALOGUE

    return list(CATALOGUE)


def main() -> None:
    """Run, and print one digest per line."""
    with tempfile.TemporaryDirectory() as folder:
        runs, demo = {"demo": Path(folder) / "digits"}, Path(folder) / "demo"
        brittle("demo", "--quiet", "--out", str(demo))
        chosen = ["--scores", *(name for name in names() if name != "rare_event"), "--sigma", "0.1", "0.2", "0.4"]
        chosen += ["--draws", "1000", "--effort", "fast", "--quiet", "--out", str(runs["demo"])]
        brittle("score", str(demo / "digits.pt2"), str(demo / "digits.npz"), *chosen)
        if sys.argv[1:]:
            model, data, *options = sys.argv[1:]
            runs[Path(model).parent.name] = Path(folder) / "other"
            chosen = [*("--scores", *names()), *("--sigma", *SIGMAS), *("--norm", "l2", "linf")]
            chosen += ["--set", "input_margin.certify=true", "--effort", "fast"]
            budget = ["--draws", str(DRAWS), "--points", str(LIMIT), "--quiet"]
            brittle("score", model, data, *options, "--out", str(Path(folder) / "other"), *chosen, *budget)
        for name, run in runs.items():
            for label, digest in digests(run).items():
                print(f"{name}  {digest[:16]}  {label}")


if __name__ == "__main__":
    main()
