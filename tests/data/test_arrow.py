"""Tables in Parquet: columns and shards are recognised, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers.data_files import (
    BAD_IMAGES,
    CLASSES,
    COUNT,
    LABELS,
    LEVELS,
    class_columns,
    damaged,
    encode,
    image_table,
    inputs,
    only,
    refused,
)

from brittle.data import open_points
from brittle.estimate import Status

GOOD = [encode(levels) for levels in LEVELS]
PIXELS = torch.from_numpy(LEVELS).float() / 255
COARSE = tuple(label // 2 for label in LABELS)
NUMBERS = {
    "age": pa.array([1.5, 2.5, -3.0, 4.0, 5.0], pa.float32()),
    "rooms": pa.array([1, 2, 3, 4, 5], pa.int8()),
    "kind": pa.array([0, 1, 0, 1, 1]),
}
KINDS = {"kind": {"names": ["flat", "house"], "_type": "ClassLabel"}}


def parquet(path: Path, table: pa.Table, name: str = "test.parquet") -> Path:
    path.mkdir(exist_ok=True, parents=True)
    pq.write_table(table, path / name, row_group_size=3)
    return path / name


def numbers(**columns: Any) -> pa.Table:
    metadata = {"huggingface": json.dumps({"info": {"features": KINDS}})}
    return pa.table(NUMBERS | columns).replace_schema_metadata(metadata)


def test_a_table_of_images_holds_their_points(tmp_path: Path) -> None:
    extra = image_table(GOOD)["picture"]
    table = image_table(GOOD, LABELS, id=pa.array([f"p{row}" for row in range(COUNT)])).append_column("image", extra)
    points = open_points(parquet(tmp_path / "x", table))
    assert torch.equal(inputs(points, size=3), PIXELS)
    for start in range(COUNT):
        assert torch.equal(torch.cat([part.inputs for part in points.batches(2, start)]), PIXELS[start:])
    assert only(points).ids == tuple(f"p{row}" for row in range(COUNT))
    assert only(points).names == tuple(f"{row:03}.png" for row in range(COUNT))
    assert points.provenance["columns"] == ["image", "label", "id"]
    assert (points.labels, points.class_names) == (LABELS, CLASSES)


@pytest.mark.parametrize(
    ("table", "code", "match"),
    [
        (image_table(GOOD, copy=image_table(GOOD)["picture"]), "columns", "has 2 columns"),
        (image_table(GOOD, label=pa.array([0, 1, None, 0, 0, 0, 0])), "labels", "row 2 of .* is empty"),
        (image_table(GOOD, id=pa.array([1, 2, 3, 1, 5, 6, 7])), "ids", "rows 0 and 3 .* '1'"),
        (image_table(GOOD, id=pa.array([None] * COUNT, pa.string())), "ids", "row 0"),
        (image_table(GOOD).replace_schema_metadata({"huggingface": "[1]"}), "corrupt", "metadata 'huggingface'"),
        (image_table([None] * COUNT), "corrupt", "paths of images, such as '000.png', and not"),
    ],
)
def test_unusable_image_tables_are_refused(table: pa.Table, code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, open_points, parquet(tmp_path / "x", table))


def test_a_bad_image_costs_its_own_row(tmp_path: Path) -> None:
    batch = only(open_points(parquet(tmp_path / "x", image_table([GOOD[0], None, GOOD[2], BAD_IMAGES["text"][0]]))))
    assert batch.status == (Status.OK, Status.DECODE_ERROR, Status.OK, Status.DECODE_ERROR)
    assert batch.detail[1] == "row 1 (001.png): the file is empty (0 bytes)"


def test_a_table_of_numbers_has_features_labels_and_names(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x", numbers())
    points = open_points(path)
    assert inputs(points).tolist() == [[1.5, 1.0], [2.5, 2.0], [-3.0, 3.0], [4.0, 4.0], [5.0, 5.0]]
    assert (points.labels, points.class_names) == ((0, 1, 0, 1, 1), ("flat", "house"))
    assert points.provenance["feature_names"] == ["age", "rooms"]
    assert (points.provenance["format"], len(open_points(path, limit=2))) == ("table", 2)
    assert open_points(path, label_column="rooms").labels == (1, 2, 3, 4, 5)
    refused("parameter", "resize is for encoded images", open_points, path, resize=(4, 4))


def test_one_of_several_columns_of_classes_has_to_be_named(tmp_path: Path) -> None:
    path = parquet(tmp_path / "two", class_columns(GOOD, coarse_label=COARSE, fine_label=LABELS))
    refused("parameter", "'coarse_label' and 'fine_label'; name that", open_points, path)
    only_fine = open_points(parquet(tmp_path / "one", class_columns(GOOD, fine_label=LABELS)))
    assert (only_fine.labels, only_fine.provenance["label_column"]) == (LABELS, "fine_label")


@pytest.mark.parametrize("kind", range(4))
def test_a_damaged_parquet_file_is_named(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(image_table(GOOD, LABELS), path, write_page_checksum=True, compression="none")
    path.write_bytes(damaged(path.read_bytes())[kind])
    refused("corrupt", "test.parquet cannot be read as Parquet", lambda: list(open_points(path).batches(4)))


def test_shards_must_be_complete_and_agree(tmp_path: Path) -> None:
    table = image_table(GOOD, LABELS)
    parquet(tmp_path, table, "test-00000-of-00002.parquet")
    refused("corrupt", "1 files of a split", open_points, tmp_path)
    assert len(open_points(tmp_path / "test-00000-of-00002.parquet")) == COUNT
    parquet(tmp_path, table.drop_columns(["label"]), "test-00001-of-00002.parquet")
    refused("columns", "files of a split must agree", open_points, tmp_path)


@pytest.mark.parametrize(
    ("names", "joined"),
    [
        (("test", "test-00000-of-00002"), False),
        (("test-00000-of-00002", "test-00002-of-00002"), False),
        (("data-2019", "data-2020"), False),
        (("0000", "0002"), False),
        (("test-00000-of-00002", "test-00001-of-00002"), True),
        (("test-0001", "test-0002"), True),
        (("0000", "0001"), True),
    ],
)
def test_only_the_numbered_shards_of_a_split_are_joined(names: tuple[str, str], joined: bool, tmp_path: Path) -> None:
    for name in names:
        parquet(tmp_path, image_table(GOOD, LABELS), f"{name}.parquet")
    assert len(open_points(tmp_path / f"{names[0]}.parquet")) == COUNT
    if joined:
        assert len(open_points(tmp_path)) == 2 * COUNT
    else:
        refused("corrupt", "2 files of a split", open_points, tmp_path)


@pytest.mark.skipif(not hasattr(pa, "opaque"), reason="a PyArrow before 18 has no extension type to try")
def test_extension_types_are_refused(tmp_path: Path) -> None:
    kind = pa.opaque(pa.binary(), "own", "somebody")
    table = image_table(GOOD).append_column("x", pa.ExtensionArray.from_storage(kind, pa.array([b"x"] * COUNT)))
    refused("file_refused", "extension type", open_points, parquet(tmp_path, table))
