"""Tables of Arrow, in Parquet and as `save_to_disk` writes them: columns and shards are found, and damage is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
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
from brittle.errors import BrittleError
from brittle.estimate import Status

GOOD = [encode(one) for one in LEVELS]
PIXELS = torch.from_numpy(LEVELS).float() / 255
COARSE = tuple(label // 2 for label in LABELS)
NUMBERS = {
    "age": pa.array([1.5, 2.5, -3.0, 4.0, 5.0], pa.float32()),
    "rooms": pa.array([1, 2, 3, 4, 5], pa.int8()),
    "kind": pa.array([0, 1, 0, 1, 1]),
}
KINDS = {"kind": {"names": ["flat", "house"], "_type": "ClassLabel"}}

Write = Callable[..., Path]


def parquet(path: Path, table: pa.Table, name: str = "test.parquet") -> Path:
    path.mkdir(exist_ok=True, parents=True)
    pq.write_table(table, path / name, row_group_size=3)
    return path / name


def saved(path: Path, table: pa.Table, rows: int = 2, files: int = 2, **options: Any) -> Path:
    """As `save_to_disk` writes it: files of batches of so many rows."""
    path.mkdir(parents=True)
    names = [f"data-{number:05d}-of-{files:05d}.arrow" for number in range(files)]
    share = -(-len(table) // files)
    for number, name in enumerate(names):
        with pa.ipc.new_stream(str(path / name), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
            stream.write_table(table.slice(number * share, share), max_chunksize=rows)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (path / "state.json").write_text(json.dumps(state))
    return path


both = pytest.mark.parametrize("write", [parquet, saved], ids=["parquet", "saved"])


def numbers(**more: Any) -> pa.Table:
    metadata = {"huggingface": json.dumps({"info": {"features": KINDS}})}
    return pa.table(NUMBERS | more).replace_schema_metadata(metadata)


@both
def test_it_holds_the_points_of_its_images(write: Write, tmp_path: Path) -> None:
    extra = image_table(GOOD)["picture"]
    table = image_table(GOOD, LABELS, id=pa.array([f"p{row}" for row in range(COUNT)])).append_column("image", extra)
    points = open_points(write(tmp_path / "x", table))
    assert torch.equal(inputs(points, size=3), PIXELS)
    for start in range(COUNT):
        assert torch.equal(torch.cat([part.inputs for part in points.batches(2, start)]), PIXELS[start:])
    assert only(points).ids == tuple(f"p{row}" for row in range(COUNT))
    assert only(points).names == tuple(f"{row:03}.png" for row in range(COUNT))
    assert points.provenance["columns"] == ["image", "label", "id"]
    assert (points.labels, points.class_names) == (LABELS, CLASSES)


@both
@pytest.mark.parametrize(
    ("table", "code", "match"),
    [
        (pa.table({"x": ["a"]}), "columns", "column 'x' .* holds 'a'"),
        (image_table(GOOD, copy=image_table(GOOD)["picture"]), "columns", "has 2 columns"),
        (image_table(GOOD, labels=pa.array([0.5] * COUNT)), "labels", "holds 0.5 in row 0; class indices"),
        (image_table(GOOD, label=pa.array([0, 1, None, 0, 0, 0, 0])), "labels", "row 2 of .* is empty"),
        (image_table(GOOD, id=pa.array([1, 2, 3, 1, 5, 6, 7])), "ids", "rows 0 and 3 .* '1'"),
        (image_table(GOOD, id=pa.array([None] * COUNT, pa.string())), "ids", "row 0"),
        (image_table(GOOD).replace_schema_metadata({"huggingface": "[1]"}), "corrupt", "metadata 'huggingface'"),
        (image_table([None] * COUNT), "corrupt", "paths of images, such as '000.png', and not"),
        (numbers(town=pa.array(list("abcde"))), "columns", "column 'town' of .* holds 'a', which is no number"),
        (numbers(gap=pa.array([1.0, None, 2.0, 3.0, 4.0])), "columns", "row 1, column 'gap'"),
        (numbers(many=pa.array([[1.0]] * 5)), "columns", "column 'many'"),
    ],
)
def test_tables_of_another_form(write: Write, table: pa.Table, code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, open_points, write(tmp_path / "x", table))


@both
def test_a_bad_image_costs_its_own_row(write: Write, tmp_path: Path) -> None:
    batch = only(open_points(write(tmp_path / "x", image_table([GOOD[0], None, GOOD[2], BAD_IMAGES["text"][0]]))))
    assert batch.status == (Status.OK, Status.DECODE_ERROR, Status.OK, Status.DECODE_ERROR)
    assert batch.detail[1] == "row 1 (001.png): the file is empty (0 bytes)"


@both
def test_a_table_of_numbers(write: Write, tmp_path: Path) -> None:
    path = write(tmp_path / "x", numbers())
    found = open_points(path)
    assert inputs(found).tolist() == [[1.5, 1.0], [2.5, 2.0], [-3.0, 3.0], [4.0, 4.0], [5.0, 5.0]]
    assert (found.labels, found.class_names) == ((0, 1, 0, 1, 1), ("flat", "house"))
    assert found.provenance["feature_names"] == ["age", "rooms"]
    assert (found.provenance["format"], len(open_points(path, limit=2))) == ("table", 2)
    assert open_points(path, label_column="rooms").labels == (1, 2, 3, 4, 5)
    refused("parameter", "resize is for encoded images", open_points, path, resize=(4, 4))


@both
def test_one_of_several_columns_of_classes_has_to_be_named(write: Write, tmp_path: Path) -> None:
    path = write(tmp_path / "two", class_columns(GOOD, coarse_label=COARSE, fine_label=LABELS))
    refused("parameter", "'coarse_label' and 'fine_label'; name the one", open_points, path)
    only_fine = open_points(write(tmp_path / "one", class_columns(GOOD, fine_label=LABELS)))
    assert (only_fine.labels, only_fine.provenance["label_column"]) == (LABELS, "fine_label")


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


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_saved_file_is_an_error_or_costs_rows_and_never_a_crash(seed: int, tmp_path: Path) -> None:
    """Bytes of the frames and of the data are changed, and files are cut."""
    random = np.random.default_rng(seed)
    file = saved(tmp_path / "saved", image_table(GOOD, LABELS), files=1) / "data-00000-of-00001.arrow"
    content = bytearray(file.read_bytes())
    if seed % 4 == 0:
        del content[int(random.integers(1, len(content))) :]
    for place in random.integers(0, len(content), 3):
        content[place] = int(random.integers(0, 256))
    file.write_bytes(content)
    with suppress(BrittleError):
        points = open_points(tmp_path / "saved")
        assert len(only(points)) == len(points)


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


def test_splits_that_were_saved(tmp_path: Path) -> None:
    for split in ("train", "test"):
        saved(tmp_path / split, image_table(GOOD[: 3 if split == "test" else 7]))
    (tmp_path / "test" / "cache-1.arrow").write_bytes(b"what datasets computed")
    assert len(open_points(tmp_path, split="test")) == 3
    refused("split", "the splits test, train; no split was named", open_points, tmp_path)
    refused("split", "there is no split 'dev'", open_points, tmp_path, split="dev")
    refused("split", "has no splits", open_points, tmp_path / "test", split="test")


@pytest.mark.skipif(not hasattr(pa, "opaque"), reason="a PyArrow before 18 has no extension type to try")
def test_extension_types_are_refused(tmp_path: Path) -> None:
    kind = pa.opaque(pa.binary(), "own", "somebody")
    extended = image_table(GOOD).append_column("x", pa.ExtensionArray.from_storage(kind, pa.array([b"x"] * COUNT)))
    refused("file_refused", "extension type", open_points, saved(tmp_path / "extended", extended))


def test_what_could_harm_is_refused(tmp_path: Path) -> None:
    """What unpacks to any size, lies elsewhere, or is a choice of rows that the files do not show."""
    table = image_table(GOOD)
    refused("file_refused", "compressed", open_points, saved(tmp_path / "packed", table, compression="zstd"))
    texts = table.append_column("kind", pa.array(["a"] * COUNT).dictionary_encode())
    refused("file_refused", "of another kind", open_points, saved(tmp_path / "dictionary", texts))
    folder = saved(tmp_path / "saved", table)
    state = json.loads((folder / "state.json").read_text())
    for name, code in (("../packed/data-00000-of-00002.arrow", "file_refused"), ("/etc/passwd", "file_refused"),
                       ("", "file_refused"), ("no.arrow", "corrupt")):  # fmt: skip
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
        refused(code, "elsewhere|no.arrow", open_points, folder)
    for more in ("{", "[]", json.dumps(state | {"_indices_data_files": [{"filename": "indices.arrow"}]})):
        (folder / "state.json").write_text(more)
        refused("corrupt", "state.json|flatten_indices", open_points, folder)
