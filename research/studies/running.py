"""Runs of studies: each step once, stored as a whole, by one of several parallel commands; then the results."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from filelock import FileLock, Timeout

from studies.networks import Network
from studies.study import Setting, Step, Steps, Study, Tables
from studies.tables import TIMES, read_tables, write_tables

IDENTITY, SECONDS = "identity.json", "seconds.json"


def measure_beside(studies: Iterable[Study], networks: Sequence[Network], setting: Setting, out: Path) -> None:
    """Measure every network in every study, but for those that another command is measuring.

    What they lack `run_study` waits for.
    """
    for study in studies:
        for network in study.of(networks):
            try:
                held = locked(study, network.name, out, wait=False).acquire()
            except Timeout:
                print(f"{study.name}: {network.name} is measured by another command", flush=True)
                continue
            with held:
                Kept().take(study.of_network(network, setting), study, out)


def run_study(study: Study, networks: Sequence[Network], setting: Setting, out: Path) -> Tables:
    """Do what is not done yet of a study; gives its results, which lie in `out/NAME/results` once all of it is done.

    What another command is measuring is waited for.
    """
    measured, place, networks = Kept(), out / study.name / "results", study.of(networks)
    shutil.rmtree(place, ignore_errors=True)
    for network in networks:
        with locked(study, network.name, out):
            measured.take(study.of_network(network, setting), study, out)
    with locked(study, "results", out):
        measured.take(answered(study.alone(setting)), study, out)
        measured.take(answered(study.after(setting, networks, measured.tables)), study, out)
        results = dict(study.summarise(measured.tables, setting.seed))
        results[TIMES] = pa.table({"step": [*measured.seconds], "seconds": [*measured.seconds.values()]})
        part = place.with_name("results.part")
        shutil.rmtree(part, ignore_errors=True)
        write_tables(part, results)
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    return results


def locked(study: Study, name: str, out: Path, wait: bool = True) -> FileLock:
    """Held by one command at a time; a killed one holds nothing.

    Raises:
        Timeout: on entering, where another command holds it and `wait` is false.
    """
    folder = out / study.name / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{name}.lock", timeout=-1 if wait else 0)


def answered(steps: Iterable[Step]) -> Steps:
    """Yield steps that do not use the tables of earlier ones."""
    for step in steps:  # noqa: UP028 - an iterator that is delegated to takes no answer
        yield step


@dataclass
class Kept:
    """Results of the steps.

    Attributes:
        tables: by the names of the steps.
        seconds: that they took.
    """

    tables: dict[str, Tables] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def take(self, steps: Steps, study: Study, out: Path) -> None:
        """Do the steps that are not done, and keep what all of them left."""
        answer = None
        while True:
            try:
                step = next(steps) if answer is None else steps.send(answer)
            except StopIteration:
                return
            folder = out / study.name / "steps" / step.name
            if not _done(folder, step):
                print(f"{study.name}: {step.name}", flush=True)
                _do(folder, step)
            answer = self.tables[step.name] = read_tables(folder)
            self.seconds[step.name] = json.loads((folder / SECONDS).read_text(encoding="utf-8"))


def _identity(step: Step) -> str:
    return json.dumps(step.identity, sort_keys=True, indent=1) + "\n"


def _done(folder: Path, step: Step) -> bool:
    """Return whether the folder holds the identity of the step, which is written before the folder gets its name."""
    path = folder / IDENTITY
    return path.is_file() and path.read_text(encoding="utf-8") == _identity(step)


def _do(folder: Path, step: Step) -> None:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    started = time.perf_counter()
    tables = step.run()
    duration = time.perf_counter() - started
    write_tables(part, tables)
    (part / SECONDS).write_text(json.dumps(duration), encoding="utf-8")
    (part / IDENTITY).write_text(_identity(step), encoding="utf-8")
    if folder.exists():
        (folder / IDENTITY).unlink(missing_ok=True)  # first: a folder that is half removed is not done
        shutil.rmtree(folder)
    part.rename(folder)
