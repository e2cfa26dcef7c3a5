"""Time of a row by the rows of a pass, and the number of rows that brittle sends by default.

    python research/benchmarks/batches.py [--threads 2] [--networks FOLDER ...]

A folder of `--networks` holds `model.pt2`, an exported program of inputs in [0, 1], and `meta.json` with its
`input_chw`. The others have random weights.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from overhead import CASES
from timing import interleaved, print_table
from torch import Tensor

import brittle
from brittle.measure.forward import look

ROWS = (16, 64, 256, 1024, 4096)
NETWORKS = ("digits", "mnist", "small CNN", "ViT-tiny", "ResNet-18")
NUMBERS = 12_000_000
"""Input numbers of all timed rows, `ROWS[-1]` rows at most."""


def passes(forward: Callable[[Tensor], Tensor], inputs: Tensor, rows: int) -> Callable[[], object]:
    """Return a function that sends all `inputs` in passes of `rows`."""
    return lambda: [forward(part) for part in inputs.split(rows)]


def exported(folder: Path) -> tuple[Any, tuple[int, ...]]:
    """Return the program in a folder and the shape of one input."""
    shape = tuple(json.loads((folder / "meta.json").read_text())["input_chw"])
    return torch.export.load(folder / "model.pt2").module(), shape


def main() -> None:
    """Time all networks."""
    parser = argparse.ArgumentParser(description="Milliseconds of a row by the rows of a pass.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--networks", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cases = [(name, CASES[name]().forward, CASES[name]().shape) for name in NETWORKS]
    cases += [(folder.name, *exported(folder)) for folder in arguments.networks]
    rows = []
    for name, forward, shape in cases:
        inputs = torch.rand(min(ROWS[-1], NUMBERS // torch.Size(shape).numel()), *shape)
        default = look(brittle.Classifier(forward), inputs[:32], [str(row) for row in range(32)], 0).rows
        with torch.no_grad():
            times = interleaved([passes(forward, inputs, size) for size in (*ROWS, default)], 2)
        rows.append([name, *(1000 * seconds / len(inputs) for seconds in times), default])
    print_table(["network", *(f"{size} rows" for size in ROWS), "default", "of rows"], rows)


if __name__ == "__main__":
    main()
