"""Readers: the same points come out of every format, and every defect is said in its own words."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image, ImageFile

from brittle.data import FORMATS, Batch, Points, array_points, open_points
from brittle.data import encoded as encoded_module
from brittle.data.images import FORMATS as IMAGE_FORMATS
from brittle.data.images import MAX_PIXELS, THUMBNAIL_SIDE, thumbnails
from brittle.errors import BrittleError, DataError
from brittle.estimate import Status

COUNT, HEIGHT, WIDTH = 7, 5, 8
LEVELS = np.random.default_rng(3).integers(0, 256, (COUNT, 1, HEIGHT, WIDTH), dtype=np.uint8)
LABELS = (0, 0, 1, 1, 2, 2, 2)
CLASSES = ("ant", "bee", "cow")

Levels = np.ndarray
Labels = tuple[int, ...]


# One function per format writes grey images with labels and says how they are opened.


def encode(levels: np.ndarray, kind: str = "PNG", **options: Any) -> bytes:
    """An image file with `levels`, `[1 or 3, H, W]`."""
    pixels = levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0)
    return save(Image.fromarray(np.ascontiguousarray(pixels)), kind, **options)


def save(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format=kind, **options)
    return file.getvalue()


def write_folder(path: Path, files: list[bytes], labels: Labels) -> None:
    for row, (content, label) in enumerate(zip(files, labels, strict=True)):
        (path / CLASSES[label]).mkdir(parents=True, exist_ok=True)
        (path / CLASSES[label] / f"{row:03}.png").write_bytes(content)


def image_table(files: Sequence[bytes | None], classes: Labels | None = None, **columns: Any) -> pa.Table:
    images = [{"bytes": content, "path": f"{row:03}.png"} for row, content in enumerate(files)]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"picture": pa.array(images, kind), **columns})
    if classes is None:
        return table
    features = {"label": {"names": list(CLASSES), "_type": "ClassLabel"}, "picture": {"_type": "Image"}}
    metadata = json.dumps({"info": {"features": features}})
    return table.append_column("label", pa.array(classes, pa.int64())).replace_schema_metadata(
        {"huggingface": metadata}
    )


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def from_memory(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    low, high = options.get("bounds", (0.0, 1.0))
    inputs = (low + (high - low) * levels.astype(np.float64) / 255).astype(np.float32)
    return array_points(inputs, np.array(labels, np.int64), class_names=CLASSES, **options)


def from_npz(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    np.savez(path / "data.npz", images=levels[:, 0], labels=np.array(labels, np.int64)[:, None], class_names=CLASSES)
    return open_points(path / "data.npz", scale_uint8=True, **options)


def from_folder(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    write_folder(path / "images", [encode(one) for one in levels], labels)
    return open_points(path / "images", **options)


def from_split_folder(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    write_folder(path / "images" / "test", [encode(one) for one in levels], labels)
    return open_points(path / "images", split="test", **options)


def from_parquet(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    pq.write_table(image_table([encode(one) for one in levels], labels), path / "test.parquet", row_group_size=3)
    return open_points(path / "test.parquet", **options)


def from_shards(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    table = image_table([encode(one) for one in levels], labels)
    for shard, part in enumerate((table[:2], table[2:])):
        pq.write_table(part, path / f"test-{shard:05}-of-00002.parquet")
    pq.write_table(table[:1], path / "train.parquet")
    return open_points(path, split="test", **options)


def from_idx(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    (path / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(levels[:, 0]))
    (path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(np.array(labels, np.int64))))
    return open_points(path, **options)


READERS = (from_memory, from_npz, from_folder, from_split_folder, from_parquet, from_shards, from_idx)
ON_DISK = READERS[1:]
Reader = Callable[..., Points]
each = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
each_on_disk = pytest.mark.parametrize("reader", ON_DISK, ids=lambda reader: reader.__name__)


def inputs(points: Points, size: int = COUNT) -> torch.Tensor:
    return torch.cat([batch.inputs for batch in points.batches(size)])


def only(points: Points) -> Batch:
    (batch,) = points.batches(1000)
    return batch


def refused(code: str, match: str, function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """`function` raises the error `code` with a sentence that holds `match`."""
    with pytest.raises(BrittleError, match=match) as caught:
        function(*args, **options)
    assert caught.value.code == code


# Laws: what holds for every reader.


@each
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 3.0)])
def test_pixels_are_mapped_to_the_bounds(reader: Reader, bounds: tuple[float, float], tmp_path: Path) -> None:
    found = inputs(reader(tmp_path, LEVELS, LABELS, bounds=bounds))
    low, high = bounds
    expected = (low + (high - low) * torch.from_numpy(LEVELS).double() / 255).float()
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


@each
def test_batches_begin_anew_and_do_not_depend_on_their_size(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    whole = only(points)
    assert isinstance(points, Points)
    assert len(points) == COUNT
    for size in (1, 3, COUNT):
        batches = list(points.batches(size))
        assert [len(batch) for batch in batches] == [min(size, COUNT - start) for start in range(0, COUNT, size)]
        assert torch.equal(torch.cat([batch.inputs for batch in batches]), whole.inputs)
        for name in ("rows", "ids", "labels", "status", "detail", "images"):
            assert sum((tuple(getattr(batch, name)) for batch in batches), ()) == tuple(getattr(whole, name))


@each
@pytest.mark.parametrize(("size", "start", "stop"), [(2, 0, 3), (3, 2, None), (1, 4, 6), (9, 1, 99), (2, 5, 5)])
def test_a_part_is_that_part_of_the_whole(
    reader: Reader, size: int, start: int, stop: int | None, tmp_path: Path
) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    whole = only(points)
    parts = list(points.batches(size, start, stop))
    part = slice(start, stop)
    assert [row for batch in parts for row in batch.rows] == list(range(COUNT))[part]
    assert [point for batch in parts for point in batch.ids] == list(whole.ids)[part]
    assert [label for batch in parts for label in batch.labels or ()] == list(whole.labels or ())[part]
    if parts:
        assert torch.equal(torch.cat([batch.inputs for batch in parts]), whole.inputs[part])
        assert max(len(batch) for batch in parts) <= size


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


@each
def test_one_point_is_enough(reader: Reader, tmp_path: Path) -> None:
    assert inputs(reader(tmp_path, LEVELS[:1], LABELS[:1])).shape == (1, 1, HEIGHT, WIDTH)


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
    assert first["format"] in {"memory", *(known.name for known in FORMATS)}


@each_on_disk
def test_a_limit_keeps_the_first(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS, limit=3)
    batch = only(points)
    assert len(points) == len(batch) == points.provenance["points"] == points.provenance["limit"] == 3
    assert points.labels == LABELS[:3]
    assert torch.equal(batch.inputs, inputs(reader(tmp_path, LEVELS, LABELS))[:3])


@each_on_disk
@pytest.mark.parametrize(
    ("options", "code"),
    [({"limit": -1}, "limit"), ({"limit": 0}, "limit"), ({"bounds": (1.0, 1.0)}, "bounds")],
)
def test_parameters_out_of_range(reader: Reader, options: dict[str, Any], code: str, tmp_path: Path) -> None:
    refused(code, "found", reader, tmp_path, LEVELS, LABELS, **options)


@each
def test_batch_size_zero(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, LEVELS, LABELS)
    refused("batch_size", "at least 1; found 0", lambda: list(points.batches(0)))


@pytest.mark.parametrize("reader", [from_memory, from_npz, from_parquet, from_idx], ids=lambda reader: reader.__name__)
def test_no_points(reader: Reader, tmp_path: Path) -> None:
    refused("empty_dataset", "holds no", reader, tmp_path, LEVELS[:0], ())


@pytest.mark.parametrize("reader", [from_npz, from_folder, from_idx], ids=lambda reader: reader.__name__)
def test_an_unknown_split(reader: Reader, tmp_path: Path) -> None:
    refused("split_missing", "nowhere|no splits", reader, tmp_path, LEVELS, LABELS, split="nowhere")


# Formats and paths.


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    refused("no_such_path", "data.npz does not exist", open_points, tmp_path / "data.npz")


def test_an_unknown_format_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "data.pt").write_bytes(b"anything")
    with pytest.raises(DataError, match=r"data\.pt is none of the formats") as caught:
        open_points(tmp_path / "data.pt")
    assert all(f"{known.name}:" in str(caught.value) for known in FORMATS)


def test_a_layout_is_for_arrays(tmp_path: Path) -> None:
    refused("layout", "for arrays in .npz", from_folder, tmp_path, LEVELS, LABELS, layout="nhwc")


# Images that cannot be read: a status for the row, all other rows as they were.


def grey_png(width: int, height: int) -> bytes:
    """A black image, written without holding it in memory."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer = zlib.compressobj()
    rows = b"".join(packer.compress(bytes(width + 1)) for _ in range(height)) + packer.flush()
    header = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def frames(kind: str, count: int) -> bytes:
    images = [Image.new("RGB", (WIDTH, HEIGHT), (50 * number, 0, 0)) for number in range(count)]
    return save(images[0], kind, save_all=True, append_images=images[1:])


