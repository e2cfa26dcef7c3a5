"""Options of a run: how it goes, and which processes compute."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from brittle.cli.common import LENGTH, OUTPUT, Flag, say
from brittle.cli.options import BatchSize, Quiet
from brittle.errors import UsageError
from brittle.estimate import CONFIDENCE

if TYPE_CHECKING:
    from brittle.run.workers import Workers


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run goes.

    Attributes:
        confidence: Confidence of all intervals.
        expected_accuracy: Stop when the accuracy on the first 1,000 labelled points is surely below.
        allow_row_errors: Exit with 0 even where some points got no number; where more than 10 of the first
            1,000 get none the run stops.
        skip_doctor: Leave out the checks before the run; the record says so.
        resume: Go on with the run in OUT, if there is one: what is there and whole is kept,
            and a finished run costs nothing but what --until or --precision ask beyond it.
        config: A TOML file with options by their names; those on the command line go before.
    """

    confidence: float = CONFIDENCE
    batch_size: BatchSize = "auto"
    expected_accuracy: float | None = None
    allow_row_errors: Annotated[bool, Flag] = False
    skip_doctor: Annotated[bool, Flag] = False
    resume: Annotated[bool, Flag] = False
    quiet: Quiet = False
    config: Path | None = None  # its options are words of the command line before this is read

    def check_folder(self, out: Path) -> None:
        """Raise where the run folder cannot be written or holds another run."""
        from brittle.store.folder import check_free, check_writable

        check_writable(out) if self.resume else check_free(out)


@Parameter(name="*", group=LENGTH)
@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Which processes compute.

    Attributes:
        workers: Processes that compute side by side, with one thread each; by default one process with all threads, or
            as many as the cluster has room for.
        cluster: Let them run on a Ray cluster: local (one of this machine, for this run), auto (the one that this
            machine belongs to), or host:port of its head.
        insecure_cluster: Use a cluster though it asks nobody for a token.
        as_worker: What such a process is started with.
    """

    workers: int | None = None
    cluster: str | None = None
    insecure_cluster: Annotated[bool, Flag] = False
    as_worker: Annotated[bool, Parameter(show=False, negative=())] = False

    def crew(self, device: str | None, quiet: bool) -> Workers | None:
        """The processes, which are started by the command that is running; None for this one alone."""
        from brittle.run.workers.cluster import Cluster
        from brittle.run.workers.crew import Crew
        from brittle.run.workers.worker import command_of

        arguments = sys.argv[1:]
        if self.cluster is None:
            if self.insecure_cluster:
                raise UsageError("--insecure-cluster is for --cluster")
            return None if self.workers is None else Crew(command_of(arguments), self.workers)
        if device is not None and device.startswith("cuda:"):
            raise UsageError(f"each worker of a cluster sees its own GPUs alone: give --device cuda, not {device}")
        gpus = float(device == "cuda")
        cluster = Cluster(self.cluster, arguments, partial(say, quiet), self.workers, gpus, self.insecure_cluster)
        cluster.prepare()
        return cluster
