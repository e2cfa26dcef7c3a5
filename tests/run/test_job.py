"""Shards: their size depends on the number of points alone."""

from __future__ import annotations

import pytest
from helpers.problems import inputs, small_classifier
from helpers.small_runs import COUNT

from brittle.data import array_points, choose_points
from brittle.run import make_job
from brittle.scores import Softmax


@pytest.mark.parametrize(
    ("points", "batch_size", "size"),
    [(10, None, 64), (200, 2, 64), (1000, None, 256), (1000, 14, 256), (5000, None, 1024)],
)
def test_few_points_are_divided_between_their_batches(points: int, batch_size: int | None, size: int) -> None:
    """Several processes can share them; the batches, and so the numbers, are those of one shard."""
    job = make_job(small_classifier(), inputs(points), [Softmax()], 0, batch_size, 0.99)
    assert job.shard_points == size
    batches = [batch.rows for number in range(job.shards) for batch in job.batches(number)]
    step, block = job.batch_points, max(256, size)
    assert batches == [
        tuple(range(start, min(start + step, end, points)))
        for end in range(block, points + block, block)
        for start in range(end - block, min(end, points), step)
    ]


def test_long_runs_have_larger_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", 4)
    for count, points, shards in ((1, 4, 1), (16, 4, 4), (24, 4, 6), (25, 8, 4), (70, 8, 9), (81, 12, 7)):
        job = make_job(small_classifier(), inputs(count), [Softmax()], 0, None, 0.99)
        assert (job.shard_points, job.shards) == (points, shards)
        rows = [row for number in range(shards) for batch in job.batches(number) for row in batch.rows]
        assert rows == list(range(count))


def test_a_lost_point_is_named_by_its_row_in_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers name a point that killed one of them by its row in the data, chosen or not."""
    monkeypatch.setattr("brittle.run.job.FEW_SHARDS", 1)
    points = choose_points(array_points(inputs(COUNT)), ["3", "9", "15", "17", "18"])
    job = make_job(small_classifier(), points, [Softmax()], 0, 4, 0.99)
    batches: list[tuple[int, ...]] = []
    shard = job.shard(0, {15: "it died"}, lambda batch: batches.append(batch.rows))
    assert batches == [(3, 9), (15, 17), (18,)]
    status = dict(
        zip(shard.tables["points"]["row"].to_pylist(), shard.tables["points"]["status"].to_pylist(), strict=True)
    )
    assert status == {3: "ok", 9: "ok", 15: "worker_died", 17: "ok", 18: "ok"}
