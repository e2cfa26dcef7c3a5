"""Options of a run: how it goes, and which processes compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cyclopts import Parameter

from brittle.cli.common import LENGTH, OUTPUT, BatchSize, Config, Quiet
from brittle.errors import UsageError
from brittle.estimate import CONFIDENCE
from brittle.registry import load

if TYPE_CHECKING:
    from brittle.run.job import Opening, Workers


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run.

    Attributes:
        confidence: Confidence of all intervals.
        expected_accuracy: Stop when the accuracy on the first 1,000 labelled points is surely below.
        skip_doctor: Leave out the checks before the run; the record says so.
        resume: Go on with the run in OUT, where one was begun.
        mirror: A second place of the run, such as s3://bucket/run, which gets each file once it is whole in OUT; with
            --resume a run goes on from either.
    """

    confidence: float = CONFIDENCE
    batch_size: BatchSize = None
    expected_accuracy: float | None = None
    skip_doctor: bool = False
    resume: bool = False
    mirror: str | None = None
    quiet: Quiet = False
    config: Config = None  # read when the command line is


@Parameter(name="*", group=LENGTH)
@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Options of the processes.

    Attributes:
        workers: Processes that compute side by side, with one thread each; by default one process with all threads, or
            as many as the cluster has room for.
        cluster: Let them run on a Ray cluster: auto (the one that this machine belongs to), or host:port of its head.
        part: Compute one part of so many, such as 3/8, into a run folder of its own; brittle join puts them together.
    """

    workers: int | None = None
    cluster: str | None = None
    part: str | None = None

    @property
    def which(self) -> tuple[int, int] | None:
        """The number of the part, and of how many; None for the whole."""
        if self.part is None:
            return None
        number, _, count = self.part.partition("/")
        short = number.isdecimal() and count.isdecimal() and len(self.part) < 20
        if not (short and 1 <= int(number) <= int(count)):
            raise UsageError(f"--part takes one of so many, such as 3/8; found {self.part!r:.40}")
        return int(number), int(count)

    def processes(self, opening: Opening, device: str | None) -> Workers | None:
        """Start the processes, each of which opens the run by `opening`; None for this process alone."""
        if self.cluster is None:
            if self.workers is None:
                return None
            return load("workers", "processes")(self.workers, opening)
        if device is not None and device.startswith("cuda:"):
            raise UsageError(f"each worker of a cluster sees its own GPUs alone: give --device cuda, not {device}")
        cluster = load("workers", "cluster")(self.cluster, opening, self.workers, int(device == "cuda"))
        cluster.prepare()
        return cluster
