"""Runs a study: each step once, kept whole; then its results, and how long the steps took."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pyarrow as pa

from studies.study import Setting, Step, Study, Tables
from studies.tables import TIMES, read_tables, write_tables

IDENTITY, SECONDS = "identity.json", "seconds.json"


def run_study(study: Study, setting: Setting, out: Path) -> Tables:
    """Do what is not done yet of a study; gives its results, which lie in `out/NAME/results`.

    A step is done where its folder holds its identity: that file is written before the folder gets its name.
    """
    kept: dict[str, Tables] = {}
    seconds: dict[str, float] = {}
    steps, answer = study.steps(setting), None
    while True:
        try:
            step = next(steps) if answer is None else steps.send(answer)
        except StopIteration:
            break
        folder = out / study.name / "steps" / step.name
        if not _done(folder, step):
            print(f"{study.name}: {step.name}", flush=True)
            _do(folder, step)
        answer = kept[step.name] = read_tables(folder)
        seconds[step.name] = json.loads((folder / SECONDS).read_text(encoding="utf-8"))
    results = dict(study.summarise(kept, setting.seed))
    results[TIMES] = pa.table({"step": [*seconds], "seconds": [*seconds.values()]})
    write_tables(out / study.name / "results", results)
    return results


def _identity(step: Step) -> str:
    return json.dumps(step.identity, sort_keys=True, indent=1) + "\n"


def _done(folder: Path, step: Step) -> bool:
    path = folder / IDENTITY
    return path.is_file() and path.read_text(encoding="utf-8") == _identity(step)


def _do(folder: Path, step: Step) -> None:
    part = folder.with_name(f"{folder.name}.part")
    for old in (part, folder):
        shutil.rmtree(old, ignore_errors=True)
    started = time.perf_counter()
    tables = step.run()
    taken = time.perf_counter() - started
    write_tables(part, tables)
    (part / SECONDS).write_text(json.dumps(taken), encoding="utf-8")
    (part / IDENTITY).write_text(_identity(step), encoding="utf-8")
    part.rename(folder)