BAD_IMAGES = {
    "truncated_jpeg": (encode(LEVELS[0], "JPEG")[:-40], Status.DECODE_ERROR, "truncated"),
    "truncated_png": (encode(LEVELS[0])[:-30], Status.DECODE_ERROR, "OSError|SyntaxError"),
    "empty": (b"", Status.DECODE_ERROR, "0 bytes"),
    "text": (b"These are not pixels.\n", Status.DECODE_ERROR, "not an image in PNG, JPEG"),
    "huge": (grey_png(13_000, 13_000), Status.IMAGE_TOO_LARGE, "13000 x 13000 pixels; at most"),
    "enormous": (grey_png(14_000, 14_000), Status.IMAGE_TOO_LARGE, "196000000 pixels"),
    "animated_png": (frames("PNG", 2), Status.MULTI_FRAME, "2 frames"),
    "animated_webp": (frames("WEBP", 3), Status.MULTI_FRAME, "3 frames"),
    "gif": (frames("GIF", 5), Status.FORMAT_NOT_ALLOWED, "GIF; only PNG"),
    "tiff": (frames("TIFF", 5), Status.FORMAT_NOT_ALLOWED, "TIFF"),
    "eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 5\n", Status.FORMAT_NOT_ALLOWED, "PostScript"),
    "svg": (b'\n<svg xmlns="http://www.w3.org/2000/svg"/>', Status.FORMAT_NOT_ALLOWED, "SVG"),
    "avif": (b"\0\0\0\x20ftypavif" + bytes(20), Status.FORMAT_NOT_ALLOWED, "AVIF"),
    "cmyk": (save(Image.new("CMYK", (WIDTH, HEIGHT)), "JPEG"), Status.IMAGE_MODE, "mode CMYK"),
    "16_bit": (save(Image.fromarray(np.zeros((HEIGHT, WIDTH), np.uint16)), "PNG"), Status.IMAGE_MODE, "mode I;16"),
}
bad_images = pytest.mark.parametrize("name", BAD_IMAGES)


