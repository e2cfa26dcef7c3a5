"""Laws of chosen points, for every format: same points, order and numbers as in the full data; missing ids are
named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import COUNT, HEIGHT, LABELS, LEVELS, READERS, WIDTH, Labels, Levels, Reader, only, refused

import brittle
from brittle.data import Batch, Points, array_points, choose_points, sample_points
from brittle.scores import Moments, MonteCarlo, Softmax


@dataclass(frozen=True)
class Foreign:
    """Points of another library, which give their ids in batches alone; `read` lists the rows that were requested."""

    points: Any
    read: list[int]
    provenance: dict[str, Any]
    class_names: None = None

    @property
    def labels(self) -> tuple[int, ...]:
        return self.points.labels

    def __len__(self) -> int:
        return len(self.points)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        for batch in self.points.batches(size, start, stop):
            self.read.extend(batch.rows)
            yield batch


def foreign(count: int, ids: list[str] | None = None) -> Foreign:
    points = array_points(torch.rand(count, 3), torch.arange(count) % 3, ids)
    return Foreign(points, [], {"format": "foreign", "path": None, "sha256": "0" * 64, "points": count})


def from_foreign(path: Path, levels: Levels, labels: Labels) -> Points:
    points = array_points(levels.astype(np.float32) / 255, np.array(labels), [f"a {row}" for row in range(len(levels))])
    return Foreign(points, [], {"format": "foreign", "path": None, "sha256": "0" * 64, "points": len(levels)})


each_reader = pytest.mark.parametrize("reader", [*READERS, from_foreign], ids=lambda reader: reader.__name__)


def values_at(batch: Batch, rows: list[int]) -> dict[str, Any]:
    """Return the fields of a batch, without its inputs, at some rows."""
    field_names = {field.name for field in fields(batch)} - {"inputs", "bounds"}
    values = {name: getattr(batch, name) for name in (*field_names, "images")}
    return {name: None if value is None else tuple(value[row] for row in rows) for name, value in values.items()}


@each_reader
def test_chosen_points_are_those_of_the_data_in_their_order(reader: Reader, tmp_path: Path) -> None:
    """Batches of any size and part have the fields of the full batch."""
    points = reader(tmp_path, LEVELS, LABELS)
    full_batch = only(points)
    for rows in ([6], [1, 2, 5], [0, 3, 6], list(range(COUNT))):
        ids = [full_batch.ids[row] for row in reversed(rows)]
        chosen = choose_points(points, (*ids, ids[0]))
        assert isinstance(chosen, Points)
        assert (len(chosen), chosen.class_names) == (len(rows), points.class_names)
        assert chosen.labels == tuple(LABELS[row] for row in rows)
        for size, start, stop in ((1, 0, None), (2, 1, None), (3, 0, 2), (COUNT, 0, 99), (1, 2, 2)):
            batches, part = list(chosen.batches(size, start, stop)), rows[start:stop]
            assert [len(batch) for batch in batches] == [len(part[at : at + size]) for at in range(0, len(part), size)]
            for at, batch in enumerate(batches):
                batch_rows = part[at * size : (at + 1) * size]
                assert values_at(batch, list(range(len(batch)))) == values_at(full_batch, batch_rows)
                assert torch.equal(batch.inputs, full_batch.inputs[batch_rows])
        provenance = chosen.provenance
        digest = hashlib.sha256(json.dumps(sorted(ids, key=full_batch.ids.index)).encode()).hexdigest()
        assert provenance == points.provenance | {"points": len(rows), "chosen_from": COUNT, "ids_sha256": digest}


@each_reader
def test_chosen_points_get_the_numbers_of_a_full_run(reader: Reader, tmp_path: Path) -> None:
    """Counts are equal since a point keeps its noisy copies; other values may be rounded differently in another
    batch."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(HEIGHT * WIDTH, 3))
    classifier, scores = (
        brittle.Classifier(network),
        [MonteCarlo(0.3, draws=40, limit=None), Moments(0.3, draws=10), Softmax()],
    )
    points = reader(tmp_path, LEVELS, LABELS)
    ids = [only(points).ids[row] for row in (1, 4, 6)]
    runs = [brittle.score(classifier, data, scores, skip_doctor=True) for data in (points, choose_points(points, ids))]
    full_frame, chosen_frame = (run.frame(whole=True).set_index("point") for run in runs)
    assert chosen_frame.index.tolist() == ids
    flip_shares, labels = (runs[0].columns[0].rows["value"], [column.label for column in runs[0].columns[1:]])
    assert 0 < flip_shares.sum() < len(flip_shares)
    assert runs[1].columns[0].rows["value"].tolist() == flip_shares.loc[ids].tolist()
    for label in labels:
        assert runs[1][label].value.to_numpy() == pytest.approx(runs[0][label].value.loc[ids].to_numpy(), rel=1e-4)
    columns = ["row", "name", "label", "predicted", "correct"]
    assert chosen_frame[columns].equals(full_frame.loc[ids, columns])


