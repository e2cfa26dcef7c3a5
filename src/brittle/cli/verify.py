"""The command that reads a run again and names what is damaged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from brittle.cli.common import show
from brittle.errors import StorageError


def verify(run_folder: Annotated[Path, Parameter(name="run")]) -> int:
    """Read every shard of RUN again and print a line for each that is damaged.

    Size, digest, columns and page checksums must be those that were written. Files that the manifest does not name are
    listed, too; they do no harm.

    Parameters
    ----------
    run_folder
        A folder that `brittle score` wrote.
    """
    from brittle.store.reading import verify as verify_run
    from brittle.store.record import read_record

    faults = verify_run(run_folder)
    damaged = [fault for fault in faults if not fault.stray]
    for fault in faults:
        print(fault, file=sys.stderr if fault.stray else sys.stdout)
    if damaged:
        raise StorageError(
            "run_damaged",
            f"{len(damaged)} shard files of {run_folder} are damaged, beginning with {damaged[0].file}; score again "
            f"with --resume, which computes only what is lost, or get the files again",
        )
    finished = read_record(run_folder / "run.json").finished
    rest = "" if finished else "; the run has not finished, score --resume goes on with it"
    show(f"brittle: every shard of {run_folder} is what was written{rest}", sys.stderr)
    return 0
