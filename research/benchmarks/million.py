"""Memory and time of runs of growing length: both per row stay flat, as points are streamed and never listed.

    python research/benchmarks/million.py [ROWS ...]
    python research/benchmarks/million.py --commands [ROWS ...]

The first scores `logit_margin` and `max_probability` of random images of 8 x 8 pixels, read from an IDX file, with a
small network, each length in a process of its own; prints peak memory, without the pages of that file, which the system
takes back when it needs them, and time per row, and their ratios to the first.
The second asks commands of a finished run: its shards are those of a run of 256 points by `shrinkage` and
`logit_margin`, again and again under other ids; prints peak memory and seconds of each command.
"""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from timing import print_table

import brittle
from brittle.data import open_points
from brittle.run import execute, make_job
from brittle.run.job import SHARD, whole_shard
from brittle.scores import LogitMargin, MaxProbability, Shrinkage
from brittle.store.folder import RunFolder, ShardEntry, ShardFile, file_name
from brittle.store.record import Account
from brittle.store.schemas import SHARD_KINDS

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
        execute(job, RunFolder(folder / "run"))
        seconds = time.perf_counter() - began
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds)


COMMANDS = {
    "join": ["join", "joined", "run", "other"],
    "join again": ["join", "grown", "joined", "joined"],
    "show": ["show", "joined"],
    "show --top": ["show", "joined", "--top", "20"],
    "show POINT": ["show", "joined", "777"],
    "check": ["check", "joined", "--holds", "0", "--every-class", "0", "--against", "joined", "--no-worse-than", "1"],
    "compare": ["compare", "joined", "joined"],
    "report": ["report", "joined", "--out", "page.html"],
    "export": ["export", "joined", "table.parquet"],
    "verify": ["verify", "joined"],
}
"""What is asked of two halves of a run, and then of the whole."""


def simulate(rows: int, folder: Path) -> None:
    """Two parts of a run of so many points, in `run` and `other`."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIDE * SIDE, 10))
    x = torch.rand(SHARD, 1, SIDE, SIDE)
    base = brittle.score(
        network, (x, torch.arange(SHARD) % 10), [Shrinkage(0.1, draws=20, limit=None), LogitMargin()], skip_doctor=True
    )
    size = whole_shard(rows)
    shards = -(-rows // size)
    for part, name in ((1, "run"), (2, "other")):
        data = replace(base.record.data, points=rows)
        record = replace(base.record, data=data, shard_points=size, part=(part, 2))
        with (out := RunFolder(folder / name)).open():
            for number in range(part - 1, shards, 2):
                first, last = number * size, min(rows, (number + 1) * size)
                tables = {
                    "points": _again(base.points, first, last, 1),
                    "scores": _again(base.scores, first, last, len(base.columns)),
                    "counterexamples": base.counterexamples,
                }
                account = Account.of(tables["points"], tables["scores"], 21 * (last - first))
                out.shards[number] = ShardEntry(number, account, *_written(out, number, tables))
            out.note(record)


def _again(table: pa.Table, first: int, last: int, each: int) -> pa.Table:
    """The rows of the points `first` up to `last`, `each` of every point, those of a table again and again."""
    rows = np.repeat(np.arange(first, last), each)
    found = table.take(pa.array(np.arange(len(rows)) % len(table)))
    found = found.set_column(found.schema.get_field_index("point"), "point", pa.array(rows).cast(pa.string()))
    if "row" in found.column_names:
        found = found.set_column(found.schema.get_field_index("row"), "row", pa.array(rows))
    return found


def _written(out: RunFolder, number: int, tables: dict[str, pa.Table]) -> list[ShardFile]:
    """The files of a shard, which the manifest gets with the last: a run would write it with each."""
    files = []
    for kind in ("points", "scores"):
        sink = pa.BufferOutputStream()
        pq.write_table(tables[kind].cast(SHARD_KINDS[kind]), sink, compression="zstd", write_page_checksum=True)
        content = sink.getvalue().to_pybytes()
        (out.path / file_name(kind, number)).write_bytes(content)
        files.append(ShardFile.of(content))
    return files


def commands(lengths: list[int]) -> None:
    """What each command takes of runs of these lengths."""
    rows: list[list[object]] = []
    for length in lengths:
        with tempfile.TemporaryDirectory() as place:
            simulate(length, Path(place))
            rows += [[f"{length:,}", name, *_asked(words, place)] for name, words in COMMANDS.items()]
    print_table(["rows", "command", "peak MiB", "seconds"], rows)


PEAK = """
import sys
from brittle.cli.commands import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status, open("peak", "w") as peak:
    peak.write(next(line for line in status if line.startswith("VmHWM")).split()[1])
sys.exit(code)
"""
"""A command, which writes its own peak: `ru_maxrss` is that of the process that started it, too."""


def _asked(words: list[str], place: str) -> tuple[float, float]:
    """Peak memory in MiB and seconds of a command, in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-c", PEAK, *words]
    subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return int((Path(place) / "peak").read_text()) / 1024, time.perf_counter() - began


def main(arguments: list[str]) -> None:
    """Every length in a process of its own, or one length in this."""
    if arguments[:1] == ["--one"]:
        measure(int(arguments[1]))
        return
    if arguments[:1] == ["--commands"]:
        commands(list(map(int, arguments[1:])) or list(LENGTHS))
        return
    rows: list[list[object]] = []
    first: tuple[float, float] | None = None
    for length in map(int, arguments or LENGTHS):
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(length)], stdout=subprocess.PIPE, text=True, check=True
        )
        peak, seconds = map(float, done.stdout.split())
        peak -= length * SIDE * SIDE / 2**20
        first = first or (peak, seconds / length)
        rows.append([f"{length:,}", peak, peak / first[0], 1e6 * seconds / length, seconds / length / first[1]])
    print_table(["rows", "peak MiB without the file", "ratio", "microseconds a row", "ratio"], rows)


if __name__ == "__main__":
    main(sys.argv[1:])
