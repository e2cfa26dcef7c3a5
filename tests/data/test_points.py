"""Laws of points: every format gives the same points, in every batch size and part."""

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

from brittle.data import Points
from brittle.data.formats import FORMATS
from brittle.estimate import Status

ON_DISK = READERS[1:]
each_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
each_on_disk = pytest.mark.parametrize("reader", ON_DISK, ids=lambda reader: reader.__name__)


@each_reader
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 3.0)])
def test_pixels_are_mapped_to_the_bounds(reader: Reader, bounds: tuple[float, float], tmp_path: Path) -> None:
    pixels = inputs(reader(tmp_path, LEVELS, LABELS, bounds=bounds))
    low, high = bounds
    expected = (low + (high - low) * torch.from_numpy(LEVELS).double() / 255).float()
    assert pixels.dtype == torch.float32
    assert torch.equal(pixels, expected)


@each_reader
def test_batches_of_any_size_and_part_hold_the_same_points(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    full_batch = only(points)
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
        assert [len(batch) for batch in batches] == [min(size, count - offset) for offset in range(0, count, size)]
        for name in ("rows", "ids", "labels", "status", "detail", "images"):
            assert sum((tuple(getattr(batch, name)) for batch in batches), ()) == tuple(getattr(full_batch, name))[part]
        if batches:
            assert torch.equal(torch.cat([batch.inputs for batch in batches]), full_batch.inputs[part])
    refused("parameter", "at least 1; found 0", lambda: list(points.batches(0)))


@each_reader
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
    thumbnails = [np.asarray(Image.open(io.BytesIO(png or b""))) for png in batch.images or ()]
    assert np.array_equal(np.stack(thumbnails), LEVELS[:, 0])


@each_on_disk
def test_parameters_out_of_range_are_refused(reader: Reader, tmp_path: Path) -> None:
    for options in ({"limit": -1}, {"limit": 0}, {"bounds": (1.0, 1.0)}):
        refused("parameter", "found", reader, tmp_path, LEVELS, LABELS, **options)


@pytest.mark.parametrize("reader", [from_memory, from_npz, from_parquet, from_idx], ids=lambda reader: reader.__name__)
def test_data_without_points_are_refused(reader: Reader, tmp_path: Path) -> None:
    refused("empty_dataset", "holds no", reader, tmp_path, LEVELS[:0], ())


@each_reader
def test_the_record_states_the_origin_of_points(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    provenance = reader(tmp_path / "a", LEVELS, LABELS).provenance
    reversed_provenance = reader(tmp_path / "b", LEVELS[::-1], LABELS).provenance
    assert json.loads(json.dumps(provenance, allow_nan=False)) == provenance
    assert {"format", "path", "split", "sha256", "points", "limit"} <= set(provenance)
    assert provenance["points"] == COUNT
    assert len(provenance["sha256"]) == 64
    assert provenance["sha256"] != reversed_provenance["sha256"]
    assert provenance["format"] in {"memory", *FORMATS}


@each_on_disk
def test_a_limit_keeps_the_first(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS, limit=3)
    batch = only(points)
    assert len(points) == len(batch) == points.provenance["points"] == points.provenance["limit"] == 3
    assert points.labels == LABELS[:3]
    assert torch.equal(batch.inputs, inputs(reader(tmp_path, LEVELS, LABELS))[:3])