def encoded_folder(path: Path, files: list[bytes]) -> Points:
    write_folder(path, files, LABELS[: len(files)])
    return open_points(path)


def encoded_parquet(path: Path, files: list[bytes]) -> Points:
    path.mkdir()
    pq.write_table(image_table(list(files)), path / "images.parquet")
    return open_points(path / "images.parquet")


encoded = pytest.mark.parametrize("reader", [encoded_folder, encoded_parquet], ids=lambda reader: reader.__name__)


@encoded
@bad_images
@pytest.mark.parametrize("row", [0, 3])
def test_a_bad_image_leaves_the_others_alone(reader: Reader, name: str, row: int, tmp_path: Path) -> None:
    content, status, seen = BAD_IMAGES[name]
    good = [encode(one) for one in LEVELS]
    batch = only(reader(tmp_path / "bad", [*good[:row], content, *good[row + 1 :]]))
    twin = only(reader(tmp_path / "good", good))
    assert batch.status[row] == status
    detail = batch.detail[row] or ""
    assert detail.startswith(f"row {row} (")
    assert f"{row:03}.png" in detail
    assert re.search(seen, detail)
    assert not batch.inputs[row].any()
    others = [position for position in range(COUNT) if position != row]
    assert torch.equal(batch.inputs[others], twin.inputs[others])
    for field in ("ids", "labels", "status", "detail", "images"):
        mine, its = getattr(batch, field), getattr(twin, field)
        assert mine is its or [mine[position] for position in others] == [its[position] for position in others]
    assert batch.images is not None
    assert batch.images[row] is None


def test_reading_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*args: Any, **options: Any) -> None:
        raise AssertionError(f"a program was started: {args}")

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(os, "system", started)
    files = [encode(LEVELS[0]), *(content for content, _, _ in BAD_IMAGES.values())]
    for row, content in enumerate(files):
        (tmp_path / "ant").mkdir(exist_ok=True)
        (tmp_path / "ant" / f"{row:03}.eps").write_bytes(content)
    assert [status for status in only(open_points(tmp_path)).status if status.has_value] == [Status.OK]


