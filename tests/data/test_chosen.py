"""Laws of chosen points, for every format: the same points, order and numbers as among all; who is missing is named."""

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
    """Points of somebody else, which tell their ids in batches alone; `read` lists the rows that were asked for."""

    own: Any
    read: list[int]
    provenance: dict[str, Any]
    class_names: None = None

    @property
    def labels(self) -> tuple[int, ...]:
        return self.own.labels

    def __len__(self) -> int:
        return len(self.own)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        for batch in self.own.batches(size, start, stop):
            self.read.extend(batch.rows)
            yield batch


def foreign(count: int, ids: list[str] | None = None) -> Foreign:
    own = array_points(torch.rand(count, 3), torch.arange(count) % 3, ids)
    return Foreign(own, [], {"format": "foreign", "path": None, "sha256": "0" * 64, "points": count})


def from_foreign(path: Path, levels: Levels, labels: Labels) -> Points:
    own = array_points(levels.astype(np.float32) / 255, np.array(labels), [f"a {row}" for row in range(len(levels))])
    return Foreign(own, [], {"format": "foreign", "path": None, "sha256": "0" * 64, "points": len(levels)})


each = pytest.mark.parametrize("reader", [*READERS, from_foreign], ids=lambda reader: reader.__name__)


def picked(batch: Batch, rows: list[int]) -> dict[str, Any]:
    """What a batch over all points says of some rows; inputs apart."""
    own = {one.name for one in fields(batch)} - {"inputs", "bounds"}
    values = {name: getattr(batch, name) for name in (*own, "images")}
    return {name: None if value is None else tuple(value[row] for row in rows) for name, value in values.items()}


@each
def test_chosen_points_are_those_of_the_data_in_their_order(reader: Reader, tmp_path: Path) -> None:
    """In batches of any size and part, with all that is said of them among all."""
    points = reader(tmp_path, LEVELS, LABELS)
    whole = only(points)
    for rows in ([6], [1, 2, 5], [0, 3, 6], list(range(COUNT))):
        ids = [whole.ids[row] for row in reversed(rows)]
        chosen = choose_points(points, (*ids, ids[0]))
        assert isinstance(chosen, Points)
        assert (len(chosen), chosen.class_names) == (len(rows), points.class_names)
        assert chosen.labels == tuple(LABELS[row] for row in rows)
        for size, start, stop in ((1, 0, None), (2, 1, None), (3, 0, 2), (COUNT, 0, 99), (1, 2, 2)):
            batches, part = list(chosen.batches(size, start, stop)), rows[start:stop]
            assert [len(batch) for batch in batches] == [len(part[at : at + size]) for at in range(0, len(part), size)]
            for at, batch in enumerate(batches):
                inside = part[at * size : (at + 1) * size]
                assert picked(batch, list(range(len(batch)))) == picked(whole, inside)
                assert torch.equal(batch.inputs, whole.inputs[inside])
        found = chosen.provenance
        digest = hashlib.sha256(json.dumps(sorted(ids, key=whole.ids.index)).encode()).hexdigest()
        assert found == points.provenance | {"points": len(rows), "chosen_from": COUNT, "ids_sha256": digest}


