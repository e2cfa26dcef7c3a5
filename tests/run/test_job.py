"""Shards: their size depends on the number of points alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.problems import inputs, small_classifier
from helpers.small_runs import COUNT, labels, run

from brittle.data import array_points, choose_points
from brittle.run import make_job
from brittle.scores import Softmax


def test_shards_do_not_depend_on_the_batch_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", 8)
    lengths = []
    for size in (2, 7, 100):
        table = run(inputs(COUNT), labels(), out=tmp_path / str(size), scores=[Softmax()], batch_size=size)
        assert table.points.column("point").to_pylist() == [str(number) for number in range(COUNT)]
        lengths.append(sorted(path.name for path in (tmp_path / str(size)).glob("*.parquet")))
    assert lengths[0] == lengths[1] == lengths[2]
    assert len(lengths[0]) == 2 * 3


def test_long_runs_have_larger_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", 4)
    monkeypatch.setattr("brittle.run.job.MOST_SHARDS", 3)
    for count, points, shards in ((1, 4, 1), (12, 4, 3), (13, 8, 2), (24, 8, 3), (25, 12, 3)):
        job = make_job(small_classifier(), inputs(count), [Softmax()], 0, None, 0.99)
        assert (job.shard_points, job.shards) == (points, shards)
        rows = [row for number in range(shards) for batch in job.batches(number) for row in batch.rows]
        assert rows == list(range(count))


def test_a_point_that_is_lost_is_known_by_its_row_among_all() -> None:
    """Workers name a point that killed one by its row in the data, chosen or not."""
    points = choose_points(array_points(inputs(COUNT)), ["3", "9", "15", "17", "18"])
    job = make_job(small_classifier(), points, [Softmax()], 0, 4, 0.99)
    begun: list[tuple[int, ...]] = []
    shard = job.shard(0, {15: "it died"}, lambda batch: begun.append(batch.rows))
    assert begun == [(3, 9), (15, 17), (18,)]
    status = dict(
        zip(shard.tables["points"]["row"].to_pylist(), shard.tables["points"]["status"].to_pylist(), strict=True)
    )
    assert status == {3: "ok", 9: "ok", 15: "worker_died", 17: "ok", 18: "ok"}