def test_a_large_image_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    load = ImageFile.ImageFile.load

    def watched(image: ImageFile.ImageFile) -> Any:
        decoded.append(image.size)
        return load(image)

    monkeypatch.setattr(ImageFile.ImageFile, "load", watched)
    assert encoded_folder(tmp_path, [BAD_IMAGES["huge"][0], encode(LEVELS[0])]).provenance["points"] == 2
    assert set(decoded) == {(WIDTH, HEIGHT)}


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
def test_a_large_image_costs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(BAD_IMAGES["huge"][0])
    (tmp_path / "small.png").write_bytes(encode(LEVELS[0]))
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from brittle.data.images import UnreadableImage, decode\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "with Path('small.png').open('rb') as file: decode(file)\n"
        "before = peak()\n"
        "try:\n"
        "    with Path('large.png').open('rb') as file: decode(file)\n"
        "except UnreadableImage: print(peak() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50_000


@encoded
def test_no_image_can_be_read(reader: Reader, tmp_path: Path) -> None:
    refused("no_readable_image", "none of the first 2 images .*0 bytes", reader, tmp_path / "bad", [b"", b"text"])


@encoded
@pytest.mark.parametrize("kind", IMAGE_FORMATS)
def test_formats_without_loss_keep_their_pixels(reader: Reader, kind: str, tmp_path: Path) -> None:
    colour = np.random.default_rng(0).integers(0, 256, (3, HEIGHT, WIDTH), dtype=np.uint8)
    options = {"lossless": True} if kind == "WEBP" else {}
    found = only(reader(tmp_path / "images", [encode(colour, kind, **options)])).inputs
    if kind == "JPEG":
        assert found.shape == (1, 3, HEIGHT, WIDTH)
    else:
        assert torch.equal(found[0], torch.from_numpy(colour).float() / 255)


@encoded
@pytest.mark.parametrize(("first", "channels"), [("L", 1), ("1", 1), ("LA", 1), ("P", 3), ("RGB", 3), ("RGBA", 3)])
def test_the_first_image_decides_the_mode(reader: Reader, first: str, channels: int, tmp_path: Path) -> None:
    colour = Image.fromarray(np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8))
    modes = [first, "L", "1", "LA", "P", "RGB", "RGBA"]
    batch = only(reader(tmp_path / "images", [save(colour.convert(mode), "PNG") for mode in modes]))
    assert set(batch.status) == {Status.OK}
    assert batch.inputs.shape == (7, channels, HEIGHT, WIDTH)
    rgb = batch.inputs[5]
    wanted = np.asarray(colour.convert("L" if channels == 1 else "RGB"))
    assert torch.equal((255 * rgb).round().to(torch.uint8), torch.tensor(np.atleast_3d(wanted)).permute(2, 0, 1))
    assert torch.equal(batch.inputs[6], rgb)


def test_transparent_palettes_are_read(tmp_path: Path) -> None:
    image = Image.new("P", (WIDTH, HEIGHT))
    image.putpalette([200, 100, 0] * 256)
    found = only(encoded_folder(tmp_path, [save(image, "PNG", transparency=bytes(256))])).inputs[0, :, 0, 0]
    assert torch.equal((255 * found).round(), torch.tensor([200.0, 100.0, 0.0]))


