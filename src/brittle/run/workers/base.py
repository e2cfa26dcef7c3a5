"""What a run asks of other processes that compute its shards."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from brittle.store.folder import PackedShard
from brittle.store.record import RunRecord


@dataclass(frozen=True)
class Expected:
    """What a worker must have opened.

    Attributes:
        record: the record of the run.
        reference: the logits of its first points, as `brittle.doctor.reference.Reference.content` gives them.
    """

    record: RunRecord
    reference: Mapping[str, Any]


class Workers(Protocol):
    """Processes that share the shards of a run."""

    def shards(self, numbers: Sequence[int], expected: Expected | None = None) -> Generator[PackedShard]:
        """The shards with these numbers, in the order in which they are done.

        Args:
            numbers: of the shards that are missing.
            expected: what a worker must have opened; one that opened something else is refused. None takes any.

        Raises:
            BrittleError: what a worker raised, or that workers die whatever they compute.
        """
        ...
