"""Other processes that compute the shards of a run: on this machine (`crew`), or on a Ray cluster (`cluster`).

A worker is the same command in another process, so nothing is sent to it but shard numbers. It opens the same model and
the same data, says what it has opened, computes a shard and hands its files over. Only the process that holds the run
folder writes there, so the table is the same bytes whoever computed it, in whatever order.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

from brittle.store.folder import PackedShard


class Workers(Protocol):
    """Processes that share the shards of a run."""

    def shards(self, numbers: Sequence[int], record: Mapping[str, Any] | None = None) -> Generator[PackedShard]:
        """The shards with these numbers, in the order in which they are done.

        Args:
            numbers: of the shards that are missing.
            record: the record of the run, from `describe`; a worker that opened something else is refused. None takes
                any.

        Raises:
            BrittleError: what a worker raised, or that workers die whatever they compute.
        """
        ...