def test_orientation_tags_are_ignored(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    files = [encode(LEVELS[0], "JPEG"), encode(LEVELS[0], "JPEG", exif=exif)]
    plain, turned = only(encoded_folder(tmp_path, files)).inputs
    assert torch.equal(plain, turned)


@encoded
def test_images_of_two_sizes(reader: Reader, tmp_path: Path) -> None:
    files = [encode(LEVELS[0]), encode(LEVELS[1]), encode(LEVELS[2, :, :3])]
    refused("shape_mixed", r"002.png has 8 x 3 pixels, \S*000.png 8 x 5; bring", reader, tmp_path / "images", files)


@encoded
def test_images_of_two_sizes_beyond_the_scan(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_module, "SCANNED", 2)
    points = reader(tmp_path / "images", [encode(LEVELS[0]), encode(LEVELS[1]), encode(LEVELS[2, :, :3])])
    batches = points.batches(2)
    assert len(next(batches)) == 2
    refused("shape_mixed", "8 x 3 pixels", next, batches)


# Thumbnails.


def test_thumbnails_are_small_and_only_of_images() -> None:
    large = thumbnails(torch.rand(2, 3, 100, 300), (0.0, 1.0))
    assert large is not None
    assert [Image.open(io.BytesIO(png)).size for png in large] == [(THUMBNAIL_SIDE, THUMBNAIL_SIDE // 3)] * 2
    assert thumbnails(torch.rand(2, 2, 8, 8), (0.0, 1.0)) is None
    assert thumbnails(torch.rand(2, 8), (0.0, 1.0)) is None


def test_thumbnails_cut_what_is_outside_the_bounds() -> None:
    values = torch.tensor([-5.0, -1.0, 1.0, 9.0, torch.nan, torch.inf]).view(1, 1, 1, 6)
    drawn = thumbnails(values, (-1.0, 1.0))
    assert drawn is not None
    assert np.asarray(Image.open(io.BytesIO(drawn[0]))).tolist() == [[0, 0, 255, 255, 0, 255]]


# Arrays: in memory and in .npz files.


def npz_points(path: Path, x: Any, y: Any = None, ids: Any = None, **options: Any) -> Points:
    arrays = {key: value for key, value in (("x", x), ("y", y), ("ids", ids)) if value is not None}
    np.savez(path / "data.npz", **arrays)
    return open_points(path / "data.npz", **options)


def memory_points(path: Path, x: Any, y: Any = None, ids: Any = None, **options: Any) -> Points:
    return array_points(x, y, ids, **options)


FLOATS = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)
arrays = pytest.mark.parametrize("reader", [npz_points, memory_points], ids=lambda reader: reader.__name__)


@arrays
@pytest.mark.parametrize("labels", [np.array([0, 1, 2, 1], np.int32), np.array([[0], [1], [2], [1]], np.uint8)])
def test_labels_of_any_whole_type(reader: Reader, labels: np.ndarray, tmp_path: Path) -> None:
    assert reader(tmp_path, FLOATS, labels).labels == (0, 1, 2, 1)


@arrays
@pytest.mark.parametrize(
    ("labels", "code", "match"),
    [
        (np.array([0.0, 3.0, 1.0, 2.0]), "label_dtype", r"float64; class indices .* \.astype\('int64'\)"),
        (np.array([True, False, True, False]), "label_dtype", "bool"),
        (np.array(["a", "b", "a", "b"]), "label_dtype", "class indices are whole numbers"),
        (np.eye(4, dtype=np.int64), "label_dtype", r"\(4, 4\), which looks one-hot; .*argmax\(1\)"),
        (np.arange(3), "length", r"\(3,\) for 4 points"),
    ],
)
def test_labels_of_another_form(reader: Reader, labels: np.ndarray, code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, reader, tmp_path, FLOATS, labels)


@arrays
def test_no_labels(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, FLOATS)
    assert points.labels is None
    assert only(points).labels is None
    assert only(points).images is None


@arrays
@pytest.mark.parametrize(
    ("x", "options", "code", "match"),
    [
        (np.zeros((4, 6), np.uint8), {}, "dtype", "uint8; use --scale-uint8"),
        (np.zeros((4, 6), np.int64), {}, "dtype", "int64; floating point"),
        (np.zeros((4, 6), np.complex64), {}, "dtype", "complex64"),
        (FLOATS, {"scale_uint8": True}, "dtype", "float32, not uint8; leave"),
        (np.zeros((4, 32, 32, 3), np.float32), {}, "layout", r"\(4, 32, 32, 3\), which looks channels-last"),
        (np.zeros((4, 5, 5, 1), np.float32), {}, "layout", "channels-last"),
        (FLOATS, {"layout": "nhwc"}, "layout", "needs 4 axes"),
        (FLOATS, {"layout": "chwn"}, "layout", "one of nchw, nhwc; found 'chwn'"),
        (FLOATS[0], {}, "shape", r"\(6,\); \(points, ...\)"),
        (FLOATS[:, :0], {}, "shape", "numbers in it"),
        (FLOATS[:0], {}, "empty_dataset", "at least 1"),
    ],
)
def test_inputs_of_another_form(
    reader: Reader, x: np.ndarray, options: dict[str, Any], code: str, match: str, tmp_path: Path
) -> None:
    refused(code, match, reader, tmp_path, x, **options)


@arrays
def test_channels_last_is_transposed_when_told(reader: Reader, tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((4, 8, 6, 3))
    assert torch.equal(
        inputs(reader(tmp_path, images, layout="nhwc")), torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    )
    assert inputs(reader(tmp_path, images, layout="nchw")).shape == (4, 8, 6, 3)
    assert inputs(reader(tmp_path, images[:, :3, :3])).shape == (4, 3, 3, 3)


@arrays
@pytest.mark.parametrize(
    ("ids", "expected"), [(["a", "b", "c", "d"], ("a", "b", "c", "d")), ([9, 8, 7, 6], ("9", "8", "7", "6"))]
)
def test_ids_of_ones_own(reader: Reader, ids: list[Any], expected: tuple[str, ...], tmp_path: Path) -> None:
    assert only(reader(tmp_path, FLOATS, ids=np.array(ids))).ids == expected


@arrays
def test_ids_that_do_not_fit(reader: Reader, tmp_path: Path) -> None:
    refused("duplicate_id", "rows 1 and 3 .* share the id 'b'", reader, tmp_path, FLOATS, ids=np.array(list("abcb")))
    refused("length", "3 entries for 4 points", reader, tmp_path, FLOATS, ids=np.arange(3))


@arrays
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, ">f4"])
def test_precision_is_kept_or_raised(reader: Reader, kind: Any, tmp_path: Path) -> None:
    found = inputs(reader(tmp_path, FLOATS.astype(kind)))
    assert found.dtype == (torch.float64 if kind is np.float64 else torch.float32)
    assert torch.equal(found.float(), torch.from_numpy(FLOATS.astype(kind).astype(np.float32)))


def test_tensors_are_taken_as_they_are() -> None:
    x = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    batch = only(array_points(x, torch.tensor([0, 1, 1])))
    assert torch.equal(batch.inputs, x.detach())
    assert not batch.inputs.requires_grad
    assert batch.labels == (0, 1, 1)
    assert inputs(array_points(torch.rand(3, 5).bfloat16())).dtype == torch.float32


def test_arrays_that_cannot_be_written_or_are_not_contiguous() -> None:
    x = np.broadcast_to(np.float32(0.5), (3, 5))
    assert torch.equal(inputs(array_points(x)), torch.full((3, 5), 0.5))
    assert torch.equal(inputs(array_points(FLOATS[::-1, ::2])), torch.from_numpy(FLOATS[::-1, ::2].copy()))


def test_lists_are_no_inputs() -> None:
    refused("dtype", "x is a list; a tensor or a NumPy array", array_points, [[0.0, 1.0]])


def test_memory_digest_knows_type_labels_and_ids() -> None:
    twins = [
        array_points(FLOATS),
        array_points(FLOATS.astype(np.float64)),
        array_points(FLOATS.reshape(4, 2, 3)),
        array_points(FLOATS, np.arange(4)),
        array_points(FLOATS, ids=list("abcd")),
    ]
    assert len({points.provenance["sha256"] for points in twins}) == len(twins)
    assert array_points(torch.from_numpy(FLOATS)).provenance == twins[0].provenance


SPLIT_FILES = {
    "medmnist": {"train_images": LEVELS[:1, 0], "test_images": LEVELS[:, 0], "test_labels": np.array(LABELS)[:, None]},
    "keras": {"x_train": LEVELS[:1], "x_test": LEVELS, "y_test": np.array(LABELS)},
}


@pytest.mark.parametrize("form", SPLIT_FILES)
def test_splits_in_npz(form: str, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **SPLIT_FILES[form])
    points = open_points(path, split="test", scale_uint8=True)
    assert points.labels == LABELS
    assert torch.equal(inputs(points), torch.from_numpy(LEVELS).float() / 255)
    assert set(points.provenance["keys"]) <= set(SPLIT_FILES[form])
    refused("split_missing", "holds the splits test, train; no split was named", open_points, path)
    refused("split_missing", "there is no split 'val'", open_points, path, split="val")


def test_three_axes_are_grey_images_only_under_images(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=FLOATS.reshape(4, 2, 3))
    np.savez(tmp_path / "images.npz", images=FLOATS.reshape(4, 2, 3))
    assert inputs(open_points(tmp_path / "x.npz")).shape == (4, 2, 3)
    assert inputs(open_points(tmp_path / "images.npz")).shape == (4, 1, 2, 3)


def test_npz_without_the_keys_lists_those_it_has(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", pixels=FLOATS, target=np.arange(4))
    refused("missing_key", "none of the keys x, images; it has pixels, target", open_points, tmp_path / "data.npz")


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("key", ["x", "y"])
def test_nothing_is_unpickled(key: str, tmp_path: Path) -> None:
    hostile = np.array([Canary(tmp_path / "canary")] * 4, dtype=object)
    arrays: dict[str, Any] = {"x": FLOATS} | {key: hostile}
    np.savez(tmp_path / "data.npz", **arrays)
    refused("object_array", f"{key} in .*data.npz holds Python objects", open_points, tmp_path / "data.npz")
    assert not (tmp_path / "canary").exists()


def damaged(content: bytes) -> list[bytes]:
    """A file cut short, with a broken middle, replaced by text, and empty."""
    middle = len(content) // 2
    return [content[:middle], content[:middle] + bytes(64) + content[middle + 64 :], b"text\n" * 20, b""]


@pytest.mark.parametrize("kind", range(4))
def test_a_damaged_npz(kind: int, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "data.npz", x=np.random.default_rng(0).random((50, 20)))
    (tmp_path / "data.npz").write_bytes(damaged((tmp_path / "data.npz").read_bytes())[kind])
    refused("corrupt", "data.npz is not a readable .npz file", open_points, tmp_path / "data.npz")


# Folders of images.


def test_folder_ids_are_relative_and_names_are_paths(tmp_path: Path) -> None:
    from_split_folder(tmp_path, LEVELS, LABELS)
    by_split = only(open_points(tmp_path / "images", split="test"))
    direct = only(open_points(tmp_path / "images" / "test"))
    assert by_split.ids == direct.ids
    assert by_split.ids[:3] == ("ant/000.png", "ant/001.png", "bee/002.png")
    assert by_split.names == tuple(str(tmp_path / "images" / "test" / one) for one in by_split.ids)


def test_other_files_are_counted_not_read(tmp_path: Path) -> None:
    write_folder(tmp_path, [encode(one) for one in LEVELS], LABELS)
    for name in ("notes.txt", ".hidden.png", "Thumbs.db"):
        (tmp_path / "ant" / name).write_bytes(b"x")
    (tmp_path / "bee" / "deeper").mkdir()
    (tmp_path / "bee" / "deeper" / "x.PNG").write_bytes(encode(LEVELS[0]))
    points = open_points(tmp_path)
    assert points.provenance["other_files"] == 3
    assert "bee/deeper/x.PNG" in only(points).ids


def test_a_folder_without_images(tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant" / "notes.txt").write_text("x", encoding="utf-8")
    refused("empty_dataset", r"no images in its 1 class folders \(1 other files\)", open_points, tmp_path)


def test_splits_are_not_taken_for_classes(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_folder(tmp_path / split, [encode(one) for one in LEVELS], LABELS)
    refused("split_missing", "holds the splits test, train; name one", open_points, tmp_path)
    refused("split_missing", "no folder 'val'; it has test, train", open_points, tmp_path, split="val")


@pytest.mark.parametrize(
    "name", [b'"><img src=x onerror=alert(1)>.png', b"caf\xe9.png", b"two\nlines.png", "é.png".encode()]
)
def test_names_of_any_kind(name: bytes, tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant" / os.fsdecode(name)).write_bytes(encode(LEVELS[0]))
    batch = only(open_points(tmp_path))
    assert batch.names is not None
    assert batch.ids == ("ant/" + name.decode(errors="backslashreplace"),)
    assert all(one.encode("utf-8") for one in (*batch.ids, *batch.names))


def test_a_file_that_went_away(tmp_path: Path) -> None:
    points = encoded_folder(tmp_path, [encode(one) for one in LEVELS])
    (tmp_path / "bee" / "002.png").unlink()
    refused("dataset_changed", "bee/002.png cannot be opened", lambda: list(points.batches(2)))


# Parquet.


def parquet(path: Path, table: pa.Table, name: str = "test.parquet") -> Path:
    pq.write_table(table, path / name)
    return path / name


GOOD = [encode(one) for one in LEVELS]


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
        (pa.table({"x": [1.0]}), "image_column", "has 0 columns of type struct<bytes.* Its columns: x: double"),
        (image_table(GOOD, copy=image_table(GOOD)["picture"]), "image_column", "has 2 columns"),
        (image_table(GOOD, labels=pa.array([0.0] * COUNT)), "label_dtype", "double; class indices .* cast"),
        (image_table(GOOD, label=pa.array(["a"] * COUNT)), "label_dtype", "string"),
        (image_table(GOOD, label=pa.array([0, 1, None, 0, 0, 0, 0])), "label_null", "1 nulls, the first in row 2"),
        (image_table(GOOD, id=pa.array([1, 2, 3, 1, 5, 6, 7])), "duplicate_id", "rows 0 and 3 .* '1'"),
        (image_table(GOOD, id=pa.array([None] * COUNT, pa.string())), "id_dtype", "7 nulls"),
        (image_table(GOOD).replace_schema_metadata({"huggingface": "{"}), "metadata", "metadata 'huggingface' of"),
        (image_table(GOOD).replace_schema_metadata({"huggingface": "[1]"}), "metadata", "not of the form"),
    ],
)
def test_parquet_of_another_form(table: pa.Table, code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, open_points, parquet(tmp_path, table))


def test_parquet_without_bytes_in_a_row(tmp_path: Path) -> None:
    batch = only(open_points(parquet(tmp_path, image_table([GOOD[0], None, GOOD[2]]))))
    assert batch.status == (Status.OK, Status.DECODE_ERROR, Status.OK)
    assert batch.detail[1] == "row 1 (001.png): the file is empty (0 bytes)"


@pytest.mark.parametrize("kind", range(4))
def test_a_damaged_parquet(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(image_table(GOOD, LABELS), path, write_page_checksum=True, compression="none")
    path.write_bytes(damaged(path.read_bytes())[kind])
    refused("corrupt", "test.parquet cannot be read as Parquet", lambda: list(open_points(path).batches(4)))


def test_shards_must_be_complete_and_agree(tmp_path: Path) -> None:
    table = image_table(GOOD, LABELS)
    parquet(tmp_path, table, "test-00000-of-00002.parquet")
    refused("shards_missing", "1 files of a split whose file names say 2", open_points, tmp_path)
    assert len(open_points(tmp_path / "test-00000-of-00002.parquet")) == COUNT
    parquet(tmp_path, table.drop_columns(["label"]), "test-00001-of-00002.parquet")
    refused("columns_differ", "files of a split must agree", open_points, tmp_path)


def test_splits_of_parquet_are_listed(tmp_path: Path) -> None:
    for split in ("train", "test"):
        parquet(tmp_path, image_table(GOOD), f"{split}.parquet")
    refused("split_missing", "holds the splits test, train; no split was named", open_points, tmp_path)
    refused("split_missing", "there is no split 'val'", open_points, tmp_path, split="val")
    refused("split_missing", "is the split 'test', not 'train'", open_points, tmp_path / "test.parquet", split="train")


# IDX.


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "match"),
    [
        (idx_bytes(LEVELS[:, 0])[:-1], "7 x 5 x 8 = 280 bytes and holds 279"),
        (idx_bytes(LEVELS[:, 0]) + b"x", "280 bytes and holds more"),
        (idx_bytes(LEVELS[:, 0])[:9], "begins with 00000803"),
        (idx_bytes(np.array(LABELS)), "begins with 00000801; .* begins with 00000803"),
        (b"", "begins with nothing"),
        (struct.pack(">4B3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), "holds fewer"),
        (struct.pack(">4B3I", 0, 0, 8, 3, 2, 0, 5), "images of 0 x 5 pixels"),
    ],
)
def test_a_damaged_idx_file(packed: bool, content: bytes, match: str, tmp_path: Path) -> None:
    name = "t10k-images-idx3-ubyte" + (".gz" if packed else "")
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    refused("corrupt", match, open_points, tmp_path)


@pytest.mark.parametrize("kind", range(4))
def test_a_damaged_gzip(kind: int, tmp_path: Path) -> None:
    content = gzip.compress(idx_bytes(np.random.default_rng(0).integers(0, 256, (9, 30, 30), dtype=np.uint8)))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(damaged(content)[kind])
    refused("corrupt", "t10k-images-idx3-ubyte.gz", open_points, tmp_path)


def test_idx_splits(tmp_path: Path) -> None:
    for prefix, count in (("sprite", 2), ("letters-train", 3)):
        (tmp_path / f"{prefix}-images-idx3-ubyte").write_bytes(idx_bytes(LEVELS[:count, 0]))
    refused("split_missing", "holds letters-train, sprite; no split was named", open_points, tmp_path)
    assert len(open_points(tmp_path, split="train")) == 3
    assert len(open_points(tmp_path, split="sprite")) == 2
    (tmp_path / "letters-train-images-idx3-ubyte").unlink()
    assert open_points(tmp_path).provenance["split"] == "sprite"
    assert open_points(tmp_path).labels is None


def test_idx_labels_that_are_not_as_many(tmp_path: Path) -> None:
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(3)))
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(LEVELS[:, 0]))
    refused("length", r"\(3,\) for 7 points", open_points, tmp_path)


def test_the_pixel_cap_is_below_that_of_pillow() -> None:
    assert Image.MAX_IMAGE_PIXELS is None or MAX_PIXELS <= Image.MAX_IMAGE_PIXELS
