"""Images that say in their EXIF data that they are turned are taken as their pixels lie, and counted."""

from __future__ import annotations

import io
import struct
import time
import tracemalloc
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.data_files import LABELS, encode, only, write_folder
from helpers.problems import small_classifier
from PIL import Image

import brittle
from brittle.data import Points, open_points
from brittle.estimate import Status
from brittle.scores import Softmax

ORIENTATION = 0x0112
COLOUR = np.random.default_rng(5).integers(0, 256, (3, 5, 8), dtype=np.uint8)


def tag(number: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = number
    return exif


def folder(path: Path, files: Sequence[bytes]) -> Points:
    write_folder(path / "images", list(files), LABELS[:1] * len(files))
    return open_points(path / "images")


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_an_image_is_taken_as_its_pixels_lie(kind: str, number: int, tmp_path: Path) -> None:
    content = encode(COLOUR, kind, exif=tag(number))
    with Image.open(io.BytesIO(content)) as image:
        raw = np.asarray(image).transpose(2, 0, 1)
    batch = only(folder(tmp_path, [content]))
    assert np.array_equal((255 * batch.inputs[0]).round().numpy(), raw)
    assert batch.turned == (number != 1,)


def chunks(png: bytes) -> list[bytes]:
    """The parts of a PNG file: its signature, and each chunk."""
    found, place = [png[:8]], 8
    while place < len(png):
        end = place + 12 + int.from_bytes(png[place : place + 4], "big")
        found.append(png[place:end])
        place = end
    return found


def test_exif_data_may_follow_the_pixels(tmp_path: Path) -> None:
    """As some programs write PNG files; a damaged one among them costs its row alone."""
    parts = chunks(encode(COLOUR, exif=tag(6)))
    own = next(part for part in parts if part[4:8] == b"eXIf")
    late = b"".join(part for part in parts[:-1] if part is not own) + own + parts[-1]
    assert late != b"".join(parts)
    batch = only(folder(tmp_path, [late, late[:-60], late]))
    assert batch.status == (Status.OK, Status.DECODE_ERROR, Status.OK)
    assert batch.turned == (True, False, True)


# Damaged EXIF data


def tiff(*entries: tuple[int, int, int, int], order: str = "<", start: int = 8, count: int | None = None) -> bytes:
    """EXIF data with these entries: tag, type, count and value."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", start)
    listed = b"".join(struct.pack(f"{order}HHIHxx", *entry) for entry in entries)
    return head + struct.pack(f"{order}H", len(entries) if count is None else count) + listed + bytes(4)


SHORT, UNDEFINED = 3, 7
SOUND = (ORIENTATION, SHORT, 1, 6)
OTHER = (0x010F, SHORT, 1, 8)
DAMAGED = {
    "a prefix alone": b"Exif\0\0",
    "text": b"These are not tags, and there are many of them.",
    "entries beyond the end": tiff(SOUND, start=2**32 - 1),
    "cut short": tiff(SOUND)[:14],
    "no orientation, and more entries than there are": tiff(OTHER, count=65535),
    "0": tiff((ORIENTATION, SHORT, 1, 0)),
    "65535": tiff((ORIENTATION, SHORT, 1, 65535)),
}


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_damaged_exif_data_say_nothing_and_cost_nothing(kind: str, tmp_path: Path) -> None:
    files = [encode(COLOUR, kind, exif=b"Exif\0\0" + content, quality=90) for content in DAMAGED.values()]
    points = folder(tmp_path, [encode(COLOUR, kind, quality=90), *files])
    batch = only(points)
    assert set(batch.status) == {Status.OK}
    assert not any(batch.turned or ())
    assert all(torch.equal(one, batch.inputs[0]) for one in batch.inputs)


def hungry(size: int, count: int, tags: int) -> bytes:
    """EXIF data of at least `size` bytes: many tags that each claim to be all of it."""
    entries = [struct.pack("<HHII", 0x9000 + number % tags, UNDEFINED, size - 8, 8) for number in range(count)]
    return (b"II*\0" + struct.pack("<IH", 8, count + 1) + b"".join(entries)).ljust(size, b"\0")


@pytest.mark.parametrize(
    ("said", "turned"),
    [
        (hungry(700_000, 28672, 28672), False),  # 20 GB, under names of their own
        (tiff(SOUND) + bytes(700_000), True),
    ],
    ids=["many tags", "a long preview"],
)
def test_no_exif_data_are_too_much(said: bytes, turned: bool, tmp_path: Path) -> None:
    own = struct.pack(">I", len(said)) + b"eXIf" + said + struct.pack(">I", zlib.crc32(b"eXIf" + said))
    parts = chunks(encode(COLOUR))
    began = time.process_time()
    tracemalloc.start()
    batch = only(folder(tmp_path, [b"".join([*parts[:2], own, *parts[2:]])]))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (batch.status, batch.turned) == ((Status.OK,), (turned,))
    assert most < 400_000_000
    assert time.process_time() - began < 5


# Runs


def test_a_run_counts_the_images_that_are_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", 8)
    squares = np.random.default_rng(1).integers(0, 256, (20, 1, 6, 6), dtype=np.uint8)
    files = [encode(one, exif=tag(3 if row % 3 == 0 else 1)) for row, one in enumerate(squares)]
    table = brittle.score(small_classifier(), folder(tmp_path, files), [Softmax()], batch_size=6)
    assert table.record.account.turned == 7
    (note,) = [one.sentence for one in table.record.warnings if one.code == "exif_orientation"]
    assert "7 of 20 images" in note
