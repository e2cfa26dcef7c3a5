"""What runs on a node of a cluster: an actor that holds one worker process and asks it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brittle.errors import BrittleError, ModelError
from brittle.run.workers.base import Expected
from brittle.run.workers.poison import begin, whole
from brittle.run.workers.service import error_content
from brittle.run.workers.worker import Worker, command_of, environment_of
from brittle.store.folder import PackedShard


class Station:
    """One worker on a node.

    The process is a child of the actor, so a row that kills it is found there, and the node's GPUs that Ray gave to
    the actor are those that it sees.
    """

    def __init__(self, arguments: Sequence[str], directory: str, threads: str, expected: Expected | None) -> None:
        self._directory = Path(directory)
        place = f"the node {socket.gethostname()}"
        self._worker = Worker(command_of(arguments), environment_of(threads), expected, self._directory, place)

    def start(self) -> dict[str, object]:
        """Start the process; gives nothing, or the error."""
        try:
            if not self._directory.is_dir():
                raise ModelError("worker_differs", f"{self._worker.place} has no folder {self._directory} to work in")
            begin(self._worker)
        except BrittleError as error:
            return error_content(error)
        return {}

    def shard(self, number: int) -> PackedShard | dict[str, Any]:
        """A shard, or the error."""
        try:
            return whole(self._worker, number)
        except BrittleError as error:
            return error_content(error)
