"""Parquet tables of images: columns are found, shards agree, damage is named."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.data_files import (
    CLASSES,
    COUNT,
    LABELS,
    LEVELS,
    class_columns,
    damaged,
    encode,
    image_table,
    only,
    refused,
)

from brittle.data import open_points
from brittle.estimate import Status


def parquet(path: Path, table: pa.Table, name: str = "test.parquet") -> Path:
    pq.write_table(table, path / name)
    return path / name


GOOD = [encode(one) for one in LEVELS]
COARSE = tuple(label // 2 for label in LABELS)


def test_parquet_columns_are_found(tmp_path: Path) -> None:
    extra = image_table(GOOD)["picture"]
    table = image_table(GOOD, LABELS, id=pa.array([f"p{row}" for row in range(COUNT)])).append_column("image", extra)
    points = open_points(parquet(tmp_path, table))
    assert only(points).ids == tuple(f"p{row}" for row in range(COUNT))
    assert only(points).names == tuple(f"{row:03}.png" for row in range(COUNT))
    assert points.provenance["columns"] == ["image", "label", "id"]
    assert points.class_names == CLASSES


@pytest.mark.parametrize(
    ("table", "code", "match"),
    [
        (pa.table({"x": ["a"]}), "columns", "column 'x' .* holds 'a'"),
        (image_table(GOOD, copy=image_table(GOOD)["picture"]), "columns", "has 2 columns"),
        (image_table(GOOD, labels=pa.array([0.5] * COUNT)), "labels", "holds 0.5 in row 0; class indices"),
        (image_table(GOOD, label=pa.array([0, 1, None, 0, 0, 0, 0])), "labels", "row 2 of .* is empty"),
        (image_table(GOOD, id=pa.array([1, 2, 3, 1, 5, 6, 7])), "ids", "rows 0 and 3 .* '1'"),
        (image_table(GOOD, id=pa.array([None] * COUNT, pa.string())), "ids", "row 0"),
        (image_table(GOOD).replace_schema_metadata({"huggingface": "{"}), "corrupt", "metadata 'huggingface' of"),
        (image_table(GOOD).replace_schema_metadata({"huggingface": "[1]"}), "corrupt", "metadata 'huggingface'"),
    ],
)
def test_parquet_of_another_form(table: pa.Table, code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, open_points, parquet(tmp_path, table))


def test_parquet_without_bytes_in_a_row(tmp_path: Path) -> None:
    batch = only(open_points(parquet(tmp_path, image_table([GOOD[0], None, GOOD[2]]))))
    assert batch.status == (Status.OK, Status.DECODE_ERROR, Status.OK)
    assert batch.detail[1] == "row 1 (001.png): the file is empty (0 bytes)"


def test_one_of_several_columns_of_classes_has_to_be_named(tmp_path: Path) -> None:
    path = parquet(tmp_path, class_columns(GOOD, coarse_label=COARSE, fine_label=LABELS))
    refused("parameter", "'coarse_label' and 'fine_label'; name the one", open_points, path)
    only_fine = parquet(tmp_path, class_columns(GOOD, fine_label=LABELS), "fine.parquet")
    assert open_points(only_fine).labels == LABELS
    assert open_points(only_fine).provenance["label_column"] == "fine_label"


def test_labels_may_be_text_or_another_column(tmp_path: Path) -> None:
    path = parquet(tmp_path, image_table(GOOD, kind=pa.array([CLASSES[label] for label in LABELS]), n=pa.array(LABELS)))
    assert open_points(path).labels is None
    named = open_points(path, label_column="kind")
    assert (named.labels, named.class_names) == (LABELS, CLASSES)
    assert open_points(path, label_column="-1").labels == LABELS


@pytest.mark.parametrize("kind", range(4))
def test_a_damaged_parquet(kind: int, tmp_path: Path) -> None:
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
    "names",
    [
        ("test", "test-00000-of-00002"),
        ("test", "test-0000"),
        ("test-00000-of-00002", "test-00002-of-00002"),
        ("test-00000-of-00002", "test-0000-of-2"),
        ("data-2019", "data-2020"),
        ("2019", "2020"),
        ("0000", "0002"),
    ],
)
def test_files_that_are_not_the_shards_of_a_split_are_not_joined(names: tuple[str, str], tmp_path: Path) -> None:
    for name in names:
        parquet(tmp_path, image_table(GOOD, LABELS), f"{name}.parquet")
    refused("corrupt", "2 files of a split", open_points, tmp_path)
    assert len(open_points(tmp_path / f"{names[0]}.parquet")) == COUNT


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["test-{:05}-of-00002", "test-{:04}", "{:04}"])
def test_shards_are_numbered(name: str, first: int, tmp_path: Path) -> None:
    for shard in (0, 1):
        parquet(tmp_path, image_table(GOOD, LABELS), f"{name.format(first + shard)}.parquet")
    assert len(open_points(tmp_path)) == 2 * COUNT
