"""Shards of which some rows kill the process that computes them: the rows are found by bisection and left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from brittle.errors import ModelError
from brittle.run.workers.worker import Worker, WorkerDied
from brittle.store.folder import PackedShard

MOST_LOST = 16
"""Rows of one shard that may kill a worker; with more of them the run stops."""

MOST_STARTS = 10
"""How often a shard is begun again by workers that were killed before they began to compute."""


def begin(worker: Worker) -> None:
    """Start a worker, again where it was killed from outside.

    Raises:
        BrittleError: what the worker raised, or that it ends whenever it is started.
    """
    for left in reversed(range(MOST_STARTS)):
        try:
            return worker.start()
        except WorkerDied as death:
            if left and death.by_signal:
                continue
            where = f" on {worker.place}" if worker.place else ""
            said = "in the logs of Ray there (/tmp/ray/session_latest/logs)" if worker.place else "above"
            raise ModelError(
                "workers_die",
                f"a worker{where} ended with {death.how} before it opened the run; what it said is {said}",
            ) from death


def whole(worker: Worker, number: int, begun: Callable[[int], None] = lambda row: None) -> PackedShard:
    """A shard, without the rows that kill the worker: those get no number.

    Where a worker dies, its shard is computed again; where it dies of the same rows twice, the row that kills it is
    sought. A row that does not kill a worker alone keeps its number.

    Args:
        worker: computes it.
        number: of the shard.
        begun: called with the first row of each batch that is begun.

    Raises:
        WorkerDied: the worker was told to end.
        BrittleError: what the worker raised, or that it dies whatever is left out.
    """
    lost: dict[int, str] = {}
    deaths: dict[tuple[int, ...], int] = {}
    while True:
        try:
            shard = worker.ask(number, lost, None, begun)
            assert shard is not None
            return shard
        except WorkerDied as death:
            if worker.closed:
                raise
            deaths[death.rows] = deaths.get(death.rows, 0) + 1
            suspects = [row for row in death.rows if row not in lost]
            if deaths[death.rows] < (2 if death.rows or not death.by_signal else MOST_STARTS):
                continue  # killed from outside, perhaps: the same again
            if not suspects or len(lost) == MOST_LOST:
                raise ModelError(
                    "workers_die",
                    f"the processes that compute shard {number} end with {death.how}, {len(lost)} rows left out; run "
                    f"it in one process (without --workers, --cluster) to see why",
                ) from death
            row = _culprit(worker, number, lost, death.rows)
            if row is not None:
                lost[row] = f"the process that computed it ended with {death.how}"
            deaths.clear()


def _culprit(worker: Worker, number: int, lost: Mapping[int, str], batch: Sequence[int]) -> int | None:
    """The first row of a batch that kills the worker, found by leaving out halves of it; None where none does alone."""

    def kills(rows: Sequence[int]) -> bool:
        others = {row: "left out for a trial" for row in batch if row not in rows}
        for _ in range(MOST_STARTS):
            try:
                worker.ask(number, {**others, **lost}, batch[0], lambda row: None)
            except WorkerDied as death:
                if worker.closed:
                    raise
                if death.rows:
                    return True
            else:
                return False
        return False

    suspects = [row for row in batch if row not in lost]
    while len(suspects) > 1:
        half, rest = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
        suspects = half if kills(half) else rest
    return suspects[0] if kills(suspects) and kills(suspects) else None