@pytest.mark.every_other
@each_reader
def test_a_sample_is_random_and_keeps_the_class_shares(reader: Reader, tmp_path: Path) -> None:
    """The same seed draws the same points, each with its fields in the full batch."""
    points = reader(tmp_path, LEVELS, LABELS)
    full_batch, counts = only(points), np.bincount(LABELS)
    samples = [sample_points(points, 4, seed) for seed in range(30)]
    assert len({tuple(only(sample).rows) for sample in samples}) > 10
    for sample in samples:
        batch = only(sample)
        assert (len(sample), batch.rows) == (4, tuple(sorted({*batch.rows})))
        assert values_at(batch, [0, 1, 2, 3]) == values_at(full_batch, list(batch.rows))
        expected = 4 * counts / COUNT
        assert (np.abs(np.bincount(sample.labels or (), minlength=len(counts)) - expected) < 1).all()
    assert only(sample_points(points, 4, 7)).rows == only(samples[7]).rows
    assert samples[7].provenance == points.provenance | {"points": 4, "chosen_from": COUNT, "sample_seed": 7}
    assert sample_points(points, COUNT) is points


def test_every_point_is_as_likely_to_be_drawn() -> None:
    """A point is in a sample of 3 of 10 points with chance 0.3; 5,000 samples fail falsely with chance 1e-6."""
    points = array_points(torch.rand(10, 2), [0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
    counts = np.bincount(
        [row for seed in range(5000) for row in only(sample_points(points, 3, seed)).rows], minlength=10
    )
    assert (np.abs(counts / 5000 - 0.3) < 5.3 * (0.3 * 0.7 / 5000) ** 0.5).all()


def test_a_sample_of_chosen_points_is_no_sample_of_the_data() -> None:
    chosen = choose_points(foreign(20), [str(row) for row in range(10)])
    provenances = [sample_points(chosen, 3, seed).provenance for seed in range(6)]
    assert all(provenance["points"] == 3 and "sample_seed" not in provenance for provenance in provenances)
    assert len({provenance["ids_sha256"] for provenance in provenances}) > 3
    chosen_sample = choose_points(sample_points(foreign(20), 10), [only(sample_points(foreign(20), 10)).ids[0]])
    assert "sample_seed" not in chosen_sample.provenance


@pytest.mark.parametrize("arguments", [(0,), (3, -1), (2.0,), (True,)])
def test_invalid_sample_sizes_are_refused(arguments: tuple[Any, ...]) -> None:
    refused("parameter", "at least 1 point", sample_points, foreign(5), *arguments)


@pytest.mark.parametrize("ids", [[], "3", 3, [3], [None]])
def test_values_other_than_lists_of_ids_are_refused(ids: Any) -> None:
    refused("parameter", "expected a list of ids", choose_points, foreign(5), ids)


def test_rows_between_chosen_points_are_not_read() -> None:
    points = foreign(1000)
    chosen = choose_points(points, ["2", "3", "8", "500", "999"])
    points.read.clear()
    assert [batch.ids for batch in chosen.batches(4)] == [("2", "3", "8", "500"), ("999",)]
    assert points.read == [2, 3, 8, 500, 999]


def test_changed_data_are_refused() -> None:
    """Another id would get other noise under the name of the requested point."""
    chosen = choose_points(foreign(9), ["2", "5"])
    for data, row in ((foreign(9, list("876543210")), 2), (foreign(4), 5)):
        refused("dataset", f"row {row} is gone, or has another id", list, replace(chosen, points=data).batches(4))


@each_reader
def test_missing_ids_are_counted_and_named(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    ids = only(points).ids
    sentence = r"6 of 7 ids are not in .*: 'x', 'y', 'z', 'v', 'w' and 1 more; its 7 ids, .*, look like " + repr(ids[0])
    refused("parameter", sentence, choose_points, points, ["x", "y", ids[2], "z", "v", "w", "x", ""])
