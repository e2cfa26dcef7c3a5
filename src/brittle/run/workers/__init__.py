"""Other processes that compute the shards of a run: on this machine (`crew`), or on a Ray cluster (`cluster`).

A worker is the same command in another process, so nothing is sent to it but shard numbers. It opens the same model and
the same data, says what it has opened, computes a shard and hands its files over. Only the process that holds the run
folder writes there, so the table is the same bytes in any order and by any process.
"""

from brittle.run.workers.base import Expected, Workers

__all__ = ["Expected", "Workers"]
