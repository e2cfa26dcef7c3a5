"""Data sets that `save_to_disk` wrote hold the points of their images; what is odd in them is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers.data_files import BAD_IMAGES, CLASSES, LABELS, LEVELS, encode, inputs, only, refused

from brittle.data import open_points
from brittle.errors import BrittleError
from brittle.estimate import Status

FILES = [encode(one) for one in LEVELS]
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
FEATURES = {"image": {"_type": "Image"}, "label": {"names": list(CLASSES), "_type": "ClassLabel"}}
EXPECTED = torch.from_numpy(LEVELS).float() / 255


def table(files: Sequence[bytes | None] | None = None, **more: Any) -> pa.Table:
    """As `datasets` has it in memory."""
    content = FILES if files is None else files
    images = pa.array([{"bytes": one, "path": f"{row}.png"} for row, one in enumerate(content)], IMAGE)
    columns = {"image": images, "label": pa.array([LABELS[row % 7] for row in range(len(content))]), **more}
    return pa.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})


def save(folder: Path, whole: pa.Table, rows: int = 2, files: int = 2, **options: Any) -> Path:
    """As `save_to_disk` writes it: files of batches of so many rows."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05d}-of-{files:05d}.arrow" for number in range(files)]
    each = -(-len(whole) // files)
    for number, name in enumerate(names):
        with pa.ipc.new_stream(str(folder / name), whole.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
            stream.write_table(whole.slice(number * each, each), max_chunksize=rows)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def test_it_holds_the_points_of_its_images(tmp_path: Path) -> None:
    points = open_points(save(tmp_path / "saved", table()))
    assert torch.allclose(inputs(points, size=3), EXPECTED, atol=1e-7)
    for start in range(7):
        assert torch.equal(torch.cat([part.inputs for part in points.batches(2, start)]), inputs(points)[start:])
    assert (points.labels, points.class_names, only(points).ids[:2]) == (LABELS, CLASSES, ("0", "1"))
    assert only(points).names is not None
    few = open_points(tmp_path / "saved", limit=3)
    assert (len(few), few.labels) == (3, LABELS[:3])
    own = open_points(save(tmp_path / "own", table(id=pa.array([f"p{row}" for row in range(7)]))))
    assert only(own).ids[:2] == ("p0", "p1")


def test_splits(tmp_path: Path) -> None:
    for split in ("train", "test"):
        save(tmp_path / split, table(FILES[: 3 if split == "test" else 7]))
    assert len(open_points(tmp_path, split="test")) == 3
    refused("split", "the splits test, train; no split was named", open_points, tmp_path)
    refused("split", "there is no split 'dev'", open_points, tmp_path, split="dev")
    refused("split", "has no splits", open_points, tmp_path / "test", split="test")


def test_a_bad_image_costs_its_own_row(tmp_path: Path) -> None:
    batch = only(open_points(save(tmp_path / "saved", table([*FILES, BAD_IMAGES["text"][0], None]))))
    assert batch.status[:7] == (Status.OK,) * 7
    assert batch.status[7:] == (Status.DECODE_ERROR, Status.DECODE_ERROR)


def test_paths_without_bytes_are_told(tmp_path: Path) -> None:
    without = table([None] * 7)
    refused("corrupt", "paths of images, such as '0.png', and not", open_points, save(tmp_path / "saved", without))
    pq.write_table(without, tmp_path / "x.parquet")
    refused("corrupt", "paths of images, such as '0.png', and not", open_points, tmp_path / "x.parquet")
    pq.write_table(pa.table({"image": ["0.png"], "label": [0]}), tmp_path / "y.parquet")
    refused("columns", "column 'image' .* holds '0.png'", open_points, tmp_path / "y.parquet")


def test_what_is_not_there_or_is_more_is_told(tmp_path: Path) -> None:
    saved = save(tmp_path / "saved", table())
    (saved / "cache-1.arrow").write_bytes(b"what datasets computed")
    assert len(open_points(saved)) == 7
    (saved / "data-00000-of-00002.arrow").unlink()
    refused("corrupt", "data-00000-of-00002", open_points, saved)


@pytest.mark.skipif(not hasattr(pa, "opaque"), reason="a PyArrow before 18 has no extension type to try")
def test_extension_types_are_refused(tmp_path: Path) -> None:
    kind = pa.opaque(pa.binary(), "own", "somebody")
    extended = pa.table({"image": table()["image"], "x": pa.ExtensionArray.from_storage(kind, pa.array([b"x"] * 7))})
    refused("file_refused", "extension type", open_points, save(tmp_path / "extended", extended))


NUMBERS = {
    "age": pa.array([1.5, 2.5, -3.0, 4.0, 5.0], pa.float32()),
    "rooms": pa.array([1, 2, 3, 4, 5], pa.int8()),
    "kind": pa.array([0, 1, 0, 1, 1]),
}
KINDS = {"kind": {"names": ["flat", "house"], "_type": "ClassLabel"}}


def numbers(**more: Any) -> pa.Table:
    metadata = {"huggingface": json.dumps({"info": {"features": KINDS}})}
    return pa.table(NUMBERS | more).replace_schema_metadata(metadata)


def test_a_table_of_numbers_is_read_as_from_parquet(tmp_path: Path) -> None:
    found = open_points(save(tmp_path / "saved", numbers()))
    pq.write_table(numbers(), tmp_path / "same.parquet")
    other = open_points(tmp_path / "same.parquet")
    assert torch.equal(inputs(found), inputs(other))
    assert inputs(found).tolist() == [[1.5, 1.0], [2.5, 2.0], [-3.0, 3.0], [4.0, 4.0], [5.0, 5.0]]
    assert (found.labels, found.class_names) == ((0, 1, 0, 1, 1), ("flat", "house"))
    assert found.provenance["feature_names"] == ["age", "rooms"]
    assert (found.provenance["format"], len(open_points(tmp_path / "saved", limit=2))) == ("table", 2)
    assert open_points(tmp_path / "saved", label_column="rooms").labels == (1, 2, 3, 4, 5)


def test_other_columns_of_a_table_are_refused_by_name(tmp_path: Path) -> None:
    texts = pa.array(["a", "b", "c", "d", "e"])
    folder = save(tmp_path / "text", numbers(town=texts))
    refused("columns", "column 'town' of .* holds 'a', which is no number", open_points, folder)
    lists = pa.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    refused("columns", "column 'many'", open_points, save(tmp_path / "lists", numbers(many=lists)))
    empty = pa.array([1.0, None, 2.0, 3.0, 4.0])
    refused("columns", "row 1, column 'gap'", open_points, save(tmp_path / "gap", numbers(gap=empty)))
    refused("parameter", "is for encoded images", open_points, save(tmp_path / "plain", numbers()), resize=(4, 4))


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_file_is_an_error_or_costs_rows_and_never_a_crash(seed: int, tmp_path: Path) -> None:
    """Bytes of the frames and of the data are changed, and files are cut."""
    random = np.random.default_rng(seed)
    file = save(tmp_path / "saved", table(), files=1) / "data-00000-of-00001.arrow"
    content = bytearray(file.read_bytes())
    if seed % 4 == 0:
        del content[int(random.integers(1, len(content))) :]
    for place in random.integers(0, len(content), 3):
        content[place] = int(random.integers(0, 256))
    file.write_bytes(content)
    with suppress(BrittleError):
        points = open_points(tmp_path / "saved")
        assert len(only(points)) == len(points)


def test_what_could_harm_is_refused(tmp_path: Path) -> None:
    """What unpacks to any size, lies elsewhere, or is a choice of rows that the files do not show."""
    refused("file_refused", "compressed", open_points, save(tmp_path / "packed", table(), compression="zstd"))
    texts = pa.table({"image": table()["image"], "kind": pa.array(["a"] * 7).dictionary_encode()})
    refused("file_refused", "of another kind", open_points, save(tmp_path / "dictionary", texts))
    saved = save(tmp_path / "saved", table())
    state = json.loads((saved / "state.json").read_text())
    for name, code in (("../packed/data-00000-of-00002.arrow", "file_refused"), ("/etc/passwd", "file_refused"),
                       ("", "corrupt"), ("no.arrow", "corrupt")):  # fmt: skip
        (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
        refused(code, "elsewhere|names no files|no.arrow", open_points, saved)
    for more in ("{", json.dumps(state | {"_indices_data_files": [{"filename": "indices.arrow"}]})):
        (saved / "state.json").write_text(more)
        refused("corrupt", "state.json|flatten_indices", open_points, saved)