@each
def test_the_numbers_are_those_of_a_run_over_all(reader: Reader, tmp_path: Path) -> None:
    """Counts are equal: a point has the same noisy copies. The rest may be rounded otherwise in another batch."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(HEIGHT * WIDTH, 3))
    classifier, scores = (
        brittle.Classifier(network),
        [MonteCarlo(0.3, draws=40, limit=None), Moments(0.3, draws=10), Softmax()],
    )
    points = reader(tmp_path, LEVELS, LABELS)
    ids = [only(points).ids[row] for row in (1, 4, 6)]
    runs = [brittle.score(classifier, data, scores, skip_doctor=True) for data in (points, choose_points(points, ids))]
    whole, some = (run.frame(whole=True).set_index("point") for run in runs)
    assert some.index.tolist() == ids
    counted, others = (runs[0].columns[0].rows["value"], [one.label for one in runs[0].columns[1:]])
    assert 0 < counted.sum() < len(counted)
    assert runs[1].columns[0].rows["value"].tolist() == counted.loc[ids].tolist()
    for label in others:
        assert runs[1][label].value.to_numpy() == pytest.approx(runs[0][label].value.loc[ids].to_numpy(), rel=1e-4)
    same = ["row", "name", "label", "predicted", "correct"]
    assert some[same].equals(whole.loc[ids, same])


@each
def test_a_sample_is_drawn_by_chance_and_every_class_keeps_its_share(reader: Reader, tmp_path: Path) -> None:
    """The same points for the same seed, each with what is said of it among all."""
    points = reader(tmp_path, LEVELS, LABELS)
    whole, counts = only(points), np.bincount(LABELS)
    drawn = [sample_points(points, 4, seed) for seed in range(30)]
    assert len({tuple(only(some).rows) for some in drawn}) > 10
    for some in drawn:
        batch = only(some)
        assert (len(some), batch.rows) == (4, tuple(sorted({*batch.rows})))
        assert picked(batch, [0, 1, 2, 3]) == picked(whole, list(batch.rows))
        expected = 4 * counts / COUNT
        assert (np.abs(np.bincount(some.labels or (), minlength=len(counts)) - expected) < 1).all()
    assert only(sample_points(points, 4, 7)).rows == only(drawn[7]).rows
    assert drawn[7].provenance == points.provenance | {"points": 4, "chosen_from": COUNT, "sample_seed": 7}
    assert sample_points(points, COUNT) is points


def test_every_point_is_as_likely_to_be_drawn() -> None:
    """Of 5,000 samples of 3 of 10 points each holds a point with chance 0.3; a false failure has a chance of 1e-6."""
    points = array_points(torch.rand(10, 2), [0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
    held = np.bincount([row for seed in range(5000) for row in only(sample_points(points, 3, seed)).rows], minlength=10)
    assert (np.abs(held / 5000 - 0.3) < 5.3 * (0.3 * 0.7 / 5000) ** 0.5).all()


def test_a_sample_of_chosen_points_is_no_sample_of_the_data() -> None:
    chosen = choose_points(foreign(20), [str(row) for row in range(10)])
    drawn = [sample_points(chosen, 3, seed).provenance for seed in range(6)]
    assert all(one["points"] == 3 and "sample_seed" not in one for one in drawn)
    assert len({one["ids_sha256"] for one in drawn}) > 3
    again = choose_points(sample_points(foreign(20), 10), [only(sample_points(foreign(20), 10)).ids[0]])
    assert "sample_seed" not in again.provenance


@pytest.mark.parametrize("given", [(0,), (3, -1), (2.0,), (True,)])
def test_what_is_no_size_of_a_sample_is_refused(given: tuple[Any, ...]) -> None:
    refused("parameter", "at least 1 point", sample_points, foreign(5), *given)


@pytest.mark.parametrize("ids", [[], "3", 3, [3], [None]])
def test_what_is_no_list_of_ids_is_refused(ids: Any) -> None:
    refused("parameter", "expected a list of ids", choose_points, foreign(5), ids)


def test_what_lies_between_chosen_points_is_not_read() -> None:
    points = foreign(1000)
    chosen = choose_points(points, ["2", "3", "8", "500", "999"])
    points.read.clear()
    assert [batch.ids for batch in chosen.batches(4)] == [("2", "3", "8", "500"), ("999",)]
    assert points.read == [2, 3, 8, 500, 999]


def test_data_that_change_are_not_read_as_if_they_had_not() -> None:
    """Another id would get another noise under the name of the point that was asked for."""
    chosen = choose_points(foreign(9), ["2", "5"])
    for other, row in ((foreign(9, list("876543210")), 2), (foreign(4), 5)):
        refused("dataset", f"row {row} is gone, or has another id", list, replace(chosen, points=other).batches(4))


@each
def test_ids_that_are_not_there_are_counted_and_named(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    there = only(points).ids
    sentence = r"6 of 7 ids are not in .*: 'x', 'y', 'z', 'v', 'w' and 1 more; its 7 ids, .*, look like " + repr(
        there[0]
    )
    refused("parameter", sentence, choose_points, points, ["x", "y", there[2], "z", "v", "w", "x", ""])
