"""Arrays in memory, in .npz and in .npy files: accepted forms, refused ones, and no unpickling."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import LABELS, LEVELS, Reader, damaged, encode, inputs, only, refused
from helpers.problems import small_classifier

import brittle
from brittle.data import Points, array_points, open_points
from brittle.scores import LogitMargin

FLOATS = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)
Y = np.array([0, 1, 2, 1])


def npz_points(path: Path, x: Any, y: Any = None, ids: Any = None, feature_names: Any = None, **options: Any) -> Points:
    values_by_key = {"x": x, "y": y, "ids": ids, "feature_names": feature_names}
    arrays = {key: value for key, value in values_by_key.items() if value is not None}
    np.savez(path / "data.npz", **arrays)
    return open_points(path / "data.npz", **options)


def memory_points(path: Path, x: Any, y: Any = None, ids: Any = None, **options: Any) -> Points:
    return array_points(x, y, ids, **options)


def npy_points(path: Path, x: Any, y: Any = None, **options: Any) -> Points:
    np.save(path / "x.npy", x)
    if y is not None:
        np.save(path / "y.npy", y)
        options = {"labels": path / "y.npy"} | options
    return open_points(path / "x.npy", **options)


arrays = pytest.mark.parametrize("reader", [npz_points, memory_points], ids=lambda reader: reader.__name__)
readers = pytest.mark.parametrize("reader", [npz_points, memory_points, npy_points], ids=lambda reader: reader.__name__)


@readers
@pytest.mark.parametrize(
    ("labels", "code", "match"),
    [
        (np.array([0.0, 3.0, 0.5, 2.0]), "labels", "holds 0.5 in row 2"),
        (np.array([0.0, 1e300, np.inf, 2.0]), "labels", r"holds 1e\+300 in row 1"),
        (np.array([0.0, np.nan, 1.0, 2.0]), "labels", "holds nan in row 1"),
        (np.eye(4, dtype=np.int64), "labels", r"\(4, 4\), which looks one-hot; .*argmax\(1\)"),
        (np.arange(3), "shape", r"\(3,\) for 4 points"),
    ],
)
def test_unusable_labels_are_refused(reader: Reader, labels: np.ndarray, code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, reader, tmp_path, FLOATS, labels)


@readers
@pytest.mark.parametrize(
    ("x", "options", "code", "match"),
    [
        (np.zeros((4, 6), np.uint8), {}, "dtype", "uint8; use --scale-uint8"),
        (np.zeros((4, 6), np.complex64), {}, "dtype", "complex64"),
        (FLOATS, {"scale_uint8": True}, "dtype", "float32; not uint8; leave"),
        (np.zeros((4, 32, 32, 3), np.float32), {}, "layout", r"\(4, 32, 32, 3\), which looks channels-last"),
        (FLOATS, {"layout": "nhwc"}, "layout", "needs 4 axes"),
        (FLOATS, {"layout": "chwn"}, "parameter", "one of nchw, nhwc; found 'chwn'"),
        (FLOATS[0], {}, "shape", r"\(6,\); expected \(points, ...\)"),
        (FLOATS[:, :0], {}, "shape", "numbers in it"),
        (FLOATS[:0], {}, "empty_dataset", "at least 1"),
    ],
)
def test_unusable_inputs_are_refused(
    reader: Reader, x: np.ndarray, options: dict[str, Any], code: str, match: str, tmp_path: Path
) -> None:
    refused(code, match, reader, tmp_path, x, **options)


@readers
def test_declared_channels_last_is_transposed(reader: Reader, tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((4, 8, 6, 3))
    tensor = inputs(reader(tmp_path, images, layout="nhwc"))
    assert torch.equal(tensor, torch.from_numpy(images.transpose(0, 3, 1, 2).copy()))
    assert inputs(reader(tmp_path, images, layout="nchw")).shape == (4, 8, 6, 3)
    assert inputs(reader(tmp_path, images[:, :3, :3])).shape == (4, 3, 3, 3)


@arrays
def test_ids_that_do_not_fit(reader: Reader, tmp_path: Path) -> None:
    refused("ids", "rows 1 and 3 .* share the id 'b'", reader, tmp_path, FLOATS, ids=np.array(list("abcb")))
    refused("shape", "3 entries for 4 points", reader, tmp_path, FLOATS, ids=np.arange(3))


@readers
@pytest.mark.parametrize("kind", [np.float64, np.float16, ">f4"])
def test_precision_is_kept_or_raised(reader: Reader, kind: Any, tmp_path: Path) -> None:
    tensor = inputs(reader(tmp_path, np.asfortranarray(FLOATS.astype(kind)), Y))
    assert tensor.dtype == (torch.float64 if kind is np.float64 else torch.float32)
    assert torch.equal(tensor.float(), torch.from_numpy(FLOATS.astype(kind).astype(np.float32)))


def test_tensors_keep_their_values_and_precision() -> None:
    x = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    batch = only(array_points(x, torch.tensor([0, 1, 1])))
    assert torch.equal(batch.inputs, x.detach())
    assert not batch.inputs.requires_grad
    assert batch.labels == (0, 1, 1)
    assert inputs(array_points(torch.rand(3, 5).bfloat16())).dtype == torch.float32


def test_the_memory_digest_covers_type_shape_labels_and_ids() -> None:
    twins = [
        array_points(FLOATS),
        array_points(FLOATS.astype(np.float64)),
        array_points(FLOATS.reshape(4, 2, 3)),
        array_points(FLOATS, np.arange(4)),
        array_points(FLOATS, ids=list("abcd")),
    ]
    assert len({points.provenance["sha256"] for points in twins}) == len(twins)
    assert array_points(torch.from_numpy(FLOATS)).provenance == twins[0].provenance


@pytest.mark.parametrize(
    "arrays",
    [
        {"train_images": LEVELS[:1, 0], "test_images": LEVELS[:, 0], "test_labels": np.array(LABELS)[:, None]},
        {"x_train": LEVELS[:1], "x_test": LEVELS, "y_test": np.array(LABELS)},
    ],
    ids=["MedMNIST", "Keras"],
)
def test_splits_in_npz(arrays: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    points = open_points(path, split="test", scale_uint8=True)
    assert points.labels == LABELS
    assert torch.equal(inputs(points), torch.from_numpy(LEVELS).float() / 255)
    assert set(points.provenance["keys"]) <= set(arrays)
    refused("columns", "has no x or images; it has .*test", open_points, path)
    refused("split", "of the split 'val'; it has .*test", open_points, path, split="val")


@pytest.mark.parametrize(("key", "alias"), [("x", "images"), ("y", "labels"), ("ids", "id")])
def test_two_arrays_for_one_role_in_npz_are_refused_by_name(key: str, alias: str, tmp_path: Path) -> None:
    arrays_by_key: dict[str, Any] = {"x": FLOATS, key: FLOATS, alias: -FLOATS}
    np.savez(tmp_path / "data.npz", **arrays_by_key)
    refused("columns", f"has {key} and {alias}", open_points, tmp_path / "data.npz")


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        ({"y": {0, 1, 2, 3}}, "labels", "type object"),
        ({"y": np.array(list("abab"))}, "labels", "class indices are whole numbers"),
        ({"y": [[1], [1, 2], [], [3]]}, "dtype", "y is no array"),
        ({"y": torch.arange(4).to_sparse()}, "dtype", "y is no array"),
        ({"y": np.ma.masked_equal(range(4), 2)}, "dtype", "hides 1 of 4"),
        ({"ids": [(1,), (1, 2), 3, 4]}, "dtype", "ids is no array"),
        ({"x": torch.empty(4, 6, device="meta")}, "dtype", "meta"),
        ({"x": np.ma.masked_less(FLOATS, 0.5)}, "dtype", "hides 12 of 24"),
        ({"extra_inputs": {"o": np.array(list("abcd"))}}, "dtype", r"o \(extra_inputs=\)"),
        ({"extra_inputs": {"o": np.zeros(4, np.longdouble)}}, "dtype", r"o \(extra_inputs=\)"),
        ({"mask": np.where(FLOATS < 0.5, np.nan, 1)}, "mask", "12 NaN"),
    ],
)
def test_values_that_are_no_numbers_are_refused(arguments: dict[str, Any], code: str, match: str) -> None:
    refused(code, match, array_points, **{"x": FLOATS} | arguments)


def test_rows_of_several_lengths_are_refused() -> None:
    ragged = torch.nested.nested_tensor([torch.rand(3), torch.rand(4)], layout=torch.jagged)
    refused("dtype", "nested", array_points, x=ragged)


@arrays
def test_features_may_have_names(reader: Reader, tmp_path: Path) -> None:
    names = np.array([f"f{number}" for number in range(6)])
    points = reader(tmp_path, FLOATS.reshape(4, 2, 3), feature_names=names.reshape(2, 3))
    assert points.provenance["feature_names"] == names.tolist()
    assert "feature_names" not in reader(tmp_path, FLOATS).provenance


@pytest.mark.parametrize("kind", ["float64", "float16", "bool", "int64", "uint8"])
def test_whole_numbers_of_any_type_are_the_same_classes(kind: str) -> None:
    labels = np.array([0, 1, 1, 0]).astype(kind)
    for y in (labels, torch.from_numpy(labels)):
        points = array_points(torch.rand(4, 2), y)
        assert points.labels == (0, 1, 1, 0)
        assert {type(label) for label in points.labels or ()} == {int}


@pytest.mark.parametrize("layout", [None, "nchw", "nhwc"])
def test_grey_images_lie_as_they_do_in_the_array_in_every_layout(layout: str | None, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", images=LEVELS[:, 0], test_images=LEVELS[:, 0])
    for split in (None, "test"):
        points = open_points(tmp_path / "data.npz", split=split, layout=layout, scale_uint8=True)
        assert torch.equal(inputs(points), torch.from_numpy(LEVELS).float() / 255)


class Canary:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("reader", [npz_points, npy_points])
@pytest.mark.parametrize("hostile", ["x", "y"])
def test_nothing_is_unpickled(reader: Reader, hostile: str, tmp_path: Path) -> None:
    arrays_by_key = {"x": FLOATS, "y": Y} | {hostile: np.array([Canary(tmp_path / "canary")] * 4, dtype=object)}
    refused("dtype", "np[yz] holds Python objects", reader, tmp_path, arrays_by_key["x"], arrays_by_key["y"])
    assert not (tmp_path / "canary").exists()


def header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        *damaged(header((50, 20)) + bytes(4000))[::2],
        b"",
        header((10**9, 10**9)) + bytes(16),
        header((4, 3)) + bytes(47),
        header((4, 3)) + bytes(49),
        header((10**12, 3), "|V0"),
        b"\x93NUMPY\x03\x00" + bytes(100),
        b"\x93NUMPY\x01\x00v\x00" + b"(" * 118,
        b"\x80\x04K\x01.",
        b"PK\x03\x04" + bytes(50),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_damaged_npy_file_is_named_and_no_header_is_believed(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    refused("corrupt", "x.npy is not a readable .npy file", open_points, tmp_path / "x.npy")


def test_options_of_other_formats_are_refused(tmp_path: Path) -> None:
    none = tmp_path / "none.npy"
    refused("no_such_path", "none.npy .--labels, labels=. does not exist", npy_points, tmp_path, FLOATS, labels=none)
    refused("parameter", "--labels", npz_points, tmp_path, FLOATS, labels=none)
    refused("split", "leave out --split", npy_points, tmp_path, FLOATS, split="test")


def test_a_folder_without_classes_is_its_images(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for row, levels in enumerate(LEVELS):
        (folder / f"{row:03}.png").write_bytes(encode(levels))
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    np.save(tmp_path / "y.npy", np.array(LABELS))
    points, head = open_points(folder, labels=tmp_path / "y.npy"), open_points(folder, limit=3)
    assert torch.equal(inputs(points), torch.from_numpy(LEVELS).float() / 255)
    assert (points.labels, head.labels) == (LABELS, None)
    assert only(points).ids == tuple(f"{row:03}.png" for row in range(len(LEVELS)))
    assert (head.provenance["format"], head.provenance["other_files"], len(head)) == ("images", 1, 3)
    refused("split", "leave out --split", open_points, folder, split="test")


def test_a_run_with_other_labels_is_another_run(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((8, 1, 6, 6), dtype=np.float32)
    options: dict[str, Any] = {"out": tmp_path / "run", "resume": True}
    table = brittle.score(small_classifier(), npy_points(tmp_path, x, np.arange(8) % 4), [LogitMargin()], **options)
    expected = brittle.score(small_classifier(), (x, np.arange(8) % 4), [LogitMargin()])
    assert table.scores.equals(expected.scores)
    relabelled = npy_points(tmp_path, x, np.arange(8) % 3)
    refused(
        "other_run", "reading.labels_sha256", brittle.score, small_classifier(), relabelled, [LogitMargin()], **options
    )
