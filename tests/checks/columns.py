"""Outcome of a column of each type, by the estimator that reads it and the source of the frame.

    OMP_NUM_THREADS=1 PYTHONPATH=tests python -m checks.columns [KIND]

Printed for each type, estimator and source: whether the scores agree with the estimator, how many rows are refused, or
the sentence. The exit code is 1 where a prediction differs, or another error than a `BrittleError` is raised.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from helpers.columns import CELLS, outcome


def main(kinds: list[str]) -> int:
    faults = 0
    with TemporaryDirectory() as folder:
        for cell in CELLS:
            if kinds and cell[0] not in kinds:
                continue
            try:
                line = outcome(*cell, Path(folder))
            except Exception as error:  # noqa: BLE001 - what it looks for
                faults += 1
                line = f"FAULT {type(error).__name__}: {error}"
            print(*(word.ljust(22) for word in cell), line[:200])
    print(f"{faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
