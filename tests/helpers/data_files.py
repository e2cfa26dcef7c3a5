"""Data in every format: one function for each format writes the files and opens them."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from helpers.artefacts import refused as refused
from PIL import Image

from brittle.data import Batch, Points, array_points, open_points
from brittle.estimate import Status

COUNT, HEIGHT, WIDTH = 7, 5, 8
LEVELS = np.random.default_rng(3).integers(0, 256, (COUNT, 1, HEIGHT, WIDTH), dtype=np.uint8)
LABELS = (0, 0, 1, 1, 2, 2, 2)
CLASSES = ("ant", "bee", "cow")

Levels = np.ndarray
Labels = tuple[int, ...]


def encode(levels: np.ndarray, kind: str = "PNG", **options: Any) -> bytes:
    """Return an image file with `levels`, `[1 or 3, H, W]`."""
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


def class_columns(files: Sequence[bytes | None], **labels: Labels) -> pa.Table:
    """Return a table of images with several columns of classes, as CIFAR-100 has them."""
    table = image_table(files, **{name: pa.array(classes, pa.int64()) for name, classes in labels.items()})
    features = {name: {"names": list(CLASSES), "_type": "ClassLabel"} for name in labels}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


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
    write_folder(path / "images", [encode(image) for image in levels], labels)
    return open_points(path / "images", **options)


def from_split_folder(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    write_folder(path / "images" / "test", [encode(image) for image in levels], labels)
    return open_points(path / "images", split="test", **options)


def from_parquet(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    pq.write_table(image_table([encode(image) for image in levels], labels), path / "test.parquet", row_group_size=3)
    return open_points(path / "test.parquet", **options)


def from_shards(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    table = image_table([encode(image) for image in levels], labels)
    for shard, part in enumerate((table[:2], table[2:])):
        pq.write_table(part, path / f"test-{shard:05}-of-00002.parquet")
    pq.write_table(table[:1], path / "train.parquet")
    return open_points(path, split="test", **options)


def from_idx(path: Path, levels: Levels, labels: Labels, **options: Any) -> Points:
    (path / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(levels[:, 0]))
    (path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(np.array(labels, np.int64))))
    return open_points(path, **options)


READERS = (from_memory, from_npz, from_folder, from_split_folder, from_parquet, from_shards, from_idx)
Reader = Callable[..., Points]


def inputs(points: Points, size: int = COUNT) -> torch.Tensor:
    return torch.cat([batch.inputs for batch in points.batches(size)])


def only(points: Points) -> Batch:
    (batch,) = points.batches(1000)
    return batch


def grey_png(width: int, height: int) -> bytes:
    """Return the file of a black image, written without holding it in memory."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer = zlib.compressobj(wbits=-15)
    row = packer.compress(bytes(width + 1)) + packer.flush(zlib.Z_FULL_FLUSH)  # the same bytes wherever it stands
    adler = struct.pack(">I", height * (width + 1) % 65521 << 16 | 1)
    rows = b"\x78\x9c" + height * row + packer.flush() + adler
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
    "gif": (frames("GIF", 5), Status.DECODE_ERROR, "not an image in PNG, JPEG"),
    "tiff": (frames("TIFF", 5), Status.DECODE_ERROR, "not an image in PNG"),
    "eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 5\n", Status.DECODE_ERROR, "not an image in PNG"),
    "svg": (b'\n<svg xmlns="http://www.w3.org/2000/svg"/>', Status.DECODE_ERROR, "not an image in PNG"),
    "cmyk": (save(Image.new("CMYK", (WIDTH, HEIGHT)), "JPEG"), Status.IMAGE_MODE, "mode CMYK"),
    "16_bit": (save(Image.fromarray(np.zeros((HEIGHT, WIDTH), np.uint16)), "PNG"), Status.IMAGE_MODE, "mode I;16"),
}


def encoded_folder(path: Path, files: list[bytes]) -> Points:
    write_folder(path, files, LABELS[: len(files)])
    return open_points(path)


def damaged(content: bytes) -> list[bytes]:
    """Return a file cut short, with a broken middle, replaced by text, and empty."""
    middle = len(content) // 2
    return [content[:middle], content[:middle] + bytes(64) + content[middle + 64 :], b"text\n" * 20, b""]
