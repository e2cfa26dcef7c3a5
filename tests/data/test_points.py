"""Laws of points: the same ones come out of every format, in every batch size and part."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.data_files import (
    CLASSES,
    COUNT,
    LABELS,
    LEVELS,
    READERS,
    Reader,
    from_idx,
    from_memory,
    from_npz,
    from_parquet,
    inputs,
    only,
    refused,
)
from PIL import Image

from brittle.data import FORMATS, Points
from brittle.estimate import Status

ON_DISK = READERS[1:]
each = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
each_on_disk = pytest.mark.parametrize("reader", ON_DISK, ids=lambda reader: reader.__name__)


@each
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 3.0)])
def test_pixels_are_mapped_to_the_bounds(reader: Reader, bounds: tuple[float, float], tmp_path: Path) -> None:
    found = inputs(reader(tmp_path, LEVELS, LABELS, bounds=bounds))
    low, high = bounds
    expected = (low + (high - low) * torch.from_numpy(LEVELS).double() / 255).float()
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


@each
def test_a_part_in_batches_of_any_size_is_that_part_of_the_whole(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    whole = only(points)
    assert isinstance(points, Points)
    assert len(points) == COUNT
    for size, start, stop in (
        (1, 0, None),
        (COUNT, 0, None),
        (2, 0, 3),
        (3, 2, None),
        (1, 4, 6),
        (9, 1, 99),
        (2, 5, 5),
    ):
        batches, part = list(points.batches(size, start, stop)), slice(start, stop)
        count = len(range(COUNT)[part])
        assert [len(batch) for batch in batches] == [min(size, count - first) for first in range(0, count, size)]
        for name in ("rows", "ids", "labels", "status", "detail", "images"):
            assert sum((tuple(getattr(batch, name)) for batch in batches), ()) == tuple(getattr(whole, name))[part]
        if batches:
            assert torch.equal(torch.cat([batch.inputs for batch in batches]), whole.inputs[part])
    refused("parameter", "at least 1; found 0", lambda: list(points.batches(0)))


@each
def test_points_are_numbered_labelled_and_drawn(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    batch = only(points)
    assert batch.rows == tuple(range(COUNT))
    assert len(set(batch.ids)) == COUNT
    assert batch.labels == points.labels == LABELS
    assert points.class_names in (CLASSES, None)
    assert (points.class_names is None) == (reader is from_idx)
    assert set(batch.status) == {Status.OK}
    assert set(batch.detail) == {None}
    drawn = [np.asarray(Image.open(io.BytesIO(png or b""))) for png in batch.images or ()]
    assert np.array_equal(np.stack(drawn), LEVELS[:, 0])


@each_on_disk
def test_parameters_out_of_range(reader: Reader, tmp_path: Path) -> None:
    for options in ({"limit": -1}, {"limit": 0}, {"bounds": (1.0, 1.0)}):
        refused("parameter", "found", reader, tmp_path, LEVELS, LABELS, **options)


@pytest.mark.parametrize("reader", [from_memory, from_npz, from_parquet, from_idx], ids=lambda reader: reader.__name__)
def test_no_points(reader: Reader, tmp_path: Path) -> None:
    refused("empty_dataset", "holds no", reader, tmp_path, LEVELS[:0], ())


@each
def test_the_record_says_where_points_come_from(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = reader(tmp_path / "a", LEVELS, LABELS).provenance
    other = reader(tmp_path / "b", LEVELS[::-1], LABELS).provenance
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    assert {"format", "path", "split", "sha256", "points", "limit"} <= set(first)
    assert first["points"] == COUNT
    assert len(first["sha256"]) == 64
    assert first["sha256"] != other["sha256"]
    assert first["format"] in {"memory", *FORMATS}


@each_on_disk
def test_a_limit_keeps_the_first(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS, limit=3)
    batch = only(points)
    assert len(points) == len(batch) == points.provenance["points"] == points.provenance["limit"] == 3
    assert points.labels == LABELS[:3]
    assert torch.equal(batch.inputs, inputs(reader(tmp_path, LEVELS, LABELS))[:3])
