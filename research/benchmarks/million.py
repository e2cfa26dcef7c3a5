"""Memory and time of runs of growing length: both per row stay flat, because points are streamed.

    python research/benchmarks/million.py [ROWS ...]
    python research/benchmarks/million.py --commands [ROWS ...]

The first scores `logit_margin` and `max_probability` of random images of 8 x 8 pixels, read from an IDX file, with a
small network, each length in a separate process. Printed: peak memory without the pages of that file, which the
system can take back, time per row, and their ratios to the first. The second runs commands on a finished run: its
shards repeat those of a run of 256 points by `shrinkage` and `logit_margin` under other ids. Printed: peak memory and
seconds of each command.
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
    """Write an IDX file of random images."""
    generator = np.random.default_rng(0)
    with (folder / "test-images-idx3-ubyte").open("wb") as file:
        file.write(bytes([0, 0, 8, 3]) + struct.pack(">3I", rows, SIDE, SIDE))
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
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
"""Commands on two halves of a run, and then on the joined run."""


def simulate(rows: int, folder: Path) -> None:
    """Write two parts of a run of so many points to `run` and `other`."""
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
                start, end = number * size, min(rows, (number + 1) * size)
                tables = {
                    "points": _again(base.points, start, end, 1),
                    "scores": _again(base.scores, start, end, len(base.columns)),
                    "counterexamples": base.counterexamples,
                }
                account = Account.of(tables["points"], tables["scores"], 21 * (end - start))
                out.shards[number] = ShardEntry(number, account, *_written(out, number, tables))
            out.note(record)


def _again(table: pa.Table, start: int, last: int, per_point: int) -> pa.Table:
    """Repeat the rows of a table for the points `start` up to `last`, with `per_point` rows for each."""
    rows = np.repeat(np.arange(start, last), per_point)
    rows_of_points = table.take(pa.array(np.arange(len(rows)) % len(table)))
    rows_of_points = rows_of_points.set_column(
        rows_of_points.schema.get_field_index("point"), "point", pa.array(rows).cast(pa.string())
    )
    if "row" in rows_of_points.column_names:
        rows_of_points = rows_of_points.set_column(rows_of_points.schema.get_field_index("row"), "row", pa.array(rows))
    return rows_of_points


def _written(out: RunFolder, number: int, tables: dict[str, pa.Table]) -> list[ShardFile]:
    """Write the files of a shard; the manifest follows with the last, while a run would write it with each."""
    files = []
    for kind in ("points", "scores"):
        sink = pa.BufferOutputStream()
        pq.write_table(tables[kind].cast(SHARD_KINDS[kind]), sink, compression="zstd", write_page_checksum=True)
        content = sink.getvalue().to_pybytes()
        (out.path / file_name(kind, number)).write_bytes(content)
        files.append(ShardFile.of(content))
    return files


def commands(lengths: list[int]) -> None:
    """Measure each command on runs of these lengths."""
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
"""Program of a command that prints its own peak: `ru_maxrss` would include the process that started it."""


def _asked(words: list[str], place: str) -> tuple[float, float]:
    """Measure peak memory in MiB and seconds of a command in a separate process."""
    began = time.perf_counter()
    command = [sys.executable, "-c", PEAK, *words]
    subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return int((Path(place) / "peak").read_text()) / 1024, time.perf_counter() - began


def main(arguments: list[str]) -> None:
    """Measure every length in a separate process, or one length in this."""
    if arguments[:1] == ["--one"]:
        measure(int(arguments[1]))
        return
    if arguments[:1] == ["--commands"]:
        commands(list(map(int, arguments[1:])) or list(LENGTHS))
        return
    rows: list[list[object]] = []
    baseline: tuple[float, float] | None = None
    for length in map(int, arguments or LENGTHS):
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(length)], stdout=subprocess.PIPE, text=True, check=True
        )
        peak, seconds = map(float, done.stdout.split())
        peak -= length * SIDE * SIDE / 2**20
        baseline = baseline or (peak, seconds / length)
        rows.append([f"{length:,}", peak, peak / baseline[0], 1e6 * seconds / length, seconds / length / baseline[1]])
    print_table(["rows", "peak MiB without the file", "ratio", "microseconds a row", "ratio"], rows)


if __name__ == "__main__":
    main(sys.argv[1:])
